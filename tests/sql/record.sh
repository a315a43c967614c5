#!/usr/bin/env bash
# Records what Apache Flink gives for the scripts, beside NAME.sql:
#   NAME.expected        the rows that are left when all changes of its results are applied, sorted
#   NAME.batch.expected  the same in batch mode, and NAME.steps.expected, the rows that come in, in order: where such files are there
# and in append_only.txt the scripts of which Flink plans to take nothing back.
#   FLINK_SQL=path/to/flink-sql tests/sql/record.sh [script.sql…]
# flink-sql prints the changelog of each SELECT of the scripts that it is given: row kind and values, separated by tabs. MODE is streaming
# or batch, CONF has settings, CLASSES the JARs of Avro and Parquet.
set -euo pipefail
: "${FLINK_SQL:?the program that runs SQL scripts on Flink and prints changelogs}"
flink_sql=$(realpath "$(command -v "$FLINK_SQL")")
folder=$(cd "$(dirname "$0")" && pwd)
scripts=()
for script in "$@"; do scripts+=("$(realpath "$script")"); done
cd "$folder"
[ $# -gt 0 ] || mapfile -t scripts < <(find "$folder" -name '*.sql' ! -name '*.flink.sql' | sort -V)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# In a folder of their own scripts read "data"; what they write goes below "out".
ln -s "$folder/data" "$tmp/data"
: >"$tmp/plans"

# The query that a script ends in, so that its plan can be asked for.
last_query() {
  awk '/^[ \t]*--/ { next } { now = now $0 "\n" } /;[ \t]*$/ { last = now; now = "" }
    END { sub(/^[ \t\n]+/, "", last); if (last ~ /^(SELECT|WITH)/) printf "%s", last }' "$1"
}

# Scripts with the same mode and settings run in one process, which takes long to start; each in a database of its own.
declare -A groups
n=0
for script in "${scripts[@]}"; do
  run=$script
  if [ -e "${script%.sql}.flink.sql" ]; then run=${script%.sql}.flink.sql; fi
  results=("streaming ${script%.sql}.expected")
  if grep -q '^-- record: batch' "$script"; then
    results=("batch ${script%.sql}.expected")
  elif [ -e "${script%.sql}.batch.expected" ]; then
    # Batch mode gives something else: no row is late there.
    results+=("batch ${script%.sql}.batch.expected")
  fi
  if [ -e "${script%.sql}.steps.expected" ]; then results+=("streaming ${script%.sql}.steps.expected"); fi
  settings=$(sed -n "s/^SET '\([^']*\)' = '\([^']*\)';$/\1=\2/p" "$run" | paste -s -d ';')
  for result in "${results[@]}"; do
    n=$((n + 1))
    {
      echo "USE CATALOG default_catalog; CREATE DATABASE d$n; USE d$n; SELECT '#### ${result#* }';"
      grep -v "^SET '" "$run" | sed "s|'out/|'out/$n/|g"
      # Nobody asks how Flink would stream what it cannot run.
      query=$(last_query "$run" | sed "s|'out/|'out/$n/|g")
      if [ "$result" = "streaming ${script%.sql}.expected" ] && [ "$run" = "$script" ] && [ -n "$query" ]; then
        printf "SELECT '#### plan';\nEXPLAIN CHANGELOG_MODE %s\n" "$query"
      fi
    } >"$tmp/$n.sql"
    groups["${result%% *} $settings"]+=" $n"
  done
done

# Runs scripts, and writes what is recorded of them.
record() { # MODE SETTINGS NUMBER…
  local mode=$1 settings=$2
  shift 2
  rm -rf "$tmp/out"
  (cd "$tmp" && MODE=$mode CONF="table.dml-sync=true;$settings" "$flink_sql" "${@/%/.sql}") >"$tmp/out.txt" || return 1
  awk -F '\t' -v plans="$tmp/plans" '
    function row_ends() {
      if (kind == "") return
      is_addition = kind ~ /^[+]/
      if (file !~ /[.]steps[.]expected$/) count[row] += is_addition ? 1 : -1
      else if (is_addition) print row > file
      kind = ""
    }
    function script_ends(  one, i, sort) {
      row_ends()
      if (file == "") return
      if (file ~ /[.]steps[.]expected$/) { close(file); file = ""; return }
      sort = "LC_ALL=C sort > \"" file "\""
      printf "" | sort
      for (one in count) {
        if (count[one] < 0) { print file ": deleted and not there: " one > "/dev/stderr"; failed = 1 }
        for (i = 0; i < count[one]; i++) print one | sort
      }
      close(sort)
      delete count
    }
    $2 == "#### plan" { of = file; script_ends(); file = ""; is_plan = 1; next }
    $2 ~ /^#### / { script_ends(); file = substr($2, 6); is_plan = 0; is_optimized = 0; next }
    # Of the plan the first operator counts, which makes the result.
    is_plan && /^== Optimized Physical Plan ==/ { is_optimized = 1; next }
    is_plan && is_optimized && match($0, /changelogMode=\[[A-Z,]*\]/) {
      print (substr($0, RSTART, RLENGTH) == "changelogMode=[I]" ? "append" : "change"), of >> plans
      is_optimized = 0
    }
    is_plan { next }
    /^([+]I|-U|[+]U|-D)\t/ { row_ends(); kind = $1; row = substr($0, 4); next }
    # A value of several lines.
    { row = row "\\n" $0 }
    END { script_ends(); exit failed }
  ' "$tmp/out.txt"
}

# One script that fails ends the process for all: it is looked for in either half.
failed=()
record_all() { # MODE SETTINGS NUMBER…
  if record "$@"; then return; fi
  local mode=$1 settings=$2
  shift 2
  if [ $# -eq 1 ]; then
    failed+=("$(sed -n "1s/.*#### \(.*\)';$/\1/p" "$tmp/$1.sql")")
    return
  fi
  record_all "$mode" "$settings" "${@:1:$# / 2}"
  record_all "$mode" "$settings" "${@:$# / 2 + 1}"
}
for group in "${!groups[@]}"; do
  read -r -a numbers <<<"${groups[$group]}"
  record_all "${group%% *}" "${group#* }" "${numbers[@]}"
done

# Those that were asked about come out of the list, and in again if nothing of them is taken back.
list=$folder/append_only.txt
touch "$list"
names() { sed -n "s|^$1 $folder/\(.*\)\.expected$|\1|p" "$tmp/plans"; }
{ grep -vxF -f <(names '[a-z]*') "$list" || true; names append; } | LC_ALL=C sort -u -o "$list"

if [ ${#failed[@]} -gt 0 ]; then
  printf 'not recorded: %s\n' "${failed[@]}" >&2
  exit 1
fi

#!/usr/bin/env bash
# Records what Apache Flink gives for the scripts, as NAME.expected beside NAME.sql; and as NAME.batch.expected what it gives in
# batch mode, where such a file is there.
#   FLINK_SQL=path/to/flink-sql tests/sql/record.sh [script.sql…]
# flink-sql prints the changelog of each SELECT of the scripts that it is given: row kind and values, separated by tabs. MODE is streaming
# or batch, CONF has settings.
set -euo pipefail
: "${FLINK_SQL:?the program that runs SQL scripts on Flink and prints changelogs}"
folder=$(cd "$(dirname "$0")" && pwd)
scripts=()
for script in "$@"; do scripts+=("$(realpath "$script")"); done
cd "$folder"
[ $# -gt 0 ] || mapfile -t scripts < <(find "$folder" -name '*.sql' ! -name '*.flink.sql' | sort -V)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

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
  settings=$(sed -n "s/^SET '\([^']*\)' = '\([^']*\)';$/\1=\2/p" "$run" | paste -s -d ';')
  for result in "${results[@]}"; do
    n=$((n + 1))
    echo "USE CATALOG default_catalog; CREATE DATABASE d$n; USE d$n; SELECT '#### ${result#* }';" >"$tmp/$n.head.sql"
    grep -v "^SET '" "$run" >"$tmp/$n.sql"
    groups["${result%% *} $settings"]+=" $tmp/$n.head.sql $tmp/$n.sql"
  done
done

# Files are written to "out".
ln -s "$folder/data" "$tmp/data"
cd "$tmp"
for group in "${!groups[@]}"; do
  read -r -a files <<<"${groups[$group]}"
  MODE=${group%% *} CONF="table.dml-sync=true;${group#* }" "$FLINK_SQL" "${files[@]}" >"$tmp/out.txt"
  # What is left when all changes are applied, sorted.
  awk -F '\t' '
    function finish(  row, i, sort) {
      if (file == "") return
      sort = "LC_ALL=C sort > \"" file "\""
      printf "" | sort
      for (row in count) {
        if (count[row] < 0) { print file ": deleted and not there: " row > "/dev/stderr"; failed = 1 }
        for (i = 0; i < count[row]; i++) print row | sort
      }
      close(sort)
      delete count
    }
    $2 ~ /^#### / { finish(); file = substr($2, 6); next }
    { count[substr($0, 4)] += substr($1, 1, 1) == "+" ? 1 : -1 }
    END { finish(); exit failed }
  ' "$tmp/out.txt"
done

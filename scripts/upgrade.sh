#!/usr/bin/env bash
# The upgrade demo: examples/accounts goes from its first version to its second while it runs, after two upgrades that must not
# succeed, is rescaled, and still writes what one uninterrupted run would. Stops everything that it started, also on an
# error or Ctrl-C. With FLOTT_BIN_DIR it builds nothing: the programs are in that folder.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

target=${CARGO_TARGET_DIR:-$HOME/.cache/flott/target}
bins=${FLOTT_BIN_DIR:-$target/debug}
flott=$bins/flott
v1=$bins/accounts-v1
v2=$bins/accounts-v2
wait_s_max=180 # for each thing that is waited for

if [ -t 1 ]; then bold=$'\e[1m' red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'; else bold='' red='' green='' plain=''; fi
step() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
note() { printf '   %s\n' "$*"; }
fail() { printf '%supgrade demo failed: %s%s\n' "$red" "$*" "$plain" >&2; exit 1; }

work=$(mktemp -d "${TMPDIR:-/tmp}/flott-upgrade.XXXXXX")
cluster=$work/cluster
entries=$work/entries
savepoints=$work/savepoints

# The pids of the cluster's processes.
pids() {
  python3 -c 'import json, sys; print(*[process["pid"] for process in json.load(open(sys.argv[1]))["processes"]])' \
    "$cluster/cluster.json"
}

clean_up() {
  local status=$?
  trap - EXIT INT TERM
  set +e
  step "stopping everything"
  if [ -e "$cluster/cluster.json" ]; then
    local left; left=$(pids)
    "$flott" cluster stop --dir "$cluster" >/dev/null 2>&1
    # Only what survived the orderly way.
    for pid in $left; do
      if [ "$(readlink "/proc/$pid/exe")" = "$(readlink -f "$flott")" ]; then kill -9 "$pid" 2>/dev/null; fi
    done
  fi
  if [ $status -eq 0 ]; then rm -rf "$work"; else note "logs and output are kept in $work"; fi
  exit $status
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Shows a command and runs it, with what it prints indented. Its exit code is the command's.
try() {
  printf '   $ flott %s\n' "$*"
  local code=0
  "$flott" "$@" >"$work/printed" 2>&1 || code=$?
  sed 's/^/   /' "$work/printed"
  return $code
}

show() { try "$@" || fail "flott $1 failed"; }

show_refusal() {
  if try "$@"; then fail "flott $1 should have been refused"; else note "exit code $?"; fi
}

# Prints what a Python expression makes of the JSON `it` at a path of the REST API.
rest() {
  python3 - "http://$address$1" "$2" <<'PYTHON'
import json, sys, urllib.request
url, expression = sys.argv[1:]
# The cluster is on this machine, so no proxy is asked.
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(eval(expression, {"it": json.load(opener.open(url, timeout=10))}))
PYTHON
}

# Waits until the one job that has not ended has completed so many further checkpoints.
until_checkpoints() {
  local until_s=$((SECONDS + wait_s_max)) job state completed aim=''
  while true; do
    job=$(rest /jobs/overview \
      'next((j["jid"] for j in it["jobs"] if j["state"] not in ("FINISHED", "FAILED", "CANCELED")), "none")')
    [ "$job" != none ] || fail "no job runs any more: $(rest /jobs/overview 'it["jobs"]')"
    state=$(rest "/jobs/$job" 'it["state"]')
    completed=$(rest "/jobs/$job/checkpoints" 'it["counts"]["completed"]')
    if [ "$state" = RUNNING ]; then
      aim=${aim:-$((completed + $1))}
      [ "$completed" -lt "$aim" ] || break
    fi
    [ $SECONDS -lt $until_s ] || fail "waited $wait_s_max s in vain for checkpoints of job $job, which is $state"
    sleep 0.2
  done
  note "$(date +%T) $state, checkpoint $completed"
}

# Compares what is committed so far with what one uninterrupted run of one version would write.
check_entries() {
  local count
  count=$(python3 examples/accounts/expected.py --check "$entries") || fail "the output is wrong"
  note "${green}$count entries, each as in one uninterrupted run: none lost, none twice, balances continuous$plain"
}

if [ -z "${FLOTT_BIN_DIR:-}" ]; then
  step "building (the first time takes minutes)"
  CARGO_TARGET_DIR=$target cargo build --workspace --bins
fi

step "starting one JobManager and two TaskManagers with two slots each"
read -r rest_port rpc_port < <(python3 -c '
import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*[s.getsockname()[1] for s in sockets])')
show cluster start --taskmanagers 2 --slots 2 --dir "$cluster" -D rest.port="$rest_port" -D jobmanager.rpc.port="$rpc_port"
address=127.0.0.1:$rest_port

step "running the first version: a balance and a count for each account"
engine=(-m "$address" -p 2 -D execution.checkpointing.interval=500ms)
job=(-- --output "$entries")
show run -d "${engine[@]}" "$v1" "${job[@]}"
until_checkpoints 3
check_entries

step "what the second version would make of a savepoint, before anything is done"
savepoint=$("$flott" savepoint -m "$address" accounts "$savepoints")
show savepoint --check "$v2" "$savepoint" "${job[@]}"

step "what is in it"
show state "$savepoint"
show state "$savepoint" 'SELECT key, value.total_cents, value.transactions, value.note FROM account ORDER BY 2 DESC LIMIT 5'

step "an upgrade to a version with another type of key: refused, and the job does not notice"
upgrade=(upgrade accounts "$v2" "${engine[@]}" --savepoint-dir "$savepoints")
show_refusal "${upgrade[@]}" "${job[@]}" --wrong-key
until_checkpoints 1

step "an upgrade to a version that fails: the first one goes on"
show_refusal "${upgrade[@]}" --timeout 10s "${job[@]}" --broken
until_checkpoints 2
check_entries

step "the upgrade"
show "${upgrade[@]}" "${job[@]}"
until_checkpoints 2
check_entries

step "rescaling it to four subtasks while it runs"
show rescale -m "$address" accounts -p 4
until_checkpoints 2

step "stopping it, and looking at what the second version has kept"
savepoint=$("$flott" stop -m "$address" -p "$savepoints" accounts)
show state "$savepoint"
show state "$savepoint" \
  'SELECT key, value.balance_cents, value.transactions, value.largest_cents, value.refunds FROM account ORDER BY 2 DESC LIMIT 5'
show state "$savepoint" 'SELECT count(*) AS accounts, sum(value.transactions) AS transactions FROM account'

step "the result"
check_entries

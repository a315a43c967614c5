#!/usr/bin/env bash
# The demo: a cluster of one JobManager and two TaskManagers counts a year of flights, loses a TaskManager to kill -9
# on the way, and still gets every number right. Stops everything that it started, also on an error or Ctrl-C.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

target=${CARGO_TARGET_DIR:-$HOME/.cache/flott/target}
data=$(realpath -m "${FLOTT_DATA_DIR:-.data}")
golden=examples/flights/golden
flott=$target/debug/flott
wait_s_max=180 # for each thing that is waited for

if [ -t 1 ]; then bold=$'\e[1m' red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'; else bold='' red='' green='' plain=''; fi
step() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
note() { printf '   %s\n' "$*"; }
show() { printf '   $ flott %s\n' "$*"; }
fail() { printf '%sdemo failed: %s%s\n' "$red" "$*" "$plain" >&2; exit 1; }

work=$(mktemp -d "${TMPDIR:-/tmp}/flott-demo.XXXXXX")
cluster=$work/cluster
replacement=''

# The pids of the cluster's processes with this role; of all without one.
pids() {
  python3 - "$cluster/cluster.json" "${1:-}" <<'PYTHON'
import json, os, sys
path, role = sys.argv[1:]
if os.path.exists(path):
    for process in json.load(open(path))["processes"]:
        if role in ("", process["role"]):
            print(process["pid"])
PYTHON
}

clean_up() {
  local status=$?
  trap - EXIT INT TERM
  set +e
  step "stopping everything"
  if [ -n "$replacement" ]; then kill "$replacement" 2>/dev/null; fi
  if [ -e "$cluster/cluster.json" ]; then
    local left; left=$(pids)
    "$flott" cluster stop --dir "$cluster" >/dev/null 2>&1
    # Only what survived the orderly way.
    for pid in $left; do
      if [ "$(readlink "/proc/$pid/exe")" = "$(readlink -f "$flott")" ]; then kill -9 "$pid" 2>/dev/null; fi
    done
  fi
  if [ -n "$replacement" ]; then
    for _ in $(seq 50); do kill -0 "$replacement" 2>/dev/null || break; sleep 0.1; done
    kill -9 "$replacement" 2>/dev/null
  fi
  if [ $status -eq 0 ]; then rm -rf "$work"; else note "logs and output are kept in $work"; fi
  exit $status
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

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

# Sets state, rows, completed, restored and restored_id to what the job is at now.
observe() {
  read -r state rows < <(rest "/jobs/$job" '"{} {}".format(it["state"],
    sum(v["metrics"]["write-records"] for v in it["vertices"] if v["name"].startswith("Source")))') ||
    fail "no answer from http://$address/jobs/$job"
  read -r completed restored restored_id < <(rest "/jobs/$job/checkpoints" '"{completed} {restored} {id}".format(
    **it["counts"], id=(it["latest"].get("restored") or {}).get("id", "none"))') ||
    fail "no answer from http://$address/jobs/$job/checkpoints"
  local line="$state, $rows rows read, $completed checkpoints"
  if [ "$line" != "${last_line:-}" ]; then note "$(date +%T) $line"; last_line=$line; fi
  if [ "$state" = FAILED ] || [ "$state" = CANCELED ]; then
    fail "the job is $state: $(rest "/jobs/$job/exceptions" 'it.get("root-exception")')"
  fi
}

# Observes the job until a condition holds.
until_job() {
  local until_s=$((SECONDS + wait_s_max))
  observe
  while ! eval "$1"; do
    [ $SECONDS -lt $until_s ] || fail "waited $wait_s_max s in vain for: $2"
    sleep 0.5
    observe
  done
}

# The visible lines below a folder of the file sink; hidden files are not committed.
lines_of() { find "$1" -type f ! -name '.*' ! -name '_*' -exec cat {} + | sort; }

# Compares the lines below a folder with a golden file.
compare() {
  lines_of "$1" >"$work/found.csv"
  if cmp -s "$work/found.csv" "$2"; then
    note "${green}equal to $2, all $(wc -l <"$2") lines$plain"
  else
    diff "$work/found.csv" "$2" | head -n 10 || true
    fail "$1 differs from $2 (< found, > expected)"
  fi
}

step "building (the first time takes minutes)"
CARGO_TARGET_DIR=$target cargo build --workspace --bins
[ -e "$data/flights-events.csv" ] || fail "no $data/flights-events.csv: 'make demo' fetches it, or scripts/fetch-flights.py"

step "starting one JobManager and two TaskManagers with two slots each"
show "cluster start --taskmanagers 2 --slots 2 --dir $cluster"
read -r rest_port rpc_port < <(python3 -c '
import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*[s.getsockname()[1] for s in sockets])')
"$flott" cluster start --taskmanagers 2 --slots 2 --dir "$cluster" \
  -D rest.port="$rest_port" -D jobmanager.rpc.port="$rpc_port"
address=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["rest"])' "$cluster/cluster.json")
note "REST API: http://$address (try http://$address/jobs/overview while this runs)"

step "submitting the job: hourly departures and mean delay per airport, in event time"
run=(run -d -m "$address" -p 2 -D execution.checkpointing.interval=1s "$target/debug/flights" --
  --input "$data/flights-events.csv" --output "$work/hourly" --late "$work/late" --rows-per-second 40000)
show "${run[*]}"
"$flott" "${run[@]}"
job=$(rest /jobs/overview 'it["jobs"][0]["jid"]')
until_job '[ "$state" = RUNNING ] && [ "$completed" -ge 2 ]' "two checkpoints"

step "killing a TaskManager that works on it, with kill -9"
victim=$(pids taskmanager | python3 -c '
import pathlib, sys
managers = [int(line) for line in sys.stdin]
parents = set()
for status in pathlib.Path("/proc").glob("[0-9]*/status"):
    try:
        parents.update(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("PPid:"))
    except OSError:
        pass  # the process has just ended
# One with a child: the worker process that runs its part of the job.
print(next((pid for pid in managers if pid in parents), managers[0]))')
kill -9 "$victim"
note "$(date +%T) killed process $victim"
until_job '[ "$restored" -ge 1 ]' "a restore"
note "${green}restored from checkpoint $restored_id$plain"

step "starting another TaskManager in its place"
show "taskmanager -D jobmanager.rpc.port=$rpc_port -D taskmanager.numberOfTaskSlots=2"
"$flott" taskmanager -D jobmanager.rpc.port="$rpc_port" -D taskmanager.numberOfTaskSlots=2 >"$work/replacement.log" 2>&1 &
replacement=$!
show "list -m $address"
"$flott" list -m "$address"
until_job '[ "$state" = FINISHED ]' "the end of the job"

step "the result"
lines_of "$work/hourly" >"$work/hourly.csv"
head -n 9 "$work/hourly.csv" | sed 's/^/   /'
note "... $(wc -l <"$work/hourly.csv") lines in all, and $(lines_of "$work/late" | wc -l) flights came too late for their hour"
compare "$work/hourly" "$golden/hourly.csv"
compare "$work/late" "$golden/late.csv"
note "nothing lost, nothing twice; the REST API was at http://$address"

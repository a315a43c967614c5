#!/usr/bin/env python3
"""What a job on Apache Flink 2.3 does while its state moves, as the peer of our benchmarks:

    bench/flink/state.py kill|rescale|upgrade|savepoint MEGABYTES

A running aggregate of MEGABYTES of state on the heap, on a cluster of processes with three TaskManagers, which reads
50 000 numbers a second and prints every seventh result with its time. Prints one JSON object: the state's size, and how
long no result of some 128th of the keys came, or how long the savepoint took. Needs Java 17 with its compiler.

- kill: kill -9 of a TaskManager, the others have slots for its subtasks
- rescale: from 4 subtasks to 12 by the adaptive scheduler
- upgrade: stop with a savepoint, and start of the same job from it
- savepoint: a savepoint in the canonical format; the job goes on

Flink's generator makes each second's numbers at the second's start: up to 0.9 s without results are normal.
"""

import datetime
import json
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENTRY_BYTES = 1000
GROUPS = 128
ROWS_PER_SECOND = 50_000
TASK_MANAGERS = 3
PATIENCE_S = 300

# The value of each key is a text of 992 bytes.
STATEMENTS = [
    "CREATE TABLE numbers (k BIGINT) WITH ('connector'='datagen', 'rows-per-second'='{rows}',"
    " 'fields.k.min'='0', 'fields.k.max'='{last}')",
    "CREATE TABLE results (k BIGINT, n BIGINT, note_bytes INT, result_time TIMESTAMP_LTZ(3)) WITH ('connector'='print')",
    # A condition on the count cannot be pushed below the aggregate.
    "INSERT INTO results SELECT k, n, CHAR_LENGTH(note), CURRENT_ROW_TIMESTAMP() FROM (SELECT k, COUNT(*) AS n,"
    " MAX(REPEAT(MD5(CAST(k AS STRING)), 31)) AS note FROM numbers GROUP BY k) WHERE MOD(k + n, 7) = 0",
]
RESULT = re.compile(rb"\+[IU]\[(\d+), \d+, \d+, (\S+)Z\]")
OPENS = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ["util", "lang", "time", "nio", "net"]]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Cluster:
    """A JobManager and its TaskManagers, which end with it."""

    def __init__(self, folder):
        self.folder = folder
        self.jars = ":".join(str(jar) for jar in Path(run([HERE / "fetch.sh"]).strip()).glob("*.jar"))
        self.port = free_port()
        self.options = {
            "jobmanager.rpc.address": "127.0.0.1",
            "jobmanager.rpc.port": free_port(),
            "jobmanager.scheduler": "adaptive",
            "rest.address": "127.0.0.1",
            "rest.bind-address": "127.0.0.1",
            "rest.port": self.port,
            "taskmanager.host": "127.0.0.1",
            "taskmanager.numberOfTaskSlots": 4,
            "taskmanager.load-balance.mode": "SLOTS",
            "taskmanager.cpu.cores": 2,
            "taskmanager.memory.task.heap.size": "3000m",
            "taskmanager.memory.task.off-heap.size": "0m",
            "taskmanager.memory.framework.heap.size": "128m",
            "taskmanager.memory.framework.off-heap.size": "128m",
            "taskmanager.memory.network.min": "128m",
            "taskmanager.memory.network.max": "128m",
            "taskmanager.memory.managed.size": "16m",
            "taskmanager.memory.jvm-metaspace.size": "256m",
            "taskmanager.memory.jvm-overhead.min": "128m",
            "taskmanager.memory.jvm-overhead.max": "128m",
            # As quick to notice and to try again as we are.
            "heartbeat.interval": "500 ms",
            "heartbeat.timeout": "5 s",
            "restart-strategy.type": "exponential-delay",
            "restart-strategy.exponential-delay.initial-backoff": "100 ms",
            "pipeline.object-reuse": "true",
            "parallelism.default": 4,
            "state.backend.type": "hashmap",
            "execution.state-recovery.from-local": "true",
            "execution.checkpointing.interval": "10 s",
            "execution.checkpointing.dir": f"file://{folder}/checkpoints",
            "execution.target": "remote",
            "io.tmp.dirs": folder,
            "process.working-dir": folder / "processes",
        }
        lines = [f"{key}: {value}\n" for key, value in self.options.items()]
        (folder / "config.yaml").write_text("".join(lines))
        run(["javac", "-nowarn", "-d", folder, "-cp", self.jars, HERE / "Submit.java"])
        self.processes = {}
        self.start("jobmanager", "runtime.entrypoint.StandaloneSessionClusterEntrypoint", "512m")
        for number in range(TASK_MANAGERS):
            self.start(f"taskmanager-{number}", "runtime.taskexecutor.TaskManagerRunner", "3200m")
        wait("TaskManagers", lambda: self.get("/overview")["taskmanagers"] == TASK_MANAGERS, 0.5)

    def java(self, heap, main):
        options = [f"-Xmx{heap}", *OPENS, f"-Djava.io.tmpdir={self.folder}", "-Dlog4j2.level=ERROR"]
        return ["java", *options, "-cp", f"{self.folder}:{self.jars}", main]

    def start(self, name, main, heap):
        command = [*self.java(heap, f"org.apache.flink.{main}"), "--configDir", self.folder]
        if name != "jobmanager":
            command += ["-D", f"taskmanager.resource-id={name}"]
        output = open(self.folder / f"{name}.out", "wb")
        self.processes[name] = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def submit(self, keys, **options):
        pairs = [f"{key}={value}" for key, value in (self.options | options).items()]
        statements = [text.format(rows=ROWS_PER_SECOND, last=keys - 1) for text in STATEMENTS]
        run([*self.java("512m", "Submit"), *pairs, "--", *statements])
        jobs = self.get("/jobs/overview")["jobs"]
        return max(jobs, key=lambda job: job["start-time"])["jid"]

    def request(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, method=method)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"{}")

    def get(self, path):
        return self.request("GET", path)

    def vertices(self, job):
        return self.get(f"/jobs/{job}")["vertices"]

    def completed(self, job):
        """The checkpoints and savepoints of a job that are complete, the newest first."""
        history = self.get(f"/jobs/{job}/checkpoints")["history"]
        return [done for done in history if done["status"] == "COMPLETED"]

    def state_bytes(self, job):
        """The size of a job's last checkpoint; 0 if there is none."""
        return next((done["state_size"] for done in self.completed(job)), 0)

    def operation(self, path, body):
        """Runs what is asked for with one request and asked after with others."""
        trigger = self.request("POST", path, body)["request-id"]
        path = f"{path.rsplit('/', 1)[0]}/savepoints/{trigger}"
        operation = wait(path, lambda: self.get(path).get("operation"), 0.1)
        if "location" not in operation:
            raise RuntimeError(f"{path}: {operation}")
        return operation["location"]

    def results(self):
        """The times of all results with their groups, in order."""
        results = []
        for path in self.folder.glob("taskmanager-*.out"):
            for key, at in RESULT.findall(path.read_bytes()):
                at = datetime.datetime.fromisoformat(at.decode() + "+00:00")
                results.append((at.timestamp(), int(key) % GROUPS))
        results.sort()
        return results

    def longest_gap(self, since):
        """The longest time without results that a group has had when all have results again."""

        def ended():
            now = time.time() - 0.1
            recent = {group for at, group in self.results() if now - 2 < at <= now}
            return len(recent) == GROUPS and now

        time.sleep(5)
        until = wait("results", ended, 5)
        last, longest = dict.fromkeys(range(GROUPS), since), 0
        for at, group in [*self.results(), *((until, group) for group in range(GROUPS))]:
            if since < at <= until:
                longest = max(longest, at - last[group])
                last[group] = at
        return longest

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.kill()
            process.wait()


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def wait(what, is_there, pause):
    """Asks again and again until there is an answer that counts."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            answer = is_there()
        except OSError:
            answer = None
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: nothing after {PATIENCE_S} s")
        time.sleep(pause)


def measure(cluster, case, job, keys):
    if case == "savepoint":
        cluster.operation(f"/jobs/{job}/savepoints", {"target-directory": f"file://{cluster.folder}/savepoints"})
        # The history is up to three seconds old.
        savepoints = wait("the savepoint", lambda: [d for d in cluster.completed(job) if d["is_savepoint"]], 1)
        return {"savepoint_seconds": savepoints[0]["end_to_end_duration"] / 1e3}
    since = time.time()
    if case == "kill":
        vertex = cluster.vertices(job)[-1]["id"]
        victim = cluster.get(f"/jobs/{job}/vertices/{vertex}")["subtasks"][0]["taskmanager-id"]
        since = time.time()
        cluster.processes[victim].kill()
    elif case == "rescale":
        path = f"/jobs/{job}/resource-requirements"
        bounds = {"parallelism": {"lowerBound": 1, "upperBound": 12}}
        cluster.request("PUT", path, {vertex: bounds for vertex in cluster.get(path)})
        wait("12 subtasks", lambda: all(vertex["parallelism"] == 12 for vertex in cluster.vertices(job)), 1)
    elif case == "upgrade":
        target = {"targetDirectory": f"file://{cluster.folder}/savepoints", "drain": False}
        savepoint = cluster.operation(f"/jobs/{job}/stop", target)
        cluster.submit(keys, **{"execution.state-recovery.path": savepoint})
    return {"gap_seconds": cluster.longest_gap(since)}


def main():
    case, megabytes = sys.argv[1], int(sys.argv[2])
    keys = megabytes * 1_000_000 // ENTRY_BYTES
    with tempfile.TemporaryDirectory(prefix="flott-flink-") as folder, Cluster(Path(folder)) as cluster:
        job = cluster.submit(keys)
        # Keys are random: the last few percent would take long.
        wait("the state", lambda: cluster.state_bytes(job) > 0.95 * keys * ENTRY_BYTES, 1)
        # Between two checkpoints.
        time.sleep(5)
        state_bytes = cluster.state_bytes(job)
        print(json.dumps({"state_bytes": state_bytes, **measure(cluster, case, job, keys)}))


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("kill", "rescale", "upgrade", "savepoint"):
        sys.exit(__doc__)
    main()

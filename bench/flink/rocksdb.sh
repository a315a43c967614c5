#!/usr/bin/env bash
# Sums for keys at random in the RocksDB that Flink 2.3 ships (RocksSums.java):
#
#   bench/flink/rocksdb.sh FOLDER BUDGET_BYTES KEYS SECONDS
#
# Prints one JSON object: {"rows_per_second": ...}. Needs Java 17 with its compiler, and Flink's jars as run.sh does.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
classes=$("$here/compile.sh" RocksSums)
exec java -Xmx256m -cp "$classes" RocksSums "$@"

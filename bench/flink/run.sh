#!/usr/bin/env bash
# The word count of our benchmark on Apache Flink 2.3, as the peer to compare with:
#
#   bench/flink/run.sh INPUT_FOLDER [PARALLELISM]
#
# Prints one JSON object: {"job_seconds": ..., "process_seconds": ..., "words": ..., "distinct": ...}. Java options come from
# FLINK_JAVA_OPTS. Needs Java 17 with its compiler; the jars come from PyPI, once, into FLINK_HOME_DIR.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
input=${1:?usage: run.sh INPUT_FOLDER [PARALLELISM]}
parallelism=${2:-2}
classes=$("$here/compile.sh" WordCount)

# shellcheck disable=SC2086 # the options are words
exec java ${FLINK_JAVA_OPTS:--Xmx3g} --add-opens=java.base/java.util=ALL-UNNAMED \
  --add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/java.time=ALL-UNNAMED \
  -Dlog4j2.level=ERROR -cp "$classes" WordCount "$input" "$parallelism" 2> >(grep -vE 'log4j|SLF4J|WARN' >&2)

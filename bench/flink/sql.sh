#!/usr/bin/env bash
# Runs SQL statements on Apache Flink 2.3 in one process, as the peer to compare with (see Sql.java for the form):
#
#   bench/flink/sql.sh STATEMENTS_FILE
#
# Java options come from FLINK_JAVA_OPTS, more classes and jars from FLINK_CLASSES. Needs Java 17 with its compiler; the jars
# come from PyPI, once, into FLINK_HOME_DIR.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
statements=${1:?usage: sql.sh STATEMENTS_FILE}
home=${FLINK_HOME_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/flink-2.3}

lib=$("$here/fetch.sh")
jars=$(printf '%s:' "$lib"/*.jar)
classes=$home/bench-classes
if [ ! -e "$classes/Sql.class" ] || [ "$here/Sql.java" -nt "$classes/Sql.class" ]; then
  mkdir -p "$classes"
  javac -nowarn -d "$classes" -cp "$jars" "$here/Sql.java"
fi

# shellcheck disable=SC2086 # the options are words
exec java ${FLINK_JAVA_OPTS:--Xmx6g} --add-opens=java.base/java.util=ALL-UNNAMED \
  --add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/java.time=ALL-UNNAMED \
  -Dlog4j2.level=ERROR -cp "$classes:$jars${FLINK_CLASSES:-}" Sql "$statements" 2> >(grep -vE 'log4j|SLF4J|WARN' >&2)

#!/usr/bin/env bash
# Compiles a class of this folder against Flink's jars, if it has changed, and prints the class path to run it with.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=${1:?usage: compile.sh CLASS}
home=${FLINK_HOME_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/flink-2.3}

lib=$("$here/fetch.sh")
jars=$(printf '%s:' "$lib"/*.jar)
classes=$home/bench-classes
if [ ! -e "$classes/$name.class" ] || [ "$here/$name.java" -nt "$classes/$name.class" ]; then
  mkdir -p "$classes"
  javac -nowarn -d "$classes" -cp "$jars" "$here/$name.java"
fi
echo "$classes:$jars"

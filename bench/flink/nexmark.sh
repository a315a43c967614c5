#!/usr/bin/env bash
# Compiles the generator of the Nexmark suite for Apache Flink 2.3, once, and prints the folder of its classes. Its sources are
# those in NEXMARK_HOME, a checkout of github.com/nexmark/nexmark; if that is not set, they are cloned into the cache.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/flott/bench
sources=${NEXMARK_HOME:-$cache/nexmark}
classes=$cache/nexmark-classes
if [ ! -e "$classes/.done" ]; then
  if [ ! -d "$sources" ]; then
    echo "cloning the Nexmark suite into $sources" >&2
    GIT_TERMINAL_PROMPT=0 git clone -q --depth 1 https://github.com/nexmark/nexmark "$sources" >&2
  fi
  jars=$(printf '%s:' "$("$here/fetch.sh")"/*.jar)
  main=$sources/nexmark-flink/src/main
  package=com/github/nexmark/flink
  rm -rf "$classes"
  mkdir -p "$classes"
  javac -nowarn -d "$classes" -cp "$jars" -sourcepath "$main/java" \
    "$main/java/$package/source/NexmarkTableSourceFactory.java"
  cp -r "$main/resources/META-INF" "$classes/"
  touch "$classes/.done"
fi
echo "$classes"

#!/usr/bin/env bash
# Fetches the jars of Flink 2.3 from PyPI, once, into FLINK_HOME_DIR, and prints the folder that they lie in.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=$here/../../.venv/bin/python
[ -x "$python" ] || python=python3
home=${FLINK_HOME_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/flink-2.3}

if [ ! -d "$home/pyflink/lib" ]; then
  echo "fetching Flink 2.3 into $home" >&2
  mkdir -p "$home"
  unpacked=$(mktemp -d "$home/.unpacking.XXXXXX")
  trap 'rm -rf "$unpacked"' EXIT
  "$python" -m pip download -q --disable-pip-version-check --no-deps -d "$unpacked" apache-flink-libraries==2.3.0 >&2
  for archive in "$unpacked"/apache_flink_libraries-*; do
    case $archive in
      *.whl) "$python" -m zipfile -e "$archive" "$unpacked" ;;
      *.tar.gz) tar -xzf "$archive" -C "$unpacked" --strip-components=1 ;;
    esac
  done
  # Whole or not at all, also when two runs fetch at once.
  mv -T "$unpacked/pyflink" "$home/pyflink" 2>/dev/null || [ -d "$home/pyflink/lib" ]
  rm -rf "$unpacked"
fi
echo "$home/pyflink/lib"

#!/usr/bin/env bash
# Installs what a bare Debian machine with Rust, make, Python 3 and Java lacks for building, testing and showing
# Flott. Says what it installs, does nothing when all is there, and can be run again at any time.
#
#   scripts/setup.sh          for make demo, test and check
#   scripts/setup.sh bench    for make bench as well: the Java compiler
set -euo pipefail
cd "$(dirname "$0")/.."

RUST_MIN=1.92 # the newest that a dependency in Cargo.lock asks for

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

missing=()
need() { missing+=("$@"); }

# C parts of dependencies: ring, zstd, mimalloc.
has cc || need gcc
echo '#include <stdlib.h>' | cc -E - >/dev/null 2>&1 || need libc6-dev
# The demo's data and readers of savepoints come by pip, which lives in a virtual environment of this checkout.
has python3 || need python3
[ -x .venv/bin/python ] || python3 -c 'import ensurepip, venv' 2>/dev/null || need python3-venv
# The peer of the word count benchmark is compiled here.
if [ "${1:-}" = bench ]; then has javac || need default-jdk-headless; fi

if [ ${#missing[@]} -gt 0 ]; then
  if has apt-get && [ "$(id -u)" = 0 ]; then as_root=()
  elif has apt-get && has sudo; then as_root=(sudo)
  else fail "missing: ${missing[*]} (Debian's names): install them, or run this as root on Debian"
  fi
  say "installing ${missing[*]} by apt-get"
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get update -qq >&2
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
fi

# A virtual environment that was interrupted halfway, or whose Python is gone, is made again.
if ! .venv/bin/python -c 'import pip' 2>/dev/null; then
  say "making a Python environment in .venv for the demo's data and the tests"
  rm -rf .venv
  python3 -m venv .venv
fi

# What a test reads savepoints with, since others than Flott must be able to.
readers=(duckdb==1.4.5 pyarrow==22.0.0)
if ! .venv/bin/python -c '
import importlib.metadata, sys
wanted = [reader.split("==") for reader in sys.argv[1:]]
sys.exit(any(importlib.metadata.version(name) != version for name, version in wanted))' "${readers[@]}" 2>/dev/null; then
  say "installing ${readers[*]} into .venv for the tests"
  .venv/bin/python -m pip install -q --disable-pip-version-check "${readers[@]}" >&2 ||
    fail "could not install ${readers[*]} with pip: is the package index reachable? Then run this again"
fi

export PATH="$PATH:$HOME/.cargo/bin"
has cargo || fail "no cargo: install Rust $RUST_MIN or newer with rustup, then run this again"
rust=$(rustc --version | awk '{print $2}')
[ "$(printf '%s\n' "$RUST_MIN" "$rust" | sort -V | head -n 1)" = "$RUST_MIN" ] ||
  fail "Rust $rust is too old: 'rustup update stable' brings $RUST_MIN or newer"

components=()
cargo fmt --version >/dev/null 2>&1 || components+=(rustfmt)
cargo clippy --version >/dev/null 2>&1 || components+=(clippy)
if [ ${#components[@]} -gt 0 ]; then
  if has rustup && rustup component add "${components[@]}" >&2; then
    say "added ${components[*]} to the Rust toolchain"
  else
    say "could not add ${components[*]} to the Rust toolchain: 'make check' needs them, everything else works"
  fi
fi

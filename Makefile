# make demo · make upgrade-demo · make test · make check · make bench · make bench-nexmark: each installs what it needs first.

# All checkouts build into one folder, so that a fresh clone does not build the dependencies again.
export CARGO_TARGET_DIR ?= $(HOME)/.cache/flott/target
export PATH := $(PATH):$(HOME)/.cargo/bin

.PHONY: help demo upgrade-demo test check bench bench-nexmark setup setup-bench data
.DEFAULT_GOAL := help

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "Built into $(CARGO_TARGET_DIR) (CARGO_TARGET_DIR)."

demo: data ## a cluster of three processes, a job on real data, a kill -9, and the right result
	scripts/demo.sh

upgrade-demo: setup ## a job in two versions: checked, upgraded, rescaled, and its state queried
	scripts/upgrade.sh

# The end-to-end tests start the programs that the first line builds.
test: data ## all tests, those with real processes and kills included
	cargo build --workspace --bins
	cargo test --workspace --no-fail-fast

check: setup ## formatting, lints, licences; edits nothing
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	@if command -v cargo-deny >/dev/null; then cargo deny check bans licenses sources; \
	else echo "skipped: cargo deny check (bans, licences and sources of dependencies); 'cargo install cargo-deny' brings it"; fi

bench: setup-bench ## the benchmarks, side by side with their peers; appends to bench/results.json
	cargo build --release --workspace --bins
	$(CARGO_TARGET_DIR)/release/flott-bench

bench-nexmark: setup-bench ## the queries of Nexmark beside Apache Flink; writes docs/nexmark.md and its plot
	cargo build --release --workspace --bin flott --bin flott-bench
	$(CARGO_TARGET_DIR)/release/flott-bench --only nexmark

setup:
	@scripts/setup.sh

setup-bench:
	@scripts/setup.sh bench

data: setup
	@.venv/bin/python scripts/fetch-flights.py

# deepstrike: everything lives in .venv, made here from any Python 3.10 or later.
#   make demo    a real agent loop with the embedded model          make fmt     format Rust and Python
#   make test    every test, at reduced counts                      make lint    clippy, ruff, import rules
#   make torture every test at full counts, then docs/measured.md   make types   mypy, stubtest
#   make bench   ratios beside floors measured in the same run      make wheel   a wheel in dist/
#   make check   what CI runs                                       make docs    the docs as a site, in target/site
#   make clean   remove all that was built
# PYTHON=/path/to/python chooses the interpreter, SEED=n repeats a run's random tests, WORKERS=n runs n tests at once.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory --no-builtin-rules

VENV := .venv
BIN := $(VENV)/bin
LOGS := target/logs
PURE := -p deepstrike-kernel -p deepstrike-tokens
SOURCES := $(shell find crates \( -name '*.rs' -o -name Cargo.toml \) -not -path '*/tests/*' -not -path '*/benches/*' 2>/dev/null) $(wildcard Cargo.toml Cargo.lock)
TYPED := tests bench examples docsite
PYTHONS := python $(TYPED)
SEED := $(or $(SEED),$(shell od -An -N3 -tu4 /dev/urandom | tr -d ' '))
WORKERS ?= 2
TEST_SECONDS ?= 120
PYTEST_ARGS ?=

export CARGO_TERM_COLOR ?= auto
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONPATH PYTHONHOME

# $(call quietly,name,what it does,command): one line on the screen, the rest in a log that is shown when it fails.
quietly = mkdir -p $(LOGS); echo "· $(2)"; $(3) >$(LOGS)/$(1).log 2>&1 </dev/null || { cat $(LOGS)/$(1).log >&2; exit 1; }

.PHONY: help build demo test torture bench bench-context bench-peers fmt fmt-check lint types docs check clean wheel cargo packages

help:
	@sed -n '2,8p' Makefile | cut -c3-

# What must be there before anything is built: one line says what is missing.
RUST = $(shell sed -n 's/^rust-version *= *"\(.*\)"/\1/p' Cargo.toml)
FOUND = $(shell cargo --version | cut -d' ' -f2)
USABLE = $(shell "$(CHOSEN)" -c 'import sys, venv, ensurepip; print("" if sys.version_info < (3, 10) else "yes")' 2>/dev/null)

cargo:
	$(if $(shell command -v cargo),,$(error deepstrike needs cargo (Rust $(RUST) or later) and found none on PATH: install a Rust toolchain))
	$(if $(shell command -v cc),,$(error deepstrike needs a C compiler as the linker and found no cc on PATH: install gcc or clang))
	$(if $(shell printf '%s\n' $(RUST) $(FOUND) | sort -VC && echo yes),,$(error deepstrike needs Rust $(RUST) or later and found $(FOUND): update the toolchain))
	@:

$(BIN)/python:
	$(eval CHOSEN := $(or $(PYTHON),$(shell .ci/pythons | sed -n 1p | cut -d' ' -f2-)))
	$(if $(CHOSEN),,$(error deepstrike needs Python 3.10 or later with its venv module and found none: install one or name it with PYTHON=/path/to/python))
	$(if $(USABLE),,$(error deepstrike needs Python 3.10 or later with its venv module, and $(CHOSEN) is missing or older or has no venv))
	@echo "· virtual environment in $(VENV) ($$("$(CHOSEN)" --version))"; "$(CHOSEN)" -m venv --clear $(VENV)

$(VENV)/build.stamp: | $(BIN)/python
	@$(call quietly,pip,tools to build with,$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1' 'maturin>=1.9$(comma)<2')
	@touch $@

$(VENV)/dev.stamp: pyproject.toml | cargo $(VENV)/build.stamp
	@$(call quietly,dev,tools to test with,$(BIN)/python -m pip install --quiet --group dev)
	@touch $@

$(VENV)/docs.stamp: pyproject.toml | $(VENV)/build.stamp
	@$(call quietly,docs-tools,tools to build the docs with,$(BIN)/python -m pip install --quiet --group docs)
	@touch $@

$(VENV)/kernel.stamp: $(SOURCES) pyproject.toml | cargo $(VENV)/build.stamp
	@$(call quietly,kernel,the kernel (a minute or two the first time),$(BIN)/maturin develop --release --locked)
	@touch $@

comma := ,

build: $(VENV)/kernel.stamp

demo: build
	@$(BIN)/deepstrike demo

test: $(VENV)/kernel.stamp $(VENV)/dev.stamp
	@echo "· seed $(SEED) (SEED=$(SEED) repeats the random tests)"
	@export PROPTEST_RNG_SEED=$(SEED); \
	    if cargo nextest --version >/dev/null 2>&1; then cargo nextest run $(PURE) --locked --status-level fail --cargo-quiet </dev/null; \
	    else cargo test $(PURE) --locked --quiet </dev/null; fi
	@DEEPSTRIKE_SEED=$(SEED) $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --timeout $(TEST_SECONDS) --hypothesis-seed=$(SEED) $(PYTEST_ARGS) </dev/null

torture: export DEEPSTRIKE_FULL := 1
torture: export PROPTEST_CASES ?= 100000
torture: $(VENV)/kernel.stamp $(VENV)/dev.stamp
	@mkdir -p target/torture; echo "· seed $(SEED), $(PROPTEST_CASES) cases of each property"
	@PROPTEST_RNG_SEED=$(SEED) cargo test --release $(PURE) --locked </dev/null 2>&1 | tee target/torture/rust.txt | grep -E '^test result|FAILED|panicked' || true
	@! grep -qE '^error|FAILED' target/torture/rust.txt
	@DEEPSTRIKE_SEED=$(SEED) $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --timeout 3600 --hypothesis-seed=$(SEED) -o junit_family=xunit1 --junitxml=target/torture/python.xml $(PYTEST_ARGS) </dev/null
	@$(BIN)/python -m bench --json target/torture/bench.json
	@$(BIN)/python -m bench.measured target/torture $(SEED) >docs/measured.md; echo "· docs/measured.md written"

bench: $(VENV)/kernel.stamp $(VENV)/dev.stamp
	@$(BIN)/python -m bench $(BENCH_ARGS)

bench-context: $(VENV)/kernel.stamp $(VENV)/dev.stamp
	@$(BIN)/python -m bench.context $(wildcard ../shared/data/tau_airline.json) $(BENCH_ARGS)

bench-peers: $(VENV)/kernel.stamp
	@bench/peers.sh $(BIN)/python $(BENCH_ARGS)

fmt: $(VENV)/dev.stamp
	@cargo fmt --all; $(BIN)/ruff check --quiet --select I --fix $(PYTHONS); $(BIN)/ruff format --quiet $(PYTHONS)

fmt-check: $(VENV)/dev.stamp
	@echo "· format"; cargo fmt --all --check; $(BIN)/ruff format --quiet --check $(PYTHONS)

lint: $(VENV)/kernel.stamp $(VENV)/dev.stamp
	@echo "· lint"; cargo clippy --workspace --all-targets --locked --quiet -- -D warnings; $(BIN)/ruff check --quiet $(PYTHONS)
	@$(call quietly,layers,import rules,$(BIN)/lint-imports)

types: $(VENV)/kernel.stamp $(VENV)/dev.stamp
	@echo "· types"; $(BIN)/mypy --no-error-summary; $(BIN)/mypy --no-error-summary $(TYPED)
	@$(call quietly,stub,the stub against the binary,$(BIN)/python -m mypy.stubtest deepstrike._kernel)

wheel: $(VENV)/build.stamp | cargo
	@rm -rf dist; $(call quietly,wheel,wheel in dist/,$(BIN)/maturin build --release --locked --out dist)
	@ls dist/*.whl

# Without a link or a page that is not there: every warning is an error.
docs: $(VENV)/kernel.stamp $(VENV)/docs.stamp
	@$(call quietly,docs,the docs in target/site,env NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict)

packages:
	@$(call quietly,packages,system packages that tests use,.ci/packages)

check: packages fmt-check lint types docs wheel
	@DEEPSTRIKE_WHEEL=$$(ls $(CURDIR)/dist/*.whl) $(MAKE) test
	@echo "· all checks passed"

clean:
	@rm -rf $(VENV) target dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache python/deepstrike/_kernel*.so

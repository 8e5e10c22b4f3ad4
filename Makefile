# Every target sets up what it needs: Python 3.11 and make are enough to start.
SHELL := /bin/bash
# Without bytecode on disk every process compiles all it imports: a second and more for each.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help

# Systems build their Python with optimisations, version managers by default do not: a third slower.
PYTHON ?= $(shell /usr/bin/python3.11 -c 'import ensurepip' 2>/dev/null && echo /usr/bin/python3.11 || command -v python3.11 || command -v python3)
UV_VERSION := 0.13.7
BIN := .venv/bin
UV := $(BIN)/uv
READY := .venv/.ready
BENCH := .venv-bench
BENCH_READY := $(BENCH)/.ready
# One more than there are processors: some tests wait for processes that they have started.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PYTEST := $(BIN)/pytest -n $(WORKERS)

# How often `make test-flaky` repeats tests; T names them.
N ?= 20

.PHONY: help install lock up down demo-reset local-store browser postgres fmt lint types layers collect test test-quick test-long test-flaky coverage \
        check docs-check pictures bench bench-read corpus-update clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(READY) ## make the environment and install the pinned packages

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11 ...")'
	$(PYTHON) -m venv .venv
	$(UV) --version >/dev/null 2>&1 || $(BIN)/python -m pip install --quiet uv==$(UV_VERSION)
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $(READY)

lock: $(READY) ## resolve the newest allowed versions and rewrite requirements.lock
	$(UV) pip compile pyproject.toml --group dev --upgrade --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-annotate --no-emit-index-url --quiet -o requirements.lock
	UV=$(UV) deploy/locks/make.sh

up: $(READY) ## the platform with its example, until Ctrl-C; ENGINE=local for no Spark, DAGSTER_PORT, SERVER_PORT, ...
	@$(BIN)/python -m omnigraph_assets.local up

down: $(READY) ## stop a platform that was started elsewhere
	@$(BIN)/python -m omnigraph_assets.local down

demo-reset: $(READY) ## delete the graph of `make up`, its drops and its Dagster
	@$(BIN)/python -m omnigraph_assets.local reset

local-store: $(READY) ## a graph on an S3 store of this machine, served over HTTP until Ctrl-C
	deploy/s3-local.sh

fmt: $(READY) ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(READY) ## formatting, lint and spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell

types: $(READY) ## mypy, strict
	$(BIN)/mypy

layers: $(READY) ## who may import whom
	$(BIN)/lint-imports --no-logo

collect: $(READY) ## import every test once: a mistake shows early, and the workers of a run find the bytecode
	@found=$$($(BIN)/pytest --collect-only -q 2>&1) || { echo "$$found"; exit 1; }

test: $(READY) browser ## the whole behaviour once
	$(PYTEST) --durations=25

test-quick: $(READY) ## while editing: no Spark, no servers, no browsers
	$(PYTEST) -m quick tests/unit tests/guards

test-long: $(READY) browser postgres ## everything again: ten times the examples, every variant, every store
	HYPOTHESIS_PROFILE=long $(PYTEST) -m "" --durations=25

test-flaky: $(READY) browser postgres ## repeat tests on a busy machine: N=20 T=path, without T all that start processes
	$(BIN)/python -m tests.support.flaky --times $(N) --workers $(WORKERS) $(or $(T),--processes tests)

coverage: $(READY) browser ## the tests of `make test`, and which lines they run: at least 90 of 100
	$(PYTEST) --cov --cov-report=term

browser: ## Chromium, in which the tests look at the platform
	@command -v chromium >/dev/null || { \
	  sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	  $$sudo apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends chromium >/dev/null; }

postgres: ## Postgres, in which a deployed Dagster keeps its state; installed, and not started
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { \
	  sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	  $$sudo mkdir -p /etc/postgresql-common && \
	  echo 'create_main_cluster = false' | $$sudo tee /etc/postgresql-common/createcluster.conf >/dev/null && \
	  $$sudo apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends postgresql >/dev/null; }

docs-check: $(READY) ## every snippet of the docs, and the guards
	$(BIN)/pytest tests/docs tests/guards

pictures: $(READY) browser ## make the pictures of the platform in docs/images/platform anew; then look at each
	SCREENSHOTS=docs/images/platform $(BIN)/pytest -m "" -p no:randomly tests/integration/platform/live/test_pages.py

bench: $(READY) ## speed as ratios, and counts: compiling, commits, writes, merges, serving, Spark, a live platform
	$(BIN)/python -m benchmarks.compile
	$(BIN)/python -m benchmarks.commit
	$(BIN)/python -m benchmarks.write
	$(BIN)/python -m benchmarks.merge
	$(BIN)/python -m benchmarks.serve
	$(BIN)/python -m benchmarks.spark
	$(BIN)/python -m benchmarks.embed
	$(BIN)/python -m benchmarks.platform
	$(BIN)/python -m benchmarks.platform.live

bench-read: $(BENCH_READY) ## reads beside other engines, in an environment that has them
	$(BENCH)/bin/python -m benchmarks.read

$(BENCH_READY): $(READY) benchmarks/read/requirements.txt
	$(PYTHON) -m venv $(BENCH)
	$(UV) pip install --quiet --python $(BENCH)/bin/python -r requirements.lock -r benchmarks/read/requirements.txt
	@touch $(BENCH_READY)

corpus-update: $(READY) ## rewrite the expectations under tests/corpus; then read the diff
	CORPUS_UPDATE=1 $(BIN)/pytest -k corpus

check: lint types layers test ## everything a change must pass

clean: ## remove the environment and every cache
	rm -rf .venv $(BENCH) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*

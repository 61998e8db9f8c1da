# Two commands on a bare machine with Python 3.11+ and make: `make demo` and `make test`.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
MINISTACK := .venv-ministack/.installed
CLASSES := $(VENV)/spark/.made
WORKERS ?= auto

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONDONTWRITEBYTECODE :=
# Where Spark finds its classes in one file, if it was made: tests have homes of their own.
export MIRE_SPARK_CLASSES := $(abspath $(dir $(CLASSES)))

.PHONY: help setup demo test check format lint types layers unit thorough bench docs pins clean

help: ## Show this list
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) $(MINISTACK) ## Create .venv with the pinned packages and mire itself

$(STAMP): requirements/dev.txt pyproject.toml scripts/venv.sh
	@scripts/venv.sh "$(PYTHON)" "$(VENV)"
	@$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# An environment of its own: ministack pins a botocore that is not ours.
$(MINISTACK): requirements/ministack.txt scripts/venv.sh
	@scripts/venv.sh "$(PYTHON)" "$(@D)"
	@$(@D)/bin/python -m pip install --quiet --require-hashes --requirement requirements/ministack.txt
	@touch $@

# The tests start Spark dozens of times, and each takes half as long.
$(CLASSES): $(STAMP)
	@mkdir -p $(@D)
	@$(BIN)/mire spark prepare > $@

demo: $(STAMP) ## The main job, end to end, printing what it does
	@PATH="$(abspath $(BIN)):$$PATH" bash scripts/demo.sh
	@$(BIN)/python scripts/sparkdemo.py

test: ## Everything CI runs
	@# What is set up once and what is checked, side by side: each of them keeps one processor busy.
	@$(MAKE) --no-print-directory --jobs=2 check $(MINISTACK) $(CLASSES)
	@$(MAKE) --no-print-directory unit

check: format lint types layers ## Format check, lint, types and layer contracts

format: $(STAMP)
	@$(BIN)/ruff format --quiet --check . || { echo "run: $(BIN)/ruff format ."; exit 1; }

lint: $(STAMP)
	@$(BIN)/ruff check --quiet .

types: $(STAMP)
	@$(BIN)/mypy

layers: $(STAMP)
	@$(BIN)/lint-imports --no-cache --no-logo

unit: $(STAMP) $(MINISTACK) $(CLASSES) ## All tests
	@$(BIN)/pytest -n $(WORKERS)

thorough: $(STAMP) $(MINISTACK) $(CLASSES) ## Property tests with many more examples (minutes)
	@MIRE_HYPOTHESIS=thorough $(BIN)/pytest -n $(WORKERS)

bench: $(STAMP) ## Measure start-up, writes and the catalog beside plain Python, files and SQLite
	@$(BIN)/python bench/startup.py
	@$(BIN)/python bench/puts.py
	@$(BIN)/python bench/catalog.py 2000 10

docs: $(STAMP) ## Regenerate docs/cli.md and docs/errors.md
	@$(BIN)/python scripts/docs.py

pins: $(STAMP) ## Recompile the hashed requirements from pyproject.toml (needs uv)
	@for group in "" "--group dev --all-extras"; do \
	  out=requirements/$$([ -z "$$group" ] && echo runtime || echo dev).txt; \
	  uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	    --no-emit-index-url --no-emit-find-links $$group pyproject.toml -o $$out; done
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-emit-index-url --no-emit-find-links requirements/ministack.in -o requirements/ministack.txt

clean: ## Remove the environment and caches
	@rm -rf $(VENV) .venv-ministack .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

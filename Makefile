# Each target does its own set-up; a second run reinstalls nothing. `make help` lists them.
# Overridable: PYTHON (interpreter), VENV (environment folder), EXTRAS, CONSTRAINTS, VENV_FLAGS
# (for example --system-site-packages where a GPU machine already has torch and CuPy).
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
VENV_FLAGS ?=
CONSTRAINTS ?= .github/constraints.txt
HAS_GPU := $(shell nvidia-smi -L >/dev/null 2>&1 && echo yes)
EXTRAS ?= dev$(if $(HAS_GPU),$(comma)gpu)
comma := ,
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-$(subst $(comma),-,$(EXTRAS))

.DEFAULT_GOAL := help
.PHONY: help setup bench test test-slow lint dashboard clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

$(STAMP): pyproject.toml $(CONSTRAINTS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV_FLAGS) $(VENV)
	$(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS) --editable '.[$(EXTRAS)]'
	@touch $@

setup: $(STAMP) ## make the virtual environment

bench: $(STAMP) ## measure the suite, write the store, print the verdicts
	$(BIN)/python -m pytest --benchmark --benchmark-only -q -r fE perftests $(ARGS)

lint: $(STAMP) ## ruff, mypy strict, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Two workers; a file's tests stay together, so that what they share is made once.
test: lint ## every check: lints, types, import contracts, unit, property and correctness tests
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not slow" $(ARGS)

test-slow: $(STAMP) ## the tests that take minutes: kills, many writers, other projects, scale
	$(BIN)/python -m pytest -q -m slow $(ARGS)

dashboard: $(STAMP) ## serve the dashboard on the store
	$(BIN)/bandwatch dashboard $(ARGS)

clean: ## remove the environment and caches; the store stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

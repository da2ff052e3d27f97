# Two commands do everything, environment included: `make run` and `make test`.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# pip's own setting for extra wheel folders also counts for the faster installer used here.
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
export WHYCRASH_HOME ?= $(CURDIR)/.whycrash

.PHONY: run test check lint types eval lab bench lock clean

$(STAMP): requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep '^uv==' requirements.lock)"
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

run: $(STAMP)  ## Bring the index up to date and explain the bundled sample crash.
	@$(BIN)/whycrash ingest
	@$(BIN)/whycrash explain eval/incidents/w-tinyzero-h20-cublas-sigfpe/log.txt --config eval/incidents/w-tinyzero-h20-cublas-sigfpe/run.sh

test: $(STAMP)  ## Run the tests.
	@$(BIN)/python -m pytest

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/whycrash corpus lint

types: $(STAMP)
	@$(BIN)/mypy

check: lint types test  ## Lint, types, tests: what CI runs.

eval: $(STAMP)  ## Score the answers against the labelled incidents.
	@$(BIN)/python -m eval

lab: $(STAMP)  ## Make failures for real and record them as incidents under out/lab.
	@$(BIN)/python -m eval.lab --out out/lab

bench: $(STAMP)  ## Measure speed and memory.
	@$(BIN)/python -m eval.bench

lock: pyproject.toml  ## Resolve every extra together and write the exact versions.
	@$(BIN)/uv pip compile pyproject.toml --all-extras --python-version 3.11 --no-header --no-annotate --no-emit-index-url --quiet -o requirements.lock
	@# Written without the build's local tag: the tag names a wheel that only some indexes carry.
	@sed -i 's/^\(torch==[0-9.]*\)+.*/\1/' requirements.lock

clean:
	rm -rf $(VENV) .whycrash out

# Two commands do everything, environment included: `make run` and `make test`.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# pip's own setting for extra wheel folders also counts for the faster installer used here.
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)

# Tests start the program hundreds of times: what was compiled once is kept, whatever the surroundings say.
export PYTHONDONTWRITEBYTECODE :=

# On a terminal the installer shows what it loads and how far it is; elsewhere the steps' lines are enough.
QUIET := $(if $(MAKE_TERMOUT),,--quiet)

.PHONY: install run sample test test-all check lint types gate eval lab bench soak fuzz attack sbom audit lock wheel clean

$(STAMP): requirements.lock pyproject.toml
	@echo "1/4 A Python environment in $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > $(VENV)/installer.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(VENV)/installer.txt
	@# What has another hash than the lock says is refused, here and above.
	@echo "2/4 The $$(grep -c == requirements.lock) packages of the lock file, 3 GB: the first time some minutes"
	@# Compiled at once: a start should not compile five hundred modules, whoever owns the folder.
	@$(BIN)/uv pip install $(QUIET) --compile-bytecode --python $(BIN)/python --requirements requirements.lock
	@echo "3/4 whycrash itself"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@echo "4/4 Its modules, compiled"
	@$(BIN)/python -m compileall -q corpus ingest service eval/*.py ui whycrash
	@touch $@

install: $(STAMP)  ## Install what the lock file names.

run: $(STAMP)  ## Bring the index up to date, then serve the chat page and the API; ctrl-C stops them.
	@echo "Bringing the index up to date; the first time it is built"
	@$(BIN)/whycrash ingest
	@echo "Starting the server; ctrl-C stops it"
	@$(BIN)/whycrash serve

sample: $(STAMP)  ## Explain the bundled sample crash.
	@$(BIN)/whycrash explain eval/incidents/w-easyr1-offload-host-ram/log.txt --config eval/incidents/w-easyr1-offload-host-ram/run.sh

test: $(STAMP)  ## Run the tests, without those that take long: what kills clusters, loads real models, reads for minutes.
	@$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "not long"

test-all: $(STAMP)  ## Run all tests.
	@$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/whycrash corpus lint

types: $(STAMP)
	@$(BIN)/mypy

check: lint types test-all  ## Lint, types and all tests.

gate: $(STAMP)  ## Fail where a figure of the evaluation fell through its floor.
	@$(BIN)/python -m eval --no-baselines --gate

eval: $(STAMP)  ## Score the answers against the labelled incidents.
	@$(BIN)/python -m eval

lab: $(STAMP)  ## Make failures for real and record them as incidents under out/lab.
	@$(BIN)/python -m eval.lab --out out/lab

bench: $(STAMP)  ## Measure speed and memory.
	@$(BIN)/python -m eval.bench

SOAK_MINUTES ?= $(if $(CI),10,120)
soak: $(STAMP)  ## Load a server, and let all happen to it and its parts for SOAK_MINUTES; nothing may be lost, done twice, or grow.
	@$(BIN)/python -m eval.soak --minutes $(SOAK_MINUTES) $(if $(SOAK_DATABASE),--database '$(SOAK_DATABASE)',--everything)

fuzz: $(STAMP)  ## Throw damaged input at the reader, the archives and the launch files.
	@$(BIN)/python -m eval.fuzz --seconds 180

attack: $(STAMP)  ## Attack a server and the command line on loopback; tell of each attack whether it was held.
	@$(BIN)/python -m eval.attack

sbom: $(STAMP)  ## Write a bill of materials to out/sbom.json, and list the licences; fail where one is refused.
	@$(BIN)/python -m eval.supply_chain sbom out/sbom.json
	@$(BIN)/python -m eval.supply_chain licences

audit: $(STAMP)  ## Compare the lock with ADVISORIES, a checkout of PyPA's advisory database; fail where one applies.
	@$(BIN)/python -m eval.supply_chain audit "$(ADVISORIES)"

lock: pyproject.toml  ## Resolve every extra together and write the exact versions with the hashes of their files.
	@$(BIN)/uv pip compile pyproject.toml --all-extras --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --quiet -o requirements.lock
	@# torch without its local tag, which names a wheel that only some indexes carry, and so without hashes, which
	@# would be those of one index; and without the CUDA packages of the other build: where that one is installed,
	@# the installer adds what it needs.
	@awk '/^[^ ]/ {gone = /^(nvidia-|cuda-|triton==)/ && !/^nvidia-ml-py==/; bare = /^torch==/} gone {next} \
	  bare {if (/^torch==/) {sub(/[+ ].*/, ""); print} next} {print}' requirements.lock > requirements.lock.new
	@mv requirements.lock.new requirements.lock

wheel: $(STAMP)  ## Build the wheel that is published: with the model's weights and the vectors of the corpus.
	@$(BIN)/python -m eval.release out/dist

clean:
	rm -rf $(VENV) out

# make test and make demo are the only two commands a fresh clone needs: each creates .venv first if it is missing.
# PYTHON=python3.12 chooses the interpreter of a new .venv; ARGS="..." is passed on to the command of demo and study.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ARGS ?=
WORKERS ?= 2

# One thread a process: two torch threads beside another busy process run slower than one.
export OMP_NUM_THREADS ?= 1

.PHONY: help install test demo study lint format pages types-links test-lowest test-verl test-vllm check-coexistence clean

help:
	@echo "make test    ruff, mypy and the test suite"
	@echo "make demo    train and compare GRPO, GSPO and their SetPO variants on Countdown (minutes, CPU)"
	@echo "make study   the same over paired seeds, with controls and baselines (hours, resumable)"
	@echo "make lint | format | pages | test-lowest | test-verl | test-vllm | check-coexistence | clean"

install: $(STAMP)

# torch comes first and by its pinned version: a range would let pip choose a newer release than the one this repository is tested with.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; v >= (3, 11) or sys.exit("setpo-envs: the pinned set of constraints.txt needs Python 3.11 or newer, found %d.%d; try make PYTHON=python3.12" % v)'
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@echo "installing the pinned set into $(VENV): 1.7 GB and about a minute with a CPU build of torch, more with a CUDA build"
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[train,hf,report,hub,trl,dev]"
	touch $(STAMP)

test: lint
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile $(ARGS)

demo: $(STAMP)
	$(BIN)/setpo demo $(ARGS)

study: $(STAMP)
	$(BIN)/setpo study $(ARGS)

lint: $(STAMP) types-links
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# docs/environments/ and the table in README.md, from the docstrings and cards of the environments
pages: $(STAMP)
	$(BIN)/python scripts/environment_pages.py

types-links:
	@mkdir -p build/mypy
	@ln -sfn ../../setpo_envs build/mypy/setpo_envs
	@ln -sfn ../../verifiers build/mypy/setpo_verifiers
	@ln -sfn ../../agents build/mypy/setpo_agents

test-lowest:
	bash scripts/test-lowest.sh

test-verl:
	bash scripts/test-verl.sh

test-vllm:
	bash scripts/test-vllm.sh

check-coexistence: $(STAMP)
	bash scripts/check-coexistence.sh

clean:
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find setpo_envs verifiers agents tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

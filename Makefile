# `make demo` and `make test` work on a fresh machine with Python >= 3.11 and make: each builds .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO ?= demo
JOBS ?= auto

.PHONY: demo test check slow clean

demo: $(VENV)/.gis
	$(BIN)/gis demo --out $(DEMO)

test: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n $(JOBS)

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q -n $(JOBS) --cov --cov-report=term

slow: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m slow

clean:
	rm -rf $(VENV) $(DEMO) .coverage* .mypy_cache .ruff_cache .pytest_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip

$(VENV)/.gis: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@ $(VENV)/.gis

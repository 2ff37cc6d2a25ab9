# `make demo` and `make test` work on a fresh machine with Python >= 3.11 and make: each builds .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO ?= demo
COMMA := ,
SAMPLES := $(subst $(eval) ,$(COMMA),$(patsubst data/sample/%/repo.json,%,$(sort $(wildcard data/sample/*/*/repo.json))))
# For domain-demo: files of questions and of requests without labels, optional labelled pairs of the questions' domain (for
# evaluation only), and a folder that may have stsb/, to evaluate on another domain.
DATA ?= ../shared/data
QUESTIONS ?= $(firstword $(wildcard $(DATA)/domain/medquad-questions.tsv.gz) data/sample_sentences.txt)
REQUESTS ?= $(wildcard $(DATA)/domain/banking77-train.tsv)
PEOPLE ?= $(if $(findstring medquad,$(QUESTIONS)),$(wildcard $(DATA)/rqe/rqe-test.tsv))
DOMAIN ?= domain
TEXTS := $(if $(findstring medquad,$(QUESTIONS)),--columns text=question)
ADAPT := --preset domain --max-length 128
COMPARE := --model $(DOMAIN)/model --against minilm
JOBS ?= auto
# Keeps neighbouring tests on one worker, so that fixtures of a module are made once.
PYTEST := -m pytest -q -n $(JOBS) --dist worksteal

LOWEST := .venv-lowest

.PHONY: search demo domain-demo test check lowest slow docs reference notebooks clean

# Crawls data/sample over HTTP from a local GitHub.
demo: $(VENV)/.demo
	$(BIN)/python -m tests.support.github data/sample -- $(BIN)/gis build --repos $(SAMPLES) --api-url {url} --out $(DEMO)

# Questions without labels -> rules' triplets and the texts themselves -> a model. Requests -> a model that groups them.
domain-demo: $(VENV)/.domain
	mkdir -p $(DOMAIN)
	$(BIN)/label generate --data $(QUESTIONS) --draw 2000 --llm wordnet --out $(DOMAIN)/pairs
	$(BIN)/aoe train --data $(DOMAIN)/pairs/triplet --backbone minilm --out $(DOMAIN)/rules $(ADAPT)
	$(BIN)/aoe train --data $(QUESTIONS) $(TEXTS) --backbone $(DOMAIN)/rules --out $(DOMAIN)/model $(ADAPT)
	$(if $(PEOPLE),$(BIN)/aoe evaluate $(COMPARE) --data $(PEOPLE))
	$(if $(wildcard $(DATA)/stsb),$(BIN)/aoe evaluate $(COMPARE) --data-dir $(DATA) --tasks STS-B)
	$(if $(REQUESTS),$(BIN)/aoe train --data $(REQUESTS) --columns text=text --out $(DOMAIN)/requests $(ADAPT) --purpose group)
	$(if $(REQUESTS),$(BIN)/aoe sample-pairs --data $(REQUESTS) --queries $(REQUESTS) --model $(DOMAIN)/requests --model minilm --out $(DOMAIN)/to-judge)

test: $(VENV)/.dev
	$(BIN)/python $(PYTEST)

check: $(VENV)/.dev lowest
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python $(PYTEST) --cov --cov-report=term

# Tests with the lowest versions that pyproject.toml allows, in an environment of its own. Training is excluded, because the
# lowest torch has no CPU-only wheel.
lowest: $(VENV)/.dev
	$(BIN)/uv venv --quiet --clear $(LOWEST)
	$(BIN)/uv pip install --quiet --python $(LOWEST) --resolution lowest-direct --editable '.[label,figures,hub,review,testserver,xlsx]'
	$(BIN)/uv pip install --quiet --python $(LOWEST) --constraint constraints.txt pytest pytest-xdist hypothesis
	$(LOWEST)/bin/python $(PYTEST) tests/pairkit tests/gis_builder tests/llm_labeler

slow: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m slow

# The tests of `make test` with new random examples of hypothesis.
search: $(VENV)/.dev
	HYPOTHESIS_PROFILE=search $(BIN)/python $(PYTEST)

# Builds site/ without network; a broken link is an error.
docs: $(VENV)/.docs
	$(BIN)/python docs/scripts/pages.py
	$(BIN)/python -m zensical build --strict --clean

# Generates the pages of commands and settings, and marked parts of other pages, from the code.
reference: $(VENV)/.docs
	$(BIN)/python docs/scripts/reference.py

# Generates notebooks from the tutorials.
notebooks: $(VENV)/.docs
	$(BIN)/python docs/scripts/notebooks.py

clean:
	rm -rf site build .cache $(VENV) $(LOWEST) $(DEMO) domain .coverage* .mypy_cache .ruff_cache .pytest_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[testserver]'
	touch $@

$(VENV)/.domain: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[label,train,minilm,review]'
	touch $@

# Generating the reference imports the code, so it needs the extras of the settings.
$(VENV)/.docs: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs,label]'
	touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@ $(VENV)/.demo $(VENV)/.docs

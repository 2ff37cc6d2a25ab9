# `make demo` and `make test` work on a fresh machine with Python >= 3.11 and make: each builds .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO ?= demo
COMMA := ,
SAMPLES := $(subst $(eval) ,$(COMMA),$(patsubst data/sample/%/repo.json,%,$(sort $(wildcard data/sample/*/*/repo.json))))
# For domain-demo: a text file of sentences, perhaps pairs of the same domain that people labelled (never trained on), and a
# folder that may hold stsb/ for a look at another domain.
DATA ?= ../shared/data
SENTENCES ?= $(firstword $(wildcard $(DATA)/domain/medquad-sentences.txt.gz) data/sample_sentences.txt)
DOMAIN ?= domain/$(firstword $(subst ., ,$(notdir $(SENTENCES))))
PEOPLE ?= $(if $(findstring medquad,$(SENTENCES)),$(wildcard $(DATA)/rqe/rqe-test.tsv))
COMPARE := --model $(DOMAIN)/model --against minilm
JOBS ?= auto
# Neighbours stay on one worker, so that what a module's tests share is made once.
PYTEST := -m pytest -q -n $(JOBS) --dist worksteal

LOWEST := .venv-lowest
NEED_TRAIN := tests/pairkit/test_machine.py

.PHONY: search demo domain-demo test check lowest slow docs reference notebooks clean

# A crawl over HTTP from a local GitHub that serves data/sample.
demo: $(VENV)/.demo
	$(BIN)/python -m tests.support.github data/sample -- $(BIN)/gis build --repos $(SAMPLES) --api-url {url} --out $(DEMO)

# Sentences without labels -> triplets -> a model -> pairs of the sentences for people to judge it by. The last lines
# are the commands that open the page and give the verdict.
domain-demo: $(VENV)/.domain
	mkdir -p $(DOMAIN)
	$(BIN)/label generate --data $(SENTENCES) --draw 2000 --llm wordnet --out $(DOMAIN)/pairs
	$(BIN)/aoe train --data $(DOMAIN)/pairs/triplet --out $(DOMAIN)/model --preset domain --backbone minilm --max-length 128
	$(if $(PEOPLE),$(BIN)/aoe evaluate $(COMPARE) --data $(PEOPLE))
	$(if $(wildcard $(DATA)/stsb),$(BIN)/aoe evaluate $(COMPARE) --data-dir $(DATA) --task STS-B)
	$(BIN)/aoe sample --data $(SENTENCES) --model $(DOMAIN)/model --model minilm --out $(DOMAIN)/to-judge

test: $(VENV)/.dev
	$(BIN)/python $(PYTEST)

check: $(VENV)/.dev lowest
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python $(PYTEST) --cov --cov-report=term

# The lowest versions that pyproject.toml allows, of what `gis`, `label`, figures and the hub need, in an environment
# of its own.
# Not those of training: the lowest torch has no wheel for a CPU alone.
lowest: $(VENV)/.dev
	$(BIN)/uv venv --quiet --clear $(LOWEST)
	$(BIN)/uv pip install --quiet --python $(LOWEST) --resolution lowest-direct --editable '.[label,figures,hub,review,testserver]'
	$(BIN)/uv pip install --quiet --python $(LOWEST) --constraint constraints.txt pytest pytest-xdist hypothesis
	$(LOWEST)/bin/python $(PYTEST) tests/pairkit tests/gis_builder tests/llm_labeler $(patsubst %,--ignore=%,$(NEED_TRAIN))

slow: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m slow

# The same tests as `make test`, with examples of hypothesis that no run has seen.
search: $(VENV)/.dev
	HYPOTHESIS_PROFILE=search $(BIN)/python $(PYTEST)

# The site, into site/: a broken link is an error. Without network.
docs: $(VENV)/.docs
	$(BIN)/python docs/scripts/pages.py
	$(BIN)/python -m zensical build --strict --clean

# What the documents take from the code: the pages of commands and settings, and marked parts of others.
reference: $(VENV)/.docs
	$(BIN)/python docs/scripts/reference.py

# The tutorials as notebooks, from the pages that the site shows.
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

# The reference is made from the code, so that all extras that the settings need are here too.
$(VENV)/.docs: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs,label]'
	touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@ $(VENV)/.demo $(VENV)/.docs

# The environment is the project's own: nothing is installed outside $(VENV).
VENV ?= .venv
PYTHON ?= python3
PYTEST_ARGS ?= -n auto --dist worksteal
BENCH_ARGS ?=
UPGRADE ?=

BIN := $(VENV)/bin
# Twice quiet: errors are shown, a machine's own package settings are not discussed.
INSTALL := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check
# A lock is whole, so nothing is left to resolve; what is never imported need not be compiled.
LOCKED := --no-deps --no-compile --require-hashes --requirement
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "make lock" $(UPGRADE)
# The theme's notice about its successor is answered in mkdocs.yml.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test docs bench lock clean

help:  ## list what can be made
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 15

demo: $(VENV)/.installed  ## install what evalr needs to run, then measure the sample logs it ships
	$(BIN)/evalr demo

test: $(VENV)/.installed-dev  ## lint, format, types, floors, tests, docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest $(PYTEST_ARGS)
	$(MKDOCS) build --strict --site-dir $(abspath $(VENV))/site

docs: $(VENV)/.installed-dev  ## build the documentation into site/
	$(MKDOCS) build --strict --site-dir $(CURDIR)/site

bench: $(VENV)/.installed-dev  ## run the benchmarks one after another (BENCH_ARGS for their options)
	$(foreach script,$(wildcard benchmarks/bench_*.py),$(BIN)/python $(script) $(BENCH_ARGS) &&) true

lock:  ## refresh requirements/*.lock from pyproject.toml (make lock UPGRADE=--upgrade for newer releases)
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv-lock/bin/$(LOCK) pyproject.toml --all-extras --group dev --output-file requirements/dev.lock
	.venv-lock/bin/$(LOCK) pyproject.toml --group build --constraints requirements/dev.lock --output-file requirements/runtime.lock

clean:  ## remove environments, builds and caches
	rm -rf .venv .venv-* build dist site .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: an environment is brought up to date only when a lock or pyproject.toml is newer.
$(VENV)/.created:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v < (3, 14) else "evalr needs Python 3.11, 3.12 or 3.13, and $(PYTHON) is %d.%d. Name another one:  make PYTHON=python3.13 ..." % v)'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.locked: requirements/runtime.lock | $(VENV)/.created
	$(INSTALL) $(LOCKED) $<
	@touch $@

$(VENV)/.locked-dev: requirements/dev.lock | $(VENV)/.created
	$(INSTALL) $(LOCKED) $<
	@touch $@

$(VENV)/.installed: pyproject.toml $(VENV)/.locked
	$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml $(VENV)/.locked-dev
	$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@ $(VENV)/.locked $(VENV)/.installed

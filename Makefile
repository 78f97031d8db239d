# Two commands for a new machine: `make demo` and `make test`. They need Python 3.11+ and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Two test processes, one BLAS thread each: as fast as it gets on two cores, without oversubscription.
WORKERS ?= 2
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
# What is compiled is written down, for tests start processes, and each would compile it again.
COMPILED := PYTHONDONTWRITEBYTECODE=
# A comma would end an argument of `install`.
FOR_DEMO := ".[cli,plot]"
# What a build of the documentation makes.
GENERATED := docs/_build docs/api/generated docs/api/lessons docs/lessons docs/results docs/sg_execution_times.rst

# uv installs in a fraction of the time; without it, pip does.
install = $(BIN)/python -m pip install --quiet --disable-pip-version-check uv && \
	$(BIN)/uv pip install --quiet --python $(BIN)/python $(1) || \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(1)

.PHONY: demo test test-all lint types imports unit format benchmark docs links clean

demo: $(VENV)/.demo
	$(BIN)/mkclust demo

# What protects users, in a few minutes.
test: lint types imports unit

# Everything: tests marked slow, scikit-learn's checks of every method, more random examples.
test-all: lint types imports $(VENV)/.dev
	# The types that users get: a program of theirs, checked against the installed package.
	$(BIN)/mypy --strict --config-file= tests/typing/consumer.py
	# A file at a time: models that its tests share are fitted by one process, not by all.
	MKCLUST_THOROUGH=1 $(ONE_THREAD) $(COMPILED) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

imports: $(VENV)/.dev
	$(BIN)/lint-imports

unit: $(VENV)/.dev
	$(ONE_THREAD) $(COMPILED) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" tests src README.md

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

benchmark: $(VENV)/.user
	$(BIN)/python benchmarks/speed/measure.py

docs: $(VENV)/.docs
	# From the beginning, so that warnings of pages that did not change are not missed.
	rm -rf $(GENERATED)
	$(ONE_THREAD) $(BIN)/python -m sphinx -b html -W --keep-going -j $(WORKERS) -d docs/_build/doctrees docs docs/_build/html

links: $(VENV)/.docs
	# Needs the network. Links between files are tested without it, by tests/docs/test_links_between_pages.py.
	$(ONE_THREAD) $(BIN)/python -m sphinx -b linkcheck --keep-going -D plot_gallery=False -d docs/_build/doctrees-links docs docs/_build/links

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "mkclust needs Python 3.11 or newer; pass one with make PYTHON=...")'
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# What the demo needs, and no more.
$(VENV)/.demo: $(VENV)/bin/python pyproject.toml
	$(call install,-e $(FOR_DEMO))
	touch $@

$(VENV)/.user: $(VENV)/bin/python pyproject.toml
	$(call install,-e ".[all]")
	touch $@ $(VENV)/.demo

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml
	$(call install,-e ".[dev]")
	touch $@ $(VENV)/.user $(VENV)/.demo

$(VENV)/.docs: $(VENV)/bin/python pyproject.toml
	$(call install,-e ".[docs]")
	touch $@ $(VENV)/.user $(VENV)/.demo

clean:
	rm -rf $(VENV) $(GENERATED) .venv-oldest .venv-newest .venv-dist oldest.txt build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

# What is done before a release; CONTRIBUTING.md says what each of the three checks.
.PHONY: dist test-oldest test-newest

OLDEST := .venv-oldest
NEWEST := .venv-newest
TESTS ?= tests
# What `-m` of pytest selects: all tests, or SELECT="not slow".
SELECT ?=

dist:
	rm -rf dist .venv-dist
	$(PYTHON) -m venv .venv-dist
	.venv-dist/bin/python -m pip install --quiet --disable-pip-version-check build twine "readme-renderer[md]" "mypy==2.4.*"
	.venv-dist/bin/python -m build --outdir dist .
	# The metadata, and whether an index of packages can show the README.
	.venv-dist/bin/python -m twine check --strict dist/*
	.venv-dist/bin/python release/recipe.py dist
	.venv-dist/bin/python release/smoke.py dist

test-oldest: $(OLDEST)/.installed
	$(OLDEST)/bin/python -m pip list --disable-pip-version-check
	$(ONE_THREAD) $(COMPILED) $(OLDEST)/bin/python -m pytest -n $(WORKERS) --dist loadfile -m "$(SELECT)" $(TESTS)

$(OLDEST)/.installed: pyproject.toml release/oldest.py
	$(PYTHON) release/oldest.py > oldest.txt
	rm -rf $(OLDEST)
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -c oldest.txt -e ".[dev]"
	touch $@

# Always made anew, and never a failure: it tells what will break, not what is broken.
test-newest:
	rm -rf $(NEWEST)
	@{ $(PYTHON) -m venv $(NEWEST) && \
	  $(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check --pre --upgrade -e ".[dev]" && \
	  $(NEWEST)/bin/python -m pip list --disable-pip-version-check && \
	  $(ONE_THREAD) $(COMPILED) $(NEWEST)/bin/python -m pytest -n $(WORKERS) --dist loadfile -m "$(SELECT)" $(TESTS); } && \
	  echo "test-newest: PASSED with the newest versions, pre-releases included" || \
	  echo "test-newest: FAILED with the newest versions, pre-releases included; this is allowed, and says what to prepare for"

# make lab     the course in JupyterLab        make test    every check of the project
# Both make the virtual environment in .venv on first use; `make lab` installs what a learner needs
# (requirements.txt), `make test` adds the rest (requirements-test.txt).

PYTHON ?= python3
NB ?=
PRESENT ?=
WORKERS ?= 2
LAB_FLAGS ?=
SITE_FLAGS ?=
PYTEST_FLAGS ?=

VENV := .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
READY := $(VENV)/.installed
READY_TO_TEST := $(VENV)/.installed-test
PIP := $(BIN)/python -m pip --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest

.PHONY: help lab fresh slides handout cheatsheet site test quick mutants bench pages lock clean
.DEFAULT_GOAL := help

help:
	@echo "make lab            open the course in JupyterLab (your copy, in work/)"
	@echo "make lab PRESENT=1  the same, to show others: one page, larger letters"
	@echo "make fresh NB=06    a new copy of page 06 (or NB=ppo); your old one is kept"
	@echo "make fresh NB=--all a new copy of every page that you have not touched"
	@echo "make slides         every lesson as slides, in made/slides (or NB=08)"
	@echo "make handout NB=08  a lesson to print, answers at the end"
	@echo "make cheatsheet     the course on two pages, HTML and PDF"
	@echo "make site           the course as web pages without a kernel, in site/"
	@echo "make quick          lint, types, the tests of losses and toys: a minute"
	@echo "make test           lint, types, every test, every notebook, the browser"
	@echo "make mutants        plants bugs and sees the tests catch them: minutes"
	@echo "make bench          how quickly a picture follows a key, beside a bare slider"
	@echo "make pages          execute every page again, and make what is drawn from them"
	@echo "make lock           resolve both locks anew from pyproject.toml"
	@echo "make clean          remove .venv (work/ stays)"
	@echo
	@echo "PYTHON=python3.12 chooses the interpreter, WORKERS=4 the processes of make test;"
	@echo "LAB_FLAGS, SITE_FLAGS and PYTEST_FLAGS are passed on."

# The stamps are newer than the locks: nothing to install. An existing .venv is kept, so a torch
# that was put there first (CPU-only, say) stays.
$(READY): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed; '$(PYTHON)' is: $$($(PYTHON) --version 2>&1)."; \
	  echo "Name another: make lab PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
	  echo "Could not make a virtual environment (on Debian and Ubuntu: apt install python3-venv)."; \
	  exit 1; }
	@echo "Installing the locked packages into $(VENV) (some minutes, once) ..."
	@$(PIP) install -r requirements.txt
	@$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $(READY)

$(READY_TO_TEST): $(READY) requirements-test.txt
	@echo "Installing what the tests need beside them ..."
	@$(PIP) install -r requirements-test.txt
	@touch $(READY_TO_TEST)

# exec: no shell in between, so that a signal to make reaches JupyterLab and, from there, its kernels.
lab: export RLNB_PRESENT := $(PRESENT)
lab: $(READY)
	@exec $(BIN)/python -m rlnb.classroom.workspace open $(LAB_FLAGS)

fresh: $(READY)
	@$(BIN)/python -m rlnb.classroom.workspace fresh "$(NB)"

# Slides, PDFs: made/ is theirs. What to do with them in a room: teach/README.md.
slides: $(READY)
	@$(BIN)/python -m rlnb.classroom.paper slides $(NB)

handout: $(READY)
	@$(BIN)/python -m rlnb.classroom.paper handout $(NB)

cheatsheet: $(READY)
	@$(BIN)/python -m rlnb.classroom.paper cheat-sheet

# From the pages as they are committed; nothing is executed. Open site/index.html by double-click.
site: $(READY)
	@$(BIN)/python -m rlnb.classroom.site $(SITE_FLAGS)

pages: $(READY)
	@$(BIN)/python -m rlnb.classroom.pages build --all
	@$(BIN)/python -m rlnb.classroom.paper answers > teach/answers.md

.PHONY: lint
lint: $(READY_TO_TEST)
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check . && echo "ruff: nothing to say"
	@$(BIN)/mypy

# A file of tests stays in one process, where its fixtures are; the order is tests/conftest.py's.
test: lint
	@$(PYTEST) -n $(WORKERS) --no-loadscope-reorder --time-left $(PYTEST_FLAGS)

QUICK := tests/objective $(wildcard tests/interop) tests/toys rlnb/objective $(wildcard rlnb/interop) rlnb/toys
quick: lint
	@$(PYTEST) -q -n $(WORKERS) --no-loadscope-reorder $(QUICK) $(PYTEST_FLAGS)

mutants: $(READY_TO_TEST)
	@$(BIN)/python tests/mutants/run.py

bench: $(READY_TO_TEST)
	@$(BIN)/python tests/benchmarks/explorer_latency.py

# Exact public versions of what pyproject.toml asks for, resolved in an environment of its own and
# divided by .ci/write_locks.py. Left out: local build tags (+cpu), and what only some platforms get
# (CUDA libraries, appnope, pywinpty). To hold a version: make lock LOCK_WITH="torch==2.13.0".
LOCK_WITH ?=
lock:
	rm -rf $(VENV)-lock
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet setuptools $(LOCK_WITH) -e ".[training,lab,parity,test]"
	$(VENV)-lock/bin/python .ci/write_locks.py
	rm -rf $(VENV)-lock

clean:
	rm -rf $(VENV)

# make lab     the course in JupyterLab        make test    every check of the project
# Both make the virtual environment in .venv on first use.

PYTHON ?= python3
NB ?=
LAB_FLAGS ?=
PYTEST_FLAGS ?=

VENV := .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
READY := $(VENV)/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: help lab fresh test pages lock clean
.DEFAULT_GOAL := help

help:
	@echo "make lab          open the course in JupyterLab (your copy, in work/)"
	@echo "make fresh NB=06  a new copy of page 06; your old one is kept"
	@echo "make test         lint, unit tests, every notebook, the browser"
	@echo "make pages        execute every page again from its text twin"
	@echo "make lock         resolve requirements.txt anew from pyproject.toml"
	@echo "make clean        remove .venv (work/ stays)"
	@echo
	@echo "PYTHON=python3.12 chooses the interpreter; LAB_FLAGS and PYTEST_FLAGS are passed on."

# The stamp is newer than the lock: nothing to install. An existing .venv is kept, so a torch
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

lab: $(READY)
	@$(BIN)/python -m rlnb.classroom.workspace open $(LAB_FLAGS)

fresh: $(READY)
	@$(BIN)/python -m rlnb.classroom.workspace fresh "$(NB)"

pages: $(READY)
	@$(BIN)/python -m rlnb.classroom.pages build --all

test: $(READY)
	@$(BIN)/ruff check --quiet . && echo "ruff: nothing to say"
	@$(BIN)/python -m pytest $(PYTEST_FLAGS)

# Exact public versions of what pyproject.toml asks for, resolved in an environment of its own.
# Left out: pip itself, local build tags (+cpu), and what only some platforms get from torch or
# JupyterLab as a dependency (CUDA libraries, appnope, pywinpty). To hold a version:
# make lock LOCK_WITH="torch==2.13.0". tests/test_setup.py says what environment.yml then needs.
LOCK_WITH ?=
ONLY_SOMEWHERE := ^(appnope|colorama|cuda[-_]|nvidia|pip=|pywin|triton|wheel=)
lock:
	rm -rf $(VENV)-lock
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet setuptools $(LOCK_WITH) -e ".[training,lab,parity,test]"
	{ echo "# The exact versions the course is tested with. Written by \`make lock\`."; \
	  $(VENV)-lock/bin/python -m pip freeze --all --exclude-editable \
	  | sed -E 's/\+[A-Za-z0-9.]+$$//' | grep -viE '$(ONLY_SOMEWHERE)'; } > requirements.txt
	rm -rf $(VENV)-lock

clean:
	rm -rf $(VENV)

# Everything that one does with a clone. Each target makes what it needs in .venv, and installs
# again only when a source has changed.
#
#   make demo    fit a support vector machine on real data, with a picture of the result
#   make test    the C++ tests under the sanitizers, then the Python tests
#   make lint    every linter, warnings as errors
#   make docs    the documentation, examples executed, in docs/_build/html
#   make bench   a short comparison with other libraries, in build/benchmarks
#   make clean   forget the builds and the environment
#
# PYTHON=...  the interpreter to use, instead of the first one that fits
# DATA=...    the folder of data sets for make bench; without it, scikit-learn's own
# WERROR=ON   compiler warnings are errors (as in continuous integration)

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help venv dev demo test test-cpp test-python lint lint-python lint-cpp docs bench clean

PYTHON ?=
WERROR ?= OFF
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt README.md \
	$(shell find cpp src -name '*.[ch]pp' -o -name '*.py' -o -name py.typed)

help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' Makefile

# ---- The environment -------------------------------------------------------------------------

SUITABLE := import ensurepip, pathlib, sys, sysconfig, venv; \
	header = pathlib.Path(sysconfig.get_path("include")) / "Python.h"; \
	sys.exit(sys.version_info < (3, 11) or not header.exists())

$(VENV)/made:
	@for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
	    if "$$python" -c '$(SUITABLE)' 2>/dev/null; then found=$$python; break; fi; \
	done; \
	if [ -z "$${found:-}" ]; then \
	    echo "maxmargin needs Python 3.11 or newer with ensurepip and its C headers, and found none."; \
	    echo "On Debian and Ubuntu: apt-get install python3 python3-venv python3-dev"; \
	    echo "An interpreter elsewhere: make PYTHON=/path/to/python ..."; \
	    exit 1; \
	fi; \
	if ! command -v $${CXX:-c++ g++ clang++} >/dev/null; then \
	    echo "maxmargin needs a C++20 compiler (g++ 12 or newer will do) and found none."; \
	    echo "On Debian and Ubuntu: apt-get install g++"; \
	    exit 1; \
	fi; \
	echo "Making $(VENV) with $$($$found --version)"; \
	"$$found" -m venv --clear $(VENV)
	@touch $@

venv: $(VENV)/made

# Three environments, each containing the one before: for the demo, the tests, the developer.
EXTRAS_demo := plot,progress
EXTRAS_test := test
EXTRAS_dev := dev

$(VENV)/installed-%: $(VENV)/made $(SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --config-settings=cmake.define.MAXMARGIN_WERROR=$(WERROR) ".[$(EXTRAS_$*)]"
	@touch $@

# The richest environment that is already there serves the poorer targets too.
richest = $(firstword $(wildcard $(1:%=$(VENV)/installed-%)) $(VENV)/installed-$(lastword $(1)))
FOR_DEMO := $(call richest,dev test demo)
FOR_TEST := $(call richest,dev test)
FOR_DEV := $(VENV)/installed-dev

dev: $(FOR_DEV)

# ---- The demo and the tests ------------------------------------------------------------------

demo: $(FOR_DEMO)
	$(BIN)/python examples/demo.py

CONFIGURE = $(BIN)/cmake -S . -G Ninja -DCMAKE_MAKE_PROGRAM="$(CURDIR)/$(BIN)/ninja"

test: test-cpp test-python

test-cpp: $(FOR_TEST)
	$(CONFIGURE) -B build/tests -DMAXMARGIN_PYTHON=OFF -DMAXMARGIN_TESTS=ON \
	    -DMAXMARGIN_SANITIZE=address,undefined -DMAXMARGIN_WERROR=$(WERROR) \
	    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g" >/dev/null
	$(BIN)/cmake --build build/tests
	$(BIN)/ctest --test-dir build/tests --output-on-failure --no-tests=error

test-python: $(FOR_TEST)
	$(BIN)/pytest

# ---- The linters -----------------------------------------------------------------------------

CPP := $(wildcard cpp/*.[ch]pp tests/cpp/*.[ch]pp)

lint: lint-python lint-cpp

# The stub of the compiled module is made by the build; the type checker looks for it in src.
lint-python: $(FOR_DEV)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	@cp $(VENV)/lib/python3*/site-packages/maxmargin/_core.pyi src/maxmargin/_core.pyi
	$(BIN)/pyright --warnings --pythonpath $(BIN)/python

lint-cpp: $(FOR_DEV)
	$(BIN)/clang-format --dry-run -Werror $(CPP)
	@$(CONFIGURE) -B build/lint -DPython_EXECUTABLE="$(CURDIR)/$(BIN)/python" >/dev/null
	printf '%s\n' cpp/*.cpp | xargs -n 1 -P "$$(nproc)" $(BIN)/clang-tidy -p build/lint --quiet

# ---- The documentation -----------------------------------------------------------------------

docs: $(FOR_DEV)
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

# ---- The benchmarks --------------------------------------------------------------------------

DATA ?=
LIST_PEERS := import tomllib; \
	extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
	print(*(peer for peer in extras["bench"] if not peer.startswith("maxmargin")), sep="\n")
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# A peer that cannot be installed here is left out of the comparison.
$(VENV)/peers/made: pyproject.toml $(FOR_DEV)
	@mkdir -p $(@D)
	@$(BIN)/python -c '$(LIST_PEERS)' | while read -r peer; do \
	    $(INSTALL) "$$peer" || echo "$$peer: not installed, left out"; \
	done
	@$(INSTALL) --no-deps --upgrade --target $(@D)/liblinear-multicore liblinear-multicore \
	    || echo "liblinear-multicore: not installed, left out"
	@touch $@

bench: $(VENV)/peers/made
	$(BIN)/python -m benchmarks linear --short --output build/benchmarks \
	    $(if $(DATA),--data "$(DATA)")

clean:
	rm -rf build $(VENV) docs/_build docs/api/generated docs/gallery

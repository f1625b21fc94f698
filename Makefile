# make demo | test | test-fpga | lint | bench | docs | clean (which keeps the environments)
# VENV=dir puts the environment elsewhere, PYTHON=path chooses the interpreter it is made with,
# ARGS="..." is handed on to the demo or to pytest.

VENV ?= .venv
PY = $(VENV)/bin/python
OLD = sys.version_info < (3, 11)

# The first interpreter that is new enough. Each is asked, not looked up: a name on the PATH may be
# a wrapper around nothing.
ifndef PYTHON
PYTHON := $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit($(OLD))' 2>/dev/null && echo $$python && break; done)
endif

.DEFAULT_GOAL := help
.PHONY: help demo test test-fpga lint style bench docs clean

help:
	@sed -n '1,3s/^# //p' Makefile

demo: $(VENV)/.installed-demo
	$(VENV)/bin/legato run apps/train $(ARGS)

# With STATUS=file, pytest's exit code is written there and make itself succeeds, so that pytest's
# summary is the last line.
test: $(VENV)/.installed-dev
ifdef STATUS
	@$(PY) -m pytest $(ARGS); echo $$? > "$(STATUS)"
else
	$(PY) -m pytest $(ARGS)
endif

# Intel's emulator is about 1 GB, and shows itself to everything in its environment: it gets its own.
FPGA_VENV ?= .venv-fpga
FPGA_TESTS = tests/fpga tests/contract/test_backends.py tests/integration/test_missing_devices.py \
	tests/integration/test_apps_on_devices.py

test-fpga:
	@$(MAKE) --no-print-directory VENV=$(FPGA_VENV) "$(FPGA_VENV)/.installed-dev,fpga-emu"
	$(FPGA_VENV)/bin/python -m pytest $(FPGA_TESTS) $(ARGS)

lint: $(VENV)/.installed-dev
	@$(MAKE) --no-print-directory style

# What lint checks, in whatever environment PY names.
style:
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy legato_rt $(wildcard apps bench)

# Micro-benchmarks, then every evaluation; fails at the end if one of them missed its target.
bench: $(VENV)/.installed-dev
	@mkdir -p build/bench; failed=; \
	if ls bench/test_*.py >/dev/null 2>&1; then \
		$(PY) -m pytest bench --benchmark-only $(ARGS) || failed=" micro-benchmarks"; \
	fi; \
	for file in $$(grep -l '__main__' bench/*.py); do \
		name=$$(basename $$file .py); echo "== bench.$$name"; \
		$(PY) -m bench.$$name --json build/bench/$$name.json || failed="$$failed $$name"; \
	done; \
	if [ -n "$$failed" ]; then echo "failed:$$failed" >&2; exit 1; fi

docs: $(VENV)/.installed-dev
	$(PY) docs/check_links.py

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .benchmarks .hypothesis
	find $(wildcard legato_rt kernels devices apps bench tests docs) \
		-name __pycache__ -prune -exec rm -rf {} +

$(PY):
	@test -n "$(PYTHON)" || { \
		echo "legato_rt needs Python 3.11 or newer; there is only" \
			"$$(python3 -V 2>/dev/null || echo none). Give one: make PYTHON=/path/to/python" >&2; \
		exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit($(OLD))' || { \
		echo "legato_rt needs Python 3.11 or newer; $(PYTHON) is not." >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
		echo "$(PYTHON) lacks venv or pip; on Debian: apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(if $(wildcard $(VENV)/pyvenv.cfg),--clear) $(VENV)

# One stamp per set of extras, so that a second run installs nothing until the project file changes.
$(VENV)/.installed-%: pyproject.toml setup.py | $(PY)
	@$(PY) -I legato_rt/_checkout.py
	@$(PY) -c 'import sys; sys.exit($(OLD))' || { \
		echo "$(VENV) holds a Python older than 3.11; remove it and run make again." >&2; exit 1; }
	@echo "installing legato_rt[$*] into $(VENV); the first time takes about a minute"
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

# Every target sets up what it needs in .venv and is quick when nothing changed: `make demo` on a fresh clone is enough.

VENV := .venv
BIN := $(VENV)/bin
MADE := $(VENV)/.stamp-made
RUNTIME := $(VENV)/.stamp-runtime
DEV := $(VENV)/.stamp-dev
BENCH := $(VENV)/.stamp-bench
DOCS := $(VENV)/.stamp-docs
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# A name on PATH proves nothing (a pyenv shim may stand for a version that is not active, and some systems keep the
# venv module in a package of its own), so each candidate is run.
CANDIDATES := $(or $(PYTHON),python3.13 python3.12 python3.11 python3)
USABLE := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))

# Two targets at once would install into one environment at once.
.NOTPARALLEL:

.PHONY: help demo test test-pure vectors schemas lint format types rules docs bench clean

help:
	@echo "make demo    run the demonstration: checkpoint, kill -9, restore, compare (ARGS=... are passed on)"
	@echo "make test    run the tests (ARGS=... are passed to pytest)"
	@echo "make test-pure  run the tests of the format in plain Python, as without a C compiler"
	@echo "make vectors  read the vectors of the format with a reader in JavaScript (needs node and npm)"
	@echo "make schemas  write the JSON Schemas of the format anew"
	@echo "make lint    check style and formatting"
	@echo "make format  rewrite files to the style"
	@echo "make types   check types"
	@echo "make rules   print for each rule the tests that prove it"
	@echo "make docs    build the documentation site in build/docs"
	@echo "make bench   run the benchmarks (ARGS=... are passed on)"
	@echo "make clean   remove the virtual environment and everything built"

demo: $(RUNTIME)
	$(BIN)/ckptctl demo $(ARGS)

test: $(DEV)
	$(BIN)/python -m pytest $(ARGS)

test-pure: $(DEV)
	CKPTFMT_PURE_PYTHON=1 $(BIN)/python -m pytest tests/ckptfmt tests/properties $(ARGS)

# The second reader of the format: no code of ours, so that FORMAT.md alone is enough to write one.
READER := tests/vectors/reader

vectors:
	@if ! npm --version >/dev/null 2>&1 || ! node -e 'process.exit(require("zlib").crc32 ? 0 : 1)' 2>/dev/null; then \
	    echo "***" >&2; \
	    echo "*** SKIPPED: the vectors were NOT read by the second reader: it needs node 20.15 or newer, and npm" >&2; \
	    echo "***" >&2; \
	else \
	    $(MAKE) --silent --no-print-directory $(READER)/node_modules/.package-lock.json && node $(READER)/run.mjs; \
	fi

$(READER)/node_modules/.package-lock.json: $(READER)/package.json $(READER)/package-lock.json
	@npm ci --prefix $(READER) --no-audit --no-fund --silent
	@touch $@

schemas: $(DEV)
	$(BIN)/python -m tools.schemas

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(DEV)
	$(BIN)/mypy

rules: $(DEV)
	$(BIN)/python -m tools.rules $(ARGS)

# A warning, such as a broken link or reference, fails the build. Nothing is fetched.
docs: $(DOCS)
	$(BIN)/sphinx-build --fresh-env --nitpicky --fail-on-warning --keep-going --quiet -c docs . build/docs
	@echo "The site is in build/docs: open build/docs/index.html"

bench: $(BENCH)
	$(BIN)/python -m benchmarks $(ARGS)

clean:
	rm -rf ckptfmt/_values/proof.c ckptfmt/_values/proof.*.so ckptfmt/_values/scan.c ckptfmt/_values/scan.*.so $(READER)/node_modules $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(MADE):
	@for candidate in $(CANDIDATES); do \
	    if "$$candidate" -c '$(USABLE)' >/dev/null 2>&1; then \
	        echo "Making $(VENV) with $$candidate"; \
	        "$$candidate" -m venv --clear $(VENV) && touch $@; \
	        exit; \
	    fi; \
	done; \
	echo "No Python 3.11 or newer with the venv module was found (tried: $(CANDIDATES))." >&2; \
	echo "Install one, or name it: make PYTHON=/path/to/python3.11 ..." >&2; \
	exit 1

# What the compiled form of the package is built from: a change builds it anew.
COMPILED := setup.py ckptfmt/_values/proof.py ckptfmt/_values/proof.pxd ckptfmt/_values/scan.pyx

$(RUNTIME): $(MADE) pyproject.toml $(COMPILED)
	@echo "Installing what the project needs into $(VENV)"
	@$(PIP) install --editable .
	@touch $@

$(DEV): $(MADE) pyproject.toml $(COMPILED)
	@echo "Installing what the project and its development need into $(VENV)"
	@$(PIP) install --editable '.[dev]'
	@touch $(RUNTIME) $@

$(BENCH): $(RUNTIME)
	@echo "Installing the peers of the benchmarks into $(VENV)"
	@$(PIP) install --editable '.[bench]'
	@touch $(RUNTIME) $@

$(DOCS): $(RUNTIME)
	@echo "Installing what the documentation site is built with into $(VENV)"
	@$(PIP) install --editable '.[docs]'
	@touch $(RUNTIME) $@

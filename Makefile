# Everything here needs only make, pip and a Python from 3.11 to 3.13. The first call makes .venv and installs into it;
# later calls install again only when pyproject.toml has changed.
#
#   make test PYTHON=python3.12                      another interpreter (in a new .venv)
#   make test PYTHON=python3.12 VENV=.venv-3.12      another interpreter beside it
#   make test ARGS="-m slow"                         more arguments for the command that runs

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test lint venv clean again

VENV = .venv
BIN = $(VENV)/bin
MADE = $(VENV)/.made
$(if $(filter .venv%,$(VENV)),,$(error VENV is $(VENV): expected a name that begins with .venv))

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-6s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.sklearn  ## train, save, reload and use a sparse network on real data
	$(BIN)/gbnn demo $(ARGS)

test: $(VENV)/.test  ## run all tests but the slow ones
	$(BIN)/pytest $(ARGS)

lint: $(VENV)/.test  ## ruff, mypy (strict) and the rooms of the house (import-linter)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

venv: $(VENV)/.test  ## make .venv with all that development needs, and run nothing

clean:  ## remove .venv, caches and build products
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis htmlcov .coverage
	find benchmarks gbnn models semirings tests -name __pycache__ -prune -exec rm -rf {} +

# ---- how .venv is made -------------------------------------------------------------------------------------------------

# .made holds where .venv was made and by which interpreter, .unfinished exists while something is being put in. A .venv
# that was interrupted, moved with its checkout, lost its interpreter, or is of another PYTHON than the one now asked for
# is made again, by the interpreter below the one found (which may be that of .venv itself, if it is activated).
STALE := $(shell [ ! -e $(VENV)/.unfinished ] && [ -s $(MADE) ] && $(BIN)/python -c 'import pip' 2>/dev/null \
    && printf '%s\n' "$$(pwd -P)" $(if $(PYTHON),'$(PYTHON)',"$$(sed -n 2p $(MADE))") | cmp -s - $(MADE) || echo again)

# 0: fits; 1: another version; 3: has nothing to make an environment with (Debian ships ensurepip apart).
FITS = import sys; from importlib.util import find_spec as find; \
    in_range = (3, 11) <= sys.version_info[:2] < (3, 14); \
    sys.exit(1 if not in_range else 0 if find("venv") and (find("ensurepip") or find("pip")) else 3)

$(MADE): $(STALE)
	@if [ -z '$(PYTHON)' ] && [ ! -e $@ ] && [ ! -e $(VENV)/.unfinished ] && $(BIN)/python -c '$(FITS)' 2>/dev/null \
	    && $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	    echo "Using the $(VENV) that is here."; printf '%s\n' "$$(pwd -P)" '' >$@; exit; \
	fi; \
	found=; bare=; \
	for python in $(if $(PYTHON),'$(PYTHON)',python3.13 python3.12 python3.11 python3); do \
	    "$$python" -c '$(FITS)' >/dev/null 2>&1; \
	    case $$? in 0) found=$$python; break ;; 3) bare=$$python ;; esac; \
	done; \
	if [ -z "$$found" ]; then \
	    if [ -n "$$bare" ]; then echo "$$bare can make no virtual environment: it has neither ensurepip nor pip." \
	        "On Debian and Ubuntu: apt-get install python3-venv"; \
	    elif [ -n '$(PYTHON)' ]; then echo 'gbnn needs Python 3.11, 3.12 or 3.13, and PYTHON=$(PYTHON) is none of them.'; \
	    else echo "gbnn needs Python 3.11, 3.12 or 3.13, and none is on the path." \
	        "If you have one elsewhere: make PYTHON=/where/it/is/python3.12 ..."; \
	    fi >&2; exit 1; \
	fi; \
	echo "Making $(VENV) with $$("$$found" --version)."; \
	base=$$("$$found" -c 'import sys; print(sys._base_executable)'); \
	rm -rf $(VENV) && mkdir $(VENV) && touch $(VENV)/.unfinished || exit; \
	if "$$base" -c 'import ensurepip' 2>/dev/null; then "$$base" -m venv $(VENV); \
	else "$$base" -m venv --without-pip $(VENV) && "$$base" -m pip --python $(BIN)/python install -qq pip; \
	fi || exit; \
	rm $(VENV)/.unfinished && printf '%s\n' "$$(pwd -P)" "$$found" >$@

# Of pip only errors are shown. When it fails it has changed nothing yet, or says what; when it is
# interrupted it may leave half a package.
define install
@echo "Installing gbnn and what it needs into $(VENV) (the first time: some minutes)."
@touch $(VENV)/.unfinished; \
$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[$(1)]'; \
status=$$?; rm -f $(VENV)/.unfinished; exit $$status
endef

$(VENV)/.sklearn: $(MADE) pyproject.toml
	$(call install,sklearn)
	@touch $@

$(VENV)/.test: $(MADE) pyproject.toml
	$(call install,test)
	@touch $@ $(VENV)/.sklearn

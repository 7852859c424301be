# Everything happens in a virtual environment in this checkout; `make run` and `make test` set it up themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Nothing but a virtual environment is ever removed, whatever VENV is set to.
DROP_VENV := test ! -e $(VENV)/pyvenv.cfg || rm -rf $(VENV)
DEVICE_MANAGER := all
LOCK := --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate

.DEFAULT_GOAL := help
.PHONY: help setup run test test-devicemanager check format bench bench-devicemanager proto lock clean

help: ## Show the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "gpustow needs Python 3.11 or newer; set PYTHON=..." >&2; exit 1; }
	@test -x $(BIN)/pip || { $(DROP_VENV); $(PYTHON) -m venv $(VENV); } || { $(DROP_VENV); echo "$(PYTHON) cannot make a virtual environment; some distributions have that in a package of its own (python3-venv)" >&2; exit 1; }
	@echo "installing the locked dependencies into $(VENV) ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

setup: $(READY) ## Create the virtual environment

run: $(READY) ## Show the plugin serving a simulated node: distributed and packed side by side
	@$(BIN)/gpustow simulate

test: $(READY) ## Run all tests with branch coverage
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

test-devicemanager: $(READY) ## Run the scenarios on kubelet's own device manager, too (Go and root; DEVICE_MANAGER=1.36,1.37)
	-@$(BIN)/python -m tests.devicemanager.program
	@$(BIN)/python -m pytest tests/devicemanager --device-manager=$(DEVICE_MANAGER) $(ARGS)

check: $(READY) ## Lint, format check, types, layers, spelling
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/codespell

format: $(READY) ## Format the code and apply safe fixes
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: $(READY) ## Measure decisions, the wire, the start and the cost of the daemon
	@$(BIN)/python -m benchmarks

bench-devicemanager: $(READY) ## Measure admission by kubelet's own device manager (Go and root)
	@$(BIN)/python -m tests.devicemanager.latency

proto: $(READY) ## Regenerate the protocol code from proto/
	@$(BIN)/python proto/generate.py

lock: ## Resolve the lock files anew: what the daemon needs, and what development needs (needs uv)
	@uv pip compile $(LOCK) pyproject.toml -o requirements.lock
	@uv pip compile $(LOCK) --constraint requirements.lock --group dev pyproject.toml -o requirements-dev.lock

clean: ## Remove the virtual environment and caches
	$(DROP_VENV)
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage .coverage.* out build dist

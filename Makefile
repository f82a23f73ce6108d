PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests wait half of their time for processes they start, so two processes a core. Servers that are given
# are emptied by the tests, so only one process can use them.
TEST_PROCESSES := $(if $(EVAL_TEST_REDIS_URL)$(EVAL_TEST_POSTGRES_URL),0,$(shell $(PYTHON) -c "import os; print(2 * os.cpu_count())"))
PIP := $(BIN)/pip --disable-pip-version-check install --quiet --require-hashes

.DEFAULT_GOAL := help
.PHONY: help demo observe test proof mutants check format bench lock diagram dashboards alerts docs clean

help: ## List the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 18

demo: $(VENV)/core ## Score 400 recorded answers on embedded servers, and kill an executor meanwhile
	@$(BIN)/scoreline demo

observe: $(VENV)/dev ## Run real work under a real Prometheus, and show every dashboard's figures here
	@$(BIN)/scoreline observe

dashboards: $(VENV)/core ## Write Grafana's dashboards from their definitions
	@$(BIN)/python -m grafana

test: $(VENV)/dev ## Run all tests, in up to four processes
	@$(BIN)/python -m pytest -n $(TEST_PROCESSES) --maxprocesses 4 --dist loadfile --no-loadscope-reorder

proof: $(VENV)/dev ## Run the long form of the proofs, and print their table (20 minutes)
	@$(BIN)/python -m tests.proof

mutants: $(VENV)/dev ## Remove each mechanism in turn, and list what goes red (10 minutes)
	@$(BIN)/python -m tests.mutants

check: $(VENV)/dev ## Lint, format, types, imports between packages, dead code
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/vulture

format: $(VENV)/dev ## Format the code, and apply safe fixes
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(VENV)/core ## Measure the whole system, drain, latency and replay (minutes; never in CI)
	@$(BIN)/python -m bench.runner --json
	@$(BIN)/python -m bench.drain --json
	@$(BIN)/python -m bench.latency --json
	@$(BIN)/python -m bench.replay --json

lock: ## Pin the requirements again, from pyproject.toml
	@$(PYTHON) -m venv $(VENV)/lock && $(VENV)/lock/bin/pip install --quiet uv
	@for extra in "core:" "dev:--extra dev" "docs:--extra docs" "deploy:--extra providers --extra otel"; do \
	  $(VENV)/lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	    --no-header --extra build $${extra#*:} pyproject.toml \
	    -o requirements/$${extra%%:*}.txt; done

diagram: $(VENV)/core ## Draw the state diagram into ARCHITECTURE.md
	@$(BIN)/python -m eventlog.diagram ARCHITECTURE.md

alerts: $(VENV)/core ## Render the alert definitions into the rules that Prometheus reads
	@$(BIN)/python -m scoreline.local.alert_rules

docs: $(VENV)/docs ## Build the documentation site into .site, strict on dead links
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --site-dir .site && echo "documentation site: .site/index.html"

clean: ## Remove what make has built
	rm -rf $(VENV) .site .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Scoreline needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/core: requirements/core.txt pyproject.toml | $(VENV)/bin/python
	@echo "installing (once)"
	@$(PIP) -r requirements/core.txt
	@$(BIN)/pip --disable-pip-version-check install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/dev: requirements/dev.txt $(VENV)/core
	@$(PIP) -r requirements/dev.txt
	@touch $@

$(VENV)/docs: requirements/docs.txt $(VENV)/core
	@$(PIP) -r requirements/docs.txt
	@touch $@

# make demo | make test | make lint | make bench: each sets up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint bench setup clean
setup: $(READY)

$(READY): requirements.lock pyproject.toml scripts/setup.sh
	@PYTHON="$(PYTHON)" sh scripts/setup.sh $(VENV)
	@touch $@

demo: $(READY)
	@$(BIN)/pilotage demo

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

test: lint
	@$(BIN)/pytest -n auto --dist loadfile --cov --cov-report=term:skip-covered

bench: $(READY)
	@$(BIN)/python tests/perf/engine.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

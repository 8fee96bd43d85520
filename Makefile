# Two commands do everything: `make bench` measures this machine, `make test` checks the project.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: bench test lint venv unit clean

bench: venv
	$(BIN)/pytest benchmarks/ $(ARGS)

test: lint unit

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: venv
	$(BIN)/pytest tests/ $(ARGS)

venv: $(STAMP)

# The extra (cuda12, cuda13 or none) follows from the driver that is there.
$(STAMP): pyproject.toml constraints.txt tools/cuda_extra.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$$($(PYTHON) tools/cuda_extra.py)]"
	touch $(STAMP)

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .import_linter_cache

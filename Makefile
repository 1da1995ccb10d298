PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo ui test clean

demo: .venv/installed
	$(BIN)/foreshape demo var/demo
	@echo "open var/demo/report.html, or design your own: make ui"

ui: .venv/installed
	$(BIN)/foreshape ui

test: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .
	touch $@

.venv/installed-dev: .venv/installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv var

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo ui test clean

demo: .venv/installed
	$(BIN)/foreshape generate domain=dna generator=rmf n=32 steps=4 seed=1 guidance=lookahead \
		rewards.gc_content.target=0.45 rewards.motif.name=TATA-Box rewards.motif.start=-40 rewards.motif.end=-15 \
		out=var/demo
	@echo "open var/demo/report.html; the designs are in var/demo/designs"

ui: .venv/installed
	$(BIN)/foreshape ui

test: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .
	touch $@

.venv/installed-dev: .venv/installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv var

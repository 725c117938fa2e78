# `make` alone lists what can be made. Needs Python 3.11 or later, git and make; all else goes into .venv.

PYTHON ?= python3
BIN := .venv/bin

export PATH := $(CURDIR)/$(BIN):$(PATH)
export DVC_NO_ANALYTICS := 1
export RAY_USAGE_STATS_ENABLED := 0
export MLFLOW_DISABLE_TELEMETRY := true
export DVC_SITE_CACHE_DIR ?= $(HOME)/.cache/dvc

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo textbook kernel-regression repro compare ui test lint clean-runs

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-19s%s\n", $$1, $$2 }' Makefile
	@echo
	@echo "  PYTHON=python3.12 make install    takes another Python than python3"

install: .venv/installed ## Create .venv and install everything, in the versions of constraints.txt

.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "error: $(PYTHON) is absent or older than Python 3.11;" \
			"name a newer one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "error: $(PYTHON) cannot create environments;" \
			"install its venv package (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing into .venv, the first time for some minutes"
	@mkdir -p "$$DVC_SITE_CACHE_DIR" && mkdir -p -m 700 "$$DVC_SITE_CACHE_DIR/repo"  # DVC makes it writable for all
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: install ## Run the whole pipeline on the bundled phrasebook, then show what came out
	$(BIN)/dvc repro examples/phrasebook/dvc.yaml
	@$(BIN)/python -m passerelle.summary examples/phrasebook

textbook: install ## Run the chapter's own experiment: two small models, its four sentences (needs the corpus)
	$(BIN)/dvc repro examples/textbook/dvc.yaml
	@echo "The report is examples/textbook/chapter.md, pictures are in examples/textbook/*/evaluation/attention/"

kernel-regression: install ## Fit a curve by attention pooling, in three ways
	$(BIN)/dvc repro examples/kernel_regression/dvc.yaml

repro: install ## Run the whole pipeline on the corpus that params.yaml names
	$(BIN)/dvc repro
	@$(BIN)/python -m passerelle.summary .

compare: install ## Table of experiments: what differs in their parameters and scores
	$(BIN)/dvc exp show --only-changed --drop '(.*/)?(pipeline|src|data)/|.*leaks.*|(.*/)?model$$|.*_(low|high|seconds)$$|.*tokens_per_second$$' --no-pager

ui: install ## Open the MLflow pages of all runs on http://localhost:5000
	MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false $(BIN)/mlflow ui

test: lint ## Lint, types and the test suite
	$(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder

lint: install ## Lint, format and types alone
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

clean-runs: ## Remove the checkpoints of all runs (.runs/); finished models stay
	rm -rf .runs

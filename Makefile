# Two commands for a fresh clone: `make demo` and `make test`. Each sets up everything it needs first, which is silent
# and takes a moment once it is done (scripts/bootstrap says how). `make help` lists the rest.

SHELL := bash
.DEFAULT_GOAL := help
PYTHON_OF_VENV := .venv/bin/python
# How many jobs Snakemake runs at a time: make demo CORES=2
CORES ?= all
SNAKEMAKE = $(PYTHON_OF_VENV) -m snakemake --cores $(CORES)
DEMO := results/demo

.PHONY: help setup setup-tests demo reference test browser drills check clean

help: ## list the commands
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:[^#]*## /\t/' | while IFS=$$'\t' read -r name text; do \
		printf '  make %-10s%s\n' "$$name" "$$text"; done

setup: ## system packages (or the line that installs them), then .venv with the pinned Python packages
	@scripts/bootstrap

demo: setup ## the study of the paper at a small size, on a corpus that needs no download: about 3 minutes on 2 cores
	@echo "demo: every row of the main table, small, on the text of Python's own reference: about 3 minutes on 2 cores"
	@start=$$SECONDS; $(SNAKEMAKE) all --configfile config/demo.yaml && \
	printf '%s\n' "" "demo: done in $$((SECONDS - start)) s. Look at" \
	"  $(DEMO)/report.html          everything below in one page, with captions: open it in a browser" \
	"  $(DEMO)/tables/table1.md     perplexities of every row (.csv: all digits, .tex, .html)" \
	"  $(DEMO)/tables/claims.md     the claims of the paper, tested" \
	"  $(DEMO)/tables/policies.md   the n-gram rows under every vocabulary policy" \
	"  $(DEMO)/figures/             the figures (PNG and SVG)" \
	"  $(DEMO)/paper.pdf            the write-up with these numbers in it" \
	"What to expect: the corpus has about 100,000 tokens, a tenth of Brown, so these perplexities are not the paper's;" \
	"mixtures of a network and the trigram should be better than both their parts, as in the paper." \
	"The Brown experiment of the paper itself: .venv/bin/snakemake --cores all   (about two hours on 2 cores)"

reference: setup ## the studies on Brown and Reuters, and their small results in results/reference: 2.5 hours on 2 cores
	@$(SNAKEMAKE) reference
	@$(SNAKEMAKE) reference --configfile config/reuters.yaml

setup-tests:
	@scripts/bootstrap tests

test: setup-tests ## unit, pipeline and browser tests
	@test -x data/tools/lmplz || $(SNAKEMAKE) --quiet all -- data/tools/lmplz
	@$(PYTHON_OF_VENV) -m pytest

browser: setup-tests ## the tests of the explorer page in headless Chromium, which are part of `make test` too
	@$(PYTHON_OF_VENV) -m pytest tests/browser

drills: setup ## every fault that the study must survive, one after the other; writes docs/faults.md
	@test -x data/tools/lmplz || $(SNAKEMAKE) --quiet all -- data/tools/lmplz
	@$(PYTHON_OF_VENV) -m pytest tests/drills -m "" --faults docs/faults

check: setup ## formatting, lint and types
	@$(PYTHON_OF_VENV) -m ruff format --check .
	@$(PYTHON_OF_VENV) -m ruff check .
	@$(PYTHON_OF_VENV) -m mypy
	@.venv/bin/snakefmt --check Snakefile workflow/rules

clean: ## remove the demo's results, .venv and caches; downloads, lmplz and other results stay
	rm -rf .venv $(DEMO) .hypothesis .mypy_cache .pytest_cache .ruff_cache src/nplm2003.egg-info
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

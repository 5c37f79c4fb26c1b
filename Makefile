# The commands of this project; `make help` lists them.
HATCHERY_CACHE ?= $(HOME)/.cache/hatchery
CARGO_TARGET_DIR ?= $(HATCHERY_CACHE)/target
export HATCHERY_CACHE CARGO_TARGET_DIR

.PHONY: help demo demo-down test soak bench dist fixtures
.DEFAULT_GOAL := help

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' Makefile

demo: ## three machines on this one, a cluster on them, and a web server in it
	@dev/demo

demo-down: ## remove the machines of the demo
	@dev/demo down

test: ## everything: format, lints, unit, integration and end-to-end tests
	@dev/test

soak: ## tests repeated alone and beside load, hundreds of kills and power cuts, long fuzzing: hours
	@dev/soak

bench: ## what is measured, as ratios within one run
	@dev/bench

dist: ## the portable binary with completions, as one tar.gz in dist/
	@dev/dist

fixtures: ## Kubernetes, images, packages and root file systems, made ahead of time
	@fixtures/fixtures build test

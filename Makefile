# Thin: every target is a few lines of cmake, ctest or scripts/.
# PLATEAU_CACHE_DIR and PLATEAU_LLAMA_CPP_SOURCE: see scripts/llama-cpp.sh.
SHELL := /bin/bash
PRESET ?= release

.DEFAULT_GOAL := help
.PHONY: help demo test asan bench train-smoke format lint clean packages llama-cpp configure

help: ## Show this list
	@sed -nE 's/^([a-z-]+):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 18

demo: configure build/.photo ## Set everything up, build, and ask about a number in a 4K picture
	@cmake --build build/$(PRESET) --target plateau
	@scripts/demo.sh build/$(PRESET)/bin/plateau

test: configure ## Set everything up, build, and run all tests
	@cmake --build build/$(PRESET)
	@ctest --preset $(PRESET)

asan: ## The unit, kv and graph tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(MAKE) --no-print-directory test PRESET=asan

bench: configure ## Build and run the benchmarks
	@scripts/install-packages.sh bench
	@cmake --build build/$(PRESET)
	@scripts/bench.sh build/$(PRESET)

train-smoke: configure ## Train the bundled models for a minute: the loss falls, the files load
	@scripts/install-packages.sh train
	@cmake --build build/$(PRESET) --target plateau
	@models/pico/train/smoke.sh build/$(PRESET)/bin/plateau

format: ## Format the C++ sources in place
	@scripts/install-packages.sh lint
	@scripts/sources.sh | xargs -0 clang-format -i

lint: configure ## Check the format, then clang-tidy on src/
	@scripts/install-packages.sh lint
	@scripts/lint.sh build/$(PRESET)

clean: ## Remove the build tree (the cached llama.cpp stays)
	@rm -rf build

# The demo works without a photograph, so this is tried once and may fail.
build/.photo:
	@scripts/install-packages.sh demo || true
	@mkdir -p build && touch $@

packages:
	@scripts/install-packages.sh build

llama-cpp: packages
	@scripts/llama-cpp.sh llama-bench >/dev/null

configure: llama-cpp
	@cmake --preset $(PRESET) --log-level=WARNING >/dev/null

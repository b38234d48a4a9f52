# Two commands set everything up: `make evaluate` and `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Compiling all of 350 MB of Python takes minutes; Python compiles what it imports.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt
# uv takes a quarter of pip's time. It looks for packages where pip would; where it finds no way, pip installs.
PIP_SETTINGS := s/^[^.]*\.index-url=/export UV_INDEX_URL=/p; s/^[^.]*\.extra-index-url=/export UV_EXTRA_INDEX_URL=/p; s/^[^.]*\.find-links=/export UV_FIND_LINKS=/p
INSTALL = eval "$$($(BIN)/python -m pip config list | sed -n '$(PIP_SETTINGS)')"; \
	$(BIN)/uv pip install --quiet --python $(BIN)/python --index-strategy unsafe-best-match --constraint constraints.txt pip --editable '.$(EXTRAS)' \
	|| $(PIP_INSTALL) pip --editable '.$(EXTRAS)'
# One process more than cores: some tests wait for others, for servers and for clocks.
PYTEST_PROCESSES := --numprocesses $(shell $(PYTHON) -c "import os; print(min(len(os.sched_getaffinity(0)) + 1, 8))") --dist worksteal
FUZZ_SECONDS ?= 60
FUZZ_JOBS ?= 1
ARCHITECTURE ?= sm_80
DISTANCES ?= results/distances_$(ARCHITECTURE).jsonl
LONG_RUN := results/long-run
LONG_RUN_SEEDS := $(shell seq 1 100)
FUZZ_STATE ?= results/small-scope.json
DATASET ?= regalloc
MINI := verilocc_bench/data/mini
MODELS := compiler linear-scan graph-coloring
STUDY := results/study
STUDY_JOBS ?= 1
KERNELS_PER_CELL ?= 55
LEADERBOARD_JOBS ?= 2
MUTANT_JOBS ?= 2

# Tests start hundreds of processes: none of them should compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help evaluate test test-fast test-exhaustive collected check build-mini build-mini-expert build-full expert-archives build-expert register-classes lower-tools fuzz fuzz-long fuzz-small mutants distances docs benchmark study figures leaderboard leaderboard-page clean

help: ## Say what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 20

$(VENV)/pip:
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) uv
	@touch $@

$(VENV)/core: $(VENV)/pip pyproject.toml constraints.txt
	$(INSTALL)
	@touch $@

# It has all that $(VENV)/core has.
$(VENV)/dev: EXTRAS := [dev]
$(VENV)/dev: $(VENV)/pip pyproject.toml constraints.txt
	$(INSTALL)
	@touch $(VENV)/core $@

$(VENV)/mutants: EXTRAS := [dev,mutants]
$(VENV)/mutants: $(VENV)/dev pyproject.toml constraints.txt
	$(INSTALL)
	@touch $@

evaluate: $(VENV)/core ## Score the baselines on the embedded dataset
	$(BIN)/verilocc-bench evaluate --dataset mini $(addprefix --model ,$(MODELS)) --output-path results
	$(BIN)/verilocc-bench evaluate --dataset mini:expert $(addprefix --model ,$(MODELS)) --output-path results/mini-expert

test: $(VENV)/dev ## Run the tests
	$(BIN)/python -m pytest $(PYTEST_PROCESSES)

test-fast: $(VENV)/dev ## Run the quick tests: no compiler, no server, no training; takes a minute or two
	$(BIN)/python -m pytest $(PYTEST_PROCESSES) -m "not slow"

test-exhaustive: $(VENV)/dev ## Run the further cases of what `make test` asks about some; takes 6 to 10 minutes
	$(BIN)/python -m pytest $(PYTEST_PROCESSES) -m exhaustive

collected: $(VENV)/dev ## Collect the tests: what they import is compiled once for all their processes
	$(BIN)/python -m pytest --quiet --quiet --collect-only > /dev/null

check: $(VENV)/dev ## Lint, format, types, import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/dev ## Build the documentation site into site/; a dead link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --site-dir site

build-mini: $(VENV)/dev ## Rebuild the embedded dataset: the same bytes
	rm -rf $(MINI).new
	$(BIN)/verilocc-bench build --sweep mini --output $(MINI).new
	rm -rf $(MINI)
	mv $(MINI).new $(MINI)

build-mini-expert: expert-archives ## Rebuild the embedded kernels of experts: the same bytes
	rm -rf $(MINI)-expert.new
	$(BIN)/verilocc-bench build --sweep expert-mini --output $(MINI)-expert.new
	rm -rf $(MINI)-expert
	mv $(MINI)-expert.new $(MINI)-expert

build-full: $(VENV)/dev ## Build the published dataset into DATASET; takes hours, and goes on where it was interrupted
	$(BIN)/verilocc-bench build --sweep default --output $(DATASET)
	$(BIN)/verilocc-bench dataset check $(DATASET)

$(VENV)/expert: EXTRAS := [dev,expert]
$(VENV)/expert: $(VENV)/dev pyproject.toml constraints.txt
	$(INSTALL)
	@touch $@

expert-archives: $(VENV)/expert ## Fetch the libraries of experts' kernels; says how large they are
	$(BIN)/python -m dataset_builders.experts.fetch

build-expert: expert-archives ## Build the experts' kernels into DATASET/expert; takes an hour, and goes on where it was interrupted
	$(BIN)/verilocc-bench build --sweep expert --output $(DATASET)/expert --beside $(DATASET) --time-limit 1200
	$(BIN)/verilocc-bench dataset check $(DATASET)/expert

register-classes: $(VENV)/dev ## Generate the AMDGPU register classes and opcodes from LLVM's own tables
	$(BIN)/python -m dataset_builders.compilers.llvm_tables verilocc_bench/targets
	$(BIN)/python -m dataset_builders.compilers.llvm_instructions verilocc_bench/targets

lower-tools: ## Install llc of LLVM 22 (Debian), which makes machine code of answers for gfx90a and gfx942
	apt-get install --yes --no-install-recommends llvm-22

fuzz: $(VENV)/dev ## Corrupt answers and set the judges against each other, FUZZ_SECONDS long
	$(BIN)/verilocc-bench selftest --seconds $(FUZZ_SECONDS)

$(LONG_RUN)/%.json: | $(VENV)/dev
	@mkdir -p $(@D)
	$(BIN)/verilocc-bench selftest --mutants 10000 --seed $* --json > $@.part
	@mv $@.part $@

fuzz-long: $(LONG_RUN_SEEDS:%=$(LONG_RUN)/%.json) ## Compare the judges on a million corrupted answers of the seeds 1 to 100; takes two hours, less with `make -j`, and goes on where it was interrupted
	$(BIN)/python -m benchmarks.long_run $(LONG_RUN)

fuzz-small: $(VENV)/dev ## Ask all judges about all answers to all small functions; takes two hours, and goes on where it was interrupted
	$(BIN)/verilocc-bench selftest --small-scope --smt --jobs $(FUZZ_JOBS) --resume $(FUZZ_STATE)

mutants: $(VENV)/mutants ## Change the analyses and the judges, and see the tests notice; takes an hour or two, and goes on where it was interrupted
	$(BIN)/python -m tests.mutants --jobs $(MUTANT_JOBS)

distances: $(VENV)/dev ## Mine the distances that ptxas relies on, for ARCHITECTURE (sm_80) from random kernels and from the points of the sweeps; takes an hour, and goes on where it was interrupted
	$(BIN)/python -m benchmarks.distances generate 2300 --measured $(DISTANCES) --architecture $(ARCHITECTURE)
	$(BIN)/python -m benchmarks.distances compile mini default --measured $(DISTANCES) --architecture $(ARCHITECTURE)
	$(BIN)/python -m benchmarks.distances mine --measured $(DISTANCES) --architecture $(ARCHITECTURE)

benchmark: $(VENV)/dev ## Measure speed, with llc's and Z3's times beside ours
	$(BIN)/python -m benchmarks.speed

study: $(VENV)/dev ## Measure on DATASET how good the compilers' allocators are; takes two hours, and goes on where it was interrupted
	mkdir -p $(STUDY)
	$(BIN)/python -m benchmarks.allocation_study measure --dataset $(DATASET) --split test --kernels-per-cell $(KERNELS_PER_CELL) --jobs $(STUDY_JOBS) -o $(STUDY)/study.jsonl
	$(BIN)/python -m benchmarks.allocation_study copy --dataset $(DATASET) $(STUDY)/study.jsonl -o $(STUDY)/sample
	$(BIN)/python -m benchmarks.runnable answers --dataset $(STUDY)/sample --measured $(STUDY)/runnable.jsonl
	$(BIN)/python -m benchmarks.machine_code measure --dataset $(STUDY)/sample --answers machine-code compiled --measured $(STUDY)/machine-code.jsonl
	$(BIN)/python -m benchmarks.allocation_study compiler-times $(STUDY)/sample -o $(STUDY)/compiler-times.jsonl
	$(BIN)/python -m benchmarks.allocation_study report $(STUDY)/study.jsonl --runnable $(STUDY)/runnable.jsonl --machine-code $(STUDY)/machine-code.jsonl --compiler-times $(STUDY)/compiler-times.jsonl --images docs/images

figures: $(VENV)/dev ## Make the figures of the README
	$(BIN)/python -m benchmarks.figures docs/images

leaderboard: $(VENV)/dev ## Make the leaderboard's own entries anew, of DATASET and of mini, and the page; takes two hours
	-$(BIN)/python -m leaderboard.seed --dataset $(DATASET) --jobs $(LEADERBOARD_JOBS) --machine-code 60
	$(MAKE) leaderboard-page

leaderboard-page: $(VENV)/dev ## Make the leaderboard's page of its own entries
	$(BIN)/python -m leaderboard.render leaderboard/entries --dataset $(DATASET) --output results/leaderboard-page

clean: ## Remove the environment and results
	rm -rf $(VENV) results

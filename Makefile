# All that people and CI call; `make` alone lists it. Scripts install what a target lacks.
SHELL := /bin/bash
CARGO ?= cargo
# --locked in CI, so that Cargo.lock is part of each change.
CARGO_FLAGS ?=
# For example DEMO_FLAGS="--hosts 5 --stay"; FMT_FLAGS=--check looks only.
DEMO_FLAGS ?=
FMT_FLAGS ?=
# Property tests: one seed, so that a run says the same twice; another number searches elsewhere.
export PROPTEST_RNG_SEED ?= 20261121
FUZZ_SECONDS ?= 60
ALIKE_REF ?= main
ALIKE_CLUSTERS ?= 200000
# PROPTEST_CASES=20000 tries more of each property in a round.
SEARCH_ROUNDS ?= 1
FLAKY_RUNS ?= 20
FLAKY_LOOPS ?= 4

# Crates whose tests run no other program. What they are built from has parts in C.
PURE := -p wmco-core -p wmco-csr -p wmco-services

# cargo-nextest is quicker and ends tests that hang, but a machine that has only Rust will do.
ifeq ($(shell $(CARGO) nextest --version >/dev/null 2>&1 && echo yes),yes)
# Many tests wait more than they work, above all those under Wine.
TEST := $(CARGO) nextest run $(CARGO_FLAGS) --test-threads $(shell echo $$(( $$(nproc) * 3 )))
else
TEST := $(CARGO) test --no-fail-fast --lib --bins --tests --examples $(CARGO_FLAGS)
endif

PUBLISHED := -p kube-testserver -p wmco-core -p wmco-csr -p wmco-services -p wmco-sim -p wmco-ssh

# What operators asked of the API in tests, for the comparison with their rights.
ACCESS = $(abspath $(or $(CARGO_TARGET_DIR),target))/access

.PHONY: help demo test test-quick search flaky features publishable e2e fmt lint doc deploy book fuzz alike bench wicd setup

help: ## This list.
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

demo: ## An embedded cluster and simulated Windows hosts; flags in DEMO_FLAGS.
	@scripts/setup.sh build
	$(CARGO) run $(CARGO_FLAGS) -p bin-operator --bin wmco-operator -- demo $(DEMO_FLAGS)

test: setup ## Everything: unit, property and integration tests, the daemon under Wine, doc tests.
	scripts/wine.sh $(CARGO_FLAGS)
	rm -rf $(ACCESS)
	WINE_IS_MADE=yes WMCO_ACCESS_FOLDER=$(ACCESS) $(TEST) --workspace
	WMCO_ACCESS_FOLDER=$(ACCESS) $(CARGO) test $(CARGO_FLAGS) -p bin-operator --test used_rights
	$(if $(NEXTEST_PROFILE),NEXTEST_PROFILE=$(NEXTEST_PROFILE)-features) $(TEST) -p kube-testserver --no-default-features --lib --test features
	$(CARGO) test --doc --workspace $(CARGO_FLAGS)
	scripts/outside.sh $(CARGO_FLAGS)
	@scripts/setup.sh kubectl

test-quick: ## Unit and property tests of the pure crates; needs Rust and a C compiler.
	@scripts/setup.sh build
	$(TEST) $(PURE)
	$(CARGO) test --doc $(PURE) $(CARGO_FLAGS)

search: ## The property tests, and commands over mutated reports, with fresh seeds, SEARCH_ROUNDS times; what they find is kept.
	@scripts/setup.sh build
	SEARCH_CPU_SECONDS=2 PROPTEST_CASES=$${PROPTEST_CASES:-1000} scripts/search.sh $(SEARCH_ROUNDS) $(TEST) -p bin-operator --test it mutated
	scripts/search.sh $(SEARCH_ROUNDS) $(TEST) $(PURE) -p kube-testserver

flaky: ## Tests that speak to other processes or wait, FLAKY_RUNS times beside busy loops; which failed how often.
	@scripts/setup.sh build test wine
	scripts/wine.sh $(CARGO_FLAGS)
	WINE_IS_MADE=yes scripts/flaky.sh $(FLAKY_RUNS) $(FLAKY_LOOPS)

features: ## Compile the libraries with none of their features, each alone, and all.
	@scripts/setup.sh build
	scripts/features.sh $(CARGO_FLAGS)

# A library alone chooses no version of Kubernetes, see Cargo.toml.
publishable: ## Package the published crates and build each from its package, as a registry would; publishes nothing.
	@scripts/setup.sh build
	K8S_OPENAPI_ENABLED_VERSION=1.35 $(CARGO) publish --dry-run $(CARGO_FLAGS) $(PUBLISHED)

e2e: ## The operator against a real API server, of KUBECONFIG (to throw away) or KUBEBUILDER_ASSETS.
	scripts/setup.sh build && $(CARGO) test $(CARGO_FLAGS) -p bin-operator --test e2e

setup: ## Install what `make test` needs, as root; otherwise say what is missing.
	@scripts/setup.sh build test wine
	@scripts/setup.sh kubectl || echo "going on, but without kubectl \`make test\` will fail" >&2

fmt: ## Format all code.
	$(CARGO) fmt --all -- $(FMT_FLAGS)
	if [ -f fuzz/Cargo.toml ]; then $(CARGO) fmt --manifest-path fuzz/Cargo.toml -- $(FMT_FLAGS); fi

lint: ## House rules, clippy, and cargo-deny where it is installed.
	@scripts/setup.sh build lint
	scripts/lint.sh
	$(CARGO) clippy $(CARGO_FLAGS) --workspace --all-targets -- -D warnings

doc: ## The documentation; a warning is an error.
	@scripts/setup.sh build
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(CARGO_FLAGS) --workspace --no-deps

deploy: ## The files in deploy, for people who have no program of ours yet.
	$(CARGO) run $(CARGO_FLAGS) -p bin-operator --bin wmco-operator -- render manifests --output-dir deploy
	$(CARGO) run $(CARGO_FLAGS) -p bin-operator --bin wmco-operator -- render bundle --output-dir deploy/bundle

book: ## The users' book, as target/book/index.html.
	@scripts/setup.sh build book
	$${CARGO_TARGET_DIR:-target}/tools/bin/mdbook build docs

alike: ## Whether the planner decides as it did at the commit ALIKE_REF, for ALIKE_CLUSTERS random clusters.
	@scripts/setup.sh build
	scripts/alike.sh $(ALIKE_REF) $(ALIKE_CLUSTERS)

fuzz: ## Each fuzz target for FUZZ_SECONDS.
	@scripts/setup.sh build fuzz
	scripts/fuzz.sh $(FUZZ_SECONDS)

bench: ## The benches.
	@scripts/setup.sh build
	$(CARGO) bench $(CARGO_FLAGS) -p wmco-benches

wicd: ## The daemon for Windows, as target/wicd.exe.
	@scripts/setup.sh build wicd
	scripts/wicd.sh $(CARGO_FLAGS)

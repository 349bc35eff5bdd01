# The one entry point, for people and for CI. `make help` lists the targets.

CARGO ?= cargo
# Builds need a C compiler and linker besides Rust, for the TLS library.
BUILD_NEEDS = cc:gcc

.DEFAULT_GOAL := help
.PHONY: help test-upgrades peers test-templates test-charts torture-sampledb image-sampledb test-image-sampledb demo demo-transcript test test-scaffolds packages test-packages test-tutorial test-reference parity conformance lint fuzz bench reference facts docs clean
# Targets share one build folder and two cores: one at a time.
.NOTPARALLEL:

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The demo runs real memcached and PostgreSQL processes. If memcached cannot be installed, the demo says so and simulates its servers;
# if PostgreSQL cannot, it downloads one, or says why it skips the database. Debian keeps PostgreSQL's server out of PATH.
DEMO_NEEDS = scripts/need $(BUILD_NEEDS) && { scripts/need memcached:memcached || echo "continuing with simulated servers" >&2; } && \
    { ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || scripts/need postgres:postgresql || echo "continuing without: the demo looks for another PostgreSQL" >&2; }

demo: ## Run the demo, in about a minute; KEEP=1 leaves the cluster up, with commands to try
	@$(DEMO_NEEDS)
	$(CARGO) build --package windlass-cli
	@$(CARGO) run --quiet --package windlass-cli -- demo $(if $(KEEP),--keep)

demo-transcript: ## Run the demo and write its output to docs/demo.md
	@$(DEMO_NEEDS)
	$(CARGO) build --package windlass-cli
	@$(CARGO) run --quiet --package windlass-cli -- demo --transcript docs/demo.md

test: ## Run all tests that this machine can run (with Rust alone: all but the comparisons with the reference)
	@scripts/need $(BUILD_NEEDS)
	$(CARGO) test --workspace --quiet
	@$(CARGO) xtask skipped

peers: ## Build the programs that ours are compared with: Helm's template engine (needs Go)
	@scripts/need go:golang
	cd bench/peers/templates && go build -o $(CURDIR)/target/peers/templates .

CASES ?= 100000
test-templates: peers ## Render CASES random templates by us and by Helm's engine, and compare
	WINDLASS_STEPS=$(CASES) $(CARGO) test --package windlass-template --test differential -- --nocapture

test-charts: peers ## Render published charts by us and by Helm's engine, and compare; downloads them as Go modules
	$(CARGO) test --package windlass-charts --test reference -- --ignored --nocapture

test-scaffolds: ## Compile and test scaffolded projects of every shape
	@scripts/need $(BUILD_NEEDS)
	$(CARGO) test --quiet --workspace --test scaffold -- --ignored

packages: ## Package every crate that is published
	@scripts/need $(BUILD_NEEDS)
	scripts/packages

test-packages: ## Build and test a new operator from the packages alone
	@scripts/need $(BUILD_NEEDS)
	scripts/packages --build

test-tutorial: ## Run every command of docs/tutorial/memcached.md on the embedded cluster, and on the reference if it is built
	@scripts/need $(BUILD_NEEDS)
	$(CARGO) test --workspace --test tutorial -- --include-ignored --test-threads 1

test-reference: reference ## Run the tests that compare with the reference; fail if it is missing
	@python3 -c 'import ensurepip' 2>/dev/null || scripts/need python3-venv:python3-venv \
	    || echo "skipped: the comparison with the Python client"
	WINDLASS_REQUIRE_REFERENCE=1 $(CARGO) test --workspace --tests -- "on reference"
	WINDLASS_REQUIRE_REFERENCE=1 $(CARGO) test --workspace --test command -- on_the_reference

parity: reference ## Compare the embedded API with the reference, behaviour by behaviour; writes target/parity.json
	WINDLASS_REQUIRE_REFERENCE=1 $(CARGO) test --quiet --workspace --test parity -- --nocapture

FOCUS ?= \[Conformance\]
conformance: ## Run Kubernetes' own conformance tests on an embedded cluster (needs Go); FOCUS='sig-apps.*\[Conformance\]' selects some
	@scripts/need $(BUILD_NEEDS) curl:curl dig:dnsutils nc:netcat-openbsd openssl:openssl busybox:busybox-static nginx:nginx-light
	@$(CARGO) build --quiet --package windlass-cli
	@programs=$$($(CARGO) xtask conformance) && scripts/conformance "$$programs" '$(FOCUS)'

lint: ## Check format, lints, structure and dependencies; warnings are errors
	@scripts/need $(BUILD_NEEDS)
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- --deny warnings
	@$(CARGO) xtask structure
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
	    $(CARGO) deny --log-level error check bans licenses sources; \
	else \
	    echo "skipped: dependency checks (cargo install --locked cargo-deny)"; \
	fi

ROUNDS ?= 50
torture-sampledb: ## Kill ROUNDS primaries of a SampleDB under load, and look for every acknowledged commit
	@scripts/need $(BUILD_NEEDS) pg_lsclusters:postgresql
	$(CARGO) build --workspace --bin sampledb-agent --bin windlass-sampledb --example writer
	WINDLASS_ROUNDS=$(ROUNDS) $(CARGO) test --workspace --test command -- --nocapture no_acknowledged_commit

test-upgrades: ## Upgrade SampleDBs to minor and major versions, with servers that are downloaded from PyPI
	@scripts/need $(BUILD_NEEDS)
	$(CARGO) build --workspace --bin windlass --bin sampledb-agent --bin windlass-sampledb --example writer
	$(CARGO) test --workspace --test command -- --ignored --nocapture sampledb::upgrade

MUSL = $(shell uname -m)-unknown-linux-musl
STATIC = target/$(MUSL)/release
image-sampledb: ## Build the image of SampleDB's operator, with its agent, as target/sampledb-operator.tar
	@scripts/need $(BUILD_NEEDS) musl-gcc:musl-tools
	@rustup target list --installed | grep -qx $(MUSL) || rustup target add $(MUSL)
	$(CARGO) build --release --target $(MUSL) --package sampledb-operator --bin sampledb-operator --bin sampledb-agent
	$(CARGO) run --quiet --package windlass-cli -- image --operator $(STATIC)/sampledb-operator --with $(STATIC)/sampledb-agent \
	    --name sampledb-operator:$$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1) --output target/sampledb-operator.tar

test-image-sampledb: image-sampledb ## Run SampleDB's tests with the image that image-sampledb builds
	@scripts/need pg_lsclusters:postgresql
	$(CARGO) build --workspace --bin windlass --bin sampledb-agent --bin windlass-sampledb --example writer
	WINDLASS_SAMPLEDB_IMAGE=$(CURDIR)/target/sampledb-operator.tar $(CARGO) test --workspace --test command -- --nocapture sampledb

FUZZ_SECONDS ?= 60
fuzz: ## Fuzz every parser and the API, for FUZZ_SECONDS per target
	@scripts/need $(BUILD_NEEDS)
	@scripts/fuzz $(FUZZ_SECONDS)

BENCHES = $(patsubst tests/benches/%.rs,%,$(wildcard tests/benches/*.rs))
bench: $(addprefix bench-,$(BENCHES)) bench-node bench-sdk bench-sampledb ## Run all benches; make bench-NAME runs one

bench-%:
	@test -f tests/benches/$*.rs || { echo "error: no bench $*; there are: $(BENCHES)" >&2; exit 1; }
	@scripts/need $(BUILD_NEEDS)
	@$(CARGO) bench --quiet --package windlass-tests --bench $*

bench-node:
	@scripts/need $(BUILD_NEEDS)
	@$(CARGO) bench --quiet --package windlass-node --bench node

bench-sampledb:
	@scripts/need $(BUILD_NEEDS)
	@$(CARGO) build --quiet --workspace --bin windlass --bin sampledb-agent --bin windlass-sampledb --example writer
	@$(CARGO) test --quiet --workspace --test command -- --ignored --nocapture sampledb::bench

bench-sdk:
	@scripts/need $(BUILD_NEEDS)
	@$(CARGO) bench --quiet --package windlass-cli --bench sdk

reference: ## Build the reference: the real Kubernetes that we compare with (once; needs Go)
	@scripts/need $(BUILD_NEEDS)
	@$(CARGO) xtask reference

facts: reference ## Regenerate the facts of the built-in kinds from the reference (needs Go)
	@$(CARGO) run --quiet --package windlass-harness --example with_reference -- \
	    $(CARGO) xtask facts --kubectl "$$($(CARGO) xtask reference --where)/kubectl"

docs: ## Build the API documentation; warnings are errors
	@scripts/need $(BUILD_NEEDS)
	RUSTDOCFLAGS="--deny warnings" $(CARGO) doc --workspace --no-deps --quiet
	@echo "target/doc/windlass/index.html"

clean: ## Remove build output (the reference stays in its cache)
	$(CARGO) clean

# The two commands of the README are `make demo` and `make test`; `make` alone lists the rest.
.DEFAULT_GOAL := help
.PHONY: help demo test test-clients bench scorecard attempts sim bugs mutants-deep fuzz lint docs fmt

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: ## one real turn through each client dialect, no key needed (needs Rust and a C compiler)
	@echo "Building the gateway in release mode; the first build takes a few minutes, later ones seconds."
	cargo run --release --locked -p turnkeep -- demo

test: ## set up, then format, lints, layers, Rust tests, docs and end-to-end tests
	@bash tests/setup/test.sh

test-clients: ## the agent CLIs against a built gateway; with ALL=1 every dialect of theirs and every fault (half an hour)
	@bash tests/setup/clients.sh

bench: ## measure against nginx and a bare proxy, write docs/benchmarks.md (about fifteen minutes)
	@sh tests/bench/run.sh

scorecard: ## published scenarios against Turnkeep and its peers, write docs/scorecard.md (about twenty minutes)
	@bash tests/scorecard/run.sh $(ARGS)

attempts: ## ten thousand random turns against the upstream's own meter (about a minute)
	TURNKEEP_RANDOM_TURNS=10000 cargo test --profile ci --locked -p turnkeep --test settled killed -- --nocapture

sim: ## simulate seeds that no run had before, for HOURS=1 (a failure writes its plan down)
	cargo build --profile ci --locked -p turnkeep-sim
	cargo run --profile ci --locked -q -p turnkeep-sim -- corpus --from "$$(date +%s)000" --seconds "$$(( $${HOURS:-1} * 3600 ))" --unmarked

bugs: ## put each bug of crates/sim/src/bugs.rs in, see which the simulation finds, write docs/mutation-score.md
	cargo build --profile ci --workspace --all-targets --locked --features turnkeep-sim/seeded-bugs
	"$${CARGO_TARGET_DIR:-target}/ci/turnkeep-sim" bugs --seconds 5 --out docs/mutation-score.md

mutants-deep: ## mutants of the files that decide blame, standing, closings and leases; writes docs/mutants.md (hours)
	@bash tests/setup/mutants.sh

fuzz: ## fuzz one decoder by libFuzzer for SECONDS=60 (TARGET=sse; needs nightly and cargo-fuzz, and says so)
	@sh fuzz/run.sh "$${TARGET:-}" "$${SECONDS:-60}"

lint: ## format check, clippy and the layer check
	cargo fmt --all --check
	cargo clippy --profile ci --workspace --all-targets --locked -- -D warnings
	cargo xtask layers

docs: ## write the generated parts of docs/
	cargo build --profile ci --locked -p turnkeep
	cargo xtask docs

fmt: ## format the Rust code
	cargo fmt --all

#!/bin/sh
# Fuzzes one target by libFuzzer, on its seeds; new inputs that reach new code are kept in fuzz/corpus, failures in
# fuzz/artifacts. Without nightly or cargo-fuzz it says what to install, and what runs on stable meanwhile.
set -eu
cd "$(dirname "$0")/.."
target=$1
seconds=$2

if [ -z "$target" ]; then
    echo "Which one? make fuzz TARGET=… [SECONDS=60], one of:"
    (cd fuzz/fuzz_targets && ls) | sed -n 's/\.rs$//p' | sed 's/^/  /'
    exit 2
fi
if [ ! -f "fuzz/fuzz_targets/$target.rs" ]; then
    echo "There is no target $target; \`make fuzz\` lists them." >&2
    exit 2
fi
if ! cargo +nightly --version >/dev/null 2>&1; then
    missing="a nightly toolchain (rustup toolchain install nightly)"
fi
if ! cargo fuzz --version >/dev/null 2>&1; then
    missing="${missing:+$missing and }cargo-fuzz (cargo install cargo-fuzz)"
fi
if [ -n "${missing:-}" ]; then
    echo "This needs $missing."
    echo "On stable, without coverage: cargo run --profile ci -p turnkeep-fuzz -- run $target --seconds $seconds"
    exit 1
fi
mkdir -p "fuzz/corpus/$target"
exec cargo +nightly fuzz run "$target" "fuzz/corpus/$target" "crates/fuzz/seeds/$target" -- \
    -max_total_time="$seconds" -max_len=65536 -timeout=20

#!/bin/sh
# Builds the gateway and the bench for release, sees to nginx, and runs the whole benchmark.
# Arguments go to `turnkeep-bench run` (--quick, --rounds N, --seconds S, --only NAME, --peer NAME=PORT:COMMAND, --out F).
# With `failures` as the first one only admission, judgement and a storm of 429s are measured (--quick, --rounds, --seconds,
# --out), and only their section of the report is written anew.
# With `delivery` as the first one only receipts, closings, the ledger and slow readers are measured, with the same options.
# With `codec` as the first one only the codecs are measured, without a gateway (--quick, --out, --core N), and with
# `conversations` only the keys of conversations, their leases and the bytes that going on with them saves, with the same
# options.
# The report is docs/benchmarks.md unless --out says otherwise. Set BENCH_GATEWAY to measure a binary built elsewhere.
set -eu
cd "$(dirname "$0")/../.."

part=run
case "${1:-}" in
    failures | delivery | codec | conversations)
        part="$1"
        shift
        ;;
esac
for tool in taskset prlimit; do
    command -v "$tool" >/dev/null || { echo "bench: $tool is needed (package util-linux)" >&2; exit 1; }
done
if [ "$part" = run ] && ! command -v nginx >/dev/null; then
    # One of the peers; without it the report says that it was not measured.
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        { apt-get update -qq && apt-get install -y -qq --no-install-recommends nginx-light; } >/dev/null \
            || echo "bench: nginx could not be installed" >&2
    else
        echo "bench: nginx is not installed and will not be measured" >&2
    fi
fi

cargo build --release -p turnkeep-bench
cargo build --release -p turnkeep-dialect --example codec_speed --example keys_speed
cargo build --release -p turnkeep-policy --example lease_speed
if [ "$part" != codec ]; then
    cargo build --release -p turnkeep --example conversation_bytes
fi
target="${CARGO_TARGET_DIR:-target}"
if [ "$part" = codec ] || [ "$part" = conversations ]; then
    exec "$target/release/turnkeep-bench" "$part" --examples "$target/release/examples" "$@"
fi
cargo build --release -p turnkeep-engine --example admission_speed --example failure_speed
cargo build --release -p turnkeep-store --example ledger_speed
if [ -z "${BENCH_GATEWAY:-}" ]; then
    cargo build --release -p turnkeep
    BENCH_GATEWAY="$target/release/turnkeep"
fi
exec "$target/release/turnkeep-bench" "$part" --gateway "$BENCH_GATEWAY" --examples "$target/release/examples" "$@"

#!/bin/sh
# A quick run of the bare proxy alone: fails when the bench itself is broken, on any machine, in about twenty seconds.
# Needs turnkeep-bench built for release. Its figures mean nothing.
set -eu
cd "$(dirname "$0")/../.."
bench="${CARGO_TARGET_DIR:-target}/release/turnkeep-bench"
report="$(mktemp)"
trap 'rm -f "$report"' EXIT
"$bench" run --quick --only "bare proxy" --out "$report"
if grep -q '^## What failed' "$report" || ! grep -q '^| CPU s per 10 000 small turns.*[0-9]' "$report"; then
    cat "$report" >&2
    exit 1
fi

#!/usr/bin/env bash
# `make mutants-deep`: every mutant of cargo-mutants in the files that decide blame, standing, closings and leases, against the
# tests of their crates; writes docs/mutants.md. Hours on two cores. What is missed and yet no missing test is told with its
# reason in mutants-explained.txt beside this file. ONLY=policy or ONLY=engine runs one half, and leaves the other's results.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=27.1.0
tool=".setup/mutants"
if [ ! -x "$tool/bin/cargo-mutants" ]; then
  echo "building cargo-mutants $version"
  cargo install cargo-mutants --version "$version" --locked --quiet --root "$tool"
fi
export PATH="$PWD/$tool/bin:$PATH" CARGO_PROFILE_DEV_DEBUG=0
out=target/mutants
mkdir -p "$out"

# half NAME "PACKAGES" FILE…: tests that compile what must not compile know nothing of the mutants.
half() {
  local name="$1" packages=() files=() status=0
  read -ra names <<<"$2"
  for package in "${names[@]}"; do packages+=(--test-package "$package"); done
  shift 2
  for file in "$@"; do files+=(-f "$file"); done
  rm -rf "${out:?}/$name"
  cargo mutants --test-tool nextest --no-shuffle --minimum-test-timeout 60 -o "$out/$name" "${packages[@]}" "${files[@]}" \
    -- -E 'not binary(must_not_compile)' || status=$?
  # 2: some were missed, 3: some took too long; the report tells which.
  [ "$status" = 0 ] || [ "$status" = 2 ] || [ "$status" = 3 ] || exit "$status"
}

if [ "${ONLY:-policy}" = policy ]; then
  half policy "turnkeep-base turnkeep-policy" \
    crates/base/src/verdict.rs crates/policy/src/accounts/standing.rs 'crates/policy/src/accounts/standing/*.rs' \
    crates/policy/src/settle.rs crates/policy/src/conversations.rs crates/policy/src/conversations/lease.rs
fi
if [ "${ONLY:-engine}" = engine ]; then
  half engine "turnkeep-engine" \
    crates/engine/src/closing.rs crates/engine/src/drive/conversation.rs crates/engine/src/drive/end.rs
fi
python3 tests/setup/mutants.py "$out" tests/setup/mutants-explained.txt docs/mutants.md

#!/usr/bin/env bash
# What `make test` does, step by step, each with its elapsed seconds: set-up, format, lints, build, layers, the Rust
# tests, the docs' copies, the schemas' code, the simulation, the end-to-end tests, the SDKs' other majors, the frameworks, the agent CLIs. A failing test step does not hide the ones after it; a failing build does.
#
# Everything after the build runs with a denied network (denied-net.sh). Logs and timings: target/test-report/.
set -euo pipefail
cd "$(dirname "$0")/../.."

target="$(realpath -m "${CARGO_TARGET_DIR:-target}")"
report=target/test-report
rm -rf "$report" && mkdir -p "$report"
export TURNKEEP_BIN="${TURNKEEP_BIN:-$target/ci/turnkeep}"
export PYTHONDONTWRITEBYTECODE=1

failures=()
counted=()

# step NAME LOG COMMAND…: runs it, keeps its output, prints how long it took. Status as the command's.
step() {
  local name="$1" log="$report/$2.log" began=$SECONDS status=0
  shift 2
  printf '\n==> %s\n' "$name"
  "$@" 2>&1 | tee "$log" || status=${PIPESTATUS[0]}
  local took=$((SECONDS - began)) word=ok
  [ "$status" = 0 ] || { word="FAILED ($status)"; failures+=("$name"); }
  printf '<== %s: %s, %s s\n' "$name" "$word" "$took"
  printf '%s\t%s\t%s\n' "$name" "$took" "$word" >>"$report/steps.tsv"
  return "$status"
}

give_up() {
  printf '\nstopped: the steps after this one need it\n'
  exit 1
}

denied=(bash tests/setup/denied-net.sh)
# The bugs that are put in on purpose are compiled in once, for all steps; none is there unless a variable names it.
bugs=(--features turnkeep-sim/seeded-bugs)
profile=(--profile ci --workspace --all-targets --locked "${bugs[@]}")

step "set-up" setup bash tests/setup/install.sh || give_up
step "format" format cargo fmt --all --check || true
# Built first: clippy then finds every build script's output ready and only has to check.
step "build" build cargo build "${profile[@]}" || give_up
step "lints" lints cargo clippy "${profile[@]}" -- -D warnings || true
step "layers" layers "${denied[@]}" "$target/ci/xtask" layers || true

if cargo nextest --version >/dev/null 2>&1; then
  step "rust tests" rust "${denied[@]}" \
    cargo nextest run --cargo-profile ci --workspace --all-targets --locked "${bugs[@]}" --no-fail-fast --color never || true
else
  echo "notice: nextest not found, using cargo test"
  step "rust tests" rust "${denied[@]}" cargo test "${profile[@]}" --no-fail-fast || true
fi
counted+=("$report/rust.log")

step "docs" docs "${denied[@]}" "$target/ci/xtask" docs --check || true
step "schemas" schemas "${denied[@]}" "$target/ci/xtask" proto --check || true

# The whole gateway under simulation (docs/simulation.md): that it does the same twice is looked at first.
sim="$target/ci/turnkeep-sim"
step "simulation, meta" sim-meta "${denied[@]}" "$sim" meta || true
step "exploration" sim-explore "${denied[@]}" "$sim" explore --depth 10 --states 200000 || true
step "simulation, regressions" sim-regressions "${denied[@]}" "$sim" regressions || true
step "simulation, pinned seeds" sim-pinned "${denied[@]}" "$sim" corpus --seeds 500 || true
commit="$(git rev-parse --short=8 HEAD 2>/dev/null || echo 1)"
step "simulation, new seeds" sim-new "${denied[@]}" "$sim" corpus --from "$((16#$commit + 1000))" --seeds 250 --unmarked || true
step "seeded bugs" bugs "${denied[@]}" "$sim" bugs --seconds 5 || true
counted+=("$report/bugs.log" "$report/sim-explore.log" "$report/sim-meta.log" "$report/sim-regressions.log" "$report/sim-pinned.log" "$report/sim-new.log")

# What the set-up put there where Debian's own Node is too old.
export PATH="$PWD/.setup/node/bin:$PATH"
pytest=(-m pytest -p no:cacheprovider --color=no -q)
step "end to end" e2e "${denied[@]}" .setup/current/bin/python "${pytest[@]}" --durations=10 \
  --ignore=tests/e2e/by_hand --ignore=tests/e2e/test_agents.py --ignore=tests/e2e/test_frameworks.py tests/e2e || true
counted+=("$report/e2e.log")
for set in previous older; do
  step "SDKs, $set majors" "sdks-$set" "${denied[@]}" ".setup/$set/bin/python" "${pytest[@]}" tests/e2e/test_sdks*.py || true
  counted+=("$report/sdks-$set.log")
done
step "frameworks" frameworks "${denied[@]}" .setup/frameworks/bin/python "${pytest[@]}" tests/e2e/test_frameworks.py || true
counted+=("$report/frameworks.log")
# The real programs: 90 s at most for a tool loop and a rate limit of one of them, 45 s a run; `make test-clients ALL=1` has every dialect of theirs and every fault.
step "agent CLIs" agents "${denied[@]}" .setup/current/bin/python "${pytest[@]}" --durations=0 tests/e2e/test_agents.py || true
counted+=("$report/agents.log")

printf '\n%-24s %8s  %s\n' step seconds result
while IFS=$'\t' read -r name took word; do printf '%-24s %8s  %s\n' "$name" "$took" "$word"; done <"$report/steps.tsv"
printf '%-24s %8s\n\n' total "$SECONDS"
totals=0
python3 tests/setup/totals.py "${counted[@]}" | tee "$report/totals.txt" || totals=1
if [ ${#failures[@]} -gt 0 ]; then
  printf 'failed steps: %s\n' "$(IFS=,; echo "${failures[*]}")" >&2
  exit 1
fi
exit "$totals"

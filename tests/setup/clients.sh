#!/usr/bin/env bash
# What `make test-clients` does: the agent CLIs against the gateway that is built (target/ci/turnkeep, or TURNKEEP_BIN). With
# ALL=1 also tests/e2e/by_hand: every dialect that a CLI speaks over every upstream, with every fault; that installs cline, too.
set -euo pipefail
cd "$(dirname "$0")/../.."

target="$(realpath -m "${CARGO_TARGET_DIR:-target}")"
export TURNKEEP_BIN="${TURNKEEP_BIN:-$target/ci/turnkeep}" PYTHONDONTWRITEBYTECODE=1 PATH="$PWD/.setup/node/bin:$PATH"
[ -x "$TURNKEEP_BIN" ] || { echo "no gateway at $TURNKEEP_BIN. Run: cargo build --profile ci -p turnkeep" >&2; exit 1; }
[ -x .setup/current/bin/python ] || { echo "the Python packages of the tests are not in .setup/current. Run: bash tests/setup/install.sh" >&2; exit 1; }

tests=(tests/e2e/test_agents.py)
names=(claude-code codex gemini-cli opencode qwen-code)
if [ "${ALL:-}" = 1 ]; then
  tests+=(tests/e2e/by_hand)
  names+=(cline)
  export TURNKEEP_MATRIX="$PWD/docs/clients/matrix.md"
fi
bash tests/setup/agents.sh "${names[@]}"
exec bash tests/setup/denied-net.sh .setup/current/bin/python -m pytest -p no:cacheprovider -v --durations=0 "${tests[@]}" ${ARGS:-}

#!/usr/bin/env bash
# What `make scorecard` does: builds the gateway for release, installs the peers, and runs the published scenarios with a denied
# network, about twenty minutes. Arguments go to run.py (--only ID, --gateway NAME, --dialect NAME, --out FOLDER); TURNKEEP_BIN names
# a gateway built elsewhere.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ -z "${TURNKEEP_BIN:-}" ]; then
  cargo build --release --locked -p turnkeep
  TURNKEEP_BIN="$(realpath -m "${CARGO_TARGET_DIR:-target}")/release/turnkeep"
fi
bash tests/scorecard/install.sh
export TURNKEEP_BIN PYTHONDONTWRITEBYTECODE=1 PATH="$PWD/.setup/node/bin:$PATH"
exec bash tests/setup/denied-net.sh python3 tests/scorecard/run.py "$@"

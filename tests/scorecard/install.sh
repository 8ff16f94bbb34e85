#!/usr/bin/env bash
# Installs the scorecard's peers under .setup/scorecard, exactly as locked beside their configurations: LiteLLM's proxy and the bare
# SDK from the index that pip is configured for, Portkey's gateway from the registry that npm is configured for (about 800 MB).
# Nothing else of the project needs them. What is there already is left alone.
set -euo pipefail
cd "$(dirname "$0")/../.."

locks=tests/scorecard/gateways
into=.setup/scorecard
export PATH="$PWD/.setup/node/bin:$PATH"
stop() { printf 'scorecard: %s\n' "$1" >&2; exit 1; }
command -v npm >/dev/null || stop "Portkey's gateway needs Node 20 or newer with npm, which was not found (bash tests/setup/install.sh)"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || stop "Python 3.10 or newer is needed, found $(python3 --version)"

for set in litellm sdk; do
  digest="$({ python3 --version; cat "$locks/$set/requirements.txt"; } | sha256sum | cut -d' ' -f1)"
  [ "$(cat "$into/$set/.stamp" 2>/dev/null)" != "$digest" ] || continue
  echo "installing $into/$set ($(grep -v '^#' "$locks/$set/requirements.in" | paste -sd' '))"
  rm -rf "${into:?}/$set"
  python3 -m venv "$into/$set"
  "$into/$set/bin/python" -m pip install -q --disable-pip-version-check --no-deps -r "$locks/$set/requirements.txt" ||
    stop "the Python set '$set' could not be installed (does this machine reach its package index?)"
  echo "$digest" >"$into/$set/.stamp"
done

digest="$(cat "$locks/portkey/package.json" "$locks/portkey/package-lock.json" | sha256sum | cut -d' ' -f1)"
if [ "$(cat "$into/portkey/.stamp" 2>/dev/null)" != "$digest" ]; then
  echo "installing $into/portkey (@portkey-ai/gateway)"
  rm -rf "$into/portkey" && mkdir -p "$into/portkey"
  cp "$locks/portkey/package.json" "$locks/portkey/package-lock.json" "$into/portkey/"
  # Its only script patches packages of its own repository that are not in the published one.
  npm ci --prefix "$into/portkey" --no-audit --no-fund --ignore-scripts --loglevel=error ||
    stop "Portkey's gateway could not be installed (does this machine reach its npm registry?)"
  echo "$digest" >"$into/portkey/.stamp"
fi

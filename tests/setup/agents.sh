#!/usr/bin/env bash
# Installs the agent CLIs that the client tests drive, each in a folder of its own under .setup/agents, exactly at the
# versions of tests/e2e/agents/versions.json: `agents.sh [NAME…]`, all of them without a name (1.8 GB with cline, which only
# `make test-clients ALL=1` drives). `agents.sh --there NAME` installs nothing: its status says whether that is to be done.
set -euo pipefail
cd "$(dirname "$0")/../.."

versions=tests/e2e/agents/versions.json
package_of() {
  python3 -c 'import json,sys; [(n, v)] = json.load(open(sys.argv[1]))[sys.argv[2]].items(); print(f"{n}@{v}")' "$versions" "$1"
}
if [ "${1:-}" = --there ]; then
  [ "$(cat ".setup/agents/$2/.stamp" 2>/dev/null)" = "$(package_of "$2")" ]
  exit
fi
export PATH="$PWD/.setup/node/bin:$PATH"
command -v npm >/dev/null 2>&1 || {
  echo "the agent CLIs need Node 20 or newer with npm, which were not found. Run: apt-get install -y nodejs npm" >&2
  exit 1
}
# Why 20 is enough: install.sh.
node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)' || {
  echo "the agent CLIs need Node 20 or newer, found $(node --version). Run, for a newer one in .setup/node: bash tests/setup/install.sh" >&2
  exit 1
}
[ $# -gt 0 ] || set -- $(python3 -c 'import json,sys; print(*json.load(open(sys.argv[1])))' "$versions")
for name in "$@"; do
  package="$(package_of "$name")"
  folder=".setup/agents/$name"
  if [ "$(cat "$folder/.stamp" 2>/dev/null)" = "$package" ]; then continue; fi
  echo "installing $package into $folder"
  rm -rf "$folder" && mkdir -p "$folder"
  printf '{"private": true}\n' >"$folder/package.json"
  # Claude Code and opencode put their own binary, which came as a package, into place by an install script.
  npm install --prefix "$folder" --no-audit --no-fund --loglevel=error "$package" || {
    echo "npm could not install $package (does this machine reach its registry?). Run: bash tests/setup/agents.sh $name" >&2
    exit 1
  }
  printf '%s' "$package" >"$folder/.stamp"
done
echo "agent CLIs: there"

#!/usr/bin/env bash
# Installs the agent CLIs that the client tests drive, each in a folder of its own under .setup/agents, exactly at the
# versions of tests/e2e/agents/versions.json: `agents.sh [NAME…]` (all without a name). Needs Node and npm; about 1.5 GB.
set -euo pipefail
cd "$(dirname "$0")/../.."

versions=tests/e2e/agents/versions.json
command -v npm >/dev/null 2>&1 || {
  echo "the agent CLIs need Node 20 or newer with npm, which were not found. Run: apt-get install -y nodejs npm" >&2
  exit 1
}
[ $# -gt 0 ] || set -- $(python3 -c 'import json,sys; print(*json.load(open(sys.argv[1])))' "$versions")
for name in "$@"; do
  package="$(python3 -c 'import json,sys; [(n, v)] = json.load(open(sys.argv[1]))[sys.argv[2]].items(); print(f"{n}@{v}")' "$versions" "$name")"
  folder=".setup/agents/$name"
  if [ "$(cat "$folder/.stamp" 2>/dev/null)" = "$package" ]; then continue; fi
  echo "installing $package into $folder"
  rm -rf "$folder" && mkdir -p "$folder"
  printf '{"private": true}\n' >"$folder/package.json"
  # Their install scripts fetch nothing that is needed here.
  npm install --prefix "$folder" --no-audit --no-fund --ignore-scripts --loglevel=error "$package" || {
    echo "npm could not install $package (does this machine reach its registry?). Run: bash tests/setup/agents.sh $name" >&2
    exit 1
  }
  printf '%s' "$package" >"$folder/.stamp"
done
echo "agent CLIs: there"

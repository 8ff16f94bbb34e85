#!/usr/bin/env bash
# Runs a command with no network but loopback: `denied-net.sh COMMAND ARG…`.
#
# Where the kernel lets us, in a network namespace of its own with only `lo` in it, so that no test can reach a real
# provider whatever it does. Elsewhere it says so and goes on: TURNKEEP_EGRESS=loopback, set in both cases, makes the
# gateway's own connector refuse every address but loopback.
set -euo pipefail

export TURNKEEP_EGRESS=loopback CARGO_NET_OFFLINE=true
unset http_proxy https_proxy all_proxy ftp_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY FTP_PROXY

inside='ip link set lo up && exec "$@"'
for flags in -n -rn; do
  if unshare "$flags" -- sh -c 'ip link set lo up' >/dev/null 2>&1; then
    exec unshare "$flags" -- sh -c "$inside" denied-net "$@"
  fi
done
echo "notice: no network namespace may be made here; only TURNKEEP_EGRESS=loopback denies the network" >&2
exec "$@"

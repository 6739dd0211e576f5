#!/usr/bin/env bash
# Builds a real Kubo (`ipfs`) from the Go module pinned in go.mod, once per version, into a cache outside the checkout,
# and prints the path of the binary. Set MAINSTAY_KUBO to use a binary of your own.
set -euo pipefail
cd "$(dirname "$0")"

if [ -n "${MAINSTAY_KUBO:-}" ]; then
  [ -x "$MAINSTAY_KUBO" ] || { echo "error: MAINSTAY_KUBO=$MAINSTAY_KUBO cannot be run" >&2; exit 1; }
  echo "$MAINSTAY_KUBO"
  exit 0
fi

version=$(awk '$1 == "require" && $2 == "github.com/ipfs/kubo" { print $3 }' go.mod)
target="${MAINSTAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mainstay}/kubo/$version"
if [ -x "$target/ipfs" ]; then
  echo "$target/ipfs"
  exit 0
fi

../go.sh Kubo "set MAINSTAY_KUBO to an ipfs of your own"
echo "building Kubo $version into $target (several minutes, once)" >&2
mkdir -p "$target"
work=$(mktemp -d "$target/.build.XXXXXX")
trap 'rm -rf "$work"' EXIT

go build -ldflags "-s -w" -o "$work/ipfs" github.com/ipfs/kubo/cmd/ipfs >&2
# Renamed only when whole, so an interrupted build never looks like a finished one.
mv "$work/ipfs" "$target/ipfs"
echo "$target/ipfs"

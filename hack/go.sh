#!/usr/bin/env bash
# go.sh WHAT ELSE: makes sure of a Go toolchain that can build what the go.mod of the working directory pins: of at least
# the version it asks for, or one that fetches that version by itself (Go does since 1.21, unless GOTOOLCHAIN=local).
# Installs the distribution's where there is none, we may, and it would do. WHAT is what is built, ELSE how to do without.
set -euo pipefail
what=$1 else=$2

wanted=$(awk '$1 == "go" { print $2 }' go.mod)
at_least() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

if ! command -v go >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get -qq update >&2 || true
  offered=$(apt-cache policy golang-go | awk '$1 == "Candidate:" { sub(/^[0-9]+:/, "", $2); print $2 }')
  if at_least 1.21 "${offered:-0}"; then
    echo "installing golang-go $offered, which $what is built with" >&2
    apt-get -qq install -y --no-install-recommends golang-go >&2 || true
  fi
fi
found=none
if command -v go >/dev/null; then
  found=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null || true)
  found=${found#go}
  at_least "$wanted" "$found" && exit 0
  at_least 1.21 "$found" && [ "$(cd / && go env GOTOOLCHAIN)" != local ] && exit 0
fi
cat >&2 <<TEXT
error: building $what needs Go $wanted or newer; found: $found
  next: install Go from https://go.dev/dl/, or $else
TEXT
exit 1

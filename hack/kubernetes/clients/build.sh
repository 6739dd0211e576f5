#!/usr/bin/env bash
# build.sh FILE: builds the program of this folder into FILE. Go's own cache makes it a matter of seconds after `make kubernetes`,
# which compiles most of what it needs, and with the same flags. Exits with 3 if there is no Go toolchain to build it with.
set -euo pipefail
file=$(realpath -m "$1")
cd "$(dirname "$0")/.."
../go.sh "the program that uses client-go" "leave out the suite go_clients" || exit 3
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$file" ./clients >&2

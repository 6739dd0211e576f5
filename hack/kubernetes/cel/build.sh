#!/usr/bin/env bash
# build.sh FILE: builds the program of this folder into FILE. Exits with 3 if there is no Go toolchain to build it with.
set -euo pipefail
file=$(realpath -m "$1")
cd "$(dirname "$0")/.."
../go.sh "the program that evaluates CEL" "leave out the suite cel" || exit 3
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$file" ./cel >&2

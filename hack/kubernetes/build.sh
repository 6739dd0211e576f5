#!/usr/bin/env bash
# Builds a real control plane (etcd, kube-apiserver, kube-controller-manager, kubectl) from the Go
# modules pinned in go.mod, once per version, into a cache outside the checkout, and prints the
# directory that holds the four binaries. Set KUBEBUILDER_ASSETS to use binaries of your own.
set -euo pipefail
cd "$(dirname "$0")"

binaries=(etcd kube-apiserver kube-controller-manager kubectl)
complete() { for b in "${binaries[@]}"; do [ -x "$1/$b" ] || return 1; done; }

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
  complete "$KUBEBUILDER_ASSETS" ||
    { echo "error: KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS lacks one of: ${binaries[*]}" >&2; exit 1; }
  echo "$KUBEBUILDER_ASSETS"
  exit 0
fi

version=$(awk '$1 == "require" && $2 == "k8s.io/kubernetes" { print $3 }' go.mod)
target="${MAINSTAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mainstay}/kubernetes/$version"
if complete "$target"; then
  echo "$target"
  exit 0
fi

../go.sh Kubernetes "set KUBEBUILDER_ASSETS to a directory with etcd, kube-apiserver, kube-controller-manager and kubectl"
echo "building Kubernetes $version and etcd into $target (several minutes, once)" >&2
mkdir -p "$target"
work=$(mktemp -d "$target/.build.XXXXXX")
trap 'rm -rf "$work"' EXIT

IFS=. read -r major minor _ <<<"${version#v}"
package=k8s.io/component-base/version
stamp="-s -w -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor -X $package.gitTreeState=clean"
for command in kube-apiserver kube-controller-manager kubectl; do
  echo "  $command" >&2
  CGO_ENABLED=0 go build -trimpath -ldflags "$stamp" -o "$work/$command" "k8s.io/kubernetes/cmd/$command" >&2
done
echo "  etcd" >&2
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$work/etcd" go.etcd.io/etcd/server/v3 >&2
# Renamed only when whole, so an interrupted build never looks like a finished one.
for b in "${binaries[@]}"; do mv "$work/$b" "$target/$b"; done
echo "$target"

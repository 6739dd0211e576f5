# What a person types. `make test` is the command that the README names.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

.PHONY: help up test lint bench kubernetes kubo tables

help: ## What there is to make.
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: ## Everything on this machine: the API server on loopback, and the path of its kubeconfig.
	@cargo run --release -q -p mainstay-cli -- up

test: kubernetes kubo ## All tests, on the embedded API server and on a real control plane.
	MAINSTAY_TEST_CLUSTER=both cargo run -q -p mainstay-testkit --bin real-cluster -- cargo test --workspace --features mainstay/otlp

lint: ## Format, clippy, docs, licences and duplicates of dependencies.
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --features mainstay/otlp --quiet -- -D warnings
	RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --features mainstay/otlp --no-deps --quiet
	cargo test -q -p mainstay-testkit --test dependencies

bench: kubernetes ## Speed and memory of server and operators beside the real kube-apiserver and kube, in one run.
	cargo build --release -q -p mainstay-cli
	cargo run --release -q -p mainstay-bench

kubernetes: ## A real control plane for the tests, built once per version.
	@hack/kubernetes/build.sh

kubo: ## Real peers for the tests of networks, built once per version.
	@hack/kubo/build.sh

tables: ## The tables of built-in kinds, made anew from the Kubernetes modules.
	cd hack/kubernetes && ../go.sh "a table" "leave the tables as they are" && go run ./tables ../../crates/apiserver

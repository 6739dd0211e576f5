# What a person types. `make test` is the command that the README names.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

.PHONY: help up test lint bench kubernetes kubo tables

help: ## What there is to make.
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: ## Everything on this machine: the API server on loopback, and the path of its kubeconfig.
	@cargo run --release -q -p mainstay-cli -- up

# Built once: whoever builds a part of it with other features builds the framework again. `real-cluster` is a part of it.
TESTS := cargo test --workspace --features mainstay/otlp
TARGET = $(shell cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')

test: kubernetes kubo ## All tests, on the embedded API server and on a real control plane.
	$(TESTS) --no-run --quiet
	MAINSTAY_TEST_CLUSTER=both $(TARGET)/debug/real-cluster $(TESTS)

lint: ## Format, clippy and docs.
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --features mainstay/otlp --quiet -- -D warnings
	RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --features mainstay/otlp --no-deps --quiet

bench: kubernetes ## Speed and memory of server and operators beside the real kube-apiserver and kube, in one run.
	cargo build --release -q -p mainstay-cli
	cargo run --release -q -p mainstay-bench

kubernetes: ## A real control plane for the tests, built once per version.
	@hack/kubernetes/build.sh

kubo: ## Real peers for the tests of networks, built once per version.
	@hack/kubo/build.sh

tables: ## The tables of built-in kinds, made anew from the Kubernetes modules.
	cd hack/kubernetes && ../go.sh "a table" "leave the tables as they are" && go run ./tables ../../crates/apiserver

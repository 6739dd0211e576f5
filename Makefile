# What a person types. `make up` and `make test` are the commands that the README names.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

.PHONY: help up test quick campaign test-times lint bench kubernetes kubo tables

help: ## What there is to make.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: ## Everything on this machine: the API server on loopback, and the path of its kubeconfig.
	@cargo run --profile up -p mainstay-cli -- up

# Compiles the tests and runs them, suite by suite: see xtask/src/main.rs and docs/testing.md.
TESTS := cargo run --package xtask -- test

test: kubernetes kubo ## All tests, on the embedded API server and on a real control plane.
	MAINSTAY_TEST_CLUSTER=both $(TESTS)

quick: ## Tests of what changed and of what depends on it: embedded only, of simulations only crash points.
	$(TESTS) --quick

campaign: kubernetes kubo ## All tests with fresh seeds, and more of them.
	MAINSTAY_TEST_CLUSTER=both $(TESTS) --campaign

test-times: kubernetes kubo ## All tests, one suite at a time; writes what each costs into docs/testing.md.
	MAINSTAY_TEST_CLUSTER=both $(TESTS) --times

lint: ## Format, clippy and docs.
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps --quiet

bench: kubernetes ## Speed and memory of server and operators beside the real kube-apiserver and kube, in one run.
	cargo build --release -q -p mainstay-cli
	cargo run --release -q -p mainstay-bench

kubernetes: ## A real control plane for the tests, built once per version.
	@hack/kubernetes/build.sh

kubo: ## Real peers for the tests of networks, built once per version.
	@hack/kubo/build.sh

tables: ## The tables of built-in kinds, made again from the Kubernetes modules.
	cd hack/kubernetes && ../go.sh "a table" "leave the tables as they are" && go run ./tables ../../crates/apiserver

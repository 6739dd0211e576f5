//! One binary, one module for each suite. The first page of the crate says what each is about.

mod cel;
mod dependencies;
mod differential;
mod go_clients;
mod go_program;
mod kube_rs;
mod kubectl;
mod operator;
mod operator_webhooks;
mod readme;
mod simulation;
mod tidy;
mod webhooks;

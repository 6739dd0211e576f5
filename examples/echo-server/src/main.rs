//! The program: prints what the cluster needs, or runs the operator.

use std::net::SocketAddr;

use clap::Parser;
use echo_server::{NAME, configure, kinds};
use mainstay::Operator;

/// Keeps a Pod and a Service for every `EchoServer`.
#[derive(Parser)]
struct Arguments {
    /// Print the `CustomResourceDefinition` for `kubectl apply -f -`, and end.
    #[arg(long)]
    print_crd: bool,
    /// Print the least permissions that the operator needs for `kubectl apply -f -`, and end.
    #[arg(long)]
    print_rbac: bool,
    /// Serve health, metrics and what was done for whom, and why: 127.0.0.1:8080.
    #[arg(long, value_name = "ADDRESS")]
    serve: Option<SocketAddr>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if arguments.print_crd {
        print!("{}", kinds::CRD);
        return Ok(());
    }
    if arguments.print_rbac {
        println!("{}", configure(Operator::unconnected(NAME)).build()?.rbac());
        return Ok(());
    }
    tracing_subscriber::fmt().with_target(false).with_writer(std::io::stderr).init();
    let mut operator = configure(Operator::builder(NAME, kube::Client::try_default().await?));
    if let Some(address) = arguments.serve {
        operator = operator.serve(address);
    }
    operator.build()?.run(mainstay::termination()).await?;
    Ok(())
}

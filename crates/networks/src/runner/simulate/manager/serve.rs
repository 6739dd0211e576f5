//! What a manager serves.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::Shared;
use super::metrics::{CONTENT_TYPE, Numbers};
use super::state::Refused;
use crate::runner::simulate::wire::{Block, Registration};
use crate::simulation::report::WorkerReport;

/// As many blocks are told at once.
const BLOCKS: usize = 64;

pub(super) async fn serve(listener: TcpListener, shared: Shared) -> std::io::Result<()> {
    let router = Router::new()
        .route("/register", post(register))
        .route("/interim", post(interim))
        .route("/report", get(report).post(tell))
        .route("/blocks", post(announce))
        .route("/blocks/but-of/{worker}", get(blocks))
        .route("/progress", get(progress))
        .route("/metrics", get(scrape))
        .route("/end", post(end))
        .with_state(shared);
    axum::serve(listener, router).await
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (StatusCode::CONFLICT, self.to_string()).into_response()
    }
}

async fn register(State(shared): State<Shared>, Json(body): Json<Registration>) -> Result<(), Refused> {
    shared.run().register(body)?;
    shared.changed.notify_waiters();
    Ok(())
}

async fn interim(State(shared): State<Shared>, Json(body): Json<WorkerReport>) -> Result<(), Refused> {
    shared.run().hear(body)
}

async fn tell(State(shared): State<Shared>, Json(body): Json<WorkerReport>) -> Result<(), Refused> {
    shared.run().tell(body)?;
    shared.changed.notify_waiters();
    Ok(())
}

async fn report(State(shared): State<Shared>) -> Result<Response, Refused> {
    let run = shared.run();
    Ok(Json(run.report()?).into_response())
}

async fn announce(State(shared): State<Shared>, Json(block): Json<Block>) {
    shared.run().announce(block);
}

async fn blocks(State(shared): State<Shared>, Path(worker): Path<usize>) -> Json<Vec<Block>> {
    Json(shared.run().blocks_but_of(worker, BLOCKS))
}

async fn progress(State(shared): State<Shared>) -> Response {
    Json(shared.run().progress(Instant::now())).into_response()
}

async fn scrape(State(shared): State<Shared>) -> Response {
    let numbers = Numbers::of(&shared.run());
    match numbers.render() {
        Ok(text) => ([("content-type", CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn end(State(shared): State<Shared>) -> Result<(), Refused> {
    shared.run().dismiss()?;
    shared.changed.notify_waiters();
    Ok(())
}

//! Connections of the control interface: how many there may be, and how long each may take to ask.

use std::pin::pin;

use axum::Router;
use axum::body::Bytes;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::ControlLimits;
use super::api::Refusal;
use super::peers::Peers;

/// Serves until the stop, and then answers the requests that have come.
pub(super) async fn serve(
    mut listener: Peers,
    router: Router,
    limits: ControlLimits,
    shutdown: watch::Receiver<bool>,
) {
    let mut open = JoinSet::new();
    loop {
        let stream = tokio::select! {
            () = ended(shutdown.clone()) => break,
            stream = listener.accept() => stream,
        };
        while open.try_join_next().is_some() {}
        if open.len() < limits.connections_max {
            open.spawn(connection(stream, router.clone(), limits, shutdown.clone()));
        } else {
            refuse(&stream, limits.connections_max);
        }
    }
    while open.join_next().await.is_some() {}
}

/// Completes at the stop of the server.
pub(super) async fn ended(mut shutdown: watch::Receiver<bool>) {
    // Its sender is there until it has been told.
    let _ = shutdown.wait_for(|&stop| stop).await;
}

/// Serves one connection. An error ends this connection and no other.
async fn connection(
    stream: UnixStream,
    router: Router,
    limits: ControlLimits,
    shutdown: watch::Receiver<bool>,
) {
    let mut builder = http1::Builder::new();
    // The time counts from the end of the request before, so that a silent connection is closed.
    builder.timer(TokioTimer::new()).header_read_timeout(limits.request);
    let service = TowerToHyperService::new(router);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = connection.as_mut() => {}
        () = ended(shutdown) => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// Says that there is no place. Who has asked already may find the connection closed instead.
fn refuse(stream: &UnixStream, connections_max: usize) {
    let error = format!(
        "all {connections_max} connections of the control interface are taken: end one, as a verb that \
         waits for its task or a reader of /v1/events"
    );
    // Words are JSON.
    let body = serde_json::to_vec(&Refusal { error }).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    let answer = Bytes::from([head.as_bytes(), &body].concat());
    // It is short: a fresh socket takes all of it.
    let _ = stream.try_write(&answer);
}

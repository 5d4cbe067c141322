//! The control interface's routes, each with what the published description says of it.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequest, Path, Query, Request, State};
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use serde::Deserialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;
use utoipa::{IntoParams, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use freewheel_units::SimTime;

use super::api::{LaggedNews, Refusal, Route, ServerStatus, Task, UnreadableNews, WrittenRanges};
use super::metrics;
use super::request::TaskRequest;
use super::stream::{MAGIC, Record};
use super::{Controlled, Unanswered, declared_length};
use crate::serve::{Item, News, REGION_BLOCKS, Reader, ServedTaskError};

/// Description of the whole interface, as it is published.
#[derive(OpenApi)]
#[openapi(info(
    title = "Freewheel control",
    description = "Background tasks on a running `freewheel serve`, over HTTP on its control socket.",
    license(name = "MIT OR Apache-2.0")
))]
struct Description;

type Shared = State<Arc<Controlled>>;

/// All routes, and their description.
pub(super) fn all() -> OpenApiRouter<Arc<Controlled>> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(overview))
        .routes(routes!(status))
        .routes(routes!(list, create))
        .routes(routes!(show))
        .routes(routes!(abort))
        .routes(routes!(promote))
        .routes(routes!(data))
        .routes(routes!(events))
        .routes(routes!(written))
        .routes(routes!(prometheus))
}

impl IntoResponse for Unanswered {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::Ending | Self::NoRoom | Self::Task(ServedTaskError::Lost { .. }) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::Request(_)
            | Self::Task(
                ServedTaskError::Task(_)
                | ServedTaskError::PartSector { .. }
                | ServedTaskError::Order(_)
                | ServedTaskError::Refresh(_),
            ) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::NotUnderstood { status, .. } => *status,
            Self::TooSlow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Task(ServedTaskError::Unknown { .. }) => StatusCode::NOT_FOUND,
            Self::Task(_) => StatusCode::CONFLICT,
        };
        (status, Json(Refusal { error: self.to_string() })).into_response()
    }
}

type TaskNumber = Result<Path<u64>, PathRejection>;

/// All that there is to ask for.
#[utoipa::path(get, path = "/", responses((status = 200, body = Vec<Route>)))]
async fn overview() -> Json<Vec<Route>> {
    let mut rows = Vec::new();
    for (path, item) in all().into_openapi().paths.paths {
        for (method, operation) in [("GET", item.get), ("POST", item.post)] {
            let Some(operation) = operation else { continue };
            let summary = operation.summary.unwrap_or_default().replace('\n', " ");
            rows.push(Route { method: method.into(), path: path.clone(), summary });
        }
    }
    Json(rows)
}

/// The answer to an unknown path.
pub(super) async fn unknown(uri: Uri) -> Response {
    let error = format!("there is no {}: GET / lists all paths", uri.path());
    (StatusCode::NOT_FOUND, Json(Refusal { error })).into_response()
}

/// The answer to an unknown method of a path.
pub(super) async fn not_allowed(method: Method, uri: Uri) -> Response {
    let error = format!("there is no {method} {}: GET / lists all paths", uri.path());
    (StatusCode::METHOD_NOT_ALLOWED, Json(Refusal { error })).into_response()
}

/// State of the server.
#[utoipa::path(get, path = "/v1/status", responses((status = 200, body = ServerStatus)))]
async fn status(State(server): Shared) -> Result<Json<ServerStatus>, Unanswered> {
    Ok(Json(server.status().await?))
}

/// All background tasks, and the last hundred that have ended.
#[utoipa::path(get, path = "/v1/tasks", responses((status = 200, body = Vec<Task>)))]
async fn list(State(server): Shared) -> Result<Json<Vec<Task>>, Unanswered> {
    Ok(Json(server.status().await?.tasks))
}

/// Begins a task.
#[utoipa::path(post, path = "/v1/tasks", request_body = TaskRequest, responses(
    (status = 201, body = Task),
    (status = 400, description = "The body is not JSON", body = Refusal),
    (status = 408, description = "The body did not come in time", body = Refusal),
    (status = 409, description = "The limit of open tasks is reached", body = Refusal),
    (status = 413, description = "The body is too large", body = Refusal),
    (status = 415, description = "The content type is not that of JSON", body = Refusal),
    (status = 422, description = "A field is unknown, missing, of another type or out of range", body = Refusal),
    (status = 503, description = "The device is gone, or too many long bodies come at once", body = Refusal),
))]
async fn create(
    State(server): Shared,
    request: Request,
) -> Result<(StatusCode, Json<Task>), Unanswered> {
    let longest = server.limits.request;
    let _room = server.room_for(declared_length(request.headers())).await?;
    let body = timeout(longest, Json::<TaskRequest>::from_request(request, &())).await;
    let Json(request) = body.map_err(|_| Unanswered::TooSlow(longest))??;
    let ordered = request.ordered(server.blocks, server.serving.usual_block());
    let ordered = ordered.map_err(Unanswered::Request)?;
    let task = server.about(move |scheduler_thread| scheduler_thread.create(ordered)).await?;
    Ok((StatusCode::CREATED, Json(task)))
}

/// A task.
#[utoipa::path(get, path = "/v1/tasks/{id}", params(("id" = u64, Path)), responses(
    (status = 200, body = Task),
    (status = 400, description = "The task's number is not a number", body = Refusal),
    (status = 404, description = "There is no such task", body = Refusal),
))]
async fn show(State(server): Shared, id: TaskNumber) -> Result<Json<Task>, Unanswered> {
    let Path(id) = id?;
    Ok(Json(server.about(move |scheduler_thread| scheduler_thread.task(id)).await?))
}

/// Ends a task.
#[utoipa::path(post, path = "/v1/tasks/{id}/abort", params(("id" = u64, Path)), responses(
    (status = 200, body = Task),
    (status = 400, description = "The task's number is not a number", body = Refusal),
    (status = 404, description = "There is no such task", body = Refusal),
    (status = 409, description = "The task has ended", body = Refusal),
))]
async fn abort(State(server): Shared, id: TaskNumber) -> Result<Json<Task>, Unanswered> {
    let Path(id) = id?;
    Ok(Json(server.about(move |scheduler_thread| scheduler_thread.abort(id)).await?))
}

/// Reads the rest of a task by foreground requests, two at a time, besides the clients'.
#[utoipa::path(post, path = "/v1/tasks/{id}/promote", params(("id" = u64, Path)), responses(
    (status = 200, body = Task),
    (status = 400, description = "The task's number is not a number", body = Refusal),
    (status = 404, description = "There is no such task", body = Refusal),
    (status = 409, description = "The task has ended", body = Refusal),
))]
async fn promote(State(server): Shared, id: TaskNumber) -> Result<Json<Task>, Unanswered> {
    let Path(id) = id?;
    Ok(Json(server.about(move |scheduler_thread| scheduler_thread.promote(id)).await?))
}

/// The data of a task that waits for its reader. The body begins with the line `freewheel-blocks 1`, and has
/// records: `data FIRST BLOCKS NS` with BLOCKS x 512 bytes after the line, `unreadable FIRST BLOCKS`, and
/// last `end STATE`. The task begins with this request and ends with it.
#[utoipa::path(get, path = "/v1/tasks/{id}/data", params(("id" = u64, Path)), responses(
    (status = 200, content_type = "application/octet-stream", description = "Records"),
    (status = 400, description = "The task's number is not a number", body = Refusal),
    (status = 404, description = "There is no such task", body = Refusal),
    (status = 409, description = "The task has ended, has a reader already, or takes none", body = Refusal),
))]
async fn data(State(server): Shared, id: TaskNumber) -> Result<Response, Unanswered> {
    let Path(id) = id?;
    let reader = server.ask(move |scheduler_thread| scheduler_thread.read(id)).await??;
    let magic = Bytes::from_static(MAGIC.as_bytes());
    let body = Body::from_stream(stream::unfold((Some(reader), vec![magic]), next_piece));
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], body).into_response())
}

type Pieces = (Option<Reader>, Vec<Bytes>);

/// The next piece of a task's data, and the state after it.
async fn next_piece(
    (mut reader, mut ready): Pieces,
) -> Option<(Result<Bytes, Infallible>, Pieces)> {
    if ready.is_empty() {
        let item = reader.as_mut()?.next().await?;
        let record = match item {
            Item::Data { start, data, at } => {
                Record::Data { first_block: start.get(), at_ns: at.ns(), data }
            }
            Item::Unreadable(extent) => {
                Record::Unreadable { first_block: extent.start.get(), blocks: extent.blocks.get() }
            }
            Item::Over(report) => {
                reader = None;
                Record::End(Task::new(&report, SimTime::ZERO).state)
            }
        };
        ready.push(Bytes::from(record.line()));
        if let Record::Data { data, .. } = record {
            ready.insert(0, Bytes::from(data));
        }
    }
    let next = ready.pop()?;
    Some((Ok(next), (reader, ready)))
}

/// Events of tasks, as server-sent events: `progress` every second, `round` and `over` with a task;
/// `unreadable` with its number and a range; `lagged` with the number of events that were lost because
/// the client read too slowly: ask for the tasks then.
#[utoipa::path(get, path = "/v1/events", responses(
    (status = 200, content_type = "text/event-stream", description = "Events"),
))]
async fn events(State(server): Shared) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let news = server.serving.news();
    let events = stream::unfold((news, server), async |(mut news, server)| {
        let event = match news.recv().await {
            Ok(told) => event(&told, server.uptime().await),
            Err(RecvError::Lagged(missed)) => lagged(missed),
            Err(RecvError::Closed) => return None,
        };
        Some((Ok(event), (news, server)))
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}

fn lagged(missed: u64) -> Event {
    // A number is JSON.
    Event::default().event("lagged").json_data(LaggedNews { missed }).unwrap_or_default()
}

fn event(news: &News, now: SimTime) -> Event {
    let event = match news {
        News::Progress(report) => task_event("progress", Task::new(report, now)),
        News::Round(report) => task_event("round", Task::new(report, now)),
        News::Over(report) => task_event("over", Task::new(report, now)),
        News::Unreadable { task, extent } => {
            let (first_block, blocks) = (extent.start.get(), extent.blocks.get());
            Event::default().event("unreadable").json_data(UnreadableNews {
                id: *task,
                first_block,
                blocks,
            })
        }
    };
    // Numbers and words are JSON.
    event.unwrap_or_default()
}

fn task_event(name: &str, task: Task) -> Result<Event, axum::Error> {
    Event::default().event(name).json_data(task)
}

/// The begin of a time.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct SinceQuery {
    /// Nanoseconds since the server began.
    #[serde(default)]
    since_ns: u64,
}

/// Answers where clients have written since some time.
#[utoipa::path(get, path = "/v1/written", params(SinceQuery), responses(
    (status = 200, body = WrittenRanges),
    (status = 400, description = "The time is no number", body = Refusal),
))]
async fn written(
    State(server): Shared,
    since: Result<Query<SinceQuery>, QueryRejection>,
) -> Result<Json<WrittenRanges>, Unanswered> {
    let Query(SinceQuery { since_ns }) = since?;
    let since = SimTime::from_ns(since_ns);
    let (now, began, extents) = server
        .ask(move |scheduler_thread| {
            let (now, began) = scheduler_thread.moment();
            (now, began, scheduler_thread.written(since))
        })
        .await?;
    Ok(Json(WrittenRanges {
        instance: began.to_string(),
        now_ns: now.ns(),
        region_blocks: REGION_BLOCKS,
        ranges: extents.into_iter().map(Into::into).collect(),
    }))
}

/// The server in the text format of Prometheus.
#[utoipa::path(get, path = "/metrics", responses(
    (status = 200, content_type = "text/plain", description = "Metrics"),
))]
async fn prometheus(State(server): Shared) -> Result<Response, Unanswered> {
    let text = metrics::text(&server.status().await?);
    Ok(([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response())
}

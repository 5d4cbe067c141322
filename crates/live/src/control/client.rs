//! Asks a server on its control socket.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};
use thiserror::Error;
use tokio::net::UnixStream;
use tokio::runtime::{self, Runtime};
use tokio::time::{timeout, timeout_at};

use super::api::{BLOCKS_END, Refusal, ServerStatus, Task, WrittenRanges};
use super::request::TaskRequest;
use super::stream::{NotARecord, Record, Records};

/// Longest wait for an answer: a server reads a request for as long as half of that.
const PATIENCE: Duration = Duration::from_secs(20);

/// Reason why there is no answer.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum ControlError {
    /// No server answers there.
    #[error("{}: {source}: {}", path.display(), nobody(source))]
    Connect { path: PathBuf, source: io::Error },
    /// The server has gone, or is one of another kind.
    #[error(
        "{}: no answer as of a control socket: {source}: has the server ended? The control socket of \
         one whose export is at PATH is PATH.control, unless `freewheel serve --control` had another",
        path.display()
    )]
    NoAnswer { path: PathBuf, source: hyper::Error },
    /// The server is there and does not answer.
    #[error(
        "{}: no answer within {after:?}: the server is halted (`kill -CONT` lets it go on), has no \
         descriptors left, or its machine is overloaded",
        path.display()
    )]
    Silent {
        path: PathBuf,
        /// Time of the wait.
        after: Duration,
    },
    /// The connection was lost.
    #[error("the control interface: {0}")]
    Connection(#[from] hyper::Error),
    /// The server said no.
    #[error("{0}")]
    Refused(String),
    /// An answer of another kind.
    #[error("the control interface: an answer that is not understood: {0}")]
    Answer(#[from] serde_json::Error),
    /// Data of another kind.
    #[error(transparent)]
    Record(#[from] NotARecord),
    /// The data ended in the middle.
    #[error("the server has ended, and the data with it")]
    CutOff,
    /// No thread or memory for it.
    #[error("the control client: {0}")]
    System(io::Error),
}

/// The way out when no server answers.
fn nobody(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound => {
            "`freewheel serve` makes the control socket when it starts, and says where: beside its \
             --socket PATH it is PATH.control"
        }
        io::ErrorKind::ConnectionRefused => {
            "its server was killed, or it is no socket: start `freewheel serve` again"
        }
        _ => "is `freewheel serve` running, with this control socket, as this user?",
    }
}

impl ControlError {
    /// True for the error that a server which had answered before is not there any more.
    pub fn is_gone(&self) -> bool {
        use ControlError::{Connect, Connection, CutOff, NoAnswer};
        matches!(self, Connect { .. } | NoAnswer { .. } | Connection(_) | CutOff)
    }
}

/// A client, for one thread.
pub struct ControlClient {
    path: PathBuf,
    runtime: Runtime,
    patience: Duration,
}

impl ControlClient {
    /// For the server with this control socket.
    pub fn new(path: &Path) -> Result<Self, ControlError> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(ControlError::System)?;
        Ok(Self { path: path.into(), runtime, patience: PATIENCE })
    }

    /// Client that waits this long for an answer.
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The server as it is.
    pub fn status(&self) -> Result<ServerStatus, ControlError> {
        let status: ServerStatus = self.call(Method::GET, "/v1/status", None::<&()>)?;
        match status.blocks {
            BLOCKS_END.. => Err(ControlError::Answer(serde_json::Error::custom(format!(
                "a drive of {} blocks, more than there are",
                status.blocks
            )))),
            _ => Ok(status),
        }
    }

    /// A task.
    pub fn task(&self, id: u64) -> Result<Task, ControlError> {
        self.call(Method::GET, &format!("/v1/tasks/{id}"), None::<&()>)
    }

    /// Begins a task.
    pub fn create(&self, request: &TaskRequest) -> Result<Task, ControlError> {
        self.call(Method::POST, "/v1/tasks", Some(request))
    }

    /// Ends a task.
    pub fn abort(&self, id: u64) -> Result<Task, ControlError> {
        self.call(Method::POST, &format!("/v1/tasks/{id}/abort"), None::<&()>)
    }

    /// Reads the rest of a task by foreground requests.
    pub fn promote(&self, id: u64) -> Result<Task, ControlError> {
        self.call(Method::POST, &format!("/v1/tasks/{id}/promote"), None::<&()>)
    }

    /// Ranges that clients have written since this time after the begin of the server.
    pub fn written(&self, since_ns: u64) -> Result<WrittenRanges, ControlError> {
        self.call(Method::GET, &format!("/v1/written?since_ns={since_ns}"), None::<&()>)
    }

    /// Takes the data of a task that waits for that, which begins now. Dropped, it ends the task.
    pub fn data(&self, id: u64) -> Result<BlockStream<'_>, ControlError> {
        let path = format!("/v1/tasks/{id}/data");
        let response = self.in_time(self.send(Method::GET, &path, None::<&()>))?;
        Ok(BlockStream { client: self, body: response.into_body(), records: Records::default() })
    }

    fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, ControlError> {
        self.in_time(async {
            let response = self.send(method, path, body).await?;
            let bytes = response.into_body().collect().await?.to_bytes();
            Ok(serde_json::from_slice(&bytes)?)
        })
    }

    /// Result of `answer`, or the error that the server is silent.
    fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, ControlError>>,
    ) -> Result<T, ControlError> {
        let (path, after) = (&self.path, self.patience);
        let answer = self.runtime.block_on(async { timeout(after, answer).await });
        answer.unwrap_or_else(|_| Err(ControlError::Silent { path: path.clone(), after }))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<Response<Incoming>, ControlError> {
        let connected = UnixStream::connect(&self.path).await;
        let (mut sender, connection) = http1::handshake(TokioIo::new(
            connected
                .map_err(|source| ControlError::Connect { path: self.path.clone(), source })?,
        ))
        .await?;
        tokio::spawn(connection);
        let body = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "freewheel")
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .expect("paths of this client are valid");
        let response = sender
            .send_request(request)
            .await
            .map_err(|source| ControlError::NoAnswer { path: self.path.clone(), source })?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let bytes = response.into_body().collect().await?.to_bytes();
        let refusal = serde_json::from_slice(&bytes).map(|Refusal { error }| error);
        // Something else may listen there.
        Err(ControlError::Refused(
            refusal.unwrap_or_else(|_| format!("{status}: {}", String::from_utf8_lossy(&bytes))),
        ))
    }
}

/// The data of a task, as they come.
pub struct BlockStream<'a> {
    client: &'a ControlClient,
    body: Incoming,
    records: Records,
}

impl BlockStream<'_> {
    /// The next record; None if none comes in time. The last record is [`Record::End`]: a stream that ends
    /// without it was cut off.
    pub fn next_record(&mut self, within: Duration) -> Result<Option<Record>, ControlError> {
        let until = Instant::now() + within;
        loop {
            if let Some(record) = self.records.next_record()? {
                return Ok(Some(record));
            }
            let frame = async { timeout_at(until.into(), self.body.frame()).await };
            let Ok(frame) = self.client.runtime.block_on(frame) else { return Ok(None) };
            let Some(frame) = frame.transpose()? else { return Err(ControlError::CutOff) };
            if let Some(bytes) = frame.data_ref() {
                self.records.push(bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;
    use std::thread;

    use super::*;

    /// Reports a drive of this number of blocks, once.
    fn server(listener: UnixListener, blocks: u64) {
        let durations = "{\"count\":0,\"mean_ns\":0.0,\"p50_ns\":0,\"p90_ns\":0,\"p99_ns\":0,\
                         \"p999_ns\":0,\"max_ns\":0}";
        let scheduling = serde_json::to_string(&super::super::Scheduling::default()).unwrap();
        let body = format!(
            "{{\"server_version\":\"1\",\"instance\":\"1\",\"drive\":\"a\",\"blocks\":{blocks},\
             \"uptime_ns\":0,\"scheduling\":{scheduling},\"responses\":{durations},\
             \"prediction_errors\":{durations},\"notices\":[],\"tasks\":[]}}"
        );
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        stream.write_all((head + &body).as_bytes()).unwrap();
    }

    #[test]
    fn silent_server_times_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("silent");
        // The system takes the connection, and no process reads from it.
        let _listener = UnixListener::bind(&path).unwrap();
        let client = ControlClient::new(&path).unwrap().with_patience(Duration::from_millis(100));
        let error = client.status().unwrap_err();
        assert!(matches!(error, ControlError::Silent { .. }), "{error}");
        assert!(error.to_string().contains("silent: no answer within 100ms"), "{error}");
        assert!(matches!(client.data(1).err(), Some(ControlError::Silent { .. })));
    }

    #[test]
    fn absurd_drive_size_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let status = |blocks: u64| {
            let path = folder.path().join(blocks.to_string());
            let listener = UnixListener::bind(&path).unwrap();
            let server = thread::spawn(move || server(listener, blocks));
            let status = ControlClient::new(&path).unwrap().status();
            server.join().unwrap();
            status.map(|status| status.blocks).map_err(|error| error.to_string())
        };
        assert_eq!(status(BLOCKS_END - 1), Ok(BLOCKS_END - 1));
        let error = status(BLOCKS_END).unwrap_err();
        assert!(error.contains("281474976710656 blocks"), "{error}");
    }
}

//! The options for where a verb serves, the lines that it prints about that, and its end.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{panic, process, thread};

use clap::Args;
use freewheel::measures::SimDuration;
use freewheel::serving::{Access, Address, Notices, Served, Server, Service, Stop, Uri};

use crate::failure::Failure;
use crate::output;
use crate::verbs::tls::TlsArgs;

/// Shorter stops leave a drive no time for its commands.
const STOP_MIN: SimDuration = SimDuration::from_secs(1);

/// Longer ones are no limit.
const STOP_MAX: SimDuration = SimDuration::from_secs(86_400);

/// Longest time for the lines to the operator: a terminal that is halted takes none.
const OPERATOR_WAIT: Duration = Duration::from_secs(1);

/// A socket to listen on, and certificates for it.
#[derive(Args)]
#[command(group(clap::ArgGroup::new("where").required(true).args(["socket", "listen"])))]
pub struct ListenArgs {
    /// Listen on a Unix socket at this path, which only this user can use unless --socket-mode says
    /// otherwise
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// The mode of the socket of --socket, in octal: a user who may write to it may read and write the
    /// disk. 0660 lets the group of the socket in; 0600 if not given
    #[arg(long, value_name = "MODE", conflicts_with = "listen", value_parser = socket_mode)]
    socket_mode: Option<u32>,
    /// Listen on this address, as 127.0.0.1:10809; port 0 takes a free one. On a loopback address every
    /// user of this machine can read and write the disk. One that other machines can reach needs
    /// --tls-certificates and --tls-verify-peer
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    tls: TlsArgs,
    /// End at most this long after Ctrl-C or SIGTERM, whatever clients, the device or the terminal do:
    /// half of it is for requests in flight. A second signal ends at once
    #[arg(long, value_name = "TIME", default_value = "60s")]
    stop_within: SimDuration,
}

impl ListenArgs {
    /// The way to the operator, and the stop of a server: from now on a signal ends it in order.
    pub fn operator(&self) -> Result<Operator, Failure> {
        if !(STOP_MIN..=STOP_MAX).contains(&self.stop_within) {
            return Err(Failure::wrong_use(format!(
                "--stop-within {}: {STOP_MIN} to {STOP_MAX} are allowed",
                self.stop_within
            )));
        }
        let within = Duration::from_nanos(self.stop_within.ns());
        let failed = |error| Failure::failed(format!("the thread for notices: {error}"));
        let notices = Notices::start(output::note).map_err(failed)?;
        let stop = Arc::new(stop()?);
        let last = notices.clone();
        // The last part is for its own end.
        let ended = stop.end_within(within * 11 / 12, move || {
            last.say("ending without what is still in flight: the time for a stop is over");
            last.flush(OPERATOR_WAIT);
        });
        ended.map_err(|error| Failure::failed(format!("the thread for the stop: {error}")))?;
        let heard = notices.clone();
        panic::set_hook(Box::new(move |panic| heard.say(&panic.to_string())));
        Ok(Operator { notices, stop, within })
    }

    /// Listens for clients of these services.
    pub fn bind(
        &self,
        services: Vec<Arc<dyn Service>>,
        operator: &Operator,
    ) -> Result<Server, Failure> {
        let access = Access::default();
        let socket_mode = self.socket_mode.unwrap_or(access.socket_mode);
        let access = Access { tls: self.tls.load()?, socket_mode };
        let option = if self.socket.is_some() { "--socket" } else { "--listen" };
        let limits = Default::default();
        let server = Server::bind(&self.address(), access, services, limits, operator.notice())
            .map_err(|error| Failure::from(error).of_option(option))?
            .with_grace(operator.within / 2);
        if let Address::Tcp(at) = server.address()
            && !at.ip().is_loopback()
            && self.tls.lets_anybody_in()
        {
            operator.say(&format!("anyone who reaches {at} reads and writes the disk"));
        }
        Ok(server)
    }

    fn address(&self) -> Address {
        // Clap lets exactly one of them pass.
        match (&self.socket, self.listen) {
            (Some(path), _) => Address::Unix(path.clone()),
            (None, Some(address)) => Address::Tcp(address),
            (None, None) => unreachable!("one of them is required"),
        }
    }
}

/// A mode by which the user itself can connect.
fn socket_mode(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode @ 0o600..=0o777) if text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(mode),
        _ => Err("0600 to 0777, in octal, is allowed, as 0660".into()),
    }
}

pub fn uri(server: &Server) -> Uri {
    let tls = server.tls_is_required();
    let mut uri = server.address().uri("", tls);
    uri.tls_certificates = tls.then(|| "DIR".into());
    uri
}

/// The person who started a server: notices go to stderr, a signal comes back. A terminal or pipe that takes
/// no text costs a few seconds at the start and the end, and no time in between.
pub struct Operator {
    notices: Notices,
    pub stop: Arc<Stop>,
    within: Duration,
}

impl Operator {
    /// A remark on stderr.
    pub fn say(&self, text: &str) {
        self.notices.say(text);
    }

    /// Callback that writes notices, for those who keep it.
    pub fn notice(&self) -> impl Fn(&str) + Send + Sync + use<> {
        let notices = self.notices.clone();
        move |text| notices.say(text)
    }

    /// Longest time of a device for its last commands, after its clients' time is over.
    pub fn device_wait(&self) -> Duration {
        self.within / 3
    }

    /// Serves until the stop.
    pub fn serve(&self, server: Server) -> Result<Served, Failure> {
        let address = server.address().clone();
        let served = server.run(&self.stop);
        served.map_err(|error| Failure::failed(format!("{address}: {error}")))
    }

    /// Prints the last lines of a verb on stdout. A terminal or pipe that takes none of it does not keep the
    /// process: it ends then, with exit code 1.
    pub fn print_last(self, lines: String) -> Result<(), Failure> {
        self.notices.flush(OPERATOR_WAIT);
        let (done, told) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("last lines".into())
            .spawn(move || drop(done.send(output::print(&lines))));
        thread
            .map_err(|error| Failure::failed(format!("the thread for the last lines: {error}")))?;
        match told.recv_timeout((self.within / 12).max(OPERATOR_WAIT)) {
            Ok(result) => result,
            // An error could not be printed either.
            Err(_) => process::exit(1),
        }
    }

    /// The line at the start: on stdout, unless a JSON document is to stand there alone.
    pub fn announce(&self, line: String, json: bool) -> Result<(), Failure> {
        let (done, told) = mpsc::channel();
        let thread = thread::Builder::new().name("first line".into()).spawn(move || {
            let result = if json {
                output::aside(&line);
                Ok(())
            } else {
                output::print(&line)
            };
            let _ = done.send(result);
        });
        thread
            .map_err(|error| Failure::failed(format!("the thread for the first line: {error}")))?;
        // What takes longer does not keep clients waiting.
        told.recv_timeout(OPERATOR_WAIT).unwrap_or(Ok(()))
    }
}

impl Drop for Operator {
    /// Waits until the notices are written: they stand before the last line of the verb.
    fn drop(&mut self) {
        self.notices.flush(OPERATOR_WAIT);
    }
}

/// The stop of a server: from now on a signal ends it in order.
pub fn stop() -> Result<Stop, Failure> {
    let stop = Stop::new().and_then(|stop| stop.on_signals().map(|()| stop));
    stop.map_err(|error| Failure::failed(format!("signals: {error}")))
}

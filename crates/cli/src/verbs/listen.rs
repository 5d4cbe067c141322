//! The options for where a verb serves, and the lines that it prints about that.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use freewheel::serving::{Access, Address, Served, Server, Service, Stop, Uri};

use crate::failure::Failure;
use crate::output;
use crate::verbs::tls::TlsArgs;

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
}

impl ListenArgs {
    /// Listens for clients of these services.
    pub fn bind(&self, services: Vec<Arc<dyn Service>>) -> Result<Server, Failure> {
        let notice = |text: &str| output::note(text);
        let access = Access::default();
        let socket_mode = self.socket_mode.unwrap_or(access.socket_mode);
        let access = Access { tls: self.tls.load()?, socket_mode };
        let option = if self.socket.is_some() { "--socket" } else { "--listen" };
        let server = Server::bind(&self.address(), access, services, Default::default(), notice)
            .map_err(|error| Failure::from(error).of_option(option))?;
        if let Address::Tcp(at) = server.address()
            && !at.ip().is_loopback()
            && self.tls.lets_anybody_in()
        {
            notice(&format!("anyone who reaches {at} reads and writes the disk"));
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

/// Where clients connect.
pub fn uri(server: &Server) -> Uri {
    let tls = server.tls_is_required();
    let mut uri = server.address().uri("", tls);
    uri.tls_certificates = tls.then(|| "DIR".into());
    uri
}

/// The line at the start: on stdout, unless a JSON document is to stand there alone.
pub fn announce(line: &str, json: bool) -> Result<(), Failure> {
    if json {
        output::aside(line);
        return Ok(());
    }
    output::print(line)
}

/// The stop of a server: from now on a signal ends it in order.
pub fn stop() -> Result<Stop, Failure> {
    let stop = Stop::new().and_then(|stop| stop.on_signals().map(|()| stop));
    stop.map_err(|error| Failure::failed(format!("signals: {error}")))
}

/// Serves until the stop.
pub fn serve(server: Server, stop: &Stop) -> Result<Served, Failure> {
    let address = server.address().clone();
    server.run(stop).map_err(|error| Failure::failed(format!("{address}: {error}")))
}

//! URI of a server (`doc/uri.md`).

use std::fmt;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use thiserror::Error;

/// The port of NBD, where a URI gives none.
pub const PORT: u16 = 10809;

/// Characters that a path has unescaped: unreserved characters, and the slash.
const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// `nbd://host:port/export`, `nbd+unix:///export?socket=PATH`, and both with `nbds` for TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri {
    /// TLS is required (`nbds`). Without, it may be used all the same.
    pub tls: bool,
    /// Address of the server.
    pub address: Address,
    /// The export's name; empty for the default one.
    pub export: String,
    /// The name by which the server's certificate is checked (`tls-hostname`).
    pub tls_hostname: Option<String>,
    /// The folder with the certificates for TLS (`tls-certificates`, as libnbd has it).
    pub tls_certificates: Option<String>,
}

/// Address on which a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Address {
    /// A host by name or number (IPv6 without its brackets), and a port.
    Tcp {
        /// Host; `localhost` where the URI gives none.
        host: String,
        port: u16,
    },
    /// The path of a socket in the file system; one that begins with NUL is abstract.
    Unix { socket: String },
}

/// A text that is no URI of an NBD server.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{uri}: {fault}")]
pub struct BadUri {
    /// The text.
    pub uri: String,
    /// Fault, and the allowed values.
    pub fault: String,
}

impl FromStr for Uri {
    type Err = BadUri;

    fn from_str(text: &str) -> Result<Self, BadUri> {
        parse(text).map_err(|fault| BadUri { uri: text.into(), fault })
    }
}

fn parse(text: &str) -> Result<Uri, String> {
    let (scheme, rest) = text.split_once("://").unwrap_or((text, ""));
    let (tls, unix) = match scheme.to_ascii_lowercase().as_str() {
        "nbd" => (false, false),
        "nbds" => (true, false),
        "nbd+unix" => (false, true),
        "nbds+unix" => (true, true),
        _ => {
            return Err("it must begin with nbd://, nbds://, nbd+unix:// or nbds+unix://".into());
        }
    };
    if rest.contains('#') {
        return Err("a fragment (#) has no meaning here: write %23 for the character".into());
    }
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut parameters = Parameters::parse(query)?;
    let address = match (unix, parameters.socket.take()) {
        (true, None) => return Err("it lacks the socket: append ?socket=PATH".into()),
        (true, Some(_)) if !authority.is_empty() => {
            return Err(format!(
                "{authority:?} is in the place of the authority, which must be empty: three slashes, then the \
                 export's name"
            ));
        }
        (true, Some(socket)) if socket.is_empty() => {
            return Err("the socket's path is empty".into());
        }
        (true, Some(socket)) => Address::Unix { socket },
        (false, Some(_)) => return Err("a socket needs the scheme nbd+unix or nbds+unix".into()),
        (false, None) => tcp(authority)?,
    };
    let export = decode("the export's name", path)?;
    if export.contains('\0') {
        return Err("the export's name has a NUL".into());
    }
    let Parameters { tls_hostname, tls_certificates, .. } = parameters;
    Ok(Uri { tls, address, export, tls_hostname, tls_certificates })
}

fn decode(what: &str, text: &str) -> Result<String, String> {
    let well_formed = text.split('%').skip(1).all(|rest| {
        rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    if !well_formed {
        return Err(format!("{what}: % must be followed by two hexadecimal digits; itself is %25"));
    }
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(String::from).map_err(|_| format!("{what} is not UTF-8"))
}

fn tcp(authority: &str) -> Result<Address, String> {
    if authority.contains('@') {
        return Err("a user name is not supported: leave out what is before the @".into());
    }
    let bracketed = authority.strip_prefix('[').map(|rest| rest.split_once(']'));
    let (host, port) = match bracketed {
        None => authority.split_once(':').unwrap_or((authority, "")),
        Some(Some((host, ""))) => (host, ""),
        Some(Some((host, rest))) if rest.starts_with(':') => (host, &rest[1..]),
        Some(_) => return Err("an IPv6 address stands in brackets, before a colon or alone".into()),
    };
    let port = match port {
        "" => PORT,
        port => port.parse().map_err(|_| format!("port {port:?} is not one of 0 to 65535"))?,
    };
    let host = if host.is_empty() { "localhost".into() } else { decode("the host", host)? };
    Ok(Address::Tcp { host, port })
}

#[derive(Default)]
struct Parameters {
    socket: Option<String>,
    tls_hostname: Option<String>,
    tls_certificates: Option<String>,
}

impl Parameters {
    fn parse(query: &str) -> Result<Self, String> {
        let mut parameters = Self::default();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let place = match key {
                "socket" => &mut parameters.socket,
                "tls-hostname" => &mut parameters.tls_hostname,
                "tls-certificates" => &mut parameters.tls_certificates,
                "tls-psk-file" => {
                    return Err("pre-shared keys (tls-psk-file) are not supported: use \
                                certificates, tls-certificates=DIR"
                        .into());
                }
                _ => {
                    return Err(format!(
                        "parameter {key:?} is not supported; socket, tls-hostname and \
                         tls-certificates are"
                    ));
                }
            };
            if place.replace(decode(key, value)?).is_some() {
                return Err(format!("parameter {key:?} is given twice"));
            }
        }
        Ok(parameters)
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.tls { "s" } else { "" };
        let export = utf8_percent_encode(&self.export, PATH);
        let mut separator = '?';
        match &self.address {
            Address::Unix { socket } => {
                write!(
                    out,
                    "nbd{s}+unix:///{export}?socket={}",
                    utf8_percent_encode(socket, PATH)
                )?;
                separator = '&';
            }
            Address::Tcp { host, port } => {
                write!(out, "nbd{s}://")?;
                if host.contains(':') {
                    write!(out, "[{host}]")?;
                } else {
                    write!(out, "{}", utf8_percent_encode(host, PATH))?;
                }
                if *port != PORT {
                    write!(out, ":{port}")?;
                }
                write!(out, "/{export}")?;
            }
        }
        let parameters =
            [("tls-hostname", &self.tls_hostname), ("tls-certificates", &self.tls_certificates)];
        for (key, value) in parameters {
            if let Some(value) = value {
                write!(out, "{separator}{key}={}", utf8_percent_encode(value, PATH))?;
                separator = '&';
            }
        }
        Ok(())
    }
}

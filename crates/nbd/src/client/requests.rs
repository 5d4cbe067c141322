//! Requests on their way out.

use super::Misuse;
use super::replies::Pending;
use crate::Head;
use crate::command::{Command, Frame, RequestRules, Span};
use crate::wire;

/// Makes requests of one session.
#[derive(Debug)]
pub struct Requests {
    terms: RequestRules,
    next_cookie: u64,
}

/// A request that was made: what [`Session::expect`](super::Session::expect) takes.
#[derive(Debug)]
pub struct Asked {
    pub(super) cookie: u64,
    pub(super) pending: Pending,
}

impl Asked {
    /// The number of the request.
    pub fn cookie(&self) -> u64 {
        self.cookie
    }

    /// The requested command.
    pub fn command(&self) -> Command {
        self.pending.command
    }
}

impl Requests {
    pub(super) fn new(terms: RequestRules) -> Self {
        Self { terms, next_cookie: 1 }
    }

    /// As [`Session::request`](super::Session::request).
    pub fn request(
        &mut self,
        command: Command,
        mut buffer: Vec<u8>,
    ) -> Result<(Head, Asked), Misuse> {
        let cookie = self.next_cookie;
        let frame = command.frame(cookie);
        self.terms.admit(&frame).map_err(|refusal| {
            let Span { offset, length } = frame.span;
            Misuse(format!("offset {offset}, length {length}: {}", refusal.reason))
        })?;
        if let Command::Read { span, .. } = command {
            buffer.resize(span.length as usize, 0);
        }
        self.next_cookie = self.next_cookie.wrapping_add(1);
        let asked = Asked { cookie, pending: Pending::new(command, buffer) };
        Ok((Head::of(&[&frame.encode()]), asked))
    }

    /// As [`Session::disconnect`](super::Session::disconnect).
    pub fn disconnect(&self) -> Head {
        let frame = Frame { flags: 0, kind: wire::cmd::DISC, cookie: 0, span: Span::default() };
        Head::of(&[&frame.encode()])
    }
}

//! The server's answers to options.

use super::{Close, Event, Session, Started, State, Tls, reply};
use crate::command::RequestRules;
use crate::wire::{
    ALLOCATION_ID, BASE_ALLOCATION, Cursor, EXPORT_NAME_ZEROES, STRING_BYTES_MAX, info, rep,
};
use crate::{Export, OptionCode, OptionError};

/// Negotiation so far; gone when TLS begins.
#[derive(Debug, Default)]
pub(super) struct Agreed {
    structured: bool,
    /// Index of the export for which the metadata context was chosen.
    status_of: Option<usize>,
}

/// An option that is refused, and the words for it.
struct Refused(OptionError, String);

type Answer<T> = Result<T, Refused>;

fn refused<T>(error: OptionError, text: impl Into<String>) -> Answer<T> {
    Err(Refused(error, text.into()))
}

fn malformed() -> Refused {
    Refused(OptionError::Invalid, "the lengths within the option do not add up".into())
}

impl Session {
    /// Answers one option, whose data are complete.
    pub(super) fn answer(&mut self, option: OptionCode, data: &[u8]) {
        match option {
            OptionCode::EXPORT_NAME => self.export_name(data),
            OptionCode::ABORT => {
                self.send(reply::ack(option));
                self.close(Close::Aborted);
            }
            _ => self.answer_or_refuse(option, data),
        }
    }

    fn answer_or_refuse(&mut self, option: OptionCode, data: &[u8]) {
        let answer = self.may_answer(option).and_then(|()| match option {
            OptionCode::STARTTLS => self.start_tls(data),
            OptionCode::LIST => self.list(data),
            OptionCode::INFO | OptionCode::GO => self.inform(option, data),
            OptionCode::STRUCTURED_REPLY => self.structured_reply(data),
            OptionCode::LIST_META_CONTEXT => self.list_meta_context(data),
            OptionCode::SET_META_CONTEXT => self.set_meta_context(data),
            _ => refused(OptionError::Unsup, format!("{option} is not supported")),
        });
        if let Err(Refused(error, text)) = answer {
            self.send(reply::refusal(option, error, &text));
        }
    }

    fn may_answer(&self, option: OptionCode) -> Answer<()> {
        if self.shutting_down {
            return refused(OptionError::Shutdown, "the server is shutting down");
        }
        let naked = self.settings.tls == Tls::Required && !self.encrypted;
        if naked && option != OptionCode::STARTTLS {
            return refused(OptionError::TlsReqd, "this server requires TLS");
        }
        Ok(())
    }

    fn without_data(option: OptionCode, data: &[u8]) -> Answer<()> {
        if data.is_empty() {
            return Ok(());
        }
        refused(OptionError::Invalid, format!("{option} has no data"))
    }

    fn start_tls(&mut self, data: &[u8]) -> Answer<()> {
        Self::without_data(OptionCode::STARTTLS, data)?;
        if self.settings.tls == Tls::Off {
            return refused(OptionError::Policy, "this server does without TLS");
        }
        if self.encrypted {
            return refused(OptionError::Invalid, "TLS has begun already");
        }
        self.agreed = Agreed::default();
        self.send(reply::ack(OptionCode::STARTTLS));
        self.state = State::Tls;
        self.ready.push_back(Event::StartTls);
        Ok(())
    }

    fn list(&mut self, data: &[u8]) -> Answer<()> {
        let option = OptionCode::LIST;
        Self::without_data(option, data)?;
        let mut out = Vec::new();
        for Export { name, description, .. } in &self.settings.exports {
            let length = (name.len() as u32).to_be_bytes();
            let parts = [&length, name.as_bytes(), description.as_bytes()];
            reply::push(&mut out, option, rep::SERVER, &parts);
        }
        reply::push(&mut out, option, rep::ACK, &[]);
        self.send(out);
        Ok(())
    }

    fn structured_reply(&mut self, data: &[u8]) -> Answer<()> {
        Self::without_data(OptionCode::STRUCTURED_REPLY, data)?;
        self.agreed.structured = true;
        self.send(reply::ack(OptionCode::STRUCTURED_REPLY));
        Ok(())
    }

    fn name(&self, bytes: &[u8]) -> Answer<String> {
        let longest = (self.settings.limits.name_bytes_max as usize).min(STRING_BYTES_MAX);
        if bytes.len() > longest {
            let text = format!("a name of {} bytes; at most {longest} are taken", bytes.len());
            return refused(OptionError::TooBig, text);
        }
        match String::from_utf8(bytes.to_vec()) {
            Ok(name) if !name.contains('\0') => Ok(name),
            _ => refused(OptionError::Invalid, "the name is not UTF-8, or has a NUL"),
        }
    }

    /// The index of an export; without a name the one that has none, or else the first.
    fn find(&self, name: &str) -> Answer<usize> {
        let exports = &self.settings.exports;
        let found = exports.iter().position(|export| export.name == name);
        let default = (name.is_empty() && !exports.is_empty()).then_some(0);
        found.or(default).ok_or_else(|| {
            Refused(OptionError::Unknown, format!("there is no export {name:?} here"))
        })
    }

    /// `INFO` and `GO`.
    fn inform(&mut self, option: OptionCode, data: &[u8]) -> Answer<()> {
        let (name, wanted) = parse_inform(data).ok_or_else(malformed)?;
        let name = self.name(name)?;
        let index = self.find(&name)?;
        let export = &self.settings.exports[index];
        let asks_sizes = wanted.contains(&info::BLOCK_SIZE);
        let needs_sizes = export.block_sizes_required && !asks_sizes;
        let mut out = Vec::new();
        if needs_sizes {
            self.push_info(&mut out, option, index, &[info::BLOCK_SIZE]);
            let text = format!("clients of {name:?} must ask for its block sizes");
            out.extend(reply::refusal(option, OptionError::BlockSizeReqd, &text));
            self.send(out);
            return Ok(());
        }
        self.push_info(&mut out, option, index, &wanted);
        reply::push(&mut out, option, rep::ACK, &[]);
        self.send(out);
        if option == OptionCode::GO {
            self.begin(index, asks_sizes);
        }
        Ok(())
    }

    /// Adds the requested information, each once, and what must always be told.
    fn push_info(&self, out: &mut Vec<u8>, option: OptionCode, index: usize, wanted: &[u16]) {
        let export = &self.settings.exports[index];
        let mut push = |kind: u16, parts: &[&[u8]]| {
            let kind = kind.to_be_bytes();
            let parts: Vec<&[u8]> = [&kind[..]].into_iter().chain(parts.iter().copied()).collect();
            reply::push(out, option, rep::INFO, &parts);
        };
        let flags = export.features.to_wire(self.agreed.structured).to_be_bytes();
        push(info::EXPORT, &[&export.size.to_be_bytes(), &flags]);
        if wanted.contains(&info::NAME) {
            push(info::NAME, &[export.name.as_bytes()]);
        }
        if wanted.contains(&info::DESCRIPTION) && !export.description.is_empty() {
            push(info::DESCRIPTION, &[export.description.as_bytes()]);
        }
        if wanted.contains(&info::BLOCK_SIZE) {
            let sizes = export.block_sizes;
            let (minimum, preferred) = (sizes.minimum.to_be_bytes(), sizes.preferred.to_be_bytes());
            push(info::BLOCK_SIZE, &[&minimum, &preferred, &sizes.payload_max.to_be_bytes()]);
        }
    }

    fn export_name(&mut self, data: &[u8]) {
        let chosen = self.may_answer(OptionCode::EXPORT_NAME).and_then(|()| {
            let name = self.name(data)?;
            let index = self.find(&name)?;
            if self.settings.exports[index].block_sizes_required {
                return refused(OptionError::BlockSizeReqd, name);
            }
            Ok(index)
        });
        match chosen {
            Ok(index) => {
                let export = &self.settings.exports[index];
                let mut out = Vec::new();
                out.extend(export.size.to_be_bytes());
                out.extend(export.features.to_wire(self.agreed.structured).to_be_bytes());
                if !self.no_zeroes {
                    out.extend([0; EXPORT_NAME_ZEROES]);
                }
                self.send(out);
                self.begin(index, false);
            }
            Err(Refused(error, _)) => {
                let name = String::from_utf8_lossy(data).into_owned();
                self.close(Close::Refused { name, error });
            }
        }
    }

    fn begin(&mut self, index: usize, block_sizes_agreed: bool) {
        let export = &self.settings.exports[index];
        let block_status = self.agreed.status_of == Some(index);
        let structured = self.agreed.structured;
        self.terms = RequestRules {
            size: export.size,
            features: export.features,
            block_sizes: export.block_sizes,
            structured,
            block_status,
        };
        self.state = State::RequestHead;
        let started = Started { export: index, structured, block_sizes_agreed, block_status };
        self.ready.push_back(Event::Start(started));
    }

    /// The export and the queries of an option about metadata contexts.
    fn meta_context<'a>(&self, data: &'a [u8]) -> Answer<(usize, Vec<&'a [u8]>)> {
        if !self.agreed.structured {
            return refused(OptionError::Invalid, "metadata contexts need STRUCTURED_REPLY first");
        }
        let (name, queries) = parse_meta_context(data).ok_or_else(malformed)?;
        if queries.iter().any(|query| query.len() > STRING_BYTES_MAX) {
            return refused(OptionError::TooBig, "a query of more than 4096 bytes");
        }
        let name = self.name(name)?;
        Ok((self.find(&name)?, queries))
    }

    fn list_meta_context(&mut self, data: &[u8]) -> Answer<()> {
        let (index, queries) = self.meta_context(data)?;
        let finds = |query: &[u8]| query == b"base:" || query == BASE_ALLOCATION.as_bytes();
        let asked = queries.is_empty() || queries.iter().any(|query| finds(query));
        let told = asked && self.settings.exports[index].features.block_status;
        // The number is reserved here, and zero.
        self.send(contexts(OptionCode::LIST_META_CONTEXT, told.then_some(0)));
        Ok(())
    }

    /// Replaces what was chosen before, also when it fails.
    fn set_meta_context(&mut self, data: &[u8]) -> Answer<()> {
        self.agreed.status_of = None;
        let (index, queries) = self.meta_context(data)?;
        let named = queries.iter().any(|query| **query == *BASE_ALLOCATION.as_bytes());
        let chosen = named && self.settings.exports[index].features.block_status;
        self.agreed.status_of = chosen.then_some(index);
        self.send(contexts(OptionCode::SET_META_CONTEXT, chosen.then_some(ALLOCATION_ID)));
        Ok(())
    }
}

/// Replies that name the context by this number, if any.
fn contexts(option: OptionCode, id: Option<u32>) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(id) = id {
        let parts = [&id.to_be_bytes()[..], BASE_ALLOCATION.as_bytes()];
        reply::push(&mut out, option, rep::META_CONTEXT, &parts);
    }
    reply::push(&mut out, option, rep::ACK, &[]);
    out
}

/// Name and wanted information; `None` where the lengths do not add up.
fn parse_inform(data: &[u8]) -> Option<(&[u8], Vec<u16>)> {
    let mut data = Cursor(data);
    let length = data.u32()?;
    let name = data.bytes(length as usize)?;
    let count = data.u16()?;
    let wanted = (0..count).map(|_| data.u16()).collect::<Option<Vec<_>>>()?;
    data.0.is_empty().then_some((name, wanted))
}

/// Name and queries; `None` where the lengths do not add up.
fn parse_meta_context(data: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let mut data = Cursor(data);
    let length = data.u32()?;
    let name = data.bytes(length as usize)?;
    let count = data.u32()?;
    let mut queries = Vec::new();
    for _ in 0..count {
        let length = data.u32()?;
        queries.push(data.bytes(length as usize)?);
    }
    data.0.is_empty().then_some((name, queries))
}

//! Options that a client sends before transmission, and the answers.

use super::{
    Event, ExportInfo, ListedExport, Misuse, Receiving, Refused, Requests, Session, State,
};
use crate::command::RequestRules;
use crate::violation::{unexpected, wrong_length};
use crate::wire::{
    self, BASE_ALLOCATION, Cursor, EXPORT_NAME_ZEROES, OLDSTYLE_MAGIC, OPTION_MAGIC,
    OPTION_REPLY_MAGIC, SERVER_MAGIC, STRING_BYTES_MAX, flag, info, rep,
};
use crate::{BlockSizes, Features, OptionCode, OptionError, Violation};

/// Goal of the caller, with the results so far.
#[derive(Debug)]
pub(super) enum Goal {
    Nothing,
    StartTls,
    Abort,
    List(Vec<ListedExport>),
    Inform { name: String, go: bool, told: ExportInfo, export_told: bool },
}

impl Session {
    /// Ask for the names of all exports.
    pub fn list(&mut self) -> Result<Vec<u8>, Misuse> {
        self.may_ask(true)?;
        self.goal = Goal::List(Vec::new());
        Ok(self.ask(OptionCode::LIST, &[]))
    }

    /// Ask about an export; the empty name is the server's default one.
    pub fn info(&mut self, name: &str) -> Result<Vec<u8>, Misuse> {
        self.may_ask(true)?;
        self.inform(name, false)
    }

    /// Choose an export and begin: with structured replies where both sides want them, and in the
    /// old way where the server knows no other. The empty name is the server's default export.
    pub fn go(&mut self, name: &str) -> Result<Vec<u8>, Misuse> {
        self.may_ask(false)?;
        self.inform(name, true)
    }

    /// Ask for TLS.
    pub fn start_tls(&mut self) -> Result<Vec<u8>, Misuse> {
        self.may_ask(true)?;
        if self.encrypted {
            return Err(Misuse("TLS has begun already".into()));
        }
        self.goal = Goal::StartTls;
        Ok(self.ask(OptionCode::STARTTLS, &[]))
    }

    /// Give up the negotiation.
    pub fn abort(&mut self) -> Result<Vec<u8>, Misuse> {
        self.may_ask(true)?;
        self.goal = Goal::Abort;
        Ok(self.ask(OptionCode::ABORT, &[]))
    }

    fn may_ask(&self, fixed: bool) -> Result<(), Misuse> {
        if !matches!(self.state, State::Idle) {
            return Err(Misuse("no option may be sent now: wait for the answer".into()));
        }
        if fixed && !self.fixed_newstyle {
            return Err(Misuse("this old server only knows the start of an export".into()));
        }
        Ok(())
    }

    fn inform(&mut self, name: &str, go: bool) -> Result<Vec<u8>, Misuse> {
        if name.len() > STRING_BYTES_MAX || name.contains('\0') {
            let length = name.len();
            return Err(Misuse(format!(
                "an export's name has at most {STRING_BYTES_MAX} bytes and no NUL; this one has \
                 {length}"
            )));
        }
        // A metadata context is chosen for one export.
        self.context = None;
        let told = ExportInfo { name: name.into(), ..ExportInfo::default() };
        self.goal = Goal::Inform { name: name.into(), go, told, export_told: false };
        Ok(self.next_question())
    }

    /// The next option on the way to telling of an export.
    fn next_question(&mut self) -> Vec<u8> {
        let Goal::Inform { name, go, .. } = &self.goal else { return Vec::new() };
        let (name, go) = (name.clone(), *go);
        if !self.fixed_newstyle {
            return self.ask_in_the_old_way(&name);
        }
        if self.settings.structured && self.structured.is_none() {
            return self.ask(OptionCode::STRUCTURED_REPLY, &[]);
        }
        let length = (name.len() as u32).to_be_bytes();
        if self.settings.block_status && self.structured == Some(true) && self.context.is_none() {
            let query = (BASE_ALLOCATION.len() as u32).to_be_bytes();
            let one = 1_u32.to_be_bytes();
            let parts: [&[u8]; 5] =
                [&length, name.as_bytes(), &one, &query, BASE_ALLOCATION.as_bytes()];
            return self.ask(OptionCode::SET_META_CONTEXT, &parts);
        }
        self.ask_about(go, &name)
    }

    fn ask_about(&mut self, go: bool, name: &str) -> Vec<u8> {
        let option = if go { OptionCode::GO } else { OptionCode::INFO };
        let length = (name.len() as u32).to_be_bytes();
        let wanted = [3, info::NAME, info::DESCRIPTION, info::BLOCK_SIZE].map(u16::to_be_bytes);
        self.ask(option, &[&length, name.as_bytes(), wanted.as_flattened()])
    }

    fn ask_in_the_old_way(&mut self, name: &str) -> Vec<u8> {
        let bytes = self.ask(OptionCode::EXPORT_NAME, &[name.as_bytes()]);
        self.state = State::ExportName;
        bytes
    }

    fn ask(&mut self, option: OptionCode, parts: &[&[u8]]) -> Vec<u8> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let mut out = OPTION_MAGIC.to_be_bytes().to_vec();
        out.extend(option.0.to_be_bytes());
        out.extend((length as u32).to_be_bytes());
        parts.iter().for_each(|part| out.extend_from_slice(part));
        (self.asked, self.replies, self.state) = (option, 0, State::OptionReply);
        out
    }

    pub(super) fn negotiate(&mut self, bytes: &mut &[u8]) -> Result<bool, Violation> {
        match self.state {
            State::Greeting => self.greeting(bytes),
            State::OptionReply => self.option_reply(bytes),
            State::OptionData { reply_type, length } => {
                let Some(data) = self.inbox.vec(bytes, length as usize) else { return Ok(false) };
                self.state = State::OptionReply;
                self.option_data(reply_type, &data)?;
                Ok(true)
            }
            State::ExportName => self.export_name(bytes),
            _ if bytes.is_empty() => Ok(false),
            _ => unexpected("bytes of the server", "silence until it is asked"),
        }
    }

    fn greeting(&mut self, bytes: &mut &[u8]) -> Result<bool, Violation> {
        let Some(greeting) = self.inbox.array::<18>(bytes) else { return Ok(false) };
        let mut greeting = Cursor(&greeting);
        let (first, second) = (greeting.u64().unwrap_or(0), greeting.u64().unwrap_or(0));
        if first != SERVER_MAGIC {
            let (what, expected) = ("a server's greeting", SERVER_MAGIC);
            return Err(Violation::Magic { what, expected, found: first });
        }
        if second == OLDSTYLE_MAGIC {
            return Err(Violation::Oldstyle);
        }
        if second != OPTION_MAGIC {
            let (what, expected) = ("the second half of a server's greeting", OPTION_MAGIC);
            return Err(Violation::Magic { what, expected, found: second });
        }
        let offered = greeting.u16().unwrap_or(0);
        self.fixed_newstyle = offered & wire::FIXED_NEWSTYLE != 0;
        self.no_zeroes = offered & wire::NO_ZEROES != 0;
        let flags = u32::from(offered & (wire::FIXED_NEWSTYLE | wire::NO_ZEROES));
        self.state = State::Idle;
        self.ready.push_back(Event::Send(flags.to_be_bytes().to_vec()));
        self.ready.push_back(Event::Greeted);
        Ok(true)
    }

    fn option_reply(&mut self, bytes: &mut &[u8]) -> Result<bool, Violation> {
        let Some(head) = self.inbox.array::<20>(bytes) else { return Ok(false) };
        let mut head = Cursor(&head);
        let magic = head.u64().unwrap_or(0);
        if magic != OPTION_REPLY_MAGIC {
            let (what, expected) = ("an answer to an option", OPTION_REPLY_MAGIC);
            return Err(Violation::Magic { what, expected, found: magic });
        }
        let option = OptionCode(head.u32().unwrap_or(0));
        if option != self.asked {
            let expected = format!("one to {}", self.asked);
            return unexpected(format!("an answer to {option}"), expected);
        }
        let (reply_type, length) = (head.u32().unwrap_or(0), head.u32().unwrap_or(0));
        let limits = self.settings.limits;
        if length > limits.option_bytes_max {
            let expected = format!("at most {}", limits.option_bytes_max);
            return wrong_length("an answer to an option", expected, length);
        }
        self.replies += 1;
        if self.replies > limits.options_max {
            let what = "answers to one option";
            return Err(Violation::TooMany { what, limit: limits.options_max });
        }
        self.state = State::OptionData { reply_type, length };
        Ok(true)
    }

    fn option_data(&mut self, reply_type: u32, data: &[u8]) -> Result<(), Violation> {
        if let Some(error) = OptionError::from_reply_type(reply_type) {
            self.refused(error, data);
            return Ok(());
        }
        match (self.asked, reply_type) {
            (_, rep::ACK) if !data.is_empty() => {
                wrong_length("an acknowledgement", "0", data.len() as u64)
            }
            (_, rep::ACK) => self.acknowledged(),
            (OptionCode::LIST, rep::SERVER) => self.listed(data),
            (OptionCode::INFO | OptionCode::GO, rep::INFO) => self.take_info(data),
            (OptionCode::SET_META_CONTEXT, rep::META_CONTEXT) => self.context_chosen(data),
            (asked, other) => unexpected(
                format!("an answer of type {other} to {asked}"),
                "an answer that belongs to this option",
            ),
        }
    }

    fn refused(&mut self, error: OptionError, data: &[u8]) {
        let for_good = matches!(error, OptionError::TlsReqd | OptionError::Shutdown);
        let next = match (self.asked, &self.goal) {
            (OptionCode::STRUCTURED_REPLY, _) if !for_good => {
                self.structured = Some(false);
                Some(self.next_question())
            }
            (OptionCode::SET_META_CONTEXT, Goal::Inform { name, go, .. }) if !for_good => {
                let (name, go) = (name.clone(), *go);
                self.context = None;
                Some(self.ask_about(go, &name))
            }
            (OptionCode::GO, Goal::Inform { name, .. }) if error == OptionError::Unsup => {
                let name = name.clone();
                Some(self.ask_in_the_old_way(&name))
            }
            _ => None,
        };
        let event = match next {
            Some(bytes) => Event::Send(bytes),
            None if self.asked == OptionCode::ABORT => self.aborted(),
            None => {
                self.state = State::Idle;
                let message = String::from_utf8_lossy(data).into_owned();
                Event::Refused(Refused { option: self.asked, error, message })
            }
        };
        self.ready.push_back(event);
    }

    fn aborted(&mut self) -> Event {
        self.state = State::Closed;
        Event::Aborted
    }

    fn acknowledged(&mut self) -> Result<(), Violation> {
        let event = match self.asked {
            OptionCode::STRUCTURED_REPLY => {
                self.structured = Some(true);
                Event::Send(self.next_question())
            }
            OptionCode::SET_META_CONTEXT => {
                let Goal::Inform { name, go, .. } = &self.goal else { return Ok(()) };
                let (name, go) = (name.clone(), *go);
                Event::Send(self.ask_about(go, &name))
            }
            OptionCode::STARTTLS => {
                self.state = State::Tls;
                Event::StartTls
            }
            OptionCode::ABORT => self.aborted(),
            _ => self.reached()?,
        };
        self.ready.push_back(event);
        Ok(())
    }

    /// A list or the information is complete.
    fn reached(&mut self) -> Result<Event, Violation> {
        self.state = State::Idle;
        match std::mem::replace(&mut self.goal, Goal::Nothing) {
            Goal::List(listed) => Ok(Event::Exports(listed)),
            Goal::Inform { export_told: false, .. } => {
                let expected = "the size and flags of the export before it";
                unexpected(format!("an acknowledgement of {}", self.asked), expected)
            }
            Goal::Inform { go: false, told, .. } => Ok(Event::Info(told)),
            Goal::Inform { told, .. } => Ok(self.begin(told)),
            Goal::Nothing | Goal::StartTls | Goal::Abort => {
                unexpected("an acknowledgement", "silence until the server is asked")
            }
        }
    }

    fn begin(&mut self, told: ExportInfo) -> Event {
        self.terms = RequestRules {
            size: told.size,
            features: told.features,
            block_sizes: told.block_sizes,
            structured: self.structured == Some(true),
            block_status: told.features.block_status,
        };
        self.requests = Some(Requests::new(self.terms));
        self.state = State::Transmission(Receiving::Head);
        Event::Started(told)
    }

    fn text(&self, what: &'static str, bytes: &[u8]) -> Result<String, Violation> {
        if bytes.len() > STRING_BYTES_MAX {
            return wrong_length(what, format!("at most {STRING_BYTES_MAX}"), bytes.len() as u64);
        }
        match String::from_utf8(bytes.to_vec()) {
            Ok(text) if !text.contains('\0') => Ok(text),
            _ => unexpected(what, "UTF-8 without NUL"),
        }
    }

    fn export_name_text(&self, bytes: &[u8]) -> Result<String, Violation> {
        let longest = self.settings.limits.name_bytes_max;
        if bytes.len() > longest as usize {
            let expected = format!("at most {longest}");
            return wrong_length("the name of an export", expected, bytes.len() as u64);
        }
        self.text("the name of an export", bytes)
    }

    fn listed(&mut self, data: &[u8]) -> Result<(), Violation> {
        let mut data = Cursor(data);
        let name = data.u32().and_then(|length| data.bytes(length as usize));
        let Some(name) = name else {
            return unexpected("an entry of the list that is too short", "a name in full");
        };
        let name = self.export_name_text(name)?;
        let description = self.text("the description of an export", data.0)?;
        if let Goal::List(listed) = &mut self.goal {
            listed.push(ListedExport { name, description });
        }
        Ok(())
    }

    fn take_info(&mut self, data: &[u8]) -> Result<(), Violation> {
        let mut cursor = Cursor(data);
        let (kind, rest) = (cursor.u16(), cursor.0);
        match kind {
            Some(info::EXPORT) => {
                let (size, flags) = (cursor.u64(), cursor.u16());
                let (Some(size), Some(flags), true) = (size, flags, cursor.0.is_empty()) else {
                    return wrong_length("the size and flags", "12", data.len() as u64);
                };
                let features = self.features(flags)?;
                self.tell(|told| (told.size, told.features) = (size, features));
                if let Goal::Inform { export_told, .. } = &mut self.goal {
                    *export_told = true;
                }
            }
            Some(info::NAME) => {
                let name = self.export_name_text(rest)?;
                self.tell(|told| told.name = name);
            }
            Some(info::DESCRIPTION) => {
                let description = self.text("the description of an export", rest)?;
                self.tell(|told| told.description = description);
            }
            Some(info::BLOCK_SIZE) => {
                let block_sizes = block_sizes(rest)?;
                self.tell(|told| told.block_sizes = block_sizes);
            }
            // What is not known is passed over, as the protocol asks.
            Some(_) => {}
            None => return wrong_length("information", "at least 2", data.len() as u64),
        }
        Ok(())
    }

    fn tell(&mut self, change: impl FnOnce(&mut ExportInfo)) {
        if let Goal::Inform { told, .. } = &mut self.goal {
            change(told);
        }
    }

    fn features(&self, flags: u16) -> Result<Features, Violation> {
        if flags & flag::HAS_FLAGS == 0 {
            return unexpected(format!("transmission flags {flags:#06x}"), "bit 0 set in them");
        }
        let features = Features::from_wire(flags);
        Ok(Features {
            // Meaningless without; some servers offer it all the same.
            dont_fragment: features.dont_fragment && self.structured == Some(true),
            fast_zero: features.fast_zero && features.write_zeroes,
            block_status: self.context.is_some(),
            ..features
        })
    }

    fn context_chosen(&mut self, data: &[u8]) -> Result<(), Violation> {
        let mut cursor = Cursor(data);
        let id = cursor.u32();
        let named = cursor.0 == BASE_ALLOCATION.as_bytes();
        if !named || id.is_none() || self.context.is_some() {
            let found = format!("metadata context {:?}", String::from_utf8_lossy(cursor.0));
            return unexpected(found, format!("{BASE_ALLOCATION} once"));
        }
        self.context = id;
        Ok(())
    }

    fn export_name(&mut self, bytes: &mut &[u8]) -> Result<bool, Violation> {
        let zeroes = if self.no_zeroes { 0 } else { EXPORT_NAME_ZEROES };
        let Some(data) = self.inbox.vec(bytes, 10 + zeroes) else { return Ok(false) };
        let mut data = Cursor(&data);
        let (size, flags) = (data.u64().unwrap_or(0), data.u16().unwrap_or(0));
        let features = self.features(flags)?;
        let goal = std::mem::replace(&mut self.goal, Goal::Nothing);
        if let Goal::Inform { told, .. } = goal {
            let event = self.begin(ExportInfo { size, features, ..told });
            self.ready.push_back(event);
        }
        Ok(true)
    }
}

fn block_sizes(data: &[u8]) -> Result<BlockSizes, Violation> {
    let mut cursor = Cursor(data);
    let sizes = (cursor.u32(), cursor.u32(), cursor.u32());
    let ((Some(minimum), Some(preferred), Some(payload_max)), true) = (sizes, cursor.0.is_empty())
    else {
        return wrong_length("the block sizes", "14", data.len() as u64 + 2);
    };
    let sizes = BlockSizes { minimum, preferred, payload_max };
    match sizes.fault() {
        Some(fault) => {
            unexpected(format!("block sizes {minimum}, {preferred}, {payload_max}"), fault)
        }
        None => Ok(sizes),
    }
}

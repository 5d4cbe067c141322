//! Replies to options, as bytes.

use crate::wire::{OPTION_REPLY_MAGIC, cut, rep};
use crate::{OptionCode, OptionError};

/// Appends a reply of this type with these parts as its data.
pub(super) fn push(out: &mut Vec<u8>, option: OptionCode, reply_type: u32, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    out.extend(OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend(option.0.to_be_bytes());
    out.extend(reply_type.to_be_bytes());
    out.extend((length as u32).to_be_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// The final reply of success.
pub(super) fn ack(option: OptionCode) -> Vec<u8> {
    let mut out = Vec::new();
    push(&mut out, option, rep::ACK, &[]);
    out
}

/// The final reply of failure, with a text for people, as much of it as a string may have.
pub(super) fn refusal(option: OptionCode, error: OptionError, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    push(&mut out, option, error.reply_type(), &[cut(text).as_bytes()]);
    out
}

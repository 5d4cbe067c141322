//! Names of kinds and priorities in the control interface: those of configurations, by one type.
//!
//! The types are of a crate without HTTP, so their schemas and the kinds of a server stand here.

use std::borrow::Cow;
use std::fmt;

use freewheel_freeblock::tasks::{Priority, TaskKind};
use freewheel_host::tasks::SERVED_KINDS;
use serde::de::{Deserializer, EnumAccess, Error, VariantAccess, Visitor};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Words of the kinds that a server has.
const SERVED_WORDS: [&str; SERVED_KINDS.len()] = [
    SERVED_KINDS[0].word(),
    SERVED_KINDS[1].word(),
    SERVED_KINDS[2].word(),
    SERVED_KINDS[3].word(),
];

/// Schema of a server's [`TaskKind`].
pub(super) struct KindSchema;

/// Schema of a [`Priority`].
pub(super) struct PrioritySchema;

fn one_of<const N: usize>(words: [&str; N], description: &str) -> RefOr<Schema> {
    let one = ObjectBuilder::new().schema_type(Type::String);
    one.description(Some(description)).enum_values(Some(words)).into()
}

impl PartialSchema for KindSchema {
    fn schema() -> RefOr<Schema> {
        one_of(SERVED_WORDS, "The kind of a task.")
    }
}

impl ToSchema for KindSchema {
    fn name() -> Cow<'static, str> {
        "TaskKind".into()
    }
}

impl PartialSchema for PrioritySchema {
    fn schema() -> RefOr<Schema> {
        let words = Priority::ALL.map(Priority::word);
        one_of(words, "Weight of a task's blocks against those of other tasks.")
    }
}

impl ToSchema for PrioritySchema {
    fn name() -> Cow<'static, str> {
        "TaskPriority".into()
    }
}

/// Reads a kind that a server has. Refuses the simulator's other kinds as unknown.
pub(super) fn served_kind<'de, D: Deserializer<'de>>(from: D) -> Result<TaskKind, D::Error> {
    from.deserialize_enum("TaskKind", &SERVED_WORDS, Served)
}

struct Served;

impl<'de> Visitor<'de> for Served {
    type Value = TaskKind;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the kind of a task")
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<TaskKind, A::Error> {
        let (word, rest) = access.variant::<String>()?;
        rest.unit_variant()?;
        let kind = SERVED_KINDS.into_iter().find(|kind| kind.word() == word);
        kind.ok_or_else(|| Error::unknown_variant(&word, &SERVED_WORDS))
    }
}

//! Names of kinds and priorities in the control interface: those of configurations, by one type.
//!
//! The types are of a crate without HTTP, so their schemas and the kinds of a server stand here.

use std::borrow::Cow;
use std::fmt;

use freewheel_freeblock::tasks::{Priority, TaskKind};
use freewheel_host::tasks::{SERVED_KINDS, TaskState};
use serde::Deserialize;
use serde::de::{Deserializer, EnumAccess, Error, VariantAccess, Visitor};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};
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

/// Schema of a [`TaskState`].
pub(super) struct StateSchema;

/// Schema of the part of a [`TaskOrder`](freewheel_freeblock::TaskOrder) that a server understands.
pub(super) struct OrderSchema;

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

impl PartialSchema for StateSchema {
    fn schema() -> RefOr<Schema> {
        one_of(TaskState::ALL.map(TaskState::word), "State of a task.")
    }
}

impl ToSchema for StateSchema {
    fn name() -> Cow<'static, str> {
        "TaskState".into()
    }
}

impl PartialSchema for OrderSchema {
    fn schema() -> RefOr<Schema> {
        let cost = ObjectBuilder::new()
            .schema_type(Type::Number)
            .description(Some("Largest share of the round's time: more than 0 and at most 1."));
        let tail = ObjectBuilder::new()
            .description(Some(
                "Reads the last blocks of a round by foreground requests, at this cost. When absent the \
                 last blocks wait for gaps.",
            ))
            .property("cost", cost)
            .property("outstanding", whole("Most of these requests at a time; when absent 1."))
            .property("merged_max", text("Most bytes in one of them; when absent 64KiB, or a block where that is larger."))
            .required("cost");
        ObjectBuilder::new()
            .description(Some("Kind, range and pace of a task."))
            .property("kind", Ref::from_schema_name("TaskKind"))
            .property("start", text("First byte of the task: a multiple of 512, as \"1GiB\"."))
            .property("length", text("Length from there on; when absent to the end of the drive."))
            .property(
                "block_size",
                text(
                    "Least size of a read: a multiple of 512 up to 1 MiB. When absent the server chooses \
                     about an eighth of a track of the drive, from 4 KiB to 64 KiB.",
                ),
            )
            .property("priority", Ref::from_schema_name("TaskPriority"))
            .property(
                "deadline",
                text("Deadline of a round, from its beginning, as \"8h\". A late round weighs more. At most a year."),
            )
            .property(
                "idle_after",
                text("Uses idle time as well, after this time without a client's request, as \"20ms\": at most a year."),
            )
            .property("promote_tail", tail)
            .property(
                "repeat",
                ObjectBuilder::new()
                    .schema_type(Type::Boolean)
                    .description(Some("Begins another round after each one.")),
            )
            .required("kind")
            .into()
    }
}

fn text(about: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).description(Some(about))
}

impl ToSchema for OrderSchema {
    fn name() -> Cow<'static, str> {
        "TaskOrder".into()
    }
}

fn whole(about: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer).description(Some(about))
}

/// A [`TaskKind`] that a server has.
pub(super) struct ServedKind(pub TaskKind);

impl<'de> Deserialize<'de> for ServedKind {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        served_kind(from).map(Self)
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

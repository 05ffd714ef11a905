//! What a job writes in one of several forms. The types that read them are written by hand, for messages that say what is wrong; these
//! have the same forms. Where a type has no documentation, the key that has it says all.
#![allow(dead_code, reason = "they are never made: the schema is derived from their form")]

use super::super::count::EventTable;
use super::super::form::Form;
use super::super::history;
use crate::events::EventText;
use crate::limits::LimitTable;
use crate::limits::value::Parts as LimitParts;
use protocol::core_kind::CoreKind;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use std::collections::BTreeMap;

// Widths of code.
#[derive(JsonSchema)]
#[schemars(inline, extend("enum" = [32, 64]))]
pub(in crate::job) struct Width(u8);

// Rings that code runs in.
#[derive(JsonSchema)]
#[schemars(inline, extend("enum" = [0, 3]))]
pub(in crate::job) struct RingText(u8);

// One file or several.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
pub(in crate::job) enum FilesText {
    /// A file.
    One(String),
    /// Several files.
    Several(Vec<String>),
}

// Processors that a task may run on.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
pub(in crate::job) enum AffinityText {
    /// All processors in use, of one kind of core.
    Any(AnyWord),
    /// Those of these numbers.
    These(Vec<u16>),
}

// Not more than is said above.
#[derive(JsonSchema)]
#[schemars(inline, rename_all = "kebab-case")]
pub(in crate::job) enum AnyWord {
    /// All of them.
    Any,
}

// A number of bytes.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
pub(crate) enum SizeText {
    /// Bytes.
    Bytes(u64),
    /// With a power of 1024: `64M`.
    Text(String),
}

/// Bounds of a figure.
#[derive(JsonSchema)]
#[schemars(rename = "Bounds", deny_unknown_fields)]
pub(crate) struct BoundsTable {
    /// The least value that passes.
    min: Option<f64>,
    /// The greatest value that passes.
    max: Option<f64>,
}

/// What one figure must come to: a number, or bounds.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "Bound")]
pub(crate) enum BoundText {
    /// Exactly this.
    Value(f64),
    /// Between bounds.
    Bounds(BoundsTable),
}

/// What figures must come to.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "Expect")]
pub(crate) enum ExpectText {
    /// The TSC ticks, exactly.
    Ticks(f64),
    /// The TSC ticks, between bounds.
    Bounds(BoundsTable),
    /// Figures by their names.
    Figures(BTreeMap<String, BoundText>),
}

/// For whom a set is counted.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "Bind")]
pub(in crate::job) enum BindText {
    /// A word.
    Word(BindWord),
    /// One processor.
    Processor(BindProcessor),
    /// One processor of a kind of core.
    Core(BindCore),
    /// One task.
    Task(BindTask),
    /// Several tasks.
    Tasks(BindTasks),
}

// Everybody.
#[derive(JsonSchema)]
#[schemars(inline, rename_all = "kebab-case")]
pub(in crate::job) enum BindWord {
    /// All tasks, on the processors that they run on.
    System,
    /// All processors, the idle ones too.
    AllCpus,
}

// One processor.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(in crate::job) struct BindProcessor {
    /// Its number.
    cpu: u16,
}

// One processor of a kind of core.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(in crate::job) struct BindCore {
    /// The kind.
    core: CoreKind,
    /// Which of its processors, from 0 on. Default: the first.
    cpu: Option<u16>,
}

// One task.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(in crate::job) struct BindTask {
    /// Its name.
    task: String,
}

// Several tasks.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(in crate::job) struct BindTasks {
    /// Their names.
    tasks: Vec<String>,
}

// What is counted over tasks.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
pub(in crate::job) enum CountedText {
    /// An event.
    Event(EventText),
    /// An event, and what follows from its overflows.
    Table(EventTable),
}

/// Where counting starts or stops.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "Address")]
pub(in crate::job) enum PointText {
    /// Before the instruction there.
    Instruction(String),
    /// Behind an instruction that writes there.
    Write(PointWrite),
    /// Behind an instruction that reads or writes there.
    Access(PointAccess),
}

// Behind a write.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(in crate::job) struct PointWrite {
    /// Data: `task:r14+8`, counted from what the register is when the task starts.
    write: String,
    /// Its bytes: 1, 2, 4 or 8. Default: 8.
    bytes: Option<u8>,
}

// Behind a read or a write.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(in crate::job) struct PointAccess {
    /// Data, likewise, or a label of the code: `task:label`.
    access: String,
    /// Its bytes: 1, 2, 4 or 8. Default: 8.
    bytes: Option<u8>,
}

/// Cycle by cycle.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "History")]
pub(in crate::job) enum HistoryText {
    /// `false`: no history, where the defaults have one.
    Off(#[schemars(extend("const" = false))] bool),
    /// The last row.
    Cycles(#[schemars(range(min = 1, max = 1_000_000))] u32),
    /// All of it.
    Table(history::RawTable),
}

/// A text that stands for something, in the schema by its name.
macro_rules! text {
    ($type:ty, $name:literal, $schema:tt) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                Cow::Borrowed($name)
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

text!(EventText, "Event", {
    "type": "string",
    "minLength": 1,
    "description": "An event by name, with modifiers (`cycles:u`), a raw one (`r20c4`), or a group (`{loads,stores}`)."
});
text!(Form, "Form", {
    "type": "string",
    "minLength": 1,
    "description": "An instruction with classes in place of operands: `imul r64, r64`."
});

impl JsonSchema for LimitTable {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Limits")
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let parts = generator.subschema_for::<LimitParts>();
        json_schema!({
            "type": "object",
            "description": "By the names of figures, `*` and `?` as wild cards: a number, a share such as `5 %`, or a table.",
            "additionalProperties": {
                "anyOf": [
                    { "type": "number", "minimum": 0 },
                    { "type": "string", "pattern": r"^\s*[0-9.]+\s*%\s*$" },
                    parts
                ]
            }
        })
    }
}

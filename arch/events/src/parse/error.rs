//! What is wrong with a text, and where.

use alloc::string::String;
use thiserror::Error;

/// A text that requests events is not understood.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("byte {at}: {kind}")]
pub struct ParseError {
    /// Where, in bytes from the beginning of the text.
    pub at: usize,
    /// What is wrong with it.
    pub kind: ParseErrorKind,
}

/// What is not understood.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum ParseErrorKind {
    /// Nothing between two commas, or before a modifier.
    #[error("an event is missing")]
    MissingEvent,
    /// A character that no event has.
    #[error("unexpected character {0:?}")]
    Character(char),
    /// An opening brace without its closing one.
    #[error("the group is not closed: '}}' is missing")]
    OpenGroup,
    /// A brace inside braces.
    #[error("a group cannot contain a group")]
    NestedGroup,
    /// A slash without its counterpart.
    #[error("the terms are not closed: '/' is missing")]
    OpenTerms,
    /// A term that is not known.
    #[error("unknown term {name:?}; known are {known}")]
    UnknownTerm { name: String, known: &'static str },
    /// A modifier that is not known.
    #[error("unknown modifier {0:?}; known are {KNOWN_MODIFIERS}")]
    UnknownModifier(String),
    /// A term that needs a value.
    #[error("{0} needs a value: {0}=number")]
    MissingValue(String),
    /// A value that is not a number.
    #[error("{name} is {value:?}, which is not a number (decimal, or hexadecimal with 0x)")]
    Number { name: String, value: String },
    /// A switch that is neither on nor off.
    #[error("{name} is {value}; it must be 0 or 1")]
    Switch { name: String, value: u64 },
    /// The same thing twice.
    #[error("{0} is given twice")]
    Twice(String),
    /// `event=` in addition to an event's name, or twice.
    #[error("two events in one pair of slashes")]
    TwoEvents,
    /// A part of a function word that is not known.
    #[error("{0:?} is not a part of a function word; known are {KNOWN_FLAGS}")]
    UnknownFlag(String),
    /// A part of a function word that is too large for its place.
    #[error("{value:#x} shifted left by {shift} does not fit into 32 bits")]
    WordOverflow { value: u64, shift: u32 },
    /// Too much for one number.
    #[error("{0:?} has more than 16 hexadecimal digits")]
    RawTooLong(String),
    /// A line that is neither a comment nor an entry.
    #[error("{0}")]
    NanoBench(&'static str),
}

/// What [`super::attribute`] knows, for its errors.
pub(super) const KNOWN_MODIFIERS: &str = "u, k, p, pp, ppp, e, i, c=N, any, t, intx, intxcp, \
     eq, pc, umask=N, ldlat=N, fe=N, offcore_rsp=N, snoop_rsp=N, counter=N, alone, name=TEXT";
/// What [`super::word`] knows, for its errors.
const KNOWN_FLAGS: &str = "numbers, U, K, E, EN, I, UM_M, UM_E, UM_S, UM_I, UM_MESI, UM_A, \
     N<<UM_SHIFT, N<<CM_SHIFT, each also with PCTR_ before it";

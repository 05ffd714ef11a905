//! What a counter is asked to count: an architectural event by name, or a raw event and unit mask.

use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An event.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Event {
    /// Instructions retired.
    Instructions,
    /// Core cycles, while not halted.
    Cycles,
    /// Cycles at the TSC's rate, while not halted. Intel, by a fixed counter.
    ReferenceCycles,
    /// The processor's own event.
    Raw {
        /// Event code: 8 bits on Intel, 12 on AMD.
        event: u16,
        /// Unit mask.
        umask: u16,
    },
}

/// Text that names no event.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
#[error(
    "`{0}` is no event: it must be instructions, cycles, reference-cycles, or a raw event and unit mask like 0xc4.0x00"
)]
pub struct NoEvent(pub String);

const NAMES: [(&str, Event); 3] = [
    ("instructions", Event::Instructions),
    ("cycles", Event::Cycles),
    ("reference-cycles", Event::ReferenceCycles),
];

impl FromStr for Event {
    type Err = NoEvent;

    fn from_str(text: &str) -> Result<Self, NoEvent> {
        if let Some(&(_, event)) = NAMES.iter().find(|(name, _)| *name == text) {
            return Ok(event);
        }
        let number = |text: &str| {
            let digits = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+'))?;
            u16::from_str_radix(digits, 16).ok()
        };
        let raw = text.split_once('.').and_then(|(event, umask)| {
            Some(Self::Raw { event: number(event)?, umask: number(umask)? })
        });
        raw.ok_or_else(|| NoEvent(text.to_string()))
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raw { event, umask } => write!(f, "{event:#04x}.{umask:#04x}"),
            named => {
                let name = NAMES.iter().find(|(_, event)| event == named);
                f.write_str(name.map_or("", |(name, _)| name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_and_raw_events_are_read() {
        assert_eq!("cycles".parse(), Ok(Event::Cycles));
        assert_eq!("0xc4.0x00".parse(), Ok(Event::Raw { event: 0xc4, umask: 0 }));
        for bad in ["", "cycle", "0xc4", "c4.00", "0x+1.0x0", "0x10000.0x0"] {
            let error = bad.parse::<Event>().unwrap_err();
            assert!(error.to_string().contains(&alloc::format!("`{bad}`")), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(event: u16, umask: u16) {
            let raw = Event::Raw { event, umask };
            prop_assert_eq!(raw.to_string().parse(), Ok(raw));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,20}") {
            let _ = text.parse::<Event>();
        }
    }
}

//! What the files of the folder are called.
//!
//! Nothing is created on the stick and nothing changes its length: a file system like FAT is damaged when the power is cut
//! between two writes that belong together. The image brings files full of zeros ([`is_room`]). A report is written into one of
//! them, which changes the content alone, and when it has been read back the file is renamed, which is one write.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

/// What a file holds.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Kind {
    /// A whole report of a job of this stick.
    Report,
    /// The lines of a run that was cut off.
    Partial,
    /// A report that another image made.
    Foreign,
    /// Something that is not a report: half written when the power was cut, or with a wrong checksum.
    Damaged,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Report, Self::Partial, Self::Foreign, Self::Damaged];

    fn word(self) -> &'static str {
        match self {
            Self::Report => "REPORT",
            Self::Partial => "PARTIAL",
            Self::Foreign => "FOREIGN",
            Self::Damaged => "DAMAGED",
        }
    }
}

/// Name of a file.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Name {
    /// What it holds.
    pub kind: Kind,
    /// Year, month and day by the machine's clock.
    pub date: (u16, u8, u8),
    /// Number of the file on this stick, from 1.
    pub number: u32,
}

const ENDING: &str = ".jsonl";

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (year, month, day) = self.date;
        write!(f, "{}-{year:04}{month:02}{day:02}-{:04}{ENDING}", self.kind.word(), self.number)
    }
}

impl Name {
    /// Reads a file's name, in whatever case; `None` if it is none of these.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let upper = text.to_ascii_uppercase();
        let mut parts = upper.strip_suffix(&ENDING.to_ascii_uppercase())?.split('-');
        let word = parts.next()?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.word() == word)?;
        let (date, number) = (digits(parts.next()?)?, digits(parts.next()?)?);
        (parts.next().is_none() && date <= 99_999_999).then_some(())?;
        let date = ((date / 10_000) as u16, (date / 100 % 100) as u8, (date % 100) as u8);
        Some(Self { kind, date, number })
    }
}

/// What a report is called on a server, which gets those of many machines: with the network card's address after the number.
#[must_use]
pub fn on_server(name: Name, mac: [u8; 6]) -> String {
    let name = name.to_string();
    let mac: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{mac}{ENDING}", name.trim_end_matches(ENDING))
}

fn digits(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// The number of the next file, where there are those `names`.
#[must_use]
pub fn next_number<'a>(names: impl Iterator<Item = &'a str>) -> u32 {
    names.filter_map(Name::parse).map(|name| name.number).max().unwrap_or(0) + 1
}

/// Name of the file with room for a report, from 1.
#[must_use]
pub fn room(number: usize) -> String {
    format!("ROOM{number:02}.BIN")
}

/// Whether a file is one with room.
#[must_use]
pub fn is_room(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let number = upper.strip_prefix("ROOM").and_then(|rest| rest.strip_suffix(".BIN"));
    number.is_some_and(|number| digits(number).is_some())
}

/// What fills a file after the report: line ends, which readers pass over.
pub const FILL: u8 = b'\n';

/// The report of a file, without what fills it up.
#[must_use]
pub fn report(content: &[u8]) -> &[u8] {
    let end = content.iter().rposition(|byte| *byte != FILL).map_or(0, |last| last + 1);
    // The report's own last line end.
    let own = content.get(end) == Some(&FILL) && content[..end].ends_with(b"\r");
    &content[..end + usize::from(own)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_look_as_the_guide_says() {
        let name = Name { kind: Kind::Report, date: (2026, 11, 22), number: 7 };
        assert_eq!(name.to_string(), "REPORT-20261122-0007.jsonl");
        assert_eq!(Name::parse("report-20261122-0007.JSONL"), Some(name));
        let mac = [0x52, 0x54, 0, 0x12, 0x34, 0x56];
        assert_eq!(on_server(name, mac), "REPORT-20261122-0007-525400123456.jsonl");
        for other in [
            "REPORT-2026112-7.json",
            "README.TXT",
            "REPORT-x-1.jsonl",
            "REPORT-1-1-1.jsonl",
            "ROOM01.BIN",
        ] {
            assert_eq!(Name::parse(other), None, "{other}");
        }
        assert!(is_room("room01.bin") && is_room(&room(12)));
        assert!(!is_room("ROOMS.BIN") && !is_room("JOB.BIN"));
    }

    #[test]
    fn numbers_go_on() {
        let names =
            ["ROOM01.BIN", "REPORT-20261122-0007.jsonl", "DAMAGED-20261122-0009.jsonl", "x"];
        assert_eq!(next_number(names.into_iter()), 10);
        assert_eq!(next_number([].into_iter()), 1);
    }

    #[test]
    fn what_fills_a_file_is_no_part_of_the_report() {
        assert_eq!(report(b"{1}\r\n{2}\r\n\n\n\n"), b"{1}\r\n{2}\r\n");
        assert_eq!(report(b"{1}\r\n"), b"{1}\r\n");
        assert_eq!(report(b"{1}\n\n"), b"{1}");
        assert_eq!(report(b"\n\n"), b"");
    }

    proptest! {
        #[test]
        fn every_name_reads_back(kind in 0..4_usize, year in 0..10_000_u16, month in 0..100_u8, day in 0..100_u8, number: u32) {
            let name = Name { kind: Kind::ALL[kind], date: (year, month, day), number };
            prop_assert_eq!(Name::parse(&name.to_string()), Some(name));
        }

        #[test]
        fn no_name_makes_it_panic(name in "\\PC{0,40}") {
            let _ = (Name::parse(&name), is_room(&name));
        }
    }
}

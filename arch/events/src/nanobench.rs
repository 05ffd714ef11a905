//! nanoBench's counter configuration files, as an import.
//!
//! One entry a line: `EventNum.UMask[.CMSK=n][.AnyT][.EDG][.INV][.TakenAlone][.CTR=n][.MSR_3F6H=n]`
//! `[.MSR_PF=n][.MSR_RSP0=n][.MSR_RSP1=n] Name`. Event and unit mask are hexadecimal, the other
//! numbers decimal or with `0x`. Lines that are empty or start with `#` are skipped. User and
//! kernel mode are not part of the file: nanoBench has them as options, and the requests leave them
//! open.

use crate::parse::number::number;
use crate::parse::{ParseError, ParseErrorKind as Kind};
use crate::request::{Attributes, Base, Request};
use alloc::string::ToString;
use alloc::vec::Vec;

/// Reads a whole configuration file. The name of an entry becomes the request's label.
///
/// # Errors
/// The first entry that is not understood; its place counts from the beginning of the file.
pub fn import(text: &str) -> Result<Vec<Request>, ParseError> {
    let mut requests = Vec::new();
    let mut at = 0;
    for line in text.split('\n') {
        let trimmed = line.trim();
        if !trimmed.is_empty() && !trimmed.starts_with('#') {
            let start = at + line.len() - line.trim_start().len();
            requests.push(entry(trimmed, start)?);
        }
        at += line.len() + 1;
    }
    Ok(requests)
}

fn entry(line: &str, at: usize) -> Result<Request, ParseError> {
    let fail = |at, kind| Err(ParseError { at, kind });
    let (config, name) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let mut parts = Vec::new();
    let mut start = at;
    for part in config.split('.') {
        parts.push((start, part));
        start += part.len() + 1;
    }
    let [(event_at, event), (umask_at, umask), settings @ ..] = &parts[..] else {
        return fail(at, Kind::NanoBench("an entry starts with EventNum.UMask"));
    };
    let (Some(event), Some(umask)) = (hex(event), hex(umask)) else {
        let wrong = if hex(event).is_none() { event_at } else { umask_at };
        return fail(
            *wrong,
            Kind::NanoBench("event and unit mask are hexadecimal numbers without 0x"),
        );
    };
    let mut attributes = Attributes::default();
    for (at, setting) in settings {
        apply(&mut attributes, setting).map_err(|kind| ParseError { at: *at, kind })?;
    }
    let name = name.trim();
    if !name.is_empty() {
        attributes.label = Some(name.to_string());
    }
    Ok(Request {
        text: line.to_string(),
        at,
        pmu: None,
        base: Base::Code { event, umask },
        attributes,
    })
}

/// At most four hexadecimal digits.
fn hex(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_hexdigit());
    digits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

fn apply(attributes: &mut Attributes, setting: &str) -> Result<(), Kind> {
    let (key, value) = match setting.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (setting, None),
    };
    let once = |slot: &mut Option<bool>| match (slot.replace(true), value) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(Kind::NanoBench("AnyT, EDG, INV and TakenAlone take no value")),
        (Some(_), _) => Err(Kind::Twice(key.to_string())),
    };
    let parsed = || {
        let value = value.ok_or_else(|| Kind::MissingValue(key.to_string()))?;
        number(value)
            .ok_or_else(|| Kind::Number { name: key.to_string(), value: value.to_string() })
    };
    let numeric = |slot: &mut Option<u64>| match slot.replace(parsed()?) {
        None => Ok(()),
        Some(_) => Err(Kind::Twice(key.to_string())),
    };
    let mut offcore = |which| match attributes.offcore_rsp_at.replace((which, parsed()?)) {
        None => Ok(()),
        Some(_) => Err(Kind::Twice(key.to_string())),
    };
    match key.to_ascii_uppercase().as_str() {
        "ANYT" => once(&mut attributes.any_thread),
        "EDG" | "EDGE" => once(&mut attributes.edge),
        "INV" => once(&mut attributes.invert),
        "TAKENALONE" => once(&mut attributes.taken_alone),
        "CMSK" => numeric(&mut attributes.cmask),
        "CTR" => numeric(&mut attributes.counter),
        "MSR_3F6H" => numeric(&mut attributes.load_latency),
        "MSR_PF" => numeric(&mut attributes.frontend),
        "MSR_RSP0" => offcore(0),
        "MSR_RSP1" => offcore(1),
        _ => Err(Kind::NanoBench(
            "unknown setting; known are CMSK=, AnyT, EDG, INV, TakenAlone, CTR=, MSR_3F6H=, \
             MSR_PF=, MSR_RSP0=, MSR_RSP1=",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn n3_config_files_are_read() {
        let text = "# comment\n\n3C.00 CORE_CYCLES\r\n  C4.20.CMSK=1.INV.EDGE Taken jumps\n\
                    CD.01.MSR_3F6H=0x80.CTR=3.TakenAlone LAT\n\
                    B7.01.MSR_RSP0=0x10001 OCR\n0C1.00 ExRetCops\nC0.00\n\
                    C6.01.MSR_PF=0x11.AnyT";
        let requests = import(text).unwrap();
        let codes: Vec<_> = requests.iter().map(|r| r.base.clone()).collect();
        let code = |event, umask| Base::Code { event, umask };
        assert_eq!(
            codes,
            [
                code(0x3c, 0),
                code(0xc4, 0x20),
                code(0xcd, 1),
                code(0xb7, 1),
                code(0xc1, 0),
                code(0xc0, 0),
                code(0xc6, 1)
            ]
        );
        let label = |index: usize| requests[index].attributes.label.as_deref();
        assert_eq!(
            (label(0), label(1), label(5)),
            (Some("CORE_CYCLES"), Some("Taken jumps"), None)
        );
        let jumps = &requests[1].attributes;
        assert_eq!((jumps.cmask, jumps.invert, jumps.edge), (Some(1), Some(true), Some(true)));
        let latency = &requests[2].attributes;
        assert_eq!(latency.load_latency, Some(0x80));
        assert_eq!((latency.counter, latency.taken_alone), (Some(3), Some(true)));
        assert_eq!(requests[3].attributes.offcore_rsp_at, Some((0, 0x10001)));
        let frontend = &requests[6].attributes;
        assert_eq!((frontend.frontend, frontend.any_thread), (Some(0x11), Some(true)));
        assert_eq!(&text[requests[4].at..requests[4].at + 6], "0C1.00");
    }

    #[test]
    fn wrong_entries_are_named_with_their_place() {
        for (text, at, part) in [
            ("C4 x", 0, "EventNum.UMask"),
            ("# ok\nZZ.00 x", 5, "hexadecimal"),
            ("C4.0x20 x", 3, "hexadecimal"),
            ("12345.00 x", 0, "hexadecimal"),
            (".00 x", 0, "hexadecimal"),
            ("C4.20.INV=1 x", 6, "take no value"),
            ("C4.20.BLAH x", 6, "unknown setting"),
            ("C4.20.CMSK x", 6, "needs a value"),
            ("C4.20.CMSK=y x", 6, "not a number"),
            ("C4.20.INV.INV x", 10, "twice"),
            ("C4.20.MSR_RSP0=1.MSR_RSP1=2 x", 17, "twice"),
            ("msr_0xE01=0x20000000.msr_700=0x408F34 msr_706 LLC", 0, "hexadecimal"),
        ] {
            let error = import(text).expect_err(text);
            assert_eq!(error.at, at, "{text}: {error}");
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_file_panics(text in "([0-9A-F.=# \n]|CMSK|INV|CTR|MSR_RSP0|é|\\PC){0,60}") {
            if let Err(error) = import(&text) {
                prop_assert!(error.at <= text.len() && text.is_char_boundary(error.at));
            }
        }
    }
}

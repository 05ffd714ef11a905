//! Addresses at which counting starts and stops: `start-at` and `stop-at`.

use crate::job::workload::Assembled;
use iced_x86::{Decoder, DecoderOptions};
use protocol::bits::Bits;
use protocol::count::{GateAct, GatePoint};

/// What is wrong with an address, without the item's place.
type Wrong = String;

/// The address that `text` names: `task:label`, `task:label+8`, or `task:0x10`, which is counted from the beginning of the
/// task's body. With one task its name may be left out.
pub fn point(text: &str, act: GateAct, assembled: &Assembled) -> Result<GatePoint, Wrong> {
    let key = match act {
        GateAct::Start => "start-at",
        GateAct::Stop => "stop-at",
    };
    let tasks = &assembled.workload.tasks;
    let (index, place) = match (text.split_once(':'), &tasks[..]) {
        (Some((name, place)), _) => {
            let found = tasks.iter().position(|task| task.name == name.trim());
            (found.ok_or_else(|| format!("{key} `{text}`: there is no task `{name}`"))?, place)
        }
        (None, [_]) => (0, text),
        (None, _) => {
            return Err(format!("{key} `{text}`: which task's? Write it as `task:label`"));
        }
    };
    let (label, behind) = match place.rsplit_once('+') {
        Some((label, behind)) => (label.trim(), behind.trim()),
        None if place.trim().starts_with(|first: char| first.is_ascii_digit()) => {
            ("", place.trim())
        }
        None => (place.trim(), "0"),
    };
    let wrong = || format!("{key} `{text}`: `{behind}` is not a number of bytes");
    let behind = number(behind).ok_or_else(wrong)?;
    let task = &tasks[index];
    let labels = &assembled.symbols[index];
    let begin = match label {
        "" => task.init.len() as u64,
        _ => match labels.iter().find(|(name, _)| name == label) {
            Some((_, at)) => *at,
            None => {
                let elsewhere = tasks.iter().zip(&assembled.symbols);
                let mut elsewhere =
                    elsewhere.filter(|(_, labels)| labels.iter().any(|(name, _)| name == label));
                let hint = match (elsewhere.next(), &labels[..]) {
                    (Some((other, _)), _) => format!("; task `{}` has one", other.name),
                    (None, []) => "; it has no labels".to_string(),
                    (None, all) => {
                        let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
                        format!("; it has {}", names.join(", "))
                    }
                };
                return Err(format!(
                    "{key} `{text}`: task `{}` has no label `{label}`{hint}",
                    task.name
                ));
            }
        },
    };
    let offset = begin.saturating_add(behind);
    let code = [&task.init[..], &task.body].concat();
    if !begins_instruction(&code, task.bits, begin, offset) {
        return Err(format!("{key} `{text}`: no instruction begins there, so it is never reached"));
    }
    Ok(GatePoint { task: index as u16, offset, act })
}

/// Decimal, or hexadecimal behind 0x.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Whether code that is read from `begin` on has an instruction at `offset`. What lies beyond the code is not looked at: it
/// is refused elsewhere.
fn begins_instruction(code: &[u8], bits: Bits, begin: u64, offset: u64) -> bool {
    let Some(rest) = code.get(begin as usize..) else { return true };
    let mut decoder = Decoder::with_ip(u32::from(bits.number()), rest, begin, DecoderOptions::NONE);
    while decoder.can_decode() && decoder.ip() < offset {
        let _ = decoder.decode();
    }
    decoder.ip() == offset || offset >= code.len() as u64
}

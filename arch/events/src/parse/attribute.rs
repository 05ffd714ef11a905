//! Modifiers: perf's letters, libpfm4's keys and both spelled out, after a colon or between
//! slashes.

use super::ParseErrorKind as Kind;
use super::number::number;
use crate::request::Attributes;
use alloc::string::{String, ToString};

/// Where a modifier's value goes.
enum Field<'a> {
    Switch(&'a mut Option<bool>),
    Number(&'a mut Option<u64>),
    Level(&'a mut Option<u8>),
    /// A number that may be left out.
    Period(&'a mut Option<u64>),
    Offcore(u8, &'a mut Option<(u8, u64)>),
    Label(&'a mut Option<String>),
}

/// The field that a key names. Keys are compared without case.
fn field<'a>(attributes: &'a mut Attributes, key: &str) -> Option<Field<'a>> {
    use Field::{Label, Level, Number, Offcore, Period, Switch};
    Some(match key {
        "u" | "user" | "usr" => Switch(&mut attributes.user),
        "k" | "kernel" | "os" => Switch(&mut attributes.kernel),
        "precise" => Level(&mut attributes.precise),
        "e" | "edge" => Switch(&mut attributes.edge),
        "i" | "inv" | "invert" => Switch(&mut attributes.invert),
        "c" | "cmask" => Number(&mut attributes.cmask),
        "t" | "any" | "anythread" | "any_thread" => Switch(&mut attributes.any_thread),
        "eq" | "equal" => Switch(&mut attributes.equal),
        "pc" => Switch(&mut attributes.pin_control),
        "intx" | "in_tx" => Switch(&mut attributes.in_tx),
        "intxcp" | "in_tx_cp" => Switch(&mut attributes.in_tx_checkpointed),
        "umask" => Number(&mut attributes.umask),
        "ldlat" => Number(&mut attributes.load_latency),
        "retire_latency" => Period(&mut attributes.retire_latency),
        "fe" | "frontend" => Number(&mut attributes.frontend),
        "offcore_rsp" => Number(&mut attributes.offcore_rsp),
        "offcore_rsp_0" => Offcore(0, &mut attributes.offcore_rsp_at),
        "offcore_rsp_1" => Offcore(1, &mut attributes.offcore_rsp_at),
        "snoop_rsp" => Number(&mut attributes.snoop_rsp),
        "config1" => Number(&mut attributes.config1),
        "counter" => Number(&mut attributes.counter),
        "alone" | "taken_alone" => Switch(&mut attributes.taken_alone),
        "name" => Label(&mut attributes.label),
        _ => return None,
    })
}

/// Reads perf's letters (`u`, `k`, `p`, `e`, `i`, several in a row). Whether all of them are known.
fn letters(attributes: &mut Attributes, text: &str) -> Result<bool, Kind> {
    let lower = text.to_ascii_lowercase();
    if lower.is_empty() || !lower.bytes().all(|b| b"ukpei".contains(&b)) {
        return Ok(false);
    }
    for letter in ["u", "k", "e", "i"] {
        match lower.matches(letter).count() {
            0 => {}
            1 => set(attributes, letter, None)?,
            _ => return Err(Kind::Twice(letter.to_string())),
        }
    }
    match lower.matches('p').count() {
        0 => {}
        level @ 1..=3 if attributes.precise.is_none() => attributes.precise = Some(level as u8),
        _ => return Err(Kind::Twice("p".to_string())),
    }
    Ok(true)
}

fn set(attributes: &mut Attributes, key: &str, value: Option<&str>) -> Result<(), Kind> {
    fn once<T>(slot: &mut Option<T>, value: T, key: &str) -> Result<(), Kind> {
        if slot.replace(value).is_some() {
            return Err(Kind::Twice(key.to_string()));
        }
        Ok(())
    }
    let given = || value.ok_or_else(|| Kind::MissingValue(key.to_string()));
    let numeric = |text: &str| {
        number(text).ok_or_else(|| Kind::Number { name: key.to_string(), value: text.to_string() })
    };
    let out_of = |value| Kind::Switch { name: key.to_string(), value };
    match field(attributes, key) {
        None => Err(Kind::UnknownModifier(key.to_string())),
        Some(Field::Switch(slot)) => match value.map_or(Ok(1), numeric)? {
            on @ 0..=1 => once(slot, on == 1, key),
            other => Err(out_of(other)),
        },
        Some(Field::Period(slot)) => once(slot, value.map_or(Ok(0), numeric)?, key),
        Some(Field::Number(slot)) => once(slot, numeric(given()?)?, key),
        Some(Field::Level(slot)) => match numeric(given()?)? {
            level @ 0..=3 => once(slot, level as u8, key),
            value => Err(Kind::Number { name: key.to_string(), value: value.to_string() }),
        },
        Some(Field::Offcore(which, slot)) => once(slot, (which, numeric(given()?)?), key),
        Some(Field::Label(slot)) => once(slot, given()?.to_string(), key),
    }
}

/// Reads one modifier or term (`u`, `ukpp`, `c=3`, `any`, `in_tx_cp=1`) into `attributes`.
///
/// # Errors
/// [`Kind::UnknownModifier`] if the key is not known, others if its value is wrong or it was set
/// before.
pub(crate) fn apply(attributes: &mut Attributes, text: &str) -> Result<(), Kind> {
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (key.trim(), Some(value.trim())),
        None => (text.trim(), None),
    };
    if value.is_none() && letters(attributes, key)? {
        return Ok(());
    }
    match set(attributes, &key.to_ascii_lowercase(), value) {
        Err(Kind::UnknownModifier(_)) => Err(Kind::UnknownModifier(key.to_string())),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[&str]) -> Result<Attributes, Kind> {
        let mut attributes = Attributes::default();
        for text in texts {
            apply(&mut attributes, text)?;
        }
        Ok(attributes)
    }

    #[test]
    fn c8_letters_keys_and_words_mean_the_same() {
        let expected = Attributes {
            user: Some(true),
            precise: Some(2),
            edge: Some(true),
            invert: Some(true),
            cmask: Some(3),
            any_thread: Some(true),
            ..Attributes::default()
        };
        for texts in [
            &["upp", "e", "i", "c=3", "any"][..],
            &["u=1", "precise=2", "e=1", "i=1", "c=0x3", "t=1"],
            &["user", "pp", "edge", "inv=1", "cmask=3", "any=1"],
            &["UPPEI", "C=3", "ANY"],
        ] {
            assert_eq!(read(texts).as_ref(), Ok(&expected), "{texts:?}");
        }
    }

    #[test]
    fn c7_wrong_modifiers_are_named() {
        let error = |texts: &[&str]| read(texts).unwrap_err().to_string();
        assert!(error(&["q"]).contains("unknown modifier \"q\""));
        assert!(error(&["pppp"]).contains("p is given twice"));
        assert!(error(&["p", "pp"]).contains("p is given twice"));
        assert!(error(&["u", "user"]).contains("user is given twice"));
        assert!(error(&["c"]).contains("c needs a value"));
        assert!(error(&["c=x"]).contains("c is \"x\", which is not a number"));
        assert!(error(&["edge=2"]).contains("edge is 2; it must be 0 or 1"));
        assert!(error(&["precise=4"]).contains("precise is \"4\""));
    }
}

//! A report whose texts a terminal can show.
//!
//! Names come from a job that somebody else may have written, and everything else from a machine that may be damaged
//! or hostile. JSON is made from the report as it came, and escapes.

use crate::collect::{Numbered, Report};
use crate::context::Context;
use crate::metrics::ItemMetrics;
use crate::text::{is_order, printable_lines};
use protocol::record::Record;
use serde_json::Value;
use std::borrow::Cow;

/// The report with what a terminal would obey spelt out. Most have nothing of the kind.
pub(crate) fn report(report: &Report) -> Cow<'_, Report> {
    let mut clean = Cow::Borrowed(report);
    for (index, numbered) in report.records.iter().enumerate() {
        if let Some(record) = record(&numbered.record) {
            clean.to_mut().records[index] = Numbered { seq: numbered.seq, record };
        }
    }
    clean
}

/// The same for what the host adds.
pub(super) fn context(context: &Context) -> Context {
    let clean = |text: &String| printable_lines(text).into_owned();
    Context {
        complaint: context.complaint.as_ref().map(clean),
        backtrace: context.backtrace.iter().map(clean).collect(),
        items: context.items.iter().map(clean).collect(),
        metrics: metrics(&context.metrics),
        ..context.clone()
    }
}

/// Metrics have names of items, and a machine's reasons.
fn metrics(metrics: &[ItemMetrics]) -> Vec<ItemMetrics> {
    let mut value = serde_json::to_value(metrics).expect("metrics serialise");
    match change(&mut value) {
        true => serde_json::from_value(value).expect("metrics with other texts"),
        false => metrics.to_vec(),
    }
}

/// The record with clean texts, if it has others.
fn record(record: &Record) -> Option<Record> {
    let mut value = serde_json::to_value(record).expect("records serialise");
    // A record that was damaged so that it does not read again would be none: texts are all that changes.
    change(&mut value).then(|| serde_json::from_value(value).expect("a record with other texts"))
}

/// Whether something in `value` had to be changed.
pub(crate) fn change(value: &mut Value) -> bool {
    match value {
        Value::String(text) if text.contains(is_order) => {
            let clean = printable_lines(text);
            let differs = matches!(clean, Cow::Owned(_));
            *text = clean.into_owned();
            differs
        }
        Value::Array(list) => list.iter_mut().fold(false, |any, one| change(one) | any),
        Value::Object(fields) => fields.values_mut().fold(false, |any, one| change(one) | any),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::Format;
    use crate::collect::{Foreign, Numbered, Report};
    use crate::context::Context;
    use crate::render::render;
    use crate::text::is_order;
    use protocol::record::Registers;

    /// A value is changed where something in it had to be, also if that is not the last of it; what lines are made of is no order.
    #[test]
    fn only_what_a_terminal_would_obey_changes_a_value() {
        let changed = |text: &str| {
            let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
            (super::change(&mut value), value.to_string())
        };
        let spelt = r#"["\\u{7}","b"]"#;
        assert_eq!(changed(r#"["\u0007","b"]"#), (true, spelt.to_string()));
        assert!(changed(r#"["\u0007","\u0007"]"#).0, "two are one more");
        let plain = r#"{"a":["two\nlines",7],"b":"ä"}"#;
        assert_eq!(changed(plain), (false, plain.to_string()));
    }

    #[test]
    fn names_of_items_are_clean_too() {
        let context = Context { items: vec!["a\u{7}".to_string()], ..Context::default() };
        assert_eq!(super::context(&context).items, ["a\\u{7}"]);
    }

    /// In each kind of text: a name, an event, a message, another system's, a complaint.
    #[test]
    fn no_escape_sequence_reaches_a_terminal_in_any_form() {
        let evil = "a\u{1b}[2Jb\u{9b}31mc\u{202e}d\u{7}\re";
        let json = |text: &str| serde_json::to_string(text).unwrap();
        let bad = json(evil);
        let metric = format!(
            r#"{{"event":{bad},"median":1.5,"min":1.0,"mean":1.0,"max":2.0,"deterministic":false,
            "series":[{{"min":1,"max":2,"distinct":2}},{{"min":1,"max":2,"distinct":2}}]}}"#
        );
        let records = [
            format!(
                r#"{{"type":"result","item":0,"name":{bad},"verdict":"none","per":1,"runs":1,"metrics":[{metric}],
                "restored":[{bad}],"uncounted":[{{"event":{bad},"reason":{bad}}}],"tsc":[0,1]}}"#
            ),
            format!(
                r#"{{"type":"check","item":1,"name":{bad},"verdict":"fail","expected":{bad},"seen":{bad},"source":{bad}}}"#
            ),
            format!(
                r#"{{"type":"error","code":"snippet_lost","item":2,"name":{bad},"text":{bad}}}"#
            ),
            format!(
                r#"{{"type":"crash","kind":"panic","text":{bad},"registers":{},"backtrace":[],"tsc":[0,1]}}"#,
                serde_json::to_string(&Registers::default()).unwrap()
            ),
        ];
        let record = |text: &String| {
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
        };
        let records = records.iter().map(record);
        let records = (0..).zip(records).map(|(seq, record)| Numbered { seq, record }).collect();
        let foreign = vec![Foreign { line: 1, text: evil.to_string() }];
        let report = Report { records, foreign, ..Report::default() };
        let context = Context {
            complaint: Some(evil.to_string()),
            backtrace: vec![evil.to_string()],
            pmu_said: vec![evil.to_string()],
            items: vec![evil.to_string(); 4],
            source: evil.to_string(),
            ..Context::default()
        };
        for format in [Format::Table, Format::Json, Format::Tap, Format::Csv] {
            let styled = render(&report, &context, format);
            // The only escape sequences are those of our own styles, which are whole: `ESC [ digits m`.
            let own = anstream::adapter::strip_str(&styled).to_string();
            let left: Vec<char> = own.chars().filter(|c| is_order(*c) && *c != '\n').collect();
            assert!(left.is_empty(), "{left:?} in {format:?}: {own:?}");
            assert!(!styled.contains("\u{1b}[2J"), "{format:?}: {styled:?}");
            let spelt = if format == Format::Json {
                "a\\u001b[2Jb\\u009b31m"
            } else {
                "a\\u{1b}[2Jb\\u{9b}31m"
            };
            assert!(own.contains(spelt), "{format:?} loses the text: {own:?}");
        }
        let text = render(&report, &context, Format::Json);
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["records"][0]["name"], evil, "JSON keeps what came");
    }
}

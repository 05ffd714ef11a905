//! A test point and what it says about itself.

use crate::primitives::number;
use protocol::record::Uncounted;
use std::fmt::{Display, Write};

/// Keys with values, in order, as YAML takes them.
#[derive(Default)]
pub(crate) struct Data(Vec<(&'static str, String)>);

impl Data {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A text, in quotes: JSON's are YAML's (YAML 1.2, 1.2).
    pub(crate) fn text(self, key: &'static str, text: &str) -> Self {
        self.plain(key, serde_json::to_string(text).expect("text serialises"))
    }

    /// A figure.
    pub(crate) fn number(self, key: &'static str, value: f64) -> Self {
        self.plain(key, number(value))
    }

    /// A figure; joules of an execution are so few that three decimals leave nothing of them.
    pub(crate) fn measured(self, key: &'static str, value: f64, is_energy: bool) -> Self {
        if is_energy { self.plain(key, value) } else { self.number(key, value) }
    }

    /// What stands for itself: a whole number, `true`, `~`.
    pub(crate) fn plain(mut self, key: &'static str, value: impl Display) -> Self {
        self.0.push((key, value.to_string()));
        self
    }
}

/// What stands after a result.
enum Directive {
    Skip(String),
    Todo(String),
}

/// A test point.
pub(crate) struct Point {
    name: String,
    passed: bool,
    directive: Option<Directive>,
    data: Data,
    lists: Vec<(&'static str, Vec<Data>)>,
}

impl Point {
    pub(crate) fn new(name: &str, passed: bool) -> Self {
        let name = name.to_string();
        Self { name, passed, directive: None, data: Data::new(), lists: Vec::new() }
    }

    /// It did not come to what was expected.
    pub(crate) fn fail(&mut self) {
        self.passed = false;
    }

    /// It was not run.
    pub(crate) fn skip(mut self, reason: &str) -> Self {
        self.directive = Some(Directive::Skip(reason.to_string()));
        self
    }

    /// It is known to fail: harnesses do not count it.
    pub(crate) fn todo(mut self, reason: &str) -> Self {
        self.directive = Some(Directive::Todo(reason.to_string()));
        self
    }

    /// Adds one text.
    pub(crate) fn text(mut self, key: &'static str, text: &str) -> Self {
        self.data = self.data.text(key, text);
        self
    }

    /// Adds an entry to a list.
    pub(crate) fn push(&mut self, list: &'static str, data: Data) {
        match self.lists.iter_mut().find(|(key, _)| *key == list) {
            Some((_, entries)) => entries.push(data),
            None => self.lists.push((list, vec![data])),
        }
    }

    /// Adds what was requested and not counted.
    pub(crate) fn uncounted(mut self, all: &[Uncounted]) -> Self {
        for one in all {
            let data = Data::new().text("event", &one.event).text("reason", &one.reason);
            self.push("uncounted", data);
        }
        self
    }

    /// Writes the point and its block, if it has anything to say.
    pub(crate) fn write(&self, out: &mut String, number: u32) {
        let verdict = if self.passed { "ok" } else { "not ok" };
        let description = in_one_line(&self.name);
        let directive = match &self.directive {
            None => String::new(),
            Some(Directive::Skip(reason)) => format!(" # SKIP {}", in_one_line(reason)),
            Some(Directive::Todo(reason)) => format!(" # TODO {}", in_one_line(reason)),
        };
        // Writing to a String does not fail, here and below.
        let _ = writeln!(out, "{verdict} {number} - {description}{directive}");
        let name = (description != self.name).then(|| Data::new().text("name", &self.name));
        let own: Vec<&(&str, String)> =
            name.iter().chain([&self.data]).flat_map(|d| &d.0).collect();
        if own.is_empty() && self.lists.is_empty() {
            return;
        }
        out.push_str("  ---\n");
        for (key, value) in own {
            let _ = writeln!(out, "  {key}: {value}");
        }
        for (key, entries) in &self.lists {
            let _ = writeln!(out, "  {key}:");
            for (index, (key, value)) in entries.iter().flat_map(|entry| entry.0.iter().enumerate())
            {
                let mark = if index == 0 { '-' } else { ' ' };
                let _ = writeln!(out, "    {mark} {key}: {value}");
            }
        }
        out.push_str("  ...\n");
    }
}

/// A text as a description or reason: in one line, without what would begin a directive or an escape. The letters that
/// look like these are in their places.
fn in_one_line(text: &str) -> String {
    one_line(text).replace('#', "\u{ff03}").replace('\\', "\u{ff3c}")
}

pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

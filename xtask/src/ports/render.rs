//! What was found, in words.

use super::throughput::Set;
use super::{Untold, Usage};
use serde::Serialize;

/// The ports of an instruction, or why they are not told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// `1*p0156+1*p23` by events, `1*A+1*B` by throughput with the sets below; empty for an instruction that takes no port. Missing where
    /// it is not told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<String>,
    /// `events` or `throughput`.
    pub by: &'static str,
    /// The sets that have no numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<SetOfPorts>,
    /// Why it is not told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A set of ports of which the number is known, not which ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SetOfPorts {
    /// Its name.
    pub name: String,
    /// How many ports it has.
    pub ports: u32,
    /// An instruction that has these ports.
    pub form: String,
    /// Names of the sets that lie within it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contains: Vec<String>,
}

/// The name of the n-th set.
pub(super) fn name_of(index: usize) -> String {
    let letter = char::from(b'A' + (index % 26) as u8);
    if index < 26 { letter.to_string() } else { format!("{letter}{}", index / 26) }
}

impl Found {
    /// By events of these ports, named as in `0` or `23`.
    #[must_use]
    pub fn by_events(told: Result<Usage, Untold>, names: &[String]) -> Self {
        let usage = told.map(|usage| {
            let of = |(count, ports): &(u32, u32)| {
                let mut text = format!("{count}*p");
                let named = names.iter().enumerate().filter(|(port, _)| ports >> port & 1 != 0);
                named.for_each(|(_, name)| text += name);
                text
            };
            let mut parts: Vec<String> = usage.0.iter().map(of).collect();
            parts.sort_unstable_by(|one, other| one[1..].cmp(&other[1..]));
            parts.join("+")
        });
        Self::of(usage, "events", Vec::new())
    }

    /// By throughput.
    #[must_use]
    pub fn by_throughput(
        told: Result<Vec<(u32, usize)>, Untold>,
        sets: &[Set],
        forms: &[&str],
    ) -> Self {
        let used = match &told {
            Ok(usage) => usage.iter().map(|(_, set)| *set).collect(),
            Err(_) => Vec::new(),
        };
        let shown = used.iter().map(|index| {
            let set = &sets[*index];
            let contains = set.contains.iter().map(|inner| sets[*inner].name.clone()).collect();
            let form = forms[set.forms[0]].to_string();
            SetOfPorts { name: set.name.clone(), ports: set.ports, form, contains }
        });
        let usage = told.map(|usage| {
            let parts = usage.iter().map(|(count, set)| format!("{count}*{}", sets[*set].name));
            parts.collect::<Vec<_>>().join("+")
        });
        Self::of(usage, "throughput", shown.collect())
    }

    fn of(usage: Result<String, Untold>, by: &'static str, sets: Vec<SetOfPorts>) -> Self {
        let (usage, reason) = match usage {
            Ok(usage) => (Some(usage), None),
            Err(why) => (None, Some(why.to_string())),
        };
        Self { usage, by, sets, reason }
    }

    /// For people: the usage with what its sets are, or the reason.
    #[must_use]
    pub fn text(&self) -> String {
        let Some(usage) = &self.usage else {
            return format!("not told: {}", self.reason.as_deref().unwrap_or_default());
        };
        let set = |set: &SetOfPorts| {
            let ports = if set.ports == 1 { "port" } else { "ports" };
            let inner = match set.contains.is_empty() {
                true => String::new(),
                false => format!(", {} within", set.contains.join(" and ")),
            };
            format!("{}: {} {ports} as of {}{inner}", set.name, set.ports, set.form)
        };
        match (usage.is_empty(), self.sets.is_empty()) {
            (true, _) => "none".to_string(),
            (_, true) => usage.clone(),
            _ => {
                let sets = self.sets.iter().map(set).collect::<Vec<_>>().join("; ");
                format!("{usage} ({sets})")
            }
        }
    }
}

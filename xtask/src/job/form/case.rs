//! What one item made of a form measures, as its name says it. The name is all that goes to the machine and comes back,
//! so a report can be read without its job.

use std::fmt;
use std::str::FromStr;

/// One measurement of a form.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Case {
    /// The form.
    pub form: String,
    /// What is measured.
    pub kind: Kind,
    /// What the code makes independent by writing it anew: operands by number, registers, `flags`.
    pub breaking: Vec<String>,
}

/// What is measured.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Kind {
    /// From a source to a destination: operands by number, `address`, `memory`, `flags` or a register.
    Latency {
        /// What is waited for.
        from: String,
        /// What is ready then.
        to: String,
        /// Forms that lead from there back, each once in the chain.
        back: Vec<String>,
    },
    /// A chain in which all operands of the destination's kind are one register.
    SameRegister,
    /// So many instructions that do not wait for each other.
    Throughput {
        /// Instructions of the form in the body.
        copies: u32,
        /// Forms of which each has one instruction beside each of them, without which the form cannot be repeated.
        with: Vec<String>,
    },
    /// Its micro-operations by port: so many instructions of it, each `row` of them behind those that keep ports busy.
    Ports {
        /// Instructions of the form in the body.
        copies: u32,
        /// Instructions of it in a row.
        row: u32,
        /// How many blocking instructions stand before them, and of which form; `None`: it is alone.
        behind: Option<(u32, String)>,
    },
}

const LATENCY: &str = "latency: ";
const THROUGHPUT: &str = "throughput: ";
const SAME: &str = "one register: ";
const PORTS: &str = "ports: ";
const BACK: &str = "back: ";
const BREAKING: &str = "breaking ";
const WITH: &str = "with ";
const BEHIND: &str = "behind ";
const ROW: &str = "in rows of ";

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = &self.form;
        match &self.kind {
            Kind::Latency { from, to, back } => {
                write!(f, "{LATENCY}{form} ({from} -> {to}")?;
                if !back.is_empty() {
                    write!(f, "; {BACK}{}", back.join(" + "))?;
                }
            }
            Kind::SameRegister => write!(f, "{SAME}{form} (1 -> 1")?,
            Kind::Throughput { copies, with } => {
                write!(f, "{THROUGHPUT}{form} ({copies} apart")?;
                if !with.is_empty() {
                    write!(f, "; {WITH}{}", with.join(" + "))?;
                }
            }
            Kind::Ports { copies, row, behind } => {
                write!(f, "{PORTS}{form} ({copies} apart")?;
                if *row > 1 {
                    write!(f, "; {ROW}{row}")?;
                }
                if let Some((count, form)) = behind {
                    write!(f, "; {BEHIND}{count} {form}")?;
                }
            }
        }
        if !self.breaking.is_empty() {
            write!(f, "; {BREAKING}{}", self.breaking.join(", "))?;
        }
        f.write_str(")")
    }
}

impl FromStr for Case {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let starts = [LATENCY, THROUGHPUT, SAME, PORTS];
        let start = starts.into_iter().find(|start| name.starts_with(start)).ok_or(())?;
        let (rest, is_latency) = (&name[start.len()..], start == LATENCY);
        let (form, rest) =
            rest.strip_suffix(')').and_then(|rest| rest.split_once(" (")).ok_or(())?;
        let mut parts = rest.split("; ");
        let head = parts.next().ok_or(())?;
        let (mut back, mut with, mut breaking) = (Vec::new(), Vec::new(), Vec::new());
        let mut behind = None;
        let mut row = 1;
        for part in parts {
            if let Some(forms) = part.strip_prefix(BACK).filter(|_| is_latency) {
                back = forms.split(" + ").map(String::from).collect();
            } else if let Some(forms) = part.strip_prefix(WITH).filter(|_| start == THROUGHPUT) {
                with = forms.split(" + ").map(String::from).collect();
            } else if let Some(block) = part.strip_prefix(BEHIND).filter(|_| start == PORTS) {
                let (count, form) = block.split_once(' ').ok_or(())?;
                behind = Some((count.parse().map_err(|_| ())?, form.to_string()));
            } else if let Some(many) = part.strip_prefix(ROW).filter(|_| start == PORTS) {
                row = many.parse().map_err(|_| ())?;
            } else {
                let things = part.strip_prefix(BREAKING).ok_or(())?;
                breaking = things.split(", ").map(String::from).collect();
            }
        }
        let kind = if is_latency {
            let (from, to) = head.split_once(" -> ").ok_or(())?;
            Kind::Latency { from: from.to_string(), to: to.to_string(), back }
        } else if start == SAME {
            Kind::SameRegister
        } else {
            let copies = head.strip_suffix(" apart").and_then(|copies| copies.parse().ok());
            let copies = copies.filter(|&copies| copies > 0).ok_or(())?;
            if start == PORTS {
                Kind::Ports { copies, row, behind }
            } else {
                Kind::Throughput { copies, with }
            }
        };
        let case = Self { form: form.to_string(), kind, breaking };
        // Whatever is written otherwise is a name that somebody else gave.
        if case.to_string() == name { Ok(case) } else { Err(()) }
    }
}

impl Case {
    /// Instructions of the form in one execution of the body.
    #[must_use]
    pub fn copies(&self) -> u32 {
        match self.kind {
            Kind::Latency { .. } | Kind::SameRegister => 1,
            Kind::Throughput { copies, .. } | Kind::Ports { copies, .. } => copies,
        }
    }
}

impl Case {
    /// The pair of a latency as `1 -> 2`, `throughput`, `one register` or `ports`.
    #[must_use]
    pub fn what(&self) -> String {
        match &self.kind {
            Kind::Latency { from, to, .. } => format!("{from} -> {to}"),
            Kind::SameRegister => "one register".to_string(),
            Kind::Throughput { .. } => "throughput".to_string(),
            Kind::Ports { .. } => "ports".to_string(),
        }
    }

    /// Whether it is a chain of the form alone, and so shows what the form adds to another chain that it leads back in.
    /// A load waits for a store's data there, which its latency from the address does not tell.
    #[must_use]
    pub fn tells_way_back(&self) -> bool {
        let Kind::Latency { from, to, back } = &self.kind else { return false };
        let loads = from == "address" && !self.form.starts_with("lea ");
        back.is_empty() && !loads && from != "memory" && to != "memory"
    }
}

//! The layout of uops.info's file: an element for each form, with its operands, and in it one for the microarchitecture
//! with the measurement. OSACA's importer reads it. uiCA looks forms up by the iforms of Intel's XED, which are not here.

use crate::forms::Latency;
use crate::instructions::{Line, Table};
use crate::job::form::catalog::Entry;
use crate::job::form::operand::{self, Described, What};
use quick_xml::Writer;
use quick_xml::events::{BytesEnd, BytesStart, BytesText, Event};
use std::io;

type Out = Writer<Vec<u8>>;

/// A latency this near to a whole number is one: what is left is the start of the chain.
const WHOLE: f64 = 0.1;

/// Renders it: the measured forms of the catalog. `architecture` is what the measurements are said to be of, such as `SKL`.
#[must_use]
pub fn xml(table: &Table, catalog: &[Entry], architecture: &str) -> String {
    let mut out = Writer::new_with_indent(Vec::new(), b' ', 2);
    // Writing to memory does not fail.
    write(&mut out, table, catalog, architecture).expect("writing to memory does not fail");
    let mut text = String::from_utf8(out.into_inner()).expect("the parts are text");
    text.push('\n');
    text
}

fn write(out: &mut Out, table: &Table, catalog: &[Entry], architecture: &str) -> io::Result<()> {
    out.write_event(Event::Start(BytesStart::new("root")))?;
    let mut measured: Vec<(&Line, &Entry)> = table
        .lines
        .iter()
        .zip(catalog)
        .filter(|(line, entry)| line.has_figures() && line.form == entry.name)
        .collect();
    measured.sort_by(|one, other| one.0.extension.cmp(&other.0.extension));
    for group in measured.chunk_by(|one, other| one.0.extension == other.0.extension) {
        let mut extension = BytesStart::new("extension");
        extension.push_attribute(("name", group[0].0.extension.as_str()));
        out.write_event(Event::Start(extension))?;
        for (line, entry) in group {
            instruction(out, line, entry, architecture)?;
        }
        out.write_event(Event::End(BytesEnd::new("extension")))?;
    }
    out.write_event(Event::End(BytesEnd::new("root")))
}

fn instruction(out: &mut Out, line: &Line, entry: &Entry, architecture: &str) -> io::Result<()> {
    let Some(operands) = operand::describe(entry) else { return Ok(()) };
    let asm = entry.mnemonic();
    let classes = operands.iter().filter(|one| !one.suppressed).map(|one| one.class.as_str());
    let classes = classes.collect::<Vec<_>>().join(", ");
    let text = if classes.is_empty() { asm.clone() } else { format!("{asm} ({classes})") };
    let mut start = BytesStart::new("instruction");
    start.push_attribute(("asm", asm.as_str()));
    start.push_attribute(("string", text.as_str()));
    start.push_attribute(("extension", line.extension.as_str()));
    start.push_attribute(("isa-set", line.extension.as_str()));
    start.push_attribute(("encoding", line.encoding.as_str()));
    if entry.is_locked() {
        start.push_attribute(("locked", "1"));
    }
    out.write_event(Event::Start(start))?;
    for operand in &operands {
        operand_element(out, operand)?;
    }
    let mut start = BytesStart::new("architecture");
    start.push_attribute(("name", architecture));
    out.write_event(Event::Start(start))?;
    measurement(out, line, &operands)?;
    out.write_event(Event::End(BytesEnd::new("architecture")))?;
    out.write_event(Event::End(BytesEnd::new("instruction")))
}

fn operand_element(out: &mut Out, operand: &Described) -> io::Result<()> {
    let mut start = BytesStart::new("operand");
    let index = operand.index.to_string();
    start.push_attribute(("idx", index.as_str()));
    start.push_attribute(("name", operand.name.as_str()));
    let kind = match operand.what {
        What::Register => "reg",
        What::Memory => "mem",
        What::AddressOnly => "agen",
        What::Immediate => "imm",
        What::Flags => "flags",
    };
    start.push_attribute(("type", kind));
    let width = operand.bits.to_string();
    if operand.bits > 0 {
        start.push_attribute(("width", width.as_str()));
    }
    for (given, name) in [(operand.read, "r"), (operand.written, "w")] {
        if given {
            start.push_attribute((name, "1"));
        }
    }
    if operand.suppressed {
        start.push_attribute(("suppressed", "1"));
    }
    for (flag, access) in &operand.flags {
        start.push_attribute((flag.as_str(), *access));
    }
    if operand.registers.is_empty() {
        return out.write_event(Event::Empty(start));
    }
    let end = start.to_end().into_owned();
    out.write_event(Event::Start(start))?;
    out.write_event(Event::Text(BytesText::new(&operand.registers.join(","))))?;
    out.write_event(Event::End(end))
}

fn measurement(out: &mut Out, line: &Line, operands: &[Described]) -> io::Result<()> {
    let mut start = BytesStart::new("measurement");
    let (mut rate, mut uops) = (String::new(), String::new());
    if let Some(throughput) = &line.throughput {
        rate = format!("{:.2}", throughput.value);
        let counted = throughput.events.iter().find(|(name, _)| operand::counts_uops(name));
        uops = counted.map(|(_, count)| count.round().to_string()).unwrap_or_default();
    }
    for (name, value) in [("TP_unrolled", &rate), ("TP", &rate), ("uops", &uops)] {
        if !value.is_empty() {
            start.push_attribute((name, value.as_str()));
        }
    }
    // Sets without numbers are not ports to its readers.
    let ports = line.ports.as_ref().filter(|found| found.by == "events");
    if let Some(usage) = ports.and_then(|found| found.usage.as_ref()) {
        start.push_attribute(("ports", usage.as_str()));
        if uops.is_empty() {
            let count = |part: &str| part.split_once('*')?.0.parse::<u32>().ok();
            let uops: u32 = usage.split('+').filter_map(count).sum();
            start.push_attribute(("uops", uops.to_string().as_str()));
        }
    }
    if line.latency.is_empty() {
        return out.write_event(Event::Empty(start));
    }
    out.write_event(Event::Start(start))?;
    for latency in &line.latency {
        let index = |name: &str| operand::index_of(operands, name);
        let (Some(from), Some(to)) = (index(&latency.from), index(&latency.to)) else { continue };
        let same = line.same_register.filter(|_| (from, to) == (1, 1));
        latency_element(out, latency, (from, to), same)?;
    }
    out.write_event(Event::End(BytesEnd::new("measurement")))
}

fn latency_element(
    out: &mut Out,
    latency: &Latency,
    (from, to): (usize, usize),
    same_register: Option<f64>,
) -> io::Result<()> {
    let mut start = BytesStart::new("latency");
    let (from, to) = (from.to_string(), to.to_string());
    start.push_attribute(("start_op", from.as_str()));
    start.push_attribute(("target_op", to.as_str()));
    let suffix = match latency.from.as_str() {
        "address" => "_addr",
        "memory" => "_mem",
        _ => "",
    };
    let value = latency.value;
    let figures = if (value - value.round()).abs() <= WHOLE {
        vec![(format!("cycles{suffix}"), value.round())]
    } else {
        vec![
            (format!("min_cycles{suffix}"), value.floor()),
            (format!("max_cycles{suffix}"), value.ceil()),
        ]
    };
    for (name, value) in &figures {
        start.push_attribute((name.as_str(), value.to_string().as_str()));
    }
    if let Some(value) = same_register {
        start.push_attribute(("cycles_same_reg", value.round().to_string().as_str()));
    }
    if latency.at_most {
        let name = format!("cycles{suffix}_is_upper_bound");
        start.push_attribute((name.as_str(), "1"));
    }
    out.write_event(Event::Empty(start))
}

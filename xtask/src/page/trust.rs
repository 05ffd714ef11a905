//! How far the figures of a run can be trusted, in plain words.

use crate::document::Document;
use crate::kinds;
use html_report::model::{Tone, Trust};
use protocol::record::Machine;

fn label(tone: Tone, head: impl Into<String>, text: impl Into<String>) -> Trust {
    Trust { tone, head: head.into(), text: text.into() }
}

/// All labels of a run, the most important first.
pub(super) fn of(document: &Document) -> Vec<Trust> {
    let machine = document.report.machine();
    let mut all = vec![whole(document)];
    all.push(where_it_ran(document, machine));
    all.extend(machine.and_then(counts));
    all.extend(machine.and_then(faults));
    all.extend(repeated(document));
    all.extend(authentication(document));
    all
}

/// Whether everything that the machine wrote has come.
fn whole(document: &Document) -> Trust {
    let problems = document.report.disputes.len();
    if document.report.end().is_none() {
        let text =
            "The machine's report is incomplete: it shows what was measured before it ended.";
        return label(Tone::Bad, "Report incomplete", text);
    }
    match problems {
        0 => label(
            Tone::Good,
            "Report complete",
            "Every line of the machine's report arrived, in order and with the right checksum.",
        ),
        _ => label(
            Tone::Bad,
            "Report in doubt",
            format!("{problems} things are wrong with it: see the notes."),
        ),
    }
}

fn where_it_ran(document: &Document, machine: Option<&Machine>) -> Trust {
    match (document.run.accelerator.as_deref(), document.run.ticks_per_instruction) {
        (Some("tcg"), Some(1)) => label(
            Tone::Good,
            "Exact, and not time",
            "QEMU's translator ran the code with a clock that counts instructions: one tick is one instruction, and every run \
             gives the same. No figure here says how long anything takes on a processor.",
        ),
        (Some("tcg"), Some(ticks)) => label(
            Tone::Good,
            "Exact, and not time",
            format!(
                "QEMU's translator ran the code with a clock that counts instructions: {ticks} ticks for each, and every run gives \
                 the same. No figure here says how long anything takes on a processor."
            ),
        ),
        (Some("tcg"), None) => label(
            Tone::Warn,
            "Times of a translator",
            "QEMU's translator ran the code, and the clock was the host's: ticks show how fast the translator is, and nothing about a \
             processor.",
        ),
        (Some(_), _) => label(
            Tone::Warn,
            "A virtual machine on the host's processor",
            "The processor itself ran the code, under a hypervisor: exits to it, and other work of the host, are in the ticks.",
        ),
        (None, _) => match machine.and_then(|machine| machine.hypervisor.as_ref()) {
            Some(name) => label(
                Tone::Warn,
                "A machine with a hypervisor below",
                format!(
                    "{name} runs between the code and the processor: its time is included in the ticks."
                ),
            ),
            None if machine.is_some() => label(
                Tone::Good,
                "The machine itself",
                "The code ran on bare metal, with nothing else on the processor.",
            ),
            None => label(Tone::Warn, "Machine unknown", "The report does not say what it ran on."),
        },
    }
}

/// Whose counts they are.
fn counts(machine: &Machine) -> Option<Trust> {
    if machine.emulated_pmu.is_some() {
        return Some(label(
            Tone::Warn,
            "Counts of an emulated PMU",
            "Instructions, branches and accesses are counted exactly. A cycle is an instruction here, and caches, TLB and predictor \
             are a small model: their counts are not those of the processor that the PMU is named for.",
        ));
    }
    let whose = machine.virtual_pmu.as_ref().filter(|_| machine.pmu.is_some());
    if let Some(whose) = whose {
        return Some(label(
            Tone::Warn,
            "Counts of a virtual PMU",
            format!(
                "{whose} passes the processor's counters through. It counts some of the instructions that it emulates, delivers overflows late, and \
                 may take counters away. The PMU was tried before anything was measured; what failed is not used."
            ),
        ));
    }
    Some(match &machine.pmu {
        Some(_) => label(
            Tone::Good,
            "Counts of the processor's own PMU",
            "It was tried before anything was measured; what failed is not used.",
        ),
        None => {
            let why = machine.pmu_absent.as_deref().unwrap_or("the report has no reason");
            label(Tone::Warn, "No PMU", format!("Only the time stamp counter was read: {why}."))
        }
    })
}

fn faults(machine: &Machine) -> Option<Trust> {
    let pmu = machine.pmu.as_ref()?;
    let wrong: Vec<&str> = pmu.faults.iter().chain(&pmu.conflicts).map(String::as_str).collect();
    if !wrong.is_empty() {
        return Some(label(Tone::Bad, "The PMU does not do what it announces", wrong.join("; ")));
    }
    (!pmu.errata.is_empty()).then(|| label(Tone::Warn, "Known errata", pmu.errata.join("; ")))
}

/// How many figures were the same in every run.
fn repeated(document: &Document) -> Option<Trust> {
    let results = document.report.records.iter().filter_map(|one| kinds::shown(&one.record));
    let metrics = results.flat_map(|result| result.metrics());
    let (mut all, mut equal) = (0_usize, 0_usize);
    for metric in metrics {
        all += 1;
        equal += usize::from(metric.deterministic);
    }
    Some(match (all, all - equal) {
        (0, _) => return None,
        (_, 0) => label(
            Tone::Good,
            "Repeatable",
            format!("Each of {all} measured figures was the same in all of its runs."),
        ),
        (_, vary) => label(
            Tone::Plain,
            "Some figures vary",
            format!(
                "{equal} of {all} measured figures were the same in all of their runs; {vary} vary, and are shown with their minimum and maximum."
            ),
        ),
    })
}

fn authentication(document: &Document) -> Option<Trust> {
    let said = document.run.authentication.as_deref()?;
    Some(match said.starts_with("verified") {
        true => label(
            Tone::Good,
            "From the firmware",
            "Each line carries a code under this boot's key: what was measured has not written it.",
        ),
        false => label(
            Tone::Plain,
            "Origin not verified",
            "Lines have authentication codes, which were not verified, because the key is not saved.",
        ),
    })
}

//! Stolen time, the timer, and what transitions cost.

use super::{Grid, Row, sureness, ticks, time};
use crate::primitives::number;
use ::facts::gaps::shared;
use protocol::record::{NoiseFacts, NoiseWindow, Times, TransitionCost};

/// Most gaps that are listed of a processor.
const LISTED: usize = 20;

/// How it was measured.
pub(crate) fn heading(facts: &NoiseFacts) -> String {
    let how = match (facts.windows.len(), facts.together) {
        (0 | 1, _) => "",
        (_, true) => ", all processors at the same time",
        (_, false) => ", one processor after the other",
    };
    let window = facts.windows.first().map_or(0, |window| window.ticks);
    let (window, threshold) =
        (time(window as f64, facts.tsc_hz), time(facts.threshold as f64, facts.tsc_hz));
    format!(
        "stolen time: the TSC is read for {window} with interrupts off{how}; {threshold} or more between two readings is a gap"
    )
}

/// All figures.
pub(crate) fn rows(facts: &NoiseFacts) -> Vec<Row> {
    let hz = facts.tsc_hz;
    let mut all: Vec<Row> = facts.windows.iter().map(|window| stolen(window, facts)).collect();
    if facts.windows.len() > 1 && facts.together {
        let first = facts.windows[0].gaps.len();
        all.push(Row {
            figure: "gaps of all processors at once".to_string(),
            value: shared(&facts.windows).to_string(),
            told: "only by their times".to_string(),
            evidence: format!(
                "{first} gaps of the first processor; an SMI takes all of them at once"
            ),
        });
    }
    if let Some(timer) = &facts.timer {
        let period = time(timer.period as f64, hz);
        all.push(Row {
            figure: "APIC timer, late".to_string(),
            value: ticks(timer.late.median as f64, hz),
            told: agree(&timer.late),
            evidence: format!("set to {period}; {}", range(&timer.late)),
        });
    }
    let nothing = facts.costs.iter().find(|cost| cost.name == TransitionCost::NOTHING);
    let nothing = nothing.map_or(0, |cost| cost.ticks.median);
    all.extend(facts.costs.iter().map(|one| cost(one, nothing, facts)));
    all
}

fn stolen(window: &NoiseWindow, facts: &NoiseFacts) -> Row {
    let hz = facts.tsc_hz;
    let longest = time(window.longest as f64, hz);
    let value = match window.count {
        0 => format!("no gap; the longest time between two readings was {longest}"),
        count => {
            let share = window.stolen as f64 * 1e6 / window.ticks.max(1) as f64;
            let stolen = time(window.stolen as f64, hz);
            format!(
                "{count} gaps, {stolen} in all ({} ppm), the longest {longest}",
                number(share.round())
            )
        }
    };
    let told = match window.smis {
        None => "the processor does not count SMIs".to_string(),
        Some(count) => format!("the processor counted {count} SMIs"),
    };
    let mean = window.ticks as f64 / window.reads.max(1) as f64;
    let raised = match facts.raised {
        raised if raised > 0 && window.processor == 0 => format!("; {raised} SMIs were raised"),
        _ => String::new(),
    };
    Row {
        figure: format!("stolen time, processor {}", window.processor),
        value,
        told,
        evidence: format!("{} readings, one in {}{raised}", window.reads, time(mean, hz)),
    }
}

fn cost(one: &TransitionCost, nothing: u64, facts: &NoiseFacts) -> Row {
    let hz = facts.tsc_hz;
    // Loops of ring 3 are subtracted from twice as long ones: the readings went out with that.
    let is_loop = one.name == "syscall" || one.name.ends_with("_ring_3");
    let has_readings = !is_loop && one.name != TransitionCost::NOTHING;
    let own =
        if has_readings { one.ticks.median.saturating_sub(nothing) } else { one.ticks.median };
    let figure = match (&*one.name, &facts.hypervisor) {
        (TransitionCost::NOTHING, _) => "two readings of the TSC".to_string(),
        ("cpuid", Some(name)) => format!("cpuid: an exit to {name} and back"),
        ("ud2", _) => "exception in ring 0 (#UD) and iretq".to_string(),
        ("int", _) => "int in ring 0 and iretq".to_string(),
        ("int_ring_3", _) => "int in ring 3 and iretq".to_string(),
        ("page_fault_ring_3", _) => "page fault in ring 3 and iretq".to_string(),
        ("syscall", _) => "syscall and sysretq".to_string(),
        ("wbinvd_256k_dirty", _) => "wbinvd, 256 KiB written before".to_string(),
        (name, _) => name.replace('_', " "),
    };
    let less =
        if has_readings { format!(", less {nothing} for the readings") } else { String::new() };
    Row {
        figure,
        value: ticks(own as f64, hz),
        told: agree(&one.ticks),
        evidence: format!("{}{less}", range(&one.ticks)),
    }
}

fn agree(times: &Times) -> String {
    sureness(times.least, times.median, times.ninetieth).to_string()
}

fn range(times: &Times) -> String {
    let Times { runs, least, ninetieth, most, .. } = times;
    format!("{runs} runs, {least} to {most} ticks, nine of ten up to {ninetieth}")
}

/// The gaps of each processor that had some.
pub(crate) fn tables(facts: &NoiseFacts) -> Vec<Grid> {
    let had_some = facts.windows.iter().filter(|window| !window.gaps.is_empty());
    let table = |window: &NoiseWindow| {
        let row = |gap: &protocol::record::Gap| {
            vec![time(gap.at as f64, facts.tsc_hz), ticks(gap.ticks as f64, facts.tsc_hz)]
        };
        let listed = window.gaps.len().min(LISTED);
        let which = if (listed as u64) < window.count {
            format!("first {listed} of {}", window.count)
        } else {
            "all".to_string()
        };
        Grid {
            caption: format!("gaps of processor {}, {which}", window.processor),
            head: vec!["at".to_string(), "long".to_string()],
            rows: window.gaps.iter().take(LISTED).map(row).collect(),
        }
    };
    had_some.map(table).collect()
}

/// What was not determined, and why, in sentences.
pub(crate) fn untold(facts: &NoiseFacts, emulated: bool) -> Vec<String> {
    let mut all = facts.reasons.clone();
    if emulated {
        let clock = "time taken by a host: the clock of the emulated PMU counts instructions, so time is what executes them, \
                     and costs are those of QEMU's translator and of the hypervisor beneath";
        all.push(clock.to_string());
        if facts.windows.len() > 1 {
            let looks = "the cause of the gaps: the emulated PMU checks halted processors at times, which shows as gaps of the \
                         others";
            all.push(looks.to_string());
        }
    }
    if facts.hypervisor.is_none() {
        all.push("the cost of an exit: CPUID announces no hypervisor".to_string());
    }
    let unknown = facts.windows.iter().any(|window| window.count > 0 && window.smis.is_none());
    if unknown {
        all.push(
            "the cause of the gaps: without a counter of SMIs, SMIs look like other gaps"
                .to_string(),
        );
    }
    all
}

//! What is counted over a program: drawn without a model in mind, then written down in the registers of one.

use pmu_model::model::LbrKind;
use pmu_model::{Model, Occurrence, events, msr, selector_bits as bits};
use program_format::layout::vector;
use program_format::{Pmu, Preset, Write};
use proptest::sample::Index;

/// An event.
#[derive(Clone, Copy, Debug)]
pub enum EventPlan {
    /// One of those that the counter can count.
    Drawn(Index),
    /// The one with this name.
    Named(&'static str),
    /// All branches.
    Branches,
}

/// A counter.
#[derive(Clone, Copy, Debug)]
pub struct CounterPlan {
    pub event: EventPlan,
    /// Bit 0: ring 3; bit 1: ring 0.
    pub rings: u8,
    pub cmask: u8,
    pub invert: bool,
    pub edge: bool,
    pub period: Option<u32>,
}

/// A set-up of the PMU.
#[derive(Clone, Debug)]
pub struct PmuPlan {
    pub counters: Vec<CounterPlan>,
    /// Fixed counters: rings as above, and a period.
    pub fixed: Option<(u8, Option<u32>)>,
    /// The PMI is an NMI.
    pub nmi: bool,
    /// Counters are frozen at a PMI.
    pub freeze: bool,
    /// Branches are recorded, but for those that these bits suppress, as in LBR_SELECT.
    pub records: Option<u16>,
    /// Interrupts are not counted: the timer's may come in either ring, or together with another one.
    pub timed: bool,
}

impl PmuPlan {
    /// For a program with a timer: counts ring 3 alone, and no interrupts, and records no branches.
    pub fn for_timer(&mut self) {
        self.timed = true;
        self.counters.iter_mut().for_each(|counter| counter.rings = 1);
        self.fixed.iter_mut().for_each(|(rings, _)| *rings = 1);
        self.records = None;
    }

    /// For a program that executes code by two linear addresses: without a plugin, one that counts instructions alone finds
    /// repeated string instructions at the first of them only (`payload/code.rs` of the emulated PMU); who counts branches sees
    /// each instruction.
    pub fn follow(&mut self) {
        let rings = if self.timed { 1 } else { 3 };
        let counter = CounterPlan {
            event: EventPlan::Branches,
            rings,
            cmask: 0,
            invert: false,
            edge: false,
            period: None,
        };
        self.counters.insert(0, counter);
    }
}

/// A counter's registers.
struct Counter {
    name: String,
    selector: u64,
    select: u32,
    count: u32,
}

/// What the registers are told, and the names of the counters.
pub fn resolve(plan: &PmuPlan, model: Model) -> (Pmu, Vec<String>) {
    let spec = model.spec();
    let counters = plan.counters.iter().enumerate();
    let counters: Vec<_> =
        counters.filter_map(|(n, counted)| counter(counted, n, plan.timed, model)).collect();
    let mut pmu = Pmu {
        counters: counters.iter().map(|counter| counter.count).collect(),
        lvtpc: if plan.nmi { 0x400 } else { vector::PMI.into() },
        ..Pmu::default()
    };
    let mut names: Vec<_> = counters.iter().map(|counter| counter.name.clone()).collect();
    let width = spec.width_bits();
    for (counter, drawn) in counters.iter().zip(&plan.counters) {
        pmu.presets.extend(drawn.period.map(|period| preset(counter.count, width, period)));
    }
    let flushing = flushing(model);
    if spec.intel().is_some() {
        intel(&mut pmu, plan, &counters, &mut names, model);
        let flush = [(msr::GLOBAL_CTRL, 0), (msr::PERFEVTSEL, flushing | bits::EN)];
        pmu.flush = [
            writes(flush.into_iter().chain([(msr::GLOBAL_CTRL, 1)])),
            writes([(msr::GLOBAL_CTRL, 0)]),
        ];
    } else {
        amd(&mut pmu, &counters, model);
        let select = amd_registers(model, 0).0;
        pmu.flush = [writes([(select, flushing | bits::EN)]), writes([(select, flushing)])];
        if spec.amd().is_some_and(|amd| amd.v2) {
            pmu.flush[0].extend(writes([(msr::AMD_GLOBAL_CTL, 1)]));
            pmu.flush[1].extend(writes([(msr::AMD_GLOBAL_CTL, 0)]));
        }
    }
    if let Some(filter) = plan.records {
        records(&mut pmu, filter.into(), model);
    }
    let has_freeze = spec.intel().is_some() || spec.amd().is_some_and(|amd| amd.v2);
    if plan.freeze && has_freeze {
        const FREEZE: u64 = 1 << 12;
        for write in pmu.start.iter_mut().chain(&mut pmu.stop) {
            if write.register == u64::from(msr::DEBUGCTL) {
                write.value |= FREEZE;
            }
        }
        pmu.set_up.extend(writes([(msr::DEBUGCTL, FREEZE)]));
    } else {
        pmu.set_up.extend(writes([(msr::DEBUGCTL, 0)]));
    }
    let start = pmu.presets.iter().map(|preset| preset.write);
    pmu.set_up.extend(start);
    (pmu, names)
}

fn writes(list: impl IntoIterator<Item = (u32, u64)>) -> Vec<Write> {
    list.into_iter().map(|(register, value)| Write { register: register.into(), value }).collect()
}

/// Without full-width writes 32 bits are written and the sign is carried on (SDM vol. 3, 21.2.8); with them the register is
/// another one, but this way works on all.
fn preset(counter: u32, width: u8, period: u32) -> Preset {
    let value = u64::from(period.wrapping_neg());
    let value = if counter >= msr::AMD_LEGACY_CTL
        || (msr::FIXED_CTR..msr::FIXED_CTR + 4).contains(&counter)
    {
        u64::from(period).wrapping_neg() & (u64::MAX >> (64 - width))
    } else {
        value
    };
    Preset { counter, write: Write { register: counter.into(), value }, bit: 1 << (width - 1) }
}

fn counter(plan: &CounterPlan, number: usize, timed: bool, model: Model) -> Option<Counter> {
    let spec = model.spec();
    // Legacy numbers reach the first eight.
    if spec.counters() & 1 << number == 0 || number >= 8 {
        return None;
    }
    let is_steady = |event: &events::Event| !timed || !event.selection.has(Occurrence::Interrupt);
    let list: Vec<_> = events::all(model)
        .filter(|event| event.counters & 1 << number != 0 && is_steady(event))
        .collect();
    let event = match plan.event {
        EventPlan::Drawn(index) => index.get(&list),
        EventPlan::Named(name) => list.iter().find(|event| event.name == name)?,
        EventPlan::Branches => list.iter().find(|event| counts_branches(event))?,
    };
    let (code, umask) = (u64::from(event.code), u64::from(event.umask));
    let mut selector = match spec.intel() {
        Some(_) => code | (umask & 0xff) << 8 | (umask >> 8) << 40,
        None => code & 0xff | (code >> 8) << 32 | umask << 8,
    };
    let (cmask, invert, edge) = match plan.cmask {
        0 => (event.cmask, event.invert, event.edge),
        cmask => (cmask, plan.invert, plan.edge),
    };
    selector |= u64::from(cmask) << bits::CMASK_SHIFT;
    for (flag, bit) in [
        (invert, bits::INV),
        (edge, bits::EDGE),
        (plan.rings & 1 != 0, bits::USR),
        (plan.rings & 2 != 0, bits::OS),
        (plan.period.is_some(), bits::INT),
    ] {
        selector |= if flag { bit } else { 0 };
    }
    let (select, count) = match spec.intel() {
        Some(_) => (msr::PERFEVTSEL + number as u32, msr::PMC + number as u32),
        None => amd_registers(model, number as u32),
    };
    let rings = ["", ":u", ":k", ""][usize::from(plan.rings)];
    let threshold = match (cmask, invert, edge) {
        (0, false, false) => String::new(),
        other => format!("{other:?}"),
    };
    let period = plan.period.map_or(String::new(), |period| format!(" each {period}"));
    let name = format!("{number}={}{rings}{threshold}{period}", event.name);
    Some(Counter { name, selector, select, count })
}

fn counts_branches(event: &events::Event) -> bool {
    use Occurrence::*;
    [JccNotTaken, JccTakenForward, Return, FarBranch].iter().all(|&one| event.selection.has(one))
}

fn amd_registers(model: Model, number: u32) -> (u32, u32) {
    if model.spec().amd().is_some_and(|amd| amd.extended) {
        (msr::AMD_PERF_CTL + 2 * number, msr::AMD_PERF_CTL + 2 * number + 1)
    } else {
        (msr::AMD_LEGACY_CTL + number, msr::AMD_LEGACY_CTR + number)
    }
}

fn intel(
    pmu: &mut Pmu,
    plan: &PmuPlan,
    counters: &[Counter],
    names: &mut Vec<String>,
    model: Model,
) {
    let spec = model.spec();
    let mut enabled = 0;
    pmu.set_up = writes([(msr::GLOBAL_CTRL, 0), (msr::FIXED_CTR_CTRL, 0)]);
    for number in 0..spec.counters().count_ones().min(8) {
        pmu.set_up.extend(writes([(msr::PERFEVTSEL + number, 0), (msr::PMC + number, 0)]));
    }
    for (number, counter) in counters.iter().enumerate() {
        enabled |= 1 << number;
        pmu.set_up.extend(writes([(counter.select, counter.selector | bits::EN)]));
    }
    if let Some((rings, period)) = plan.fixed {
        // In a fixed counter's field ring 0 comes first.
        let field = u64::from(rings >> 1 & 1 | (rings & 1) << 1);
        let width = spec.intel().map_or(48, |intel| intel.fixed_width);
        let mut control = 0;
        // Instructions, cycles, reference cycles; slots have another set-up.
        for number in 0..3 {
            let register = msr::FIXED_CTR + number;
            let interrupts = number == 0 && period.is_some();
            control |= (field | u64::from(interrupts) << 3) << (4 * number);
            enabled |= 1 << (32 + number);
            names.push(format!("fixed{number} rings {rings} {period:?}"));
            pmu.counters.push(register);
            pmu.set_up.extend(writes([(register, 0)]));
            if let Some(period) = period.filter(|_| interrupts) {
                pmu.presets.push(preset(register, width, period));
            }
        }
        pmu.set_up.extend(writes([(msr::FIXED_CTR_CTRL, control)]));
    }
    pmu.set_up.extend(writes([(msr::GLOBAL_OVF_CTRL, spec.global_mask())]));
    pmu.start = writes([(msr::GLOBAL_CTRL, enabled)]);
    pmu.stop = writes([(msr::GLOBAL_CTRL, 0)]);
    pmu.status = Some([msr::GLOBAL_STATUS, msr::GLOBAL_OVF_CTRL]);
}

fn amd(pmu: &mut Pmu, counters: &[Counter], model: Model) {
    let Some(facts) = model.spec().amd() else { return };
    for number in 0..u32::from(facts.counters) {
        let (select, count) = amd_registers(model, number);
        pmu.set_up.extend(writes([(select, 0), (count, 0)]));
    }
    if facts.v2 {
        let all = (1 << counters.len()) - 1;
        pmu.set_up.extend(writes([(msr::AMD_GLOBAL_CTL, 0), (msr::AMD_GLOBAL_STATUS_CLR, all)]));
        pmu.set_up.extend(writes(counters.iter().map(|c| (c.select, c.selector | bits::EN))));
        pmu.start = writes([(msr::AMD_GLOBAL_CTL, all)]);
        pmu.stop = writes([(msr::AMD_GLOBAL_CTL, 0)]);
        pmu.status = Some([msr::AMD_GLOBAL_STATUS, msr::AMD_GLOBAL_STATUS_CLR]);
    } else {
        pmu.start = writes(counters.iter().map(|c| (c.select, c.selector | bits::EN)));
        pmu.stop = writes(counters.iter().map(|c| (c.select, c.selector)));
    }
}

/// The selector of an event for which caches have to be asked, in both rings.
fn flushing(model: Model) -> u64 {
    let wants =
        [Occurrence::LoadLlcMiss, Occurrence::LlcMiss, Occurrence::LoadL1Hit, Occurrence::L1Fill];
    let event = events::all(model)
        .find(|event| event.counters & 1 != 0 && wants.iter().any(|&one| event.selection.has(one)))
        .unwrap_or_else(|| panic!("{model:?} has no event of its caches"));
    let (code, umask) = (u64::from(event.code), u64::from(event.umask));
    bits::USR
        | bits::OS
        | code & 0xff
        | (code >> 8) << 32
        | (umask & 0xff) << 8
        | (umask >> 8) << 40
}

/// Has branches recorded while counters run.
fn records(pmu: &mut Pmu, filter: u64, model: Model) {
    const LBR: u64 = 1;
    let select = match &model.spec().lbr {
        LbrKind::Legacy(lbr) => lbr.select.map(|valid| (msr::LBR_SELECT, valid)),
        // LbrSelect: AMD APM vol. 2, 13.1.3.
        LbrKind::AmdV2 { .. } => Some((msr::AMD_LBR_SELECT, 0x1ff)),
        _ => None,
    };
    pmu.set_up.extend(
        select.map(|(register, valid)| Write { register: register.into(), value: filter & valid }),
    );
    let (switch, on, registers): (u32, u64, Vec<u32>) = match &model.spec().lbr {
        LbrKind::None => return,
        LbrKind::Legacy(lbr) => {
            let info = lbr.info.into_iter();
            let first = [lbr.from, lbr.to].into_iter().chain(info);
            let all = first.flat_map(|first| first..first + u32::from(lbr.entries));
            (msr::DEBUGCTL, LBR, all.chain([msr::LBR_TOS]).collect())
        }
        LbrKind::Arch(lbr) => {
            let first = [msr::ARCH_LBR_FROM, msr::ARCH_LBR_TO, msr::ARCH_LBR_INFO].into_iter();
            let all = first.flat_map(|first| first..first + u32::from(lbr.entries));
            (msr::ARCH_LBR_CTL, architectural(filter), all.collect())
        }
        LbrKind::AmdV2 { entries } => {
            // LBRV2EN.
            (
                msr::AMD_DEBUG_EXTN,
                1 << 6,
                (msr::AMD_LBR..msr::AMD_LBR + 2 * u32::from(*entries)).collect(),
            )
        }
        LbrKind::AmdSingle => {
            (msr::DEBUGCTL, LBR, (msr::LAST_BRANCH_FROM..msr::LER_TO + 1).collect())
        }
    };
    pmu.records = registers;
    pmu.start.splice(0..0, writes([(switch, on)]));
    pmu.stop.extend(writes([(switch, 0)]));
}

/// ARCH_LBR_CTL (SDM vol. 3, 20.1.1), enabled, without what these bits of LBR_SELECT suppress.
fn architectural(filter: u64) -> u64 {
    const ENABLED: u64 = 1;
    // Each bit of LBR_SELECT, and the one here that records the same: rings, conditional jumps, relative and indirect calls,
    // returns, indirect and relative jumps, far branches.
    const RECORDS: [u32; 9] = [1, 2, 16, 19, 20, 21, 18, 17, 22];
    let records = RECORDS.iter().enumerate().filter(|(bit, _)| filter >> bit & 1 == 0);
    let call_stack = filter >> 9 & 1;
    records.fold(ENABLED | call_stack << 3, |control, (_, records)| control | 1 << records)
}

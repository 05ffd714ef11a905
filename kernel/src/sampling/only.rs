//! Events of some instructions only, by precise samples: each is of one instruction, and judged as exact mode judges a step. The
//! share that passes times what was counted in all is an estimate.

use super::ibs::IbsEvent;
use super::measure::Ran;
use super::parts::Part;
use super::{Armed, Sampler, precise};
use crate::exact::Qualifier;
use crate::snippet::qualified::text;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::ibs::Unit;
use arch::pmu::pebs::Format;
use arch::pmu::pmi::Sample;
use arch::pmu::{Capabilities, Selection};
use core::ops::Range;
use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};
use pmu_model::uarch::AccessKind;
use protocol::bits::Bits;
use protocol::job::exact::Filter;
use protocol::job::sampling::Sampling;
use protocol::job::workload::Ring;
use protocol::record::{Qualified, SampledCount};
use step::Touch;

/// Events whose records have the data's address from Haswell on, whatever their unit mask: MEM_INST_RETIRED (before Skylake
/// MEM_UOPS_RETIRED), MEM_LOAD_RETIRED, MEM_LOAD_L3_HIT_RETIRED, MEM_LOAD_L3_MISS_RETIRED (SDM vol. 3, "Data Linear Address").
const WITH_DATA: core::ops::RangeInclusive<u16> = 0xd0..=0xd3;

/// Whether an event of some instructions only can be estimated.
///
/// # Errors
/// Why not, and what can.
pub(super) fn check(
    selection: &Selection,
    ibs_event: Option<IbsEvent>,
    has: &Capabilities,
    item: &Sampling,
) -> Result<(), String> {
    let only = &item.only;
    if only.is_empty() {
        return Ok(());
    }
    if let Some(event) = ibs_event {
        let in_user = item.workload.tasks.iter().all(|task| task.ring == Ring::User);
        return match event {
            IbsEvent { unit: Unit::Op, operations: true, filter: None, .. } if in_user => Ok(()),
            IbsEvent { unit: Unit::Op, operations: true, filter: None, .. } => Err(
                "only: IBS counts the end of its handler as well, which ring 3 alone keeps apart: give [[sample.task]] with ring = 3".to_string(),
            ),
            _ => Err("only: IBS estimates operations (`ex_ret_ops`, event 0xc1), all of which it samples; not cycles, fetches, or loads and stores apart".to_string()),
        };
    }
    match has.pebs_format().filter(|_| selection.precise) {
        None => Err("only: its samples are not precise".to_string()),
        Some(format) if !format.is_exact() => Err(format!(
            "only: {}; the instruction's own address came with Haswell (format {})",
            precise::skid(format),
            Format::Haswell.number()
        )),
        Some(_) if precise::is_latency(selection) => Err(
            "only: load latency looks at some of the loads, so its share says nothing of all; the nearest is event 0xd0, umask 0x81 (all loads)".to_string(),
        ),
        Some(_) if only.data.is_some() && !WITH_DATA.contains(&selection.event) => Err(
            "only: its records have no data address; those of loads and stores have (events 0xd0 to 0xd3, as `r81d0` and `r82d0`)".to_string(),
        ),
        Some(_) => Ok(()),
    }
}

/// What a refused event is told besides.
pub(super) const PRECISE: &str = "; only needs a precise event: the nearest is `inst_retired.prec_dist`, else `inst_retired.any_p`";

/// Whether the opcodes exist.
///
/// # Errors
/// Which does not.
// As `estimate`.
#[inline(never)]
pub(super) fn check_opcodes(only: &Filter) -> Result<(), String> {
    let known = Qualifier::new(only, [0; 5]);
    known.map(|_| ()).map_err(|why| format!("only: {why}"))
}

/// Judges the samples of a part, and says in its counts what that makes of them.
// Apart from its caller, whose frame the control blocks fill already.
#[inline(never)]
pub(super) fn estimate(
    machine: &mut impl Sampler,
    item: &Sampling,
    part: &Part,
    ran: &Ran,
    counts: &mut [SampledCount],
) {
    if item.only.is_empty() {
        return;
    }
    let session = &part.session;
    let judged = judge(machine, item, part, ran);
    let only = text(&item.only);
    for (one, count) in session.events.iter().zip(counts) {
        if count.dropped + count.lost > 0 {
            count.remarks.push(format!(
                "{only}: no estimate, because {} samples are missing",
                count.dropped + count.lost
            ));
            continue;
        }
        let bit = one.counter.index();
        let of_event = judged.iter().filter(|(sample, _)| sample.status >> bit & 1 != 0);
        let all: Vec<bool> = of_event
            .filter(|(sample, _)| one.ibs.is_none() || sample.ring() == 3)
            .map(|(_, passed)| *passed)
            .collect();
        let passed = all.iter().filter(|&&passed| passed).count() as u64;
        let by = if one.ibs.is_some() { "IBS" } else { "PEBS" };
        let of = counted(one, count);
        count.qualified = Qualified::new([&only, by], of, all.len() as u64, passed);
        let random = one.ibs.is_some_and(|event| event.random.is_some());
        if !random && has_factor(one.period) {
            count.remarks.push(format!(
                "{only}: a loop whose length has a factor in common with the period, {}, is sampled in some places only: {}",
                one.period,
                if one.ibs.is_some() { "give randomise = true" } else { "give a prime" }
            ));
        }
    }
}

/// Each sample, and whether it passes.
fn judge<'a>(
    machine: &mut impl Sampler,
    item: &Sampling,
    part: &'a Part,
    ran: &Ran,
) -> Vec<(&'a Sample, bool)> {
    let scheduled = ran.schedule.is_some();
    let of_task = |number: usize| {
        let pointers = machine.pointers(scheduled.then_some(number));
        // `check_opcodes` has looked for them.
        Qualifier::new(&item.only, pointers).ok()
    };
    let qualifiers: Vec<Option<Qualifier>> = (0..ran.places.len()).map(of_task).collect();
    let session = &part.session;
    let samples = session.samples(&part.block).iter().enumerate();
    let judged = samples.map(|(index, sample)| {
        let task = sample.task as usize;
        let data = session.data().get(index).map_or(0, |datum| datum.address);
        let passes = match (qualifiers.get(task), ran.places.get(task)) {
            (Some(Some(qualifier)), Some(place)) => {
                let bits =
                    if sample.is_compatibility() { Bits::Compatibility } else { Bits::SixtyFour };
                let body = place.body[0].0..place.body[1].0;
                passes(qualifier, &machine.code(sample.rip), sample.rip, body, bits, data)
            }
            _ => false,
        };
        (sample, passes)
    });
    judged.collect()
}

/// Whether a sample passes: of the instruction at `ip`, whose code begins with `code`, with `data` as its data's address, or 0.
fn passes(
    qualifier: &Qualifier,
    code: &[u8],
    ip: u64,
    body: Range<u64>,
    bits: Bits,
    data: u64,
) -> bool {
    let mut decoder = Decoder::with_ip(bits.number().into(), code, ip, DecoderOptions::NONE);
    let instruction = decoder.decode();
    let offset = body.contains(&ip).then(|| ip - body.start);
    if instruction.is_invalid() || !qualifier.takes(instruction.mnemonic(), offset, bits) {
        return false;
    }
    if !qualifier.needs_access() {
        return true;
    }
    // Records do not say how much is accessed; the code does.
    let mut factory = InstructionInfoFactory::new();
    let widths = factory.info(&instruction).used_memory().iter();
    let bytes = widths.map(|one| one.memory_size().size()).max().unwrap_or(0).max(1) as u32;
    let touch =
        Touch { linear: data, bytes, kind: AccessKind::Load, locked: false, non_temporal: false };
    data != 0 && qualifier.touches(&touch)
}

/// What was counted in all of what is sampled. IBS counts the end of each handler as well and never samples it, so there the counter
/// beside says what ring 3 has done.
fn counted(one: &Armed, count: &SampledCount) -> u64 {
    match (one.ibs, count.witness) {
        (Some(_), Some(witness)) => witness,
        _ => {
            let periods = count.overflows.saturating_add(count.throttled);
            periods.saturating_mul(count.period).saturating_add(count.rest)
        }
    }
}

/// Whether a loop of an item can be so long that its length has a factor in common with the period, without being a multiple of it.
fn has_factor(period: u64) -> bool {
    /// Loops are rarely as long, in instructions.
    const LONGEST: u64 = 1 << 16;
    (2..period.min(LONGEST)).any(|factor| period.is_multiple_of(factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `imul rax, rcx; mov [r14+8], rax; push rax; nop`, from 0x1000 on; R14 and the others point to 0x8000.
    const CODE: [u8; 10] = [0x48, 0x0f, 0xaf, 0xc1, 0x49, 0x89, 0x46, 0x08, 0x50, 0x90];

    fn passing(filter: &Filter, data: u64) -> Vec<u64> {
        let qualifier = Qualifier::new(filter, [0x8000; 5]).unwrap();
        let at = |offset: u64| {
            let code = &CODE[offset as usize..];
            passes(&qualifier, code, 0x1000 + offset, 0x1000..0x1009, Bits::SixtyFour, data)
        };
        [0, 4, 8, 9].into_iter().filter(|&offset| at(offset)).collect()
    }

    #[test]
    fn t1_t2_t3_t8_a_sample_is_judged_by_its_instruction_and_its_data() {
        let opcodes = |names: &[&'static str]| Filter {
            opcodes: names.iter().map(|&name| name.into()).collect(),
            ..Filter::default()
        };
        assert_eq!(passing(&opcodes(&["imul", "push"]), 0), [0, 8]);
        let code = |text: &str| Filter { instructions: text.parse().ok(), ..Filter::default() };
        assert_eq!(passing(&code("1..9"), 0), [4, 8]);
        // The last one is behind the body.
        assert_eq!(passing(&code("0..100"), 0), [0, 4, 8]);
        let data = |text: &str| Filter { data: text.parse().ok(), ..Filter::default() };
        // Eight bytes from 0x8008 on, of instructions that access any; the others have no data.
        assert_eq!(passing(&data("r14:15..16"), 0x8008), [4, 8]);
        assert!(passing(&data("r14:16..17"), 0x8008).is_empty());
        assert!(passing(&data("r14:0..64"), 0).is_empty());
        let all = Filter { instructions: "4..8".parse().ok(), ..data("r14:8..9") };
        assert_eq!(passing(&all, 0x8008), [4]);
        assert!(passing(&Filter { opcodes: Vec::from(["push".into()]), ..all }, 0x8008).is_empty());
        let unknown = check_opcodes(&opcodes(&["imull"])).unwrap_err();
        assert!(unknown.contains("imull"), "{unknown}");
        // No code, no instruction.
        let any = Filter::default();
        let qualifier = Qualifier::new(&any, [0; 5]).unwrap();
        assert!(!passes(&qualifier, &[], 0x1000, 0x1000..0x1009, Bits::SixtyFour, 0));
    }

    #[test]
    fn t8_periods_that_keep_step_with_loops_are_known() {
        let with: Vec<u64> = (1..20).filter(|&period| has_factor(period)).collect();
        assert_eq!(with, [4, 6, 8, 9, 10, 12, 14, 15, 16, 18]);
        assert!(has_factor(1 << 40) && !has_factor(65_537));
    }
}

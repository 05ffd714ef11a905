//! The driver against registers that hold, count, fault and lie.

mod clients;
mod listed;
mod model;
mod servers;

use super::*;
use crate::msr::Msr;
use alloc::collections::BTreeMap;
use alloc::vec;
use raw_cpuid::CpuIdResult;

/// Registers of a processor's uncore: those that it has hold what is written to them. With each read a clock that is enabled moves.
struct Machine {
    signature: u32,
    has: BTreeMap<u32, u64>,
    /// Bits that a register holds.
    width: u8,
    /// The clock's control and counter, if it moves.
    clock: Option<(u32, u32)>,
    writes: Vec<(u32, u64)>,
}

impl Machine {
    fn new(signature: u32, registers: &[u32]) -> Self {
        // Something else than 0, so that it is seen whether it is put back.
        let has = registers.iter().map(|&msr| (msr, 0x10 + u64::from(msr & 7))).collect();
        Self { signature, has, width: 64, clock: None, writes: Vec::new() }
    }

    fn add(&mut self, msr: u32, count: u64) {
        let value = self.has.get_mut(&msr).unwrap();
        *value = value.wrapping_add(count) & ((1 << 44) - 1);
    }
}

impl Registers for Machine {
    fn cpuid(&self, leaf: u32, _: u32) -> CpuIdResult {
        let [eax, ebx, ecx, edx] = match leaf {
            0 => [1, 0x756e_6547, 0x6c65_746e, 0x4965_6e69],
            1 => [self.signature, 0, 0, 0],
            _ => [0; 4],
        };
        CpuIdResult { eax, ebx, ecx, edx }
    }

    fn rdmsr(&mut self, Msr(msr): Msr) -> Result<u64, crate::msr::Absent> {
        if let Some((control, counter)) = self.clock
            && self.has[&control] & 1 << 22 != 0
        {
            *self.has.get_mut(&counter).unwrap() += 3;
        }
        self.has.get(&msr).copied().ok_or(crate::msr::Absent)
    }

    fn wrmsr(&mut self, Msr(msr): Msr, value: u64) -> Result<(), crate::msr::Absent> {
        self.writes.push((msr, value));
        let mask = if self.width == 64 { u64::MAX } else { (1 << self.width) - 1 };
        let held = self.has.get_mut(&msr).ok_or(crate::msr::Absent)?;
        *held = value & mask;
        Ok(())
    }

    fn rdpmc(&mut self, _: u32) -> Result<u64, crate::msr::Absent> {
        Err(crate::msr::Absent)
    }
}

const SKYLAKE: u32 = 0x0005_06e3;
const SKYLAKE_SERVER: u32 = 0x0005_0654;
const CLIENT: [u32; 7] = [0xe01, 0x394, 0x395, 0x3b0, 0x3b1, 0x3b2, 0x3b3];

fn client() -> Machine {
    Machine { clock: Some((0x394, 0x395)), ..Machine::new(SKYLAKE, &CLIENT) }
}

/// A server with so many caching agents.
fn server(agents: u32) -> Machine {
    let all =
        (0..agents).flat_map(|agent| (0..16).map(move |register| 0xe00 + 16 * agent + register));
    Machine::new(SKYLAKE_SERVER, &all.collect::<Vec<_>>())
}

fn event(unit: Unit, select: u64) -> Event {
    Event { unit, select, filter: 0, first: false }
}

fn rounds(machine: &Machine, groups: &[Vec<Event>]) -> Vec<Vec<Placed>> {
    Uncore::find(machine).unwrap().rounds(groups)
}

#[test]
fn s3_the_clients_counters_count_and_are_as_before() {
    let mut machine = client();
    let found = machine.has.clone();
    let wanted = vec![
        event(Unit::Arbiter, 0x181),
        event(Unit::Clock, 0xff),
        event(Unit::Arbiter, 0x100_0280),
    ];
    let [round] = &rounds(&machine, &[wanted])[..] else { panic!() };
    let mut running = Uncore::program(round, &mut machine).unwrap();
    // Linux: 0x391 or 0xe01 enables, 0x3b2 and 0x3b3 select, occupancy on the first counter alone.
    assert_eq!(machine.has[&0xe01], 0x2000_001f);
    assert_eq!([machine.has[&0x3b2], machine.has[&0x3b3]], [0x140_0280, 0x40_0181]);
    assert_eq!(machine.has[&0x394], 0x40_0000);
    // The last goes over 44 bits.
    for (requests, outstanding) in [(5, 7), (0, 0), (1 << 43, 1 << 43), (1 << 43, 1 << 43)] {
        running.begin(&mut machine);
        machine.add(0x3b1, requests);
        machine.add(0x3b0, outstanding);
        running.end(&mut machine);
        let by_event: Vec<_> =
            round.iter().map(|one| one.event.select).zip(running.counts()).collect();
        assert!(by_event.contains(&(0x181, &requests)), "{by_event:x?}");
        assert!(by_event.contains(&(0x100_0280, &outstanding)), "{by_event:x?}");
        // It moves with each read: two of the others', and its own.
        assert!(by_event.iter().any(|(select, count)| *select == 0xff && (3..30).contains(*count)));
    }
    running.release(&mut machine);
    machine.has.remove(&0x395);
    assert!(machine.has.iter().all(|(msr, value)| found[msr] == *value), "{:x?}", machine.has);
}

#[test]
fn s3_events_that_do_not_fit_take_turns_and_those_of_a_metric_stay_together() {
    let arbiter = |select| event(Unit::Arbiter, select);
    let machine = client();
    let places = |groups: &[Vec<Event>]| -> Vec<Vec<(u64, u8)>> {
        let of = |round: &Vec<Placed>| {
            round.iter().map(|placed| (placed.event.select, placed.counter)).collect()
        };
        rounds(&machine, groups).iter().map(of).collect()
    };
    // Both are outstanding requests, which only the first counter counts.
    let apart = places(&[vec![arbiter(0x280), arbiter(0x100_0280)]]);
    assert_eq!(apart, [vec![(0x280, 0)], vec![(0x100_0280, 0)]]);
    let groups = [
        vec![arbiter(0x181)],
        vec![arbiter(0x281), arbiter(0x280), event(Unit::Clock, 0xff)],
        vec![arbiter(0x181), arbiter(0x184)],
    ];
    let together = places(&groups);
    assert_eq!(together, [vec![(0x181, 1), (0x184, 0)], vec![(0x280, 0), (0x281, 1), (0xff, 0)]]);
}

#[test]
fn s3_a_sum_over_the_caching_agents_that_there_are() {
    for agents in [1, 5, 28] {
        let mut machine = server(agents);
        let found = machine.has.clone();
        let filter = 0x40433 << 32;
        let requests = Event { filter, ..event(Unit::Caching, 0x2135) };
        let clock = Event { first: true, ..event(Unit::Caching, 0) };
        let [round] = &rounds(&machine, &[vec![requests, clock]])[..] else { panic!() };
        let mut running = Uncore::program(round, &mut machine).unwrap();
        assert_eq!(
            [machine.has[&0xe00], machine.has[&0xe05], machine.has[&0xe06]],
            [0, 0, 0x40433]
        );
        let units: Vec<u32> = running.places().map(|(units, _)| units).collect();
        assert_eq!(units, [agents, 1]);
        running.begin(&mut machine);
        let last = 0xe00 + 16 * (agents - 1);
        machine.add(last + 8 + 3, 10);
        machine.add(0xe08 + 3, 1);
        machine.add(0xe08 + 2, 100);
        running.end(&mut machine);
        assert_eq!(running.counts(), [11, 100]);
        running.release(&mut machine);
        assert_eq!(machine.has, found, "{agents}");
    }
}

/// The filter by thread works only if the control has it enabled, by a bit and in a width of the processor's own.
#[test]
fn s3_a_filter_by_thread_is_enabled_on_every_processor_that_has_one() {
    use super::layout::of;
    let cases = [
        (0x3f, 1 << 19, 6),
        (0x4f, 1 << 19, 6),
        (0x55, 1 << 19, 9),
        (0x6a, 1 << 19, 9),
        (0x8f, 1 << 16, 10),
    ];
    for (model, enable, bits) in cases {
        let kind = of(model).iter().find(|kind| kind.unit == Unit::Caching).unwrap();
        assert_eq!(kind.thread, (enable, (1 << bits) - 1), "{model:#x}");
        assert_eq!(kind.select & enable, 0, "{model:#x}");
    }
    // Core 8, thread 0; and a state of lines, which is no thread.
    for (filter, enabled) in [(0x40, true), (0x1e2_0000, false)] {
        let mut machine = server(1);
        let looked = Event { filter, ..event(Unit::Caching, 0x1134) };
        let [round] = &rounds(&machine, &[vec![looked]])[..] else { panic!() };
        let running = Uncore::program(round, &mut machine).unwrap();
        let has_event = |(register, value): &(u32, u64)| {
            (0xe01..0xe05).contains(register) && value & 0xff == 0x34
        };
        let controls: Vec<u64> = machine
            .writes
            .iter()
            .copied()
            .filter(has_event)
            .map(|(_, value)| value >> 19 & 1)
            .collect();
        assert_eq!(controls, [u64::from(enabled)], "{filter:#x}");
        assert_eq!(machine.has[&0xe05], filter);
        running.release(&mut machine);
    }
}

#[test]
fn s3_other_filters_and_occupancy_are_counted_at_other_times() {
    let machine = server(2);
    let tor = |select, filter: u64| Event { filter: filter << 32, ..event(Unit::Caching, select) };
    let numa = vec![tor(0x2135, 0x40432), tor(0x2135, 0x40431)];
    assert_eq!(rounds(&machine, &[numa]).len(), 2);
    let same = vec![tor(0x2135, 0x40433), tor(0x2136, 0x40433), event(Unit::Caching, 0x150)];
    assert_eq!(rounds(&machine, &[same]).len(), 1);
    // A look-up in the cache, 0x34, has a filter as well; the unit has it once.
    for (look, filter, needed) in
        [(tor(0x1134, 0x40433), 0x40433, 1), (tor(0x1134, 1), 0x40433, 2), (tor(0x1134, 1), 0, 2)]
    {
        let needs =
            |group| assert_eq!(rounds(&machine, &[group]).len(), needed, "{look:x?} {filter:#x}");
        needs(vec![tor(0x2135, filter), look]);
        needs(vec![look, tor(0x2135, filter)]);
    }
    let looks = vec![tor(0x1134, 1), tor(0x134, 2)];
    assert_eq!(rounds(&machine, &[looks]).len(), 2);
    let occupancies = vec![tor(0x2136, 0x40433), tor(0x100_2136, 0x40433)];
    assert_eq!(rounds(&machine, &[occupancies]).len(), 2);
}

#[test]
fn s3_what_cannot_be_counted_is_named_and_nothing_is_left() {
    let first = |machine: &mut Machine, event| {
        let found = machine.has.clone();
        let [round] = &rounds(machine, &[vec![event]])[..] else { panic!() };
        let (number, refusal) = Uncore::program(round, machine).unwrap_err();
        assert_eq!((number, &machine.has), (0, &found));
        refusal
    };
    // QEMU's translator: any register is there, and reads 0.
    let mut nothing = Machine { width: 0, ..Machine::new(SKYLAKE, &CLIENT) };
    nothing.has.values_mut().for_each(|value| *value = 0);
    assert_eq!(
        first(&mut nothing, event(Unit::Arbiter, 0x181)),
        Refusal::Absent(Register::Msr(0x3b1))
    );
    assert_eq!(first(&mut nothing, event(Unit::Clock, 0xff)), Refusal::Still(Register::Msr(0x395)));
    // KVM: #GP.
    let mut faults = Machine::new(SKYLAKE, &[]);
    assert_eq!(first(&mut faults, event(Unit::Clock, 0xff)), Refusal::Absent(Register::Msr(0xe01)));
    // A counter that is narrower than it should be.
    let mut narrow = client();
    narrow.width = 32;
    assert_eq!(
        first(&mut narrow, event(Unit::Arbiter, 0x181)),
        Refusal::Absent(Register::Msr(0x3b1))
    );
    let mut still = Machine::new(SKYLAKE, &CLIENT);
    assert_eq!(first(&mut still, event(Unit::Clock, 0xff)), Refusal::Still(Register::Msr(0x395)));
}

#[test]
fn s3_what_a_processor_has_not_is_refused_before_anything_is_written() {
    let of = |signature| Uncore::find(&Machine::new(signature, &[]));
    // Nehalem, and Knights Landing.
    for (signature, model) in [(0x0001_06a5, 0x1a), (0x0005_0671, 0x57)] {
        assert_eq!(of(signature).unwrap_err(), NoUncore::Unknown { family: 6, model });
    }
    let client = of(SKYLAKE).unwrap();
    let agents = event(Unit::Caching, 0x135);
    assert_eq!(client.check(&agents), Err(Refusal::NoUnit(0x5e)));
    assert_eq!(client.check(&event(Unit::Arbiter, 0x2000_0181)), Err(Refusal::Bits(0x2000_0000)));
    let filtered = Event { filter: 1, ..event(Unit::Arbiter, 0x181) };
    assert_eq!(client.check(&filtered), Err(Refusal::NoFilter));
    assert_eq!(client.check(&event(Unit::Clock, 0xff)), Ok(()));
    let server = of(SKYLAKE_SERVER).unwrap();
    assert_eq!(server.check(&event(Unit::Caching, 1 << 32)), Err(Refusal::Bits(1 << 32)));
    let wide = event(Unit::Caching, 0xc8_17fe_0000_0135);
    assert_eq!(of(0x0008_06f8).unwrap().check(&wide), Ok(()));
}

/// Linux, `uncore_snb.c` and `uncore_snbep.c`; PCM for Sapphire Rapids.
#[test]
fn s3_registers_are_where_the_sources_have_them() {
    let of = |model, unit| {
        let kind = layout::of(model).iter().find(|kind| kind.unit == unit).unwrap();
        let bases: Vec<u32> = kind.bases().collect();
        let last = *bases.last().unwrap();
        [bases[0] + kind.control, bases[0] + kind.counter, last + kind.counter]
    };
    for model in [0x3c, 0x5e, 0x7e, 0xa7] {
        assert_eq!(of(model, Unit::Clock), [0x394, 0x395, 0x395], "{model:#x}");
    }
    assert_eq!(of(0x3c, Unit::Arbiter), [0x3b2, 0x3b0, 0x3b0]);
    assert_eq!(of(0x7e, Unit::Arbiter), [0x3b3, 0x3b1, 0x3b1]);
    assert_eq!(of(0x97, Unit::Clock), [0x2fde, 0x2fdf, 0x2fdf]);
    assert_eq!(of(0x97, Unit::Arbiter), [0x2fd0, 0x2fd2, 0x2fda]);
    assert_eq!(of(0xaa, Unit::Clock), [0x2402, 0x2408, 0x2408]);
    assert_eq!(of(0xaa, Unit::Arbiter), [0x2412, 0x2418, 0x2428]);
    assert_eq!(of(0x3f, Unit::Caching), [0xe01, 0xe08, 0xf18]);
    assert_eq!(of(0x55, Unit::Caching), [0xe01, 0xe08, 0xfb8]);
    assert_eq!(of(0x8f, Unit::Caching), [0x2002, 0x2008, 0x23b8]);
    let icelake: Vec<u32> =
        layout::of(0x6a)[0].bases().map(|base| base.wrapping_sub(0xb60)).collect();
    // The first, those around both steps, and the last of `icx_cha_msr_offsets`.
    let listed = [0, 17, 18, 33, 34, 39].map(|place: usize| icelake[place]);
    assert_eq!(listed, [0x2a0, 0x38e, 0x3aa, 0x47c, 0, 0x46]);
    assert_eq!(icelake.len(), 40);
}

/// The driver against the register-level model.
#[test]
fn s3_on_the_emulated_skylake_requests_are_lines_that_the_last_level_lacks() {
    use pmu_model::{Delta, Host, Model, Occurrence, Pmu, Ring, Timing};
    let mut pmu = Pmu::new(Model::Skylake, Host::EXAMPLE, Timing::DEFAULT);
    let requests = event(Unit::Arbiter, 0x181);
    let uncore = Uncore::find(&pmu).unwrap();
    let [round] = &uncore.rounds(&[vec![requests, event(Unit::Arbiter, 0x280)]])[..] else {
        panic!()
    };
    let mut running = Uncore::program(round, &mut pmu).unwrap();
    running.begin(&mut pmu);
    let missed =
        Delta::bulk(Ring::Kernel, 9).with(Occurrence::LlcMiss, 7).with(Occurrence::LoadLlcMiss, 4);
    pmu.advance(&missed);
    running.end(&mut pmu);
    let first = round.iter().position(|placed| placed.event == requests).unwrap();
    assert_eq!([running.counts()[first], running.counts()[1 - first]], [7, 4]);
    running.release(&mut pmu);
    for msr in [0xe01, 0x3b0, 0x3b1, 0x3b2, 0x3b3] {
        assert_eq!(pmu.read_msr(msr), Ok(0), "{msr:#x}");
    }
    let other = Pmu::new(Model::Zen4, Host::EXAMPLE, Timing::DEFAULT);
    assert_eq!(Uncore::find(&other).unwrap_err(), NoUncore::OtherMaker);
}

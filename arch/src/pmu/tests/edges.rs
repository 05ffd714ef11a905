//! The registers' values at the edges: what is written, what is refused, and what is left alone.

use super::*;
use crate::msr::Msr;
use crate::pmu::driver::{MAX_WRITES, SLOTS, Write};
use crate::pmu::registers::LbrSelect;
use pmu_model::{Branch, BranchKind, Delta, Ring};

const FIRST: Counter = Counter::General(0);
const SECOND: Counter = Counter::General(1);
/// The enable of an event select.
const ENABLE: u64 = 1 << 22;

fn of(model: Model) -> (Pmu, Driver) {
    machines().find(|one| one.0 == model).map(|(_, pmu, driver)| (pmu, driver)).unwrap()
}

/// DEBUGCTL: bit 11 freezes branch records, bit 12 counters, bit 14 in SMM (SDM vol. 3, 17.4.1).
#[test]
fn what_freezes_is_what_was_asked_for_and_offered() {
    let set = |model, change: fn(&mut Capabilities), freeze| {
        let (mut pmu, driver) = of(model);
        let mut has = driver.capabilities().clone();
        change(&mut has);
        // Somebody else's bit stays.
        pmu.wrmsr(numbers::DEBUGCTL, 1).unwrap();
        let done = Driver::new(has).set_freeze(&mut pmu, freeze);
        done.is_ok().then(|| pmu.rdmsr(numbers::DEBUGCTL).unwrap())
    };
    let as_is = |_: &mut Capabilities| ();
    for model in [Model::Core2, Model::Skylake] {
        assert_eq!(set(model, as_is, Freeze::empty()), Some(1), "{model:?}");
        assert_eq!(set(model, as_is, Freeze::COUNTERS), Some(1 | 1 << 12), "{model:?}");
        assert_eq!(set(model, as_is, Freeze::LBR), Some(1 | 1 << 11), "{model:?}");
        assert_eq!(set(model, as_is, Freeze::SMM), Some(1 | 1 << 14), "{model:?}");
        assert_eq!(set(model, as_is, Freeze::all()), Some(1 | 0b1011 << 11), "{model:?}");
        let no_smm = |has: &mut Capabilities| has.perf = registers::PerfCapabilities::empty();
        assert_eq!(set(model, no_smm, Freeze::SMM), None, "{model:?}");
        assert_eq!(set(model, no_smm, Freeze::COUNTERS), Some(1 | 1 << 12), "{model:?}");
        let no_records = |has: &mut Capabilities| has.lbr = LbrKind::None;
        assert_eq!(set(model, no_records, Freeze::LBR), None, "{model:?}");
        assert_eq!(set(model, no_records, Freeze::COUNTERS), Some(1 | 1 << 12), "{model:?}");
        let no_freeze = |has: &mut Capabilities| has.freeze = FreezeKind::None;
        assert_eq!(set(model, no_freeze, Freeze::LBR), None, "{model:?}");
        assert_eq!(set(model, no_freeze, Freeze::COUNTERS), None, "{model:?}");
        assert_eq!(set(model, no_freeze, Freeze::empty()), Some(1), "{model:?}");
        assert_eq!(set(model, no_freeze, Freeze::SMM), Some(1 | 1 << 14), "{model:?}");
    }
    assert_eq!(set(Model::Zen4, as_is, Freeze::COUNTERS | Freeze::LBR), Some(1 | 0b11 << 11));
    assert_eq!(set(Model::Zen4, as_is, Freeze::SMM), None);
    assert_eq!(set(Model::Zen2, as_is, Freeze::LBR), None);
}

/// Nothing to take back, nothing written; and what others have set stays.
#[test]
fn no_freeze_takes_back_the_freeze_bits_alone() {
    for (model, mut pmu, driver) in machines() {
        let offers =
            driver.capabilities().perf.contains(registers::PerfCapabilities::FREEZE_WHILE_SMM);
        for value in [1, 1 | 1 << 11, 1 | 1 << 12, 0b11 << 11] {
            if pmu.wrmsr(numbers::DEBUGCTL, value).is_ok() {
                // Bit 0 is not a processor's with architectural records.
                let held = pmu.rdmsr(numbers::DEBUGCTL).unwrap();
                driver.no_freeze(&mut pmu).unwrap();
                let left = held & !(0b11 << 11);
                assert_eq!(pmu.rdmsr(numbers::DEBUGCTL), Ok(left), "{model:?} {value:#x}");
            }
        }
        if offers {
            pmu.wrmsr(numbers::DEBUGCTL, 1 << 14).unwrap();
            driver.no_freeze(&mut pmu).unwrap();
            assert_eq!(pmu.rdmsr(numbers::DEBUGCTL), Ok(0), "{model:?}");
        }
    }
}

/// Off is the select without its enable, and nothing else of it is lost; a counter on its own is in no gate.
#[test]
fn a_gate_switches_the_enable_of_each_counter_and_a_free_one_has_its_own() {
    for (model, mut pmu, mut driver) in machines() {
        let nothing = driver.free_run(FIRST);
        assert_eq!(nothing, Err(PmuError::NoCounter(FIRST)), "{model:?}: it is not programmed");
        driver.reset(&mut pmu).unwrap();
        for counter in [FIRST, SECOND] {
            driver.program(&mut pmu, counter, &INSTRUCTIONS).unwrap();
            driver.write(&mut pmu, counter, 0).unwrap();
        }
        let select = INSTRUCTIONS.encode(FIRST, driver.capabilities()).unwrap();
        assert_eq!(select & ENABLE, ENABLE);
        let writes =
            |side: &[Write]| side.iter().map(|one| (one.msr, one.value)).collect::<Vec<_>>();
        let gate = driver.gate();
        let layout = *driver.layout();
        let selects = [FIRST, SECOND].map(|one| layout.select(one.index() as u8).0);
        let expected = match layout.global {
            Some(global) => [vec![(global.control.0, 3)], vec![(global.control.0, 0)]],
            None => [select, select - ENABLE].map(|value| selects.map(|msr| (msr, value)).to_vec()),
        };
        assert_eq!([writes(gate.on()), writes(gate.off())], expected, "{model:?}");
        // The second one runs by itself.
        let own = driver.free_run(SECOND).unwrap();
        let gate = driver.gate();
        let (own_writes, expected) = match layout.global {
            Some(global) => {
                let control = global.control.0;
                ([(control, 2), (control, 0)], [vec![(control, 3)], vec![(control, 2)]])
            }
            None => (
                [(selects[1], select), (selects[1], select - ENABLE)],
                [vec![(selects[0], select)], vec![(selects[0], select - ENABLE)]],
            ),
        };
        assert_eq!(own.map(|one| (one.msr, one.value)), own_writes, "{model:?}");
        assert_eq!([writes(gate.on()), writes(gate.off())], expected, "{model:?}");
        // It continues while the gate is closed, up to its own second write.
        pmu.wrmsr(Msr(own[0].msr), own[0].value).unwrap();
        pmu.advance(&Delta::bulk(Ring::User, 100));
        driver.start(&mut pmu).unwrap();
        pmu.advance(&Delta::bulk(Ring::User, 10));
        driver.stop(&mut pmu).unwrap();
        pmu.advance(&Delta::bulk(Ring::User, 1));
        pmu.wrmsr(Msr(own[1].msr), own[1].value).unwrap();
        pmu.advance(&Delta::bulk(Ring::User, 1_000));
        let seen = [FIRST, SECOND].map(|counter| driver.read(&mut pmu, counter).unwrap());
        assert_eq!(seen, [10, 111], "{model:?}");
        // One that is freed leaves the other one's freedom alone.
        driver.free_run(FIRST).unwrap();
        driver.release(&mut pmu, SECOND).unwrap();
        let off = driver.gate();
        let off = writes(off.off());
        match layout.global {
            Some(global) => assert_eq!(off, [(global.control.0, 1)], "{model:?}"),
            None => assert_eq!(off, [], "{model:?}"),
        }
    }
}

#[test]
fn a_gate_has_room_for_so_many_writes_and_no_more() {
    let mut gate = Gate::EMPTY;
    for n in 0..MAX_WRITES as u32 + 2 {
        gate = gate.with(Msr(n), 1, 0);
    }
    assert_eq!((gate.on().len(), gate.off().len()), (MAX_WRITES, MAX_WRITES));
    assert_eq!(gate.on().last().map(|one| one.msr), Some(MAX_WRITES as u32 - 1));
}

/// The longest period leaves one event in front of the wrap; without a status register the top bit must be set.
#[test]
fn a_period_may_be_as_long_as_the_counter_is() {
    let preset = |model, period| {
        let (_, driver) = of(model);
        driver.preset(FIRST, period).ok()
    };
    let full = (1 << 48) - 1;
    for model in [Model::Skylake, Model::Zen4] {
        assert_eq!(preset(model, full), Some(1), "{model:?}");
        assert_eq!(preset(model, full + 1), None, "{model:?}");
        assert_eq!(preset(model, 1), Some(full), "{model:?}");
    }
    for model in [Model::K10, Model::Zen2] {
        assert_eq!(preset(model, 1 << 47), Some(1 << 47), "{model:?}");
        assert_eq!(preset(model, (1 << 47) + 1), None, "{model:?}");
        assert_eq!(preset(model, full), None, "{model:?}");
    }
}

/// Without a status register the top bit alone tells: set, the counter has not overflowed.
#[test]
fn a_clear_top_bit_is_an_overflow_where_there_is_no_status() {
    for model in [Model::K10, Model::Zen2] {
        let (mut pmu, mut driver) = of(model);
        driver.reset(&mut pmu).unwrap();
        driver.program(&mut pmu, SECOND, &INSTRUCTIONS).unwrap();
        for (value, overflowed) in [
            (1 << 47, false),
            ((1 << 48) - 1, false),
            ((1 << 47) - 1, true),
            (0, true),
            (1 << 46, true),
        ] {
            driver.write(&mut pmu, SECOND, value).unwrap();
            // The first one is not programmed.
            let expected = if overflowed { SECOND.bit() } else { 0 };
            assert_eq!(driver.status(&mut pmu).unwrap().bits(), expected, "{model:?} {value:#x}");
        }
    }
}

#[test]
fn m13_slots_and_their_metrics_start_anew_together() {
    let (mut pmu, mut driver) = of(Model::IceLake);
    driver.reset(&mut pmu).unwrap();
    driver.program(&mut pmu, Counter::Fixed(3), &Selection::of(0, 0)).unwrap();
    driver.start(&mut pmu).unwrap();
    pmu.advance(&Delta::bulk(Ring::User, 1_000));
    driver.stop(&mut pmu).unwrap();
    pmu.wrmsr(numbers::PERF_METRICS, 0x1234).unwrap();
    assert_ne!(driver.read(&mut pmu, Counter::Fixed(3)), Ok(0));
    driver.clear_metrics(&mut pmu).unwrap();
    assert_eq!(driver.read(&mut pmu, Counter::Fixed(3)), Ok(0));
    assert_eq!(pmu.rdmsr(numbers::PERF_METRICS), Ok(0));
    let (mut pmu, driver) = of(Model::Skylake);
    let refused = driver.clear_metrics(&mut pmu);
    assert_eq!(refused, Err(PmuError::Unsupported("PERF_METRICS")));
}

#[test]
fn records_take_the_place_of_the_interrupt() {
    let both = INSTRUCTIONS.with_interrupt().with_records();
    assert!(both.precise && !both.interrupt);
}

/// Every register that lets something count or record is switched off, and was what it is restored to.
#[test]
fn i6_the_firmwares_own_records_and_counters_are_switched_off() {
    for (model, mut pmu, driver) in machines() {
        let has = driver.capabilities().clone();
        let mut controls = vec![(driver.layout().select(0), 0x0053_00c0)];
        if has.fixed != 0 {
            controls.push((numbers::FIXED_CTR_CTRL, 0x33));
        }
        match has.lbr {
            LbrKind::Architectural { .. } => controls.push((numbers::ARCH_LBR_CTL, 1)),
            LbrKind::AmdV2 { .. } => controls.push((numbers::AMD_DEBUG_EXTN, 1 << 6)),
            _ => controls.push((numbers::DEBUGCTL, 1)),
        }
        for &(msr, value) in &controls {
            pmu.wrmsr(msr, value).unwrap();
        }
        let own = Ownership::claim(&mut pmu, &has);
        for &(msr, value) in &controls {
            assert_eq!((own.found(msr), pmu.rdmsr(msr)), (Some(value), Ok(0)), "{model:?} {msr:?}");
            let left = Conflict::LeftOn { msr: msr.0, value };
            assert!(own.conflicts.contains(&left), "{model:?}: {:?}", own.conflicts);
        }
        own.restore(&mut pmu);
        for &(msr, value) in &controls {
            assert_eq!(pmu.rdmsr(msr), Ok(value), "{model:?} {msr:?}");
        }
        // A control that the processor lacks is not looked for.
        assert_eq!(own.found(numbers::FIXED_CTR_CTRL).is_some(), has.fixed != 0, "{model:?}");
    }
}

/// A ring that was recorded to before, with a top of stack anywhere, gives its newest record first.
#[test]
fn records_by_ring_are_had_where_no_other_filter_is() {
    let record = |from, ring| Branch {
        from,
        to: from + 8,
        kind: BranchKind::RelativeJump,
        taken: true,
        mispredicted: false,
        ring,
        cycles: 1,
    };
    for (model, mut pmu, driver) in machines() {
        let mut has = driver.capabilities().clone();
        let LbrKind::Architectural { depth, mispredict, .. } = has.lbr else { continue };
        has.lbr = LbrKind::Architectural { depth, mispredict, filter: false };
        for (filter, wanted) in [(LbrSelect::NOT_KERNEL, 0x1000), (LbrSelect::NOT_USER, 0x2000)] {
            lbr::start(&mut pmu, &has, filter).unwrap();
            pmu.record_branch(&record(0x1000, Ring::User));
            pmu.record_branch(&record(0x2000, Ring::Kernel));
            lbr::stop(&mut pmu, &has).unwrap();
            let seen: Vec<u64> =
                lbr::records(&mut pmu, &has).unwrap().iter().map(|one| one.from).collect();
            assert_eq!(seen, [wanted], "{model:?} {filter:?}");
        }
        for filter in
            [LbrSelect::NOT_RELATIVE_CALL, LbrSelect::NOT_RELATIVE_CALL | LbrSelect::NOT_USER]
        {
            let refused = lbr::start(&mut pmu, &has, filter);
            assert!(refused.is_err(), "{model:?} {filter:?}");
        }
    }
    let (mut pmu, driver) = of(Model::Skylake);
    let none = Capabilities { lbr: LbrKind::None, ..driver.capabilities().clone() };
    let refused = PmuError::Unsupported("branch records");
    assert_eq!(lbr::start(&mut pmu, &none, LbrSelect::empty()), Err(refused));
    assert_eq!(lbr::records(&mut pmu, &none).unwrap_err(), refused);
    // A ring has no filter by ring without its register.
    let has = driver.capabilities().clone();
    let LbrKind::Legacy { entries, format, old_place, .. } = has.lbr else { panic!("a ring") };
    let bare = LbrKind::Legacy { entries, format, old_place, filter: false };
    let has = Capabilities { lbr: bare, ..has };
    assert!(lbr::start(&mut pmu, &has, LbrSelect::NOT_USER).is_err());
    lbr::start(&mut pmu, &has, LbrSelect::empty()).unwrap();
}

/// What the machine had when recording began stays in the register that switches it.
#[test]
fn switching_records_keeps_the_other_bits_of_the_register() {
    for (model, msr, other, on) in [
        (Model::Skylake, numbers::DEBUGCTL, 1 << 12, 1),
        (Model::Zen2, numbers::DEBUGCTL, 1 << 1, 1),
    ] {
        let (mut pmu, driver) = of(model);
        for held in [other, other | on] {
            pmu.wrmsr(msr, held).unwrap();
            let seen = lbr::switch(&mut pmu, driver.capabilities(), LbrSelect::empty());
            assert_eq!(seen, Ok((msr, other | on, other)), "{model:?} {held:#x}");
        }
    }
    let (mut pmu, driver) = of(Model::Zen4);
    for held in [0, 1 << 6] {
        pmu.wrmsr(numbers::AMD_DEBUG_EXTN, held).unwrap();
        let seen = lbr::switch(&mut pmu, driver.capabilities(), LbrSelect::empty());
        assert_eq!(seen, Ok((numbers::AMD_DEBUG_EXTN, 1 << 6, 0)), "{held:#x}");
    }
    let (mut pmu, driver) = of(Model::ArrowLake);
    let (msr, on, off) = lbr::switch(&mut pmu, driver.capabilities(), LbrSelect::empty()).unwrap();
    assert_eq!((msr, on & 1, off), (numbers::ARCH_LBR_CTL, 1, 0));
}

/// One register controls all fixed counters: a reset leaves it alone where somebody else has one of them.
#[test]
fn a_reset_leaves_the_fixed_counters_of_somebody_else_running() {
    for (model, mut pmu, driver) in machines() {
        if driver.capabilities().fixed == 0 {
            continue;
        }
        let cases = [(0, 0), (Counter::Fixed(0).bit(), 0xb), (Counter::General(0).bit(), 0)];
        for (others, left) in cases {
            pmu.wrmsr(numbers::FIXED_CTR_CTRL, 0xb).unwrap();
            let mut driver = Driver::new(driver.capabilities().clone()).beside(others);
            driver.reset(&mut pmu).unwrap();
            assert_eq!(pmu.rdmsr(numbers::FIXED_CTR_CTRL), Ok(left), "{model:?} {others:#x}");
        }
    }
}

#[test]
fn m13_slots_are_read_with_their_shares_and_an_overflow_of_these_is_told() {
    let (mut pmu, mut driver) = of(Model::IceLake);
    driver.reset(&mut pmu).unwrap();
    driver.program(&mut pmu, SLOTS, &Selection::of(0, 0)).unwrap();
    driver.enable_metrics().unwrap();
    driver.start(&mut pmu).unwrap();
    pmu.advance(&Delta::bulk(Ring::User, 1_000));
    driver.stop(&mut pmu).unwrap();
    let [slots, shares] =
        [driver.read(&mut pmu, SLOTS).unwrap(), pmu.rdmsr(numbers::PERF_METRICS).unwrap()];
    assert!(slots > 0 && shares > 0);
    let seen = driver.slots(&mut pmu).unwrap();
    assert_eq!((seen.slots, seen.shares.0), (slots, shares));
    // GLOBAL_STATUS[48]: PERF_METRICS overflowed.
    let told = |model, bits| {
        let (pmu, driver) = of(model);
        driver.metrics_overflowed(&mut Status(pmu, bits)).unwrap()
    };
    let all = [1 << 48, 1 << 35, 0].map(|bits| told(Model::IceLake, bits));
    assert_eq!(all, [true, false, false]);
    assert!(!told(Model::Skylake, 1 << 48), "a bit that means nothing there");
}

/// A processor with these bits in its status.
struct Status(Pmu, u64);

impl Registers for Status {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> raw_cpuid::CpuIdResult {
        Registers::cpuid(&self.0, leaf, subleaf)
    }
    fn rdmsr(&mut self, msr: Msr) -> Result<u64, crate::msr::Absent> {
        if msr == numbers::GLOBAL_STATUS { Ok(self.1) } else { Registers::rdmsr(&mut self.0, msr) }
    }
    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), crate::msr::Absent> {
        Registers::wrmsr(&mut self.0, msr, value)
    }
    fn rdpmc(&mut self, index: u32) -> Result<u64, crate::msr::Absent> {
        Registers::rdpmc(&mut self.0, index)
    }
}

/// GLOBAL_CTRL[48] goes with fixed counter 3, and with no other.
#[test]
fn m13_metrics_stop_with_their_slots_and_with_no_other_counter() {
    let (mut pmu, mut driver) = of(Model::IceLake);
    driver.reset(&mut pmu).unwrap();
    for counter in [FIRST, Counter::Fixed(0), SLOTS] {
        driver.program(&mut pmu, counter, &INSTRUCTIONS).unwrap();
    }
    driver.enable_metrics().unwrap();
    let on = |driver: &Driver| driver.gate().on()[0].value;
    assert_eq!(on(&driver), 1 << 48 | 0b1001 << 32 | 1);
    driver.release(&mut pmu, Counter::Fixed(0)).unwrap();
    assert_eq!(on(&driver), 1 << 48 | 0b1000 << 32 | 1);
    driver.release(&mut pmu, SLOTS).unwrap();
    assert_eq!(on(&driver), 1);
}

#[test]
fn a_gate_whose_counters_change_opens_with_the_new_ones_alone() {
    let mut gate = Gate::EMPTY.with(numbers::GLOBAL_CTRL, 1, 4).with(numbers::DEBUGCTL, 2, 0);
    gate.follow(6);
    let writes = |side: &[Write]| side.iter().map(|one| (one.msr, one.value)).collect::<Vec<_>>();
    assert_eq!(writes(gate.on()), [(0x38f, 6), (0x1d9, 2)]);
    assert_eq!(writes(gate.off()), [(0x38f, 4), (0x1d9, 0)]);
}

#[test]
fn s1_a_fixed_counters_records_keep_their_groups_however_often_it_is_programmed() {
    let control = registers::FixedControl(0).with_adaptive(1, true);
    assert_eq!(control.0, 1 << 36);
    assert_eq!(control.with_adaptive(1, true), control);
}

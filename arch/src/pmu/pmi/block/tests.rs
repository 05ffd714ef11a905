//! The block as the handlers read it.

use super::empty::NO_SLOT;
use super::*;
use crate::descriptors::{KERNEL_CODE_32, USER_CODE_32};
use crate::pmu::LbrKind;
use crate::pmu::pebs::{Format, Store};
use crate::pmu::pmi::Bucket;
use crate::pmu::pmi::{Chain, Edge};

#[test]
fn a_sample_tells_the_ring_and_the_width_of_the_interrupted_code() {
    let of = |cs: u16| {
        let sample = Sample { cs, ..Sample::default() };
        (sample.ring(), sample.is_compatibility())
    };
    assert_eq!([KERNEL_CODE_32.0, USER_CODE_32.0].map(of), [(0, true), (3, true)]);
    // Any other segment is of 64-bit code.
    assert_eq!([0x08, 0x33].map(of), [(0, false), (3, false)]);
}

/// Each of these alone is more than the assembly does: without the rest of the handler it would not happen.
#[test]
fn whatever_the_assembly_does_not_do_needs_the_service() {
    fn nothing(_: u64, _: u64) {}
    let (mut buckets, mut registers) = ([Bucket::default(); 2], [[0; REGISTERS]; 1]);
    assert!(!ControlBlock::EMPTY.needs_service());
    let needs = |change: &mut dyn FnMut(&mut ControlBlock)| {
        let mut block = ControlBlock::EMPTY;
        change(&mut block);
        block.needs_service()
    };
    assert!(needs(&mut |block| block.stop_when_full()));
    assert!(needs(&mut |block| block.registers_to(&mut registers)));
    assert!(needs(&mut |block| block.count_addresses(&mut buckets)));
    assert!(needs(&mut |block| block.throttle = Throttle::new(1000, 2)));
    assert!(needs(&mut |block| block.notify(nothing)));
    let mut store = Store::new(Format::Skylake, 4, 3);
    assert!(needs(&mut |block| block.take_records(Drain::new(&mut store, 1))));
    let (mut edges, mut chains) = ([Edge::default(); 1], [Chain::default(); 1]);
    assert!(needs(&mut |block| {
        let switch = (crate::msr::Msr(0x1d9), 1, 0);
        block.count_edges(Edges::new(LbrKind::Single, switch, &mut edges).unwrap());
    }));
    assert!(needs(&mut |block| block.count_chains(&mut chains)));
}

/// What the handler looks at, on processors with a status register and without one.
#[test]
fn a_block_has_the_registers_and_bits_of_the_programmed_counters() {
    use crate::pmu::{Selection, find};
    use pmu_model::{Host, Model, Pmu, Timing};
    let (first, second) = (Counter::General(0), Counter::General(1));
    let of = |model| {
        let mut pmu = Pmu::new(model, Host::EXAMPLE, Timing::FLAT);
        let mut driver = Driver::new(find(&mut pmu).unwrap());
        driver.program(&mut pmu, second, &Selection::of(0xc0, 0)).unwrap();
        let mut block = ControlBlock::of(&driver);
        let before = block.mask;
        assert_eq!(block.reload(&driver, first, 5), Err(PmuError::NoCounter(first)));
        block.reload(&driver, second, 5).unwrap();
        let [none, slot] = [block.slots[0], block.slots[1]];
        assert_eq!(none, NO_SLOT, "{model:?}");
        assert_eq!((slot.look_at, slot.reload), (driver.layout().counter(second).0, slot.look_at));
        let edx = (block.stays_unmasked, block.top);
        (block.status, [before, block.mask], edx, (slot.width, slot.extends_sign))
    };
    let full = |bits: u32| (1u64 << bits) - 1;
    // IA32_PERF_GLOBAL_STATUS; 40 bits, of which 32 can be written.
    let core_2 = (0x38e, [2, 2], (false, 1 << 39), (full(40), true));
    assert_eq!(of(Model::Core2), core_2);
    let skylake = (0x38e, [2, 2], (false, 1 << 47), (full(48), false));
    assert_eq!(of(Model::Skylake), skylake);
    let zen_4 = (0xc000_0300, [2, 2], (true, 1 << 47), (full(48), false));
    assert_eq!(of(Model::Zen4), zen_4);
    // Without a status register a counter tells only if it is reloaded.
    let k10 = (0, [0, 2], (true, 1 << 47), (full(48), false));
    assert_eq!(of(Model::K10), k10);
}

#[test]
fn what_goes_with_a_log_is_not_shorter_than_it() {
    let mut log = [Sample::default(); 5];
    let (mut short, mut long) = ([Datum::default(); 4], [Datum::default(); 5]);
    let mut block = ControlBlock::EMPTY;
    block.log_to(&mut log);
    block.data_to(&mut short);
    assert!(block.data_log.is_null());
    block.data_to(&mut long);
    assert!(!block.data_log.is_null());
    let (mut short, mut long) = ([[0; REGISTERS]; 4], [[0; REGISTERS]; 5]);
    block.registers_to(&mut short);
    assert!(!block.needs_registers());
    block.registers_to(&mut long);
    assert!(block.needs_registers());
}

/// Counters that write records do not interrupt by themselves: their buffer does.
#[test]
fn records_take_their_counters_bits_for_the_buffers() {
    let mut store = Store::new(Format::Skylake, 4, 3);
    let mut block = ControlBlock::EMPTY;
    block.mask = 0b111;
    block.take_records(Drain::new(&mut store, 0b010));
    // GLOBAL_STATUS[62]: the debug store's buffer.
    assert_eq!(block.mask, 0b101 | 1 << 62);
}

#[test]
fn the_assembly_finds_the_slots_where_they_are() {
    let block = ControlBlock::EMPTY;
    let begin = &raw const block as usize;
    let slot = &block.slots[0];
    let place = |field: *const u8| field as usize - begin;
    assert_eq!(place((&raw const slot.dropped).cast()), offset::UNSAMPLED);
    assert_eq!(place((&raw const slot.reload).cast()), offset::RELOAD);
    assert_eq!(place((&raw const slot.preset).cast()), offset::PRESET);
    assert_eq!(place((&raw const slot.overflows).cast()), offset::OVERFLOWS);
    assert_eq!(place(block.gate.on().as_ptr().cast()), offset::ON);
    assert_eq!(place(block.gate.off().as_ptr().cast()), offset::OFF);
}

#[test]
fn a_block_follows_the_counters_that_interrupt_now() {
    let mut block = ControlBlock::EMPTY;
    (block.mask, block.gate) = (0b11, Gate::EMPTY.with(crate::msr::Msr(0x38f), 0b11, 0));
    block.follow(0b100, 0b110);
    assert_eq!((block.mask, block.gate.on()[0].value), (0b100, 0b110));
}

/// How far from the block's beginning a field of it is.
fn at<T>(block: &ControlBlock, field: *const T) -> usize {
    field as usize - (&raw const *block) as usize
}

#[test]
fn the_assembly_finds_each_field_within_another() {
    use super::offset::{CARRY, LOOK_AT, OVERFLOWS, OWED, PRESET, RELOAD, UNSAMPLED};
    let block = &*Box::new(ControlBlock::EMPTY);
    let writes = [block.gate.on(), block.gate.off()].map(|writes| at(block, writes.as_ptr()));
    assert_eq!([offset::ON, offset::OFF], writes);
    let slot = &block.slots[0];
    let counts = [&slot.dropped, &slot.overflows].map(|field| at(block, field));
    assert_eq!([UNSAMPLED, OVERFLOWS], counts);
    assert_eq!([RELOAD, LOOK_AT], [&slot.reload, &slot.look_at].map(|field| at(block, field)));
    assert_eq!([PRESET, OWED], [&slot.preset, &slot.owed].map(|field| at(block, field)));
    assert_eq!(CARRY, at(block, &slot.carry));
    assert_eq!(offset::TOP_HIGH, at(block, &block.top) + 4, "the upper half");
}

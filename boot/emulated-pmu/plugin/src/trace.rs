//! Callbacks on accesses: with their addresses to the caches.

use crate::cells::OPEN;
use crate::facts::Facts;
use crate::memory::{self, Way};
use crate::opened::{NOTHING, Opened};
use crate::plan::Action;
use crate::qemu::{Direction, Insn, MemInfo, Registers, api};
use crate::running::running;
use crate::shape::Shape;
use crate::state::state;
use crate::tally::Tally;
use crate::translator::Translator;
use crate::vcpu::Vcpu;
use core::ffi::c_void;
use core::ptr::from_ref;
use iced_x86::{Instruction, InstructionInfoFactory};
use pmu_model::uarch::{Access, AccessKind};
use step::{Maintenance, StringOperation};

/// An access whose instruction can still fail.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Deferred {
    way: Way,
    bytes: u32,
    opened: Opened,
}

/// An instruction whose accesses the registers tell.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Begun {
    instruction: Instruction,
    opened: Opened,
    may_pass: bool,
}

/// Asks QEMU for what an action on accesses needs. `start`: the offset of the block.
pub fn apply(
    translator: &mut Translator,
    insn: Insn,
    instruction: &Instruction,
    facts: &Facts,
    start: u16,
    action: &Action,
) {
    let may_pass = facts.passes.may();
    let opened = facts.opened_early(start, Tally::NONE, false);
    // Where sizes of pages matter, the page tables are looked into.
    let registers = if state().is_shaped() { Registers::Read } else { Registers::None };
    let accessed = |callback, direction, data: *mut c_void| {
        // SAFETY: the instruction is being translated; the callback takes such data, which stays.
        unsafe { (api().accessed)(insn, callback, registers, direction, data) };
    };
    let before = |callback, data: *mut c_void| {
        // SAFETY: as above.
        unsafe { (api().before)(insn, callback, Registers::Read, data) };
    };
    match action {
        Action::Commit => before(commit, core::ptr::null_mut()),
        Action::Element => {
            if let Some(operation) = facts.repeated {
                let is_pair = operation.source && operation.destination.is_some();
                let callback = if is_pair { half_of_element } else { whole_element };
                accessed(callback, Direction::Both, packed_element(operation, may_pass));
            }
        }
        _ => match (facts.shape, &facts.touches[..]) {
            (Shape::Single, [touch]) => {
                let is_load = touch.kind == AccessKind::Load;
                let direction = if is_load { Direction::Load } else { Direction::Store };
                accessed(single, direction, packed(touch, may_pass));
            }
            (Shape::Pair, [first, second]) => {
                // The store comes last, whatever the decoder's order.
                let is_swapped = first.kind != AccessKind::Load;
                let (load, store) = if is_swapped { (second, first) } else { (first, second) };
                accessed(first_of_pair, Direction::Load, packed(load, may_pass));
                let callback = if is_swapped { store_before_load } else { load_before_store };
                accessed(callback, Direction::Store, packed(store, may_pass));
            }
            (Shape::Spanning | Shape::Deferred, [touch]) => {
                let way = Way::of_touch(touch).passing(may_pass);
                let record = Deferred { way, bytes: touch.bytes, opened };
                let stays = translator.deferred.get(record);
                let callback = if facts.shape == Shape::Deferred { deferred } else { spanning };
                accessed(callback, Direction::Both, from_ref(stays).cast_mut().cast());
            }
            (Shape::Registers, _) => {
                let record = Begun { instruction: *instruction, opened, may_pass };
                let stays = translator.begun.get(record);
                before(begun, from_ref(stays).cast_mut().cast());
                accessed(noted, Direction::Both, core::ptr::null_mut());
            }
            _ => {}
        },
    }
}

/// Way and bytes in a pointer.
fn packed(touch: &step::Touch, may_pass: bool) -> *mut c_void {
    let way = Way::of_touch(touch).passing(may_pass).number();
    (usize::from(way) | (touch.bytes as usize) << 8) as *mut c_void
}

#[inline]
fn unpacked(data: *mut c_void) -> (Way, u32) {
    (Way::of(data as usize as u8), (data as usize >> 8) as u32)
}

/// The one access of an instruction, which is done with it.
extern "C" fn single(_: u32, info: MemInfo, linear: u64, data: *mut c_void) {
    let Some(vcpu) = running() else { return };
    let (way, bytes) = unpacked(data);
    if way.may_pass() {
        return qualified(vcpu, info, linear, data);
    }
    if vcpu.traces && vcpu.is_recent(linear, bytes) {
        return vcpu.memory.hit(way);
    }
    moving(vcpu, info, linear, data);
}

/// The same where something in the caches or TLBs may move. Apart, so that the frequent case saves no registers.
#[inline(never)]
fn moving(vcpu: &mut Vcpu, info: MemInfo, linear: u64, data: *mut c_void) {
    let access = whole(vcpu, info, linear, data);
    vcpu.access(&access, false);
}

/// The same of an instruction that may pass the qualifiers.
#[inline(never)]
fn qualified(vcpu: &mut Vcpu, info: MemInfo, linear: u64, data: *mut c_void) {
    let access = whole(vcpu, info, linear, data);
    vcpu.begin_qualified();
    vcpu.access(&access, true);
    vcpu.end_qualified(true);
}

/// An access that QEMU makes in one; the width of a stack's word is QEMU's to say.
fn whole(vcpu: &Vcpu, info: MemInfo, linear: u64, data: *mut c_void) -> Access {
    let (way, bytes) = unpacked(data);
    let bytes = if bytes <= 8 { memory::size(info).min(bytes) } else { bytes };
    vcpu.accessed(info, linear, bytes, way)
}

/// The load of an instruction whose store follows.
extern "C" fn first_of_pair(_: u32, info: MemInfo, linear: u64, data: *mut c_void) {
    let Some(vcpu) = running() else { return };
    vcpu.memory.pair = Some(whole(vcpu, info, linear, data));
}

extern "C" fn load_before_store(_: u32, info: MemInfo, linear: u64, data: *mut c_void) {
    pair(info, linear, data, false);
}

extern "C" fn store_before_load(_: u32, info: MemInfo, linear: u64, data: *mut c_void) {
    pair(info, linear, data, true);
}

/// The store that ends the instruction.
fn pair(info: MemInfo, linear: u64, data: *mut c_void, swapped: bool) {
    let Some(vcpu) = running() else { return };
    let store = whole(vcpu, info, linear, data);
    let load = vcpu.memory.pair.take();
    let may = unpacked(data).0.may_pass();
    vcpu.begin_qualified();
    if swapped {
        vcpu.access(&store, may);
    }
    if let Some(load) = load {
        vcpu.access(&load, may);
    }
    if !swapped {
        vcpu.access(&store, may);
    }
    vcpu.end_qualified(may);
}

/// A part of an access that QEMU makes in several, from its start on.
extern "C" fn spanning(_: u32, info: MemInfo, linear: u64, data: *mut c_void) {
    let Some(vcpu) = running() else { return };
    // SAFETY: it was requested with such data, which stays.
    let record: &'static Deferred = unsafe { &*data.cast::<Deferred>() };
    let begins = vcpu.memory.pending.first().is_none_or(|pending| {
        // The same part again after a fault, or what another instruction left.
        !(1..u64::from(pending.bytes)).contains(&linear.wrapping_sub(pending.linear))
    });
    if begins {
        vcpu.memory.drop_pending();
        let access = record.way.access(linear, record.bytes);
        vcpu.memory.pending.push(access);
        vcpu.memory.covered = 0;
        vcpu.memory.may_pass = record.way.may_pass();
    }
    vcpu.note(info, linear);
    vcpu.memory.covered += memory::size(info);
    if vcpu.memory.covered < record.bytes {
        // What comes of it may raise a page fault that is no exit.
        if *vcpu.word(OPEN) == NOTHING {
            vcpu.open(&record.opened);
        }
        return;
    }
    vcpu.commit();
    if vcpu.opened().is_some_and(|opened| core::ptr::eq(opened, &record.opened)) {
        vcpu.close();
    }
}

/// A part of an access whose instruction can still fail.
extern "C" fn deferred(_: u32, info: MemInfo, linear: u64, data: *mut c_void) {
    let Some(vcpu) = running() else { return };
    // SAFETY: as above.
    let record: &'static Deferred = unsafe { &*data.cast::<Deferred>() };
    if vcpu.memory.pending.is_empty() {
        vcpu.memory.pending.push(record.way.access(linear, record.bytes));
        vcpu.memory.may_pass = record.way.may_pass();
    }
    vcpu.note(info, linear);
    if *vcpu.word(OPEN) == NOTHING {
        vcpu.open(&record.opened);
    }
}

/// An instruction begins whose accesses the registers tell.
extern "C" fn begun(_: u32, data: *mut c_void) {
    let Some(vcpu) = running() else { return };
    // SAFETY: as above.
    let record: &'static Begun = unsafe { &*data.cast::<Begun>() };
    vcpu.memory.drop_pending();
    let instruction = &record.instruction;
    let mut factory = InstructionInfoFactory::new();
    let mut list = Vec::new();
    step::accesses(
        &mut factory,
        instruction,
        |name| vcpu.register(name),
        |touch| {
            let access = Access::identity(touch.linear, touch.bytes, touch.kind);
            let (locked, non_temporal) = (touch.locked, touch.non_temporal);
            list.push(Access { locked, non_temporal, ..access });
        },
    );
    vcpu.memory.pending = list;
    vcpu.memory.may_pass = record.may_pass;
    if vcpu.traces {
        // QEMU may access less than the instruction does: a part that a mask leaves out.
        for page in vcpu.memory.pending_pages() {
            vcpu.physical(page);
        }
    }
    if let Some(maintenance) = memory::maintenance(instruction) {
        let linear = instruction.virtual_address(0, 0, |name, _, _| Some(vcpu.register(name)));
        let address = match maintenance {
            Maintenance::FlushLine { evicts: true } if vcpu.traces => {
                linear.and_then(|linear| vcpu.physical(linear))
            }
            _ => linear,
        };
        vcpu.memory.maintenance = Some((maintenance, address));
    }
    vcpu.open(&record.opened);
}

/// QEMU accesses something for it.
extern "C" fn noted(_: u32, info: MemInfo, linear: u64, _: *mut c_void) {
    let Some(vcpu) = running() else { return };
    vcpu.note(info, linear);
}

/// The instruction after one whose accesses were noted begins.
extern "C" fn commit(_: u32, _: *mut c_void) {
    let Some(vcpu) = running() else { return };
    vcpu.commit();
    vcpu.close();
}

/// A repeated string operation in a pointer: bytes, source, destination, whether it may pass the qualifiers.
fn packed_element(operation: StringOperation, may_pass: bool) -> *mut c_void {
    let destination = operation.destination.map_or(0, |kind| 1 + Way::new(kind, false).number());
    let word = usize::from(operation.element_bytes)
        | usize::from(operation.source) << 8
        | usize::from(destination) << 16
        | usize::from(may_pass) << 24;
    word as *mut c_void
}

/// The one access of an element.
extern "C" fn whole_element(_: u32, info: MemInfo, linear: u64, data: *mut c_void) {
    let Some(vcpu) = running() else { return };
    let word = data as usize;
    let has_source = word >> 8 & 1 != 0;
    if !vcpu.memory.runs[usize::from(!has_source)].is_quiet(linear, (word & 0xff) as u32) {
        element(vcpu, info, linear, word);
    }
}

/// One of an element's two accesses, of MOVS or CMPS. Most touch nothing new, and end here.
extern "C" fn half_of_element(_: u32, info: MemInfo, linear: u64, data: *mut c_void) {
    let Some(vcpu) = running() else { return };
    let (word, memory) = (data as usize, &mut vcpu.memory);
    let is_second = memory.quiet_half.is_some() || memory.half.is_some();
    let place = usize::from(is_source(word, is_second) == Some(false));
    let is_quiet = memory.runs[place].is_quiet(linear, (word & 0xff) as u32);
    match (is_second, is_quiet) {
        (false, true) => memory.quiet_half = Some(linear),
        (true, true) if memory.quiet_half.take().is_some() => {}
        _ => element(vcpu, info, linear, word),
    }
}

/// What an element does to its destination, if it has one.
#[inline]
fn destination(word: usize) -> Option<AccessKind> {
    ((word >> 16) as u8).checked_sub(1).map(|way| Way::of(way).kind())
}

/// Whether an access of an element is to its source; `None` if it has none.
#[inline]
fn is_source(word: usize, is_second: bool) -> Option<bool> {
    (word >> 8 & 1 != 0).then_some(match destination(word) {
        // QEMU makes an element's access to the destination last, but for CMPS.
        Some(AccessKind::Load) => is_second,
        Some(_) => !is_second,
        None => true,
    })
}

/// An access of an element that touches something new, or whose other one did.
#[inline(never)]
fn element(vcpu: &mut Vcpu, info: MemInfo, linear: u64, word: usize) {
    let (bytes, has_source) = ((word & 0xff) as u32, word >> 8 & 1 != 0);
    let (destination, may) = (destination(word), word >> 24 != 0);
    let quiet = vcpu.memory.quiet_half.take();
    // Nobody asks where it lies.
    let quiet = quiet.map(|linear| Access::identity(linear, bytes, AccessKind::Load));
    let first = vcpu.memory.half.take().or(quiet);
    let seen: &Vcpu = vcpu;
    let own = |kind| seen.accessed(info, linear, bytes, Way::new(kind, false));
    match (has_source, destination, first) {
        (true, None, _) => vcpu.element(Some(own(AccessKind::Load)), None, may),
        (false, Some(kind), _) => vcpu.element(None, Some(own(kind)), may),
        (true, Some(_), None) => vcpu.memory.half = Some(own(AccessKind::Load)),
        // CMPS: QEMU loads the destination first.
        (true, Some(AccessKind::Load), Some(first)) => {
            vcpu.element(Some(own(AccessKind::Load)), Some(first), may);
        }
        (true, Some(kind), Some(first)) => vcpu.element(Some(first), Some(own(kind)), may),
        (false, None, _) => {}
    }
}

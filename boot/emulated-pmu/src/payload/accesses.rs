//! The data that a stepped instruction touches.

use super::guest::Guest;
use super::maps::PAGE;
use super::precise::Place;
use super::qualified;
use super::retire;
use arrayvec::ArrayVec;
use emulated_pmu::step::{self, Kind, StringOperation, Touch};
use iced_x86::{Instruction, Register};
use pmu_model::Delta;
use pmu_model::uarch::{Access, AccessKind, StringRun, Tee};

/// ENTER with the deepest nesting has 30 loads and 32 stores (SDM vol. 2, ENTER). No other instruction touches as many places but a
/// repeated one; XSAVE's areas and those of its kin count once.
const MAX_ACCESSES: usize = 62;
/// RFLAGS.DF.
const DF: u64 = 1 << 10;

/// What must be known before an instruction runs.
pub struct Before {
    count: u64,
    source: u64,
    destination: u64,
    backward: bool,
    list: ArrayVec<Access, MAX_ACCESSES>,
}

impl Before {
    /// Of an instruction of which nothing must be known. No constant, of which the room for the list would be copied.
    pub fn nothing() -> Self {
        let list = ArrayVec::new();
        Self { count: 0, source: 0, destination: 0, backward: false, list }
    }

    /// Notes what must be known before `instruction` runs. Its accesses are for the model, if no plugin counts them, and
    /// for PEBS records.
    pub fn of(guest: &Guest, instruction: &Instruction) -> Self {
        let mut before = Self::nothing();
        let stepped = guest.needs.stepping_in(guest.ring());
        let modelled = stepped && guest.plugin.is_none() && guest.needs.accesses();
        if !modelled && !guest.needs.precise {
            return before;
        }
        let registers = &guest.registers;
        (before.count, before.source) = (registers.rcx, registers.rsi);
        (before.destination, before.backward) = (registers.rdi, guest.vmcb.rflags & DF != 0);
        if !matches!(step::kind(instruction), Kind::Repeated(_)) {
            let mut factory = guest.factory.borrow_mut();
            let register = |name| guest.register(name);
            step::accesses(&mut factory, instruction, register, |touch| {
                // A part that a mask leaves out counts, and may lie where nothing is.
                let physical = guest.physical(touch.linear).unwrap_or(touch.linear);
                before.push(access(guest, &touch, physical));
            });
        }
        before
    }

    fn push(&mut self, access: Access) {
        debug_assert!(!self.list.is_full(), "an instruction with more accesses than any has");
        // What is too much is left out, as nothing here can end the guest.
        let _ = self.list.try_push(access);
    }

    /// The accesses of an instruction that is not repeated.
    pub fn list(&self) -> &[Access] {
        &self.list
    }

    /// For PEBS records: the instruction, where the guest stands after it, and what it loaded and stored first.
    pub fn place(&self, guest: &Guest, instruction: Option<&Instruction>) -> Place {
        let ip = instruction.map_or(guest.stepped, Instruction::ip);
        let next = guest.linear_rip();
        let first = |kinds: [AccessKind; 2]| {
            self.list().iter().find(|access| kinds.contains(&access.kind)).map(|found| found.linear)
        };
        let mut place = Place {
            ip,
            next,
            load: first([AccessKind::Load, AccessKind::LoadStore]),
            store: first([AccessKind::Store, AccessKind::LoadStore]),
            branch: None,
            access: self.list().first().copied(),
        };
        if let Some(instruction) = instruction.filter(|_| guest.needs.precise)
            && let Kind::Repeated(operation) = step::kind(instruction)
            && Elements::of(guest, instruction, self).count > 0
        {
            let [source, destination] = bases(guest, instruction);
            let mask = StringOperation::count_mask(instruction);
            let source = source.wrapping_add(self.source & mask);
            let destination = destination.wrapping_add(self.destination & mask);
            let stores = operation.destination == Some(AccessKind::Store);
            place.store = stores.then_some(destination);
            place.load = match operation {
                StringOperation { source: true, .. } => Some(source),
                StringOperation { destination: Some(AccessKind::Load), .. } => Some(destination),
                _ => None,
            };
            place.access = operation_access(guest, &operation, &place);
        }
        place
    }
}

/// The first access of a repeated string instruction.
fn operation_access(guest: &Guest, operation: &StringOperation, place: &Place) -> Option<Access> {
    let (linear, kind) = match (place.load, place.store) {
        (Some(load), _) => (load, AccessKind::Load),
        (None, Some(store)) => (store, AccessKind::Store),
        (None, None) => return None,
    };
    let touch = Touch {
        linear,
        bytes: operation.element_bytes.into(),
        kind,
        locked: false,
        non_temporal: false,
    };
    Some(access(guest, &touch, guest.physical(linear)?))
}

/// Segment bases of the two operands of a string instruction.
fn bases(guest: &Guest, instruction: &Instruction) -> [u64; 2] {
    let source = match instruction.segment_prefix() {
        Register::None => Register::DS,
        prefix => prefix,
    };
    [source, Register::ES].map(|segment| guest.register(segment))
}

/// Elements of a repeated string instruction that are done.
struct Elements {
    count: u64,
}

impl Elements {
    /// Between `before` and now.
    fn of(guest: &Guest, instruction: &Instruction, before: &Before) -> Self {
        let mask = StringOperation::count_mask(instruction);
        Self { count: before.count.wrapping_sub(guest.registers.rcx) & mask }
    }
}

/// Reports the elements that a repeated string instruction has done, in order: of each the source's lines and then the
/// destination's, as [`StringRun`] says.
pub fn elements(
    guest: &mut Guest,
    instruction: &Instruction,
    before: &Before,
    delta: &mut Delta,
    passed: &mut Delta,
) {
    let Kind::Repeated(operation) = step::kind(instruction) else { return };
    if !guest.needs.accesses() {
        return;
    }
    let count = Elements::of(guest, instruction, before).count;
    let mask = StringOperation::count_mask(instruction);
    let bytes = u32::from(operation.element_bytes);
    let [source, destination] = bases(guest, instruction);
    // Outside 64-bit mode linear addresses have 32 bits.
    let wide = if guest.code_bits() == 64 { u64::MAX } else { 0xffff_ffff };
    let address = |base: u64, first: u64, n: u64| {
        let distance = n.wrapping_mul(bytes.into());
        let distance = if before.backward { distance.wrapping_neg() } else { distance };
        base.wrapping_add(first.wrapping_add(distance) & mask) & wide
    };
    let operands = [
        operation.source.then_some((source, before.source, AccessKind::Load)),
        operation.destination.map(|kind| (destination, before.destination, kind)),
    ];
    let parts = retire::parts(guest);
    let takes = qualified::takes(guest, instruction);
    let mut n = 0;
    while n < count {
        // Those after this one that touch nothing new at either operand.
        let mut quiet = count - n - 1;
        for (place, operand) in operands.into_iter().enumerate() {
            let Some((base, first, kind)) = operand else { continue };
            let at = address(base, first, n);
            for piece in guest.runs[place].element(at, bytes) {
                let Some(physical) = guest.physical(piece.linear) else { continue };
                let touch = Touch {
                    linear: piece.linear,
                    bytes: piece.bytes,
                    kind,
                    locked: false,
                    non_temporal: false,
                };
                let access = access(guest, &touch, physical);
                if takes && guest.counting.qualifiers().touches_line(access.linear) {
                    guest.string_touched = true;
                    guest.core.access(&access, guest.llc, parts, &mut Tee(delta, passed));
                } else {
                    guest.core.access(&access, guest.llc, parts, delta);
                }
            }
            quiet = quiet.min(StringRun::quiet(at, bytes, before.backward));
        }
        // An address that wraps is looked at again.
        let wraps = |&(base, first, _): &(u64, u64, AccessKind)| {
            address(base, first, n + quiet).abs_diff(address(base, first, n)) > PAGE
        };
        if operands.iter().flatten().any(wraps) {
            quiet = 0;
        }
        if quiet > 0 {
            for (place, operand) in operands.into_iter().enumerate() {
                let Some((base, first, _)) = operand else { continue };
                guest.runs[place].leave_out(address(base, first, n + quiet));
            }
        }
        n += 1 + quiet;
    }
}

fn access(guest: &Guest, touch: &Touch, physical: u64) -> Access {
    let &Touch { linear, bytes, kind, locked, non_temporal } = touch;
    let next = (linear & !(PAGE - 1)).wrapping_add(PAGE);
    let crosses = linear % PAGE + u64::from(bytes) > PAGE;
    let physical_next_page =
        if crosses { guest.physical(next).unwrap_or(physical) } else { physical };
    let own = Access::identity(linear, bytes, kind);
    Access { physical, physical_next_page, locked, non_temporal, ..own }
}

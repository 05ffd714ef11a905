//! Deciding what a block left open in a mode that [sees deliveries](plugin_channel::Mode::sees_deliveries): where the guest arrives
//! next, an interrupt or a page fault may have taken it.
//!
//! An element of a repeated string instruction is done when its access is: a word says so, or the count does. What an interrupt
//! finds in long mode it leaves on the stack, and that is looked at where nothing else decides.

use crate::cells::OPEN;
use crate::frame::{self, PageFault, Stack};
use crate::opened::{BEGUN, END, LOADED, Opened, STORED};
use crate::resolve::{self, Where};
use crate::tally::{self, Tally};
use crate::vcpu::Vcpu;
use iced_x86::Register;
use plugin_channel::Mailbox;
use step::Behind;

/// What became of an element of a repeated string instruction that began.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Element {
    /// It is done, and others may follow.
    Done,
    /// There was none left, and the instruction ended.
    Ended,
    /// It raised an exception, or begins once more.
    Failed,
}

/// What became of it. `state`: the word of what is open. `noted`, `count`: RCX before an element with two loads, and now.
pub const fn element(opened: &Opened, state: u64, noted: u64, count: u64) -> Element {
    let &Opened::Repeat { pair, count_mask, .. } = opened else { return Element::Done };
    let changed = (count ^ noted) & count_mask != 0;
    match state {
        _ if state & (LOADED | STORED) != 0 || pair && changed => Element::Done,
        _ if count & count_mask == 0 => Element::Ended,
        _ => Element::Failed,
    }
}

/// Whether [`arrived`] and [`left`] decide what is open: no branch.
pub const fn decides(state: u64) -> bool {
    BEGUN <= state && state < END
}

/// A block starts at `offset`. `next_element`: it begins with a repeated string instruction.
pub fn arrived(vcpu: &mut Vcpu, opened: &Opened, offset: u16, next_element: bool) {
    match opened {
        Opened::Repeat { ip, .. } => {
            let count = vcpu.register(Register::RCX);
            let element = element(opened, *vcpu.word(OPEN), vcpu.noted_count, count);
            let again = next_element && offset == *ip;
            let ends = ends(element, again, || ends_early(opened, offset, &vcpu.stack()));
            string(vcpu, element == Element::Failed, ends);
            if !again {
                // After a handler the instruction accesses its lines anew.
                vcpu.memory.end_string();
            }
        }
        Opened::Early { ip, tally, .. } => {
            if vcpu.restarts(opened, offset) || frame::faulted(&vcpu.stack(), *ip) {
                vcpu.sums.add(tally, u64::MAX);
            }
        }
        Opened::Branch { .. } => {}
    }
    vcpu.close();
}

/// The guest has left at `offset` while an element was open: at an instruction that is not done, if `failed`.
pub fn left(vcpu: &mut Vcpu, opened: &Opened, failed: bool, offset: u16, exit: &Mailbox) {
    match opened {
        Opened::Repeat { ip, .. } => {
            let state = *vcpu.word(OPEN);
            let element = element(opened, state, vcpu.noted_count, exit.rcx);
            let here = offset == *ip;
            // What comes after a load may fail.
            let undone = failed && here && state & STORED == 0;
            let ends = ends(element, here, || ends_early(opened, offset, &exit.stack));
            string(vcpu, element == Element::Failed || undone, ends);
        }
        Opened::Early { ip, tally, .. } => {
            if failed && offset == *ip || frame::faulted(&exit.stack, *ip) {
                vcpu.sums.add(tally, u64::MAX);
            }
        }
        Opened::Branch { .. } => {}
    }
    vcpu.close();
}

/// Whether a repeated string instruction ended. `continues`: the guest is at its next element.
fn ends(element: Element, continues: bool, early: impl FnOnce() -> bool) -> bool {
    match element {
        Element::Done => !continues && early(),
        Element::Ended => true,
        Element::Failed => false,
    }
}

/// A block starts where the handler of page faults may: whether it does, and what is open has been decided by the fault's frame, as at
/// an exit for it.
#[inline(never)]
pub fn faulted(vcpu: &mut Vcpu, opened: &Opened) -> bool {
    let (rip, rcx) = (vcpu.rip(), vcpu.register(Register::RCX));
    let stack = vcpu.stack();
    is_fault(vcpu, opened, rip, rcx, &stack)
}

/// The same where the guest stands at `rip`, with these registers.
pub fn is_fault(vcpu: &mut Vcpu, opened: &Opened, rip: u64, rcx: u64, stack: &Stack) -> bool {
    if vcpu.fault_handler != Some(rip) {
        return false;
    }
    let Some(PageFault { rip, rflags, began }) = frame::page_fault(stack) else { return false };
    vcpu.behind = Some(Behind { rip, rflags, rcx });
    resolve::next(vcpu, opened, if began { Where::Failed(rip) } else { Where::Left(rip) });
    vcpu.behind = None;
    // After the handler a repeated string instruction accesses its lines anew.
    vcpu.memory.end_string();
    true
}

/// An element failed, or the instruction ended, or neither.
fn string(vcpu: &mut Vcpu, failed: bool, ends: bool) {
    if failed {
        vcpu.sums.add(&Tally::one(tally::STRING_STARTS), u64::MAX);
        vcpu.memory.drop_pending();
    } else if ends {
        vcpu.string_ends += 1;
        vcpu.memory.end_string();
    }
}

/// Whether a repeated string instruction ended although its count did not, where the guest has arrived elsewhere than at its next
/// element. Only what an interrupt has left on the stack tells which of the two it came after.
fn ends_early(opened: &Opened, offset: u16, stack: &Stack) -> bool {
    let &Opened::Repeat { ip, next, compares: true, .. } = opened else { return false };
    match frame::interrupted(stack, |at| at == ip || at == next) {
        Some(at) => at == next,
        None => offset == next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e1_what_became_of_an_element_of_a_string_is_seen_by_its_count() {
        use Element::{Done, Ended, Failed};
        let of = |pair, state, noted, count| {
            let (ip, next, count_mask) = (0x10, 0x12, 0xffff_ffff);
            let (stores, passes, compares) = (false, false, pair);
            let opened = Opened::Repeat { ip, next, stores, passes, pair, compares, count_mask };
            element(&opened, state, noted, count)
        };
        // An access that was done, with more to come or not.
        assert_eq!([of(false, LOADED | 0x10, 0, 5), of(false, LOADED | 0x10, 0, 0)], [Done; 2]);
        assert_eq!(of(false, STORED | 0x10, 0, 5), Done);
        // One of the two loads is not enough.
        assert_eq!([of(false, BEGUN, 9, 5), of(true, BEGUN, 5, 5)], [Failed; 2]);
        assert_eq!([of(true, BEGUN, 5, 4), of(true, BEGUN, 1, 0)], [Done; 2]);
        // Nothing was left, in the part of RCX that counts.
        assert_eq!([of(false, BEGUN, 9, 0), of(true, BEGUN, 0, 1 << 32)], [Ended; 2]);
    }
}

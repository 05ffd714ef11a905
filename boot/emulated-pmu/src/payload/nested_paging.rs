//! Nested paging, as far as [`super::code`] needs it: switching it on and off, and its faults.

use super::code::Verdict;
use super::guest::Guest;
use super::maps::{Maps, PAGE, Tree};
use super::port::read_msr;
use super::processors::guard;
use super::{breakpoint, debug, events, exits};
use emulated_pmu::debug_registers::{Placed, Which};
use emulated_pmu::region;
use emulated_pmu::vmcb::Intercepts;

const PAT: u32 = 0x277;
/// Exit information of a nested page fault: AMD APM vol. 2, 15.25.6.
const PRESENT: u64 = 1 << 0;
const WRITE: u64 = 1 << 1;
const FETCH: u64 = 1 << 4;
/// After so many stays in which nothing was counted by the clock, code is no longer watched.
const IDLE_STAYS: u32 = 256;

/// Intercepts of control and debug registers: writes in the upper half, by number.
const WRITES: u32 = 16;
const WRITE_CR3: u32 = 1 << (WRITES + 3);
const WRITE_CR0: u32 = 1 << WRITES;
const WRITE_CR4: u32 = 1 << (WRITES + 4);
const ALL_DEBUG: u32 = u32::MAX;

/// For a guest run that counts by the clock: sets the breakpoints of the watched pages in addition to the guest's.
pub fn watch(guest: &mut Guest) -> Placed {
    if !guest.code.is_active() {
        // It forgets all that is known, which takes long.
        let shift = guest.calibration.shift;
        guest.timer.step(shift);
        guest.code.begin();
        guest.timer.run(shift);
    }
    guest.idle_stays = 0;
    enable(guest, Tree::Searched);
    let watched = *guest.code.watched();
    if watched.addresses().is_empty() {
        return breakpoint::arm_guests(guest, Which::All);
    }
    guest.vmcb.cr_intercepts |= WRITE_CR3;
    // Faults too, and interrupts: they must not leave RF after for a candidate.
    guest.vmcb.exceptions = u32::MAX;
    guest.vmcb.add_intercepts(Intercepts::INTR);
    // There is room, as the guest's breakpoints change only with nothing watched.
    breakpoint::arm(guest, watched.addresses(), Which::All).unwrap_or_default()
}

/// For a guest run in a page with too many candidates: no other page may be executed, and the breakpoints are where code
/// leaves it unforeseen. `None` if they are too many.
pub fn enter_in_page(guest: &mut Guest) -> Option<Placed> {
    let rip = guest.linear_rip();
    if guest.event.is_some() || guest.nmi_pending {
        return None;
    }
    let physical = guest.physical(rip)? & !(PAGE - 1);
    // SAFETY: a page of the guest's memory, identity mapped, which the guest does not change meanwhile.
    let bytes = unsafe { &*(physical as *const [u8; PAGE as usize]) };
    let stops = region::stops(bytes, rip & !(PAGE - 1), rip, guest.code_bits())?;
    // As in `CodeMap::on_execute`.
    let meets = stops.addresses().iter().any(|&stop| guest.debug.on_instruction(stop) != 0);
    if stops.addresses().len() > guest.debug.room() || meets || !guest.code.allow_alone(physical) {
        return None;
    }
    enable(guest, Tree::Single);
    guest.idle_stays = 0;
    guest.vmcb.cr_intercepts |= WRITE_CR3;
    breakpoint::arm(guest, stops.addresses(), Which::All)
}

/// For any other guest run. Code stays watched for a while, because counting may continue soon.
pub fn idle(guest: &mut Guest) {
    guest.idle_stays = guest.idle_stays.saturating_add(1);
    if guest.idle_stays == IDLE_STAYS {
        guest.code.end();
    }
    enable(guest, Tree::Everything);
}

fn enable(guest: &mut Guest, tree: Tree) {
    let vmcb = &mut guest.vmcb;
    vmcb.cr_intercepts = if guest.lets_control_writes { 0 } else { WRITE_CR0 | WRITE_CR4 };
    vmcb.dr_intercepts = ALL_DEBUG;
    vmcb.nested_control = u64::from(guest.code.is_active());
    vmcb.nested_cr3 = guest.code.root(tree);
    // SAFETY: every x86-64 processor has the register; the guest's value is live in it.
    vmcb.pat = unsafe { read_msr(PAT) };
    guard::apply(vmcb);
}

/// Whether a nested page fault is that of a page which is watched: neither a nested guest's, nor an access to the local APIC.
pub fn is_ours(guest: &Guest) -> bool {
    !guest.svm.runs_nested() && !exits::is_apic_access(guest)
}

/// A nested page fault. True if the next instruction must be stepped.
pub fn fault(guest: &mut Guest) -> bool {
    let (error, physical) = (guest.vmcb.exit_info_1, guest.vmcb.exit_info_2);
    // What was being delivered still is.
    guest.event = events::take_delivery(guest);
    if error & PRESENT == 0 || !Maps::covers(physical) {
        debug::line(format_args!(
            "{physical:#x} is out of reach: repeated string instructions are counted by iteration"
        ));
        guest.code.give_up();
        return false;
    }
    let rip = guest.linear_rip();
    let here = guest.physical(rip).is_some_and(|at| at / PAGE == physical / PAGE);
    let verdict = if error & FETCH != 0 {
        // Searching a page takes as long as a guest may have set its timer for: it must not ring meanwhile.
        guest.timer.step(guest.calibration.shift);
        // An instruction may begin in one page and end in the next.
        let linear = if here { rip } else { (rip & !(PAGE - 1)) + PAGE };
        let bits = guest.code_bits();
        let verdict = guest.code.on_execute(physical, linear, bits, &guest.debug);
        // If both pages have candidates, too many together, watching the one forbids the other, and such an instruction
        // would never have both: it is stepped.
        if here { verdict } else { Verdict::Step }
    } else if error & WRITE != 0 {
        let next = guest.physical((rip & !(PAGE - 1)) + PAGE);
        let straddles =
            rip % PAGE > PAGE - 15 && next.is_some_and(|next| next / PAGE == physical / PAGE);
        guest.code.on_write(physical, here || straddles)
    } else {
        Verdict::Run
    };
    verdict == Verdict::Step
}

/// Another address space: a watched page may be executed at another linear address there.
pub fn recheck(guest: &mut Guest) {
    let watched = *guest.code.watched();
    for (page, linear) in watched.pages() {
        if guest.physical(linear).map(|at| at & !(PAGE - 1)) != Some(page) {
            guest.code.unwatch(page);
        }
    }
}

/// Whether the guest is at an instruction with a breakpoint of ours: its frames must not say "resume without".
pub fn is_candidate(guest: &Guest) -> bool {
    guest.code.watched().addresses().contains(&guest.linear_rip())
}

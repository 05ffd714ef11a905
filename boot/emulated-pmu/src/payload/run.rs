//! The loop: what the PMU's registers request decides how the guest runs on.

use super::guest::{Guest, RF, TF};
use super::{
    bulk, clock, delivery, events, free, nested_guest, nested_paging, precise, processors,
    statistics, step,
};
use emulated_pmu::statistics::Way as Kind;
use emulated_pmu::translator::{self, Plan};
use emulated_pmu::vmcb::Event;

/// Closer to an overflow than this many instructions the guest is stepped. The alarm clock must be further away, or
/// it would ring before the guest executes anything: its tick is 10 instructions at shift 0.
const NEAR: u64 = 16;

/// How the guest runs until its next exit.
enum Way {
    /// Nothing is counted.
    Free,
    /// Instructions are counted, at full speed. With the number until the next overflow, if there will be one.
    Bulk(Option<u64>),
    /// The same, in a page whose string instructions cannot all be watched.
    InPage(Option<u64>),
    /// One instruction.
    Step,
}

impl Way {
    fn kind(&self) -> Kind {
        match self {
            Self::Free => Kind::Free,
            Self::Bulk(_) => Kind::Bulk,
            Self::InPage(_) => Kind::Page,
            Self::Step => Kind::Step,
        }
    }
}

/// Runs the guest for good.
pub fn run(guest: &mut Guest) -> ! {
    let shift = guest.calibration.shift;
    loop {
        processors::turns::take(guest);
        if !guest.is_counted() {
            // No alarm rings where nothing is counted, and no counter floods the guest: an NMI that waits comes now.
            guest.nmi_not_before = 0;
        }
        nested_guest::poll(guest);
        let way = way(guest);
        match way {
            Way::Step if is_stepped(guest) => guest.timer.step(shift),
            _ => guest.timer.run(shift),
        }
        // AMD's free-running counter of instructions alone, which Linux switches on before it measures its clocks, is none.
        let needs = &guest.needs;
        let counts = needs.bulk | needs.stepped != 0 || needs.branch_records;
        if counts && !matches!(way, Way::Free) {
            clock::begin();
            guest.pm_timer.start();
        }
        statistics::note(|seen| seen.way(way.kind()));
        match way {
            Way::Free => free::enter(guest),
            Way::Bulk(left) => bulk::enter(guest, left),
            Way::InPage(left) => bulk::enter_in_page(guest, left),
            Way::Step => step::step(guest),
        }
    }
}

/// Whether the next instruction would be stepped however far away every overflow is.
fn is_stepped(guest: &Guest) -> bool {
    let ring = guest.next_ring();
    guest.needs.stepping_in(ring) && !guest.counts_at_speed(ring)
}

fn way(guest: &mut Guest) -> Way {
    precise::begin(guest);
    // What is delivered decides in which ring the guest continues; a debug exception that waits comes before it.
    if guest.held == 0 && !guest.after_ss {
        events::choose(guest);
        delivery::here(guest);
    }
    plan(guest);
    let needs = &guest.needs;
    // An NMI must not come before the next instruction, and has to come right after it; or right after what is delivered
    // first. An interrupt that waits comes as soon as the guest lets it in, after what is delivered first as well.
    let held_back = guest.in_shadow() || guest.event.is_some() && guest.nmi_in() == 0;
    let waits = guest.awaits_nmi() && held_back
        || !guest.waiting.is_empty() && guest.event.is_some()
        || nested_guest::delivers_before_others(guest);
    // A breakpoint waits; or a frame must be held against the guest's breakpoints.
    let debug = guest.after_ss || guest.held != 0;
    let delivers = guest.event.is_some();
    // QEMU sets RF in the frame of an interrupt as in that of a fault.
    let interrupts = matches!(guest.event, Some(Event::Interrupt { .. } | Event::Nmi));
    let frame =
        interrupts || delivers && (guest.debug.is_active() || nested_paging::is_candidate(guest));
    // The delivery is a record itself.
    let recorded = delivers && needs.branch_records;
    let stepped = is_stepped(guest) || recorded;
    if waits || debug || frame || stepped || needs.branch_trap {
        return Way::Step;
    }
    if !guest.is_counted() {
        return Way::Free;
    }
    // It steps itself, or continues without a breakpoint, which might be the hypervisor's, who needs none with a plugin.
    let own = if guest.plugin.is_some() { TF } else { TF | RF };
    if guest.event.is_none() && guest.vmcb.rflags & own != 0 {
        return Way::Step;
    }
    // QEMU begins an instruction that meets a breakpoint on data twice.
    if guest.plugin.is_some() && guest.debug.watches_data() {
        return Way::Step;
    }
    let ring = guest.next_ring();
    let Some(occurrences) = limits(guest) else { return Way::Step };
    let overflow = guest.counting.until_overflow(ring, guest.tells_rings_apart());
    // The alarm comes before its time is over, not at it: among the elements of a string instruction, whose iterations the clock
    // counts, it is then delivered after the last one, as where each instruction is stepped.
    let nmi = guest.awaits_nmi().then(|| guest.nmi_in()).and_then(|left| left.checked_sub(1));
    match overflow.into_iter().chain(nmi).chain(occurrences).min() {
        Some(left) if left <= NEAR => {
            if let Some(plugin) = &mut guest.plugin {
                plugin.drop_limits();
            }
            Way::Step
        }
        left if guest.code.is_crowded(guest.linear_rip()) => Way::InPage(left),
        left => Way::Bulk(left),
    }
}

/// Tells the plugin what the next guest run needs.
fn plan(guest: &mut Guest) {
    let split = guest.tells_rings_apart();
    let ring = guest.next_ring();
    let Some(plugin) = &mut guest.plugin else { return };
    // Those of the others are in no block's code.
    let overflows = guest.counting.limits(ring, split).any(|limit| translator::is_near(&limit));
    let now = clock::now() >> guest.calibration.shift;
    let qualifiers = guest.counting.qualifiers();
    plugin.plan(translator::mode(&guest.needs, overflows && plugin.stops), qualifiers, now);
}

/// Gives the plugin its limits for a guest run at full speed. `None`: an overflow is so near that the guest must be stepped.
/// Otherwise the instructions until it could be, if the plugin cannot tell.
fn limits(guest: &mut Guest) -> Option<Option<u64>> {
    let (ring, split) = (guest.next_ring(), guest.tells_rings_apart());
    let Some(plugin) = &mut guest.plugin else { return Some(None) };
    match Plan::of(guest.counting.limits(ring, split), plugin.stops, plugin.lead()) {
        Plan::Step => None,
        Plan::Run { limits, instructions } => {
            plugin.set_limits(&limits);
            Some(instructions)
        }
    }
}

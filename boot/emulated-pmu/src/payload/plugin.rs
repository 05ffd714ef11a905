//! The plugin in QEMU's translator, which counts what the guest executes at full speed: calls to it, and what it answers.
//! See the crate `plugin-channel`.

use super::{debug, lapic, processors, statistics};
use core::arch::asm;
use core::mem::offset_of;
use core::ptr::{addr_of, addr_of_mut};
use emulated_pmu::options::Keeping;
use emulated_pmu::step::Behind;
use emulated_pmu::translator::Modes;
use plugin_channel::{
    ANSWER, CALL_BYTES, Command, Limit, MAX_LIMITS, MAX_RECORDS, Mailbox, Mode, Parts, Place,
    QUESTION, Record, STACK_WORDS, VERSION, call,
};
use pmu_model::uarch::Parameters;
use pmu_model::{Delta, OCCURRENCES, Qualifiers, Ring};

const PAGE: usize = 4096;
/// A call and the return after it.
const STRIDE: usize = 16;
const RET: u8 = 0xc3;

/// The page of the calls, and the mailbox after it. All memory is mapped one to one here and may be executed.
#[repr(C, align(4096))]
struct Channel {
    calls: [u8; PAGE],
    mailbox: Mailbox,
}

const _: () = assert!(offset_of!(Channel, mailbox) == PAGE);

static mut CHANNEL: Channel = Channel { calls: calls(), mailbox: Mailbox::EMPTY };

const fn calls() -> [u8; PAGE] {
    use Command::*;
    let all = [Who, Region, Mode, Enter, Exit];
    let mut page = [RET; PAGE];
    let mut index = 0;
    while index < all.len() {
        let bytes = call(all[index]);
        let at = all[index] as usize * STRIDE;
        let mut byte = 0;
        while byte < CALL_BYTES {
            page[at + byte] = bytes[byte];
            byte += 1;
        }
        index += 1;
    }
    page
}

/// Where the hypervisor lies.
pub fn own_start() -> u64 {
    &raw const __executable_start as u64
}

unsafe extern "C" {
    /// The image's first byte, by the linker.
    static __executable_start: u8;
    /// The first byte after it.
    static _end: u8;
}

/// Reads a field of the mailbox.
macro_rules! get {
    ($($field:tt)+) => {
        // SAFETY: the mailbox is this processor's, and changes in a call alone; volatile, as the plugin writes to it.
        unsafe { addr_of!(CHANNEL.mailbox.$($field)+).read_volatile() }
    };
}

/// Writes a field of the mailbox.
macro_rules! set {
    ($field:ident, $value:expr) => {{
        let value = $value;
        // SAFETY: as above.
        unsafe { addr_of_mut!(CHANNEL.mailbox.$field).write_volatile(value) }
    }};
}

fn execute(command: Command) {
    let at = &raw const CHANNEL as u64 + (command as usize * STRIDE) as u64;
    // SAFETY: a NOP and a return, in a page that may be executed.
    unsafe { asm!("call {at}", at = in(reg) at) };
}

/// The plugin, and what it has counted that the PMU has not been told.
pub struct Plugin {
    modes: Modes,
    /// It can make the guest leave.
    pub stops: bool,
    /// What the PMU has not been told.
    counts: [u64; OCCURRENCES],
    /// The same of what passes the qualifiers, and the instructions of that.
    passed: [u64; OCCURRENCES],
    passed_instructions: u64,
    /// The qualifiers that it has.
    qualifiers: Qualifiers,
    /// Where the guest left.
    left_at: u64,
    /// The limits are for the guest run that comes; the mailbox has others than none.
    limited: bool,
    has_limits: bool,
}

impl Plugin {
    /// Asks for it. Says so if there is one that speaks otherwise.
    pub fn find(parameters: Option<&Parameters>, keeping: Keeping) -> Option<Self> {
        set!(question, QUESTION);
        set!(answer, 0);
        execute(Command::Who);
        if get!(answer) != ANSWER {
            return None;
        }
        let version = get!(version);
        if version != VERSION {
            debug::line(format_args!(
                "the plugin in QEMU uses version {version} of the channel, not {VERSION}: it is not used"
            ));
            return None;
        }
        // It does not tell processors apart that run at the same time, as those do that are outside of the hypervisor.
        if get!(processors) > processors::count() as u64 {
            return None;
        }
        set!(region_start, own_start());
        set!(region_end, &raw const _end as u64);
        set!(own, &raw const CHANNEL as u64);
        set!(apic_id, lapic::own_id().into());
        set!(parameters, parameters.map_or([0; Parameters::WORDS], Parameters::words));
        execute(Command::Region);
        Some(Self {
            modes: Modes::new(keeping),
            stops: get!(stops) != 0,
            counts: [0; OCCURRENCES],
            passed: [0; OCCURRENCES],
            passed_instructions: 0,
            qualifiers: Qualifiers::RESET,
            left_at: 0,
            limited: false,
            has_limits: false,
        })
    }

    /// A stay comes that needs `mode`, at this time in instructions, and these qualifiers, if that is in the mode.
    pub fn plan(&mut self, mode: Mode, qualifiers: &Qualifiers, now: u64) {
        let requalified = mode.contains(Mode::QUALIFIED) && self.qualifiers != *qualifiers;
        let changed = self.modes.plan(mode, now);
        if let Some(mode) = changed.or(requalified.then_some(self.modes.current())) {
            if mode.contains(Mode::QUALIFIED) {
                self.qualifiers = *qualifiers;
                set!(qualifiers, qualifiers.words());
            }
            statistics::note(|seen| seen.modes += 1);
            set!(mode, mode.bits());
            execute(Command::Mode);
        }
    }

    /// Whether it must be told of stays: something is counted; or on another processor, with the same translated code.
    pub fn is_on(&self) -> bool {
        !self.modes.current().is_empty() || processors::are_shared()
    }

    /// Whether it sees by itself what is delivered to a guest in long mode. With several processors another one may change how all
    /// code is translated.
    pub fn sees_deliveries(&self) -> bool {
        self.modes.current().sees_deliveries() && !processors::are_shared()
    }

    /// Whether it keeps where linear pages lie, which what it does not see must not change.
    pub fn keeps_translations(&self) -> bool {
        self.modes.current().contains(Mode::MEMORY)
    }

    /// Whether it sees the guest's IRETs: code is translated for something.
    pub fn sees_returns(&self) -> bool {
        !self.modes.current().is_empty()
    }

    /// Whether it sees the delivery of page faults alone.
    pub fn sees_page_faults(&self) -> bool {
        self.modes.current().sees_page_faults() && !processors::are_shared()
    }

    /// Where the guest handles page faults in the run that comes, if it does not leave for them.
    pub fn set_fault_handler(&mut self, handler: Option<u64>) {
        set!(fault_handler, handler.unwrap_or(0));
    }

    /// The guest continues elsewhere than where it left.
    pub fn goes_elsewhere(&mut self) {
        self.left_at = u64::MAX;
    }

    /// The most occurrences that two blocks have had.
    pub fn lead(&self) -> u64 {
        get!(lead)
    }

    /// The limits of the next guest run.
    pub fn set_limits(&mut self, limits: &[Limit; MAX_LIMITS]) {
        set!(limits, *limits);
        (self.limited, self.has_limits) = (true, true);
    }

    /// The next guest run has none after all.
    pub fn drop_limits(&mut self) {
        self.limited = false;
    }

    /// The guest is about to run at the linear address `rip`, unless something is delivered to it first.
    pub fn enter(&mut self, rip: u64, delivers: bool, mut parts: Parts, kinds: u32) {
        if !self.limited && self.has_limits {
            set!(limits, [Limit { selection: 0, left: 0 }; MAX_LIMITS]);
            self.has_limits = false;
        }
        self.limited = false;
        parts.set(Parts::RESUMES, rip == self.left_at && !delivers);
        set!(parts, parts.bits());
        set!(record_kinds, u64::from(kinds));
        execute(Command::Enter);
    }

    /// The guest has left, with these registers and this [`Mailbox::stack`]. What was counted is kept if `counts`. Returns what must be added
    /// to the clock's instructions, as it counts repeated string instructions by iteration, and whether an NMI was requested.
    pub fn exit(
        &mut self,
        at: &Behind,
        place: Place,
        stack: [u64; STACK_WORDS],
        counts: bool,
    ) -> Left {
        self.left_at = at.rip;
        set!(stack, stack);
        set!(rip, at.rip);
        set!(rflags, at.rflags);
        set!(rcx, at.rcx);
        set!(place, place as u64);
        execute(Command::Exit);
        for (index, sum) in self.counts.iter_mut().enumerate() {
            *sum = if counts { sum.wrapping_add(get!(counts[index])) } else { 0 };
        }
        if self.qualifiers != Qualifiers::RESET {
            for (index, sum) in self.passed.iter_mut().enumerate() {
                *sum = if counts { sum.wrapping_add(get!(qualified[index])) } else { 0 };
            }
            let sum = self.passed_instructions.wrapping_add(get!(qualified_instructions));
            self.passed_instructions = if counts { sum } else { 0 };
        }
        let instructions = get!(string_ends).wrapping_sub(get!(string_starts));
        Left { instructions, stopped: get!(stopped) != 0, returned: get!(returned) != 0 }
    }

    /// Whether the guest is at a repeated string instruction of which an iteration was the last thing that it did.
    pub fn has_open_string(&self) -> bool {
        self.is_on() && get!(string_open) != 0
    }

    /// The repeated string instruction at which the guest is, by [`Plugin::has_open_string`], is done.
    pub fn end_open_string(&mut self) {
        const PASSES: u64 = 1 << 1;
        if self.has_open_string() && get!(string_open) & PASSES != 0 {
            self.passed_instructions = self.passed_instructions.wrapping_add(1);
        }
    }

    /// What was counted since the last time of what passes the qualifiers.
    pub fn take_passed(&mut self, ring: Ring) -> Delta {
        let counts = core::mem::replace(&mut self.passed, [0; OCCURRENCES]);
        Delta::counted(ring, core::mem::take(&mut self.passed_instructions), &counts)
    }

    /// What was counted since the last time, with the instructions that retired meanwhile.
    pub fn take(&mut self, ring: Ring, instructions: u64) -> Delta {
        let counts = core::mem::replace(&mut self.counts, [0; OCCURRENCES]);
        Delta::counted(ring, instructions, &counts)
    }

    /// The branches of the last guest run.
    pub fn records(&self) -> Branches {
        Branches { count: get!(records.count), position: get!(records.position) }
    }
}

/// What an exit tells.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    /// To be added to the clock's instructions, wrapping.
    pub instructions: u64,
    /// An NMI was requested, which may still wait.
    pub stopped: bool,
    /// The guest began an IRET.
    pub returned: bool,
}

/// The branch records of a guest run.
#[derive(Clone, Copy, Debug)]
pub struct Branches {
    count: u64,
    position: u64,
}

impl Branches {
    /// Those that are listed, oldest first.
    pub fn listed(self) -> impl Iterator<Item = Record> {
        let count = usize::try_from(self.count).unwrap_or(MAX_RECORDS).min(MAX_RECORDS);
        (0..count).map(|index| get!(records.list[index]))
    }

    /// How many came before those.
    pub fn unlisted(self) -> u64 {
        self.count.saturating_sub(MAX_RECORDS as u64)
    }

    /// Instructions up to the last one.
    pub fn position(self) -> u64 {
        self.position
    }
}

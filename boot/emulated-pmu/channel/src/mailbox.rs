//! The page through which operands and results go.

use pmu_model::OCCURRENCES;
use pmu_model::qualify;
use pmu_model::uarch::Parameters;

/// Room for counts, one for each [`pmu_model::Occurrence`] by its discriminant.
pub const SLOTS: usize = 64;
/// Counters that can overflow on single occurrences at a time.
pub const MAX_LIMITS: usize = 10;
/// Branch records that are kept: no processor has more.
pub const MAX_RECORDS: usize = 32;

const _: () = assert!(OCCURRENCES <= SLOTS);

/// A counter that is about to overflow. The guest leaves, by an NMI, when the sum of the occurrences reaches `left` or
/// earlier, and never later:
///
/// - if the selection has branches alone, right after the branch that makes the sum `left`, or before it;
/// - otherwise at the latest at the start of a block in which the sum could get beyond `left`. With `left` at most the
///   mailbox's `lead` that may be where the guest stands: then it must be stepped.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(C)]
pub struct Limit {
    /// Occurrences, as bits by discriminant. 0: no limit.
    pub selection: u64,
    /// How many of them.
    pub left: u64,
}

/// A branch that was taken.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(C)]
pub struct Record {
    /// Linear address of the instruction.
    pub from: u64,
    /// Linear address where it went.
    pub to: u64,
    /// [`pmu_model::BranchKind`] by discriminant.
    pub kind: u32,
    /// 1: the predictor was wrong.
    pub mispredicted: u32,
    /// Instructions since the record before it or the last exit, whichever is later, this one included.
    pub instructions: u64,
}

/// The branches since the last exit, the last of them last.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Records {
    /// How many were to be recorded, of which the list has the last ones.
    pub count: u64,
    /// Instructions from the last exit to the last of them, that one included.
    pub position: u64,
    /// From the first on, as many as there are and fit: oldest first.
    pub list: [Record; MAX_RECORDS],
}

/// Words at RSP: the frame of an interrupt has five in long mode, and that of a page fault its error code below them (SDM vol. 3,
/// 6.14.2).
pub const STACK_WORDS: usize = 6;

/// Operands and results. All of it is in one page.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(4096))]
pub struct Mailbox {
    /// Who: [`crate::QUESTION`].
    pub question: u64,
    /// Who: [`crate::ANSWER`].
    pub answer: u64,
    /// Who: [`crate::VERSION`] of the plugin.
    pub version: u64,
    /// Who: 1 if the plugin can make the guest leave, so that limits hold.
    pub stops: u64,
    /// Region: the hypervisor's first byte, physical.
    pub region_start: u64,
    /// Region: the first byte after it.
    pub region_end: u64,
    /// Region: the physical address of the page of the calls.
    pub own: u64,
    /// Mode: [`crate::Mode`].
    pub mode: u64,
    /// Enter: [`crate::Parts`].
    pub parts: u64,
    /// Enter: which branches are recorded, as bits by [`pmu_model::BranchKind`]'s discriminant.
    pub record_kinds: u64,
    /// Region: the id of this processor's local APIC, to which an NMI goes that makes the guest leave.
    pub apic_id: u64,
    /// Exit: RIP, linear.
    pub rip: u64,
    /// Exit: [`crate::Place`].
    pub place: u64,
    /// Exit: repeated string instructions that were begun, or begun again for a further iteration: as often as QEMU's
    /// clock has counted one.
    pub string_starts: u64,
    /// Exit: those that came to their end.
    pub string_ends: u64,
    /// Exit: retired instructions, a repeated string instruction once, at its end; only with [`crate::Mode::INSTRUCTIONS`].
    pub instructions: u64,
    /// Enter (with its limits in mind) and Exit: most occurrences, of anything but branches, that a block has had so far, and a block before it: see [`Limit`].
    pub lead: u64,
    /// Exit: 1 if RIP is at a repeated string instruction of which an iteration is done and which has not end;
    /// 3: and which passes the qualifiers.
    pub string_open: u64,
    /// Exit: NMIs that were requested since the last one, to make the guest leave. They may come as late as after the exit.
    pub stopped: u64,
    /// Exit: 1 if the guest began an IRET since the last one.
    pub returned: u64,
    /// Enter.
    pub limits: [Limit; MAX_LIMITS],
    /// Exit: occurrences.
    pub counts: [u64; SLOTS],
    /// Exit.
    pub records: Records,
    /// Who: vCPUs of the machine.
    pub processors: u64,
    /// Exit: RFLAGS and RCX, by which a conditional jump to the next instruction is judged. The plugin makes the guest leave after
    /// one, if it can.
    pub rflags: u64,
    /// See there.
    pub rcx: u64,
    /// Enter, in a mode that [sees page faults](crate::Mode::sees_page_faults): the linear address of the guest's handler; 0: the guest
    /// leaves for them.
    pub fault_handler: u64,
    /// Exit, at [`crate::Place::Boundary`] in such a mode, or one that [sees deliveries](crate::Mode::sees_deliveries): the guest's
    /// words at RSP, 0 where there is none.
    pub stack: [u64; STACK_WORDS],
    /// Region: [`Parameters::words`] of caches, TLBs and predictor; all zeros: they are those without parameters.
    pub parameters: [u64; Parameters::WORDS],
    /// Mode, with [`crate::Mode::QUALIFIED`]: [`pmu_model::Qualifiers::words`].
    pub qualifiers: [u64; qualify::WORDS],
    /// Exit, with [`crate::Mode::QUALIFIED`]: occurrences of what passed.
    pub qualified: [u64; SLOTS],
    /// The same: retired instructions, a repeated string instruction at its end.
    pub qualified_instructions: u64,
}

const _: () = assert!(size_of::<Mailbox>() == 4096);

impl Mailbox {
    /// Before the first call.
    pub const EMPTY: Self = Self {
        question: 0,
        answer: 0,
        version: 0,
        stops: 0,
        region_start: 0,
        region_end: 0,
        own: 0,
        mode: 0,
        parts: 0,
        record_kinds: 0,
        apic_id: 0,
        rip: 0,
        place: 0,
        string_starts: 0,
        string_ends: 0,
        instructions: 0,
        lead: 0,
        string_open: 0,
        stopped: 0,
        returned: 0,
        limits: [Limit { selection: 0, left: 0 }; MAX_LIMITS],
        counts: [0; SLOTS],
        records: Records {
            count: 0,
            position: 0,
            list: [Record { from: 0, to: 0, kind: 0, mispredicted: 0, instructions: 0 };
                MAX_RECORDS],
        },
        processors: 0,
        rflags: 0,
        rcx: 0,
        fault_handler: 0,
        stack: [0; STACK_WORDS],
        parameters: [0; Parameters::WORDS],
        qualifiers: [0; qualify::WORDS],
        qualified: [0; SLOTS],
        qualified_instructions: 0,
    };
}

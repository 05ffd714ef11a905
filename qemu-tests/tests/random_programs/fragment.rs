//! What random programs are made of. Every value of these types is a program that ends.

/// Where in the data area an access goes.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Page of the area.
    pub page: u8,
    /// Which byte of it.
    pub spot: Spot,
    /// How the address is written down.
    pub form: Addressing,
}

/// Which byte of a page.
#[derive(Clone, Copy, Debug)]
pub enum Spot {
    /// Any.
    At(u16),
    /// So many bytes in front of the end of a line.
    LineEnd(u8, u8),
    /// So many bytes in front of the page's end.
    PageEnd(u8),
}

/// How an address is written down.
#[derive(Clone, Copy, Debug)]
pub enum Addressing {
    Base,
    Absolute,
    /// With an index of this scale's exponent.
    Indexed(u8),
    /// The same byte by the large page that shows the whole pool.
    Large,
}

/// Which test a conditional jump follows.
#[derive(Clone, Copy, Debug)]
pub enum Test {
    /// Bits of the innermost loop's counter.
    Counter(u8),
    /// A bit of memory.
    Memory(Place, u8),
    /// Whatever the flags are.
    Flags,
}

#[derive(Clone, Copy, Debug)]
pub enum LoopKind {
    DecJnz,
    Loop,
    /// JRCXZ out, JMP back.
    Jrcxz,
}

#[derive(Clone, Copy, Debug)]
pub enum CallKind {
    Direct,
    Register,
    Memory,
    /// By the second linear address of the code.
    Alias,
}

/// A way back to where the stack says.
#[derive(Clone, Copy, Debug)]
pub enum Back {
    Near,
    Interrupt,
    Far,
}

#[derive(Clone, Copy, Debug)]
pub enum StringKind {
    Movs,
    Stos,
    Lods,
    /// True: while equal.
    Scas(bool),
    Cmps(bool),
    /// To a port nobody has.
    Outs,
}

/// A string instruction.
#[derive(Clone, Copy, Debug)]
pub struct Strings {
    pub kind: StringKind,
    /// Element's size as an exponent.
    pub size: u8,
    pub repeated: bool,
    pub backward: bool,
    pub source: Place,
    pub destination: Place,
    pub count: u8,
}

/// How code changes itself.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// The immediate operand of the next instruction.
    Immediate(u8),
    /// A jump becomes a NOP, and back.
    Jump,
}

/// How translations are thrown away.
#[derive(Clone, Copy, Debug)]
pub enum Forget {
    /// INVLPG of a data page.
    Page(u8),
    /// MOV CR3.
    All,
    /// Two data pages change places, which a change of CR4.PGE makes known.
    Swapped(u8, u8),
    /// WBINVD.
    Caches,
    /// CLFLUSH.
    Line(Place),
}

/// The first of the jumps that look at RCX: LOOP, LOOPE, LOOPNE, JRCXZ, JECXZ.
pub const ON_COUNT: u8 = 16;
/// Conditional jumps.
pub const CONDITIONS: u8 = ON_COUNT + 5;

/// A part of a program.
#[derive(Clone, Debug)]
pub enum Fragment {
    /// Instructions without memory, by number.
    Plain(Vec<u8>),
    /// An instruction of the table of those that touch memory.
    Access(u8, Place),
    /// FXSAVE, XSAVE and the like, and back.
    Save(u8, Place),
    Strings(Strings),
    /// PUSH or POP of memory, of registers and flags.
    Stack(u8, Place),
    Skip(u8, Test, Vec<Fragment>),
    /// A conditional jump to the very next instruction, with this count in ECX: one of the flags, or [`ON_COUNT`] and more.
    Nowhere(u8, Test, u8),
    Loop(LoopKind, u8, Vec<Fragment>),
    /// A near return, IRET or far return to the same offset of another page, which may be absent.
    SameOffset(Back, bool),
    /// Of one of the functions after the one that this is in.
    Call(CallKind, u8),
    /// Calls nested so deep.
    Deep(u8),
    /// One of two or four cases by the innermost loop's counter.
    Table(bool, Vec<Vec<Fragment>>),
    /// INT n.
    Service,
    Breakpoint,
    Undefined,
    Division,
    /// #GP.
    Protection(u8),
    /// An interrupt to itself: as an NMI or not.
    Ipi(bool),
    /// The same while interrupts are off.
    Masked(Vec<Fragment>),
    /// The same, and a string instruction right after STI: the interrupt comes after its first element.
    Cut(Strings),
    /// The APIC's timer is set, to ring after so many ticks. No interrupt of it may be compared but by their number.
    Timer(u32),
    /// Waits for the timer in HLT.
    Halt(u16),
    /// A data page is taken away, to be given back by the page fault.
    Unmap(u8),
    /// Two data pages change places.
    Swap(u8, u8),
    /// A page of code is shown by another frame, with the same bytes.
    SwapCode(u8),
    Forget(Forget),
    Change(Change, bool),
    /// Counting is stopped, and started again after it.
    Uncounted(Vec<Fragment>),
    /// RDPMC.
    Counter(u8),
    Cpuid,
    Port,
    /// MOV SS, and what it holds back.
    Shadow,
    /// Ring 3, left by SYSCALL or INT.
    User(bool, Vec<Fragment>),
    /// 32-bit code of ring 3.
    Compatibility(Vec<u8>, u8),
    /// SYSCALL and SYSRET.
    SystemCall,
}

/// A program: its functions call only those after them.
#[derive(Clone, Debug)]
pub struct Code {
    pub main: Vec<Fragment>,
    pub functions: Vec<Vec<Fragment>>,
    /// Frame of each page of the data area, and whether it is there from the beginning on.
    pub data: Vec<(u8, bool)>,
    /// Where in its page the code begins.
    pub offset: u16,
    /// Which frames of the pool.
    pub frames: u16,
    pub seed: u64,
    /// The APIC's timer rings after so many ticks, at about that instruction: when exactly depends on how the emulated PMU
    /// counts, so that nothing of ring 0 can be compared.
    pub timer: Option<u32>,
}

impl Code {
    /// Whether code with a repeated string instruction may be executed by its second linear address.
    pub fn calls_by_alias(&self) -> bool {
        let all = || self.functions.iter().chain([&self.main]);
        let has = |wanted: &dyn Fn(&Fragment) -> bool| all().any(|list| any(list, wanted));
        has(&|fragment| matches!(fragment, Fragment::Call(CallKind::Alias, _)))
            && has(&|fragment| matches!(fragment, Fragment::Strings(strings) if strings.repeated))
    }
}

/// Whether one of `fragments`, or of what they are made of, is wanted.
fn any(fragments: &[Fragment], wanted: &dyn Fn(&Fragment) -> bool) -> bool {
    fragments.iter().any(|fragment| {
        wanted(fragment)
            || match fragment {
                Fragment::Skip(_, _, body)
                | Fragment::Loop(_, _, body)
                | Fragment::Masked(body)
                | Fragment::Uncounted(body)
                | Fragment::User(_, body) => any(body, wanted),
                Fragment::Table(_, cases) => cases.iter().any(|body| any(body, wanted)),
                _ => false,
            }
    })
}

//! Architectural PEBS by its registers alone: where its records come, what is in them, and the interrupt at its threshold.

use crate::handlers::PMI;
use crate::line;
use crate::machine::{apic_write, physical};
use crate::overflow::{noted, set_going_on};
use crate::pmu::{INSTRUCTIONS, KERNEL, Unit, call, read, write};
use crate::{case, code};

const PEBS_BASE: u32 = 0x3f4;
const PEBS_INDEX: u32 = 0x3f5;
/// Counter, event select and CFG_C of general-purpose counter 3, as version 6 numbers them.
const COUNTER: u32 = 0x190c;
const SELECT: u32 = 0x190d;
const CONFIG: u32 = 0x190f;
/// CFG_C of fixed counter 0, and the counter.
const FIXED_CONFIG: u32 = 0x1983;
const FIXED: u32 = 0x1980;
const RECORDS: u64 = 1 << 63;
const REGISTERS: u64 = 1 << 61;
const ENABLE: u64 = 1 << 32;
const THRESHOLD_AT: u32 = 36;
const REACHED: u64 = 1 << 54;
const LVTPC: u64 = 0x340;
/// Bytes of a record with the general registers: header, basic group, registers.
const BYTES: u64 = 16 + 48 + 160;
/// A record at each of so many instructions.
const PERIOD: u64 = 200;
/// How many a call of the loop makes: it has 2,002 instructions, and five are around it.
const MADE: u64 = 10;

#[repr(C, align(4096))]
struct Buffer([u64; 512]);
static mut BUFFER: Buffer = Buffer([0; 512]);

fn word(record: u64, word: u64) -> u64 {
    let at = (&raw const BUFFER) as u64 + record * BYTES + 8 * word;
    // SAFETY: within the buffer, which the processor has written to.
    unsafe { (at as *const u64).read_volatile() }
}

/// The buffer, empty, with its threshold after so many bytes.
fn begin(threshold: u64) {
    // SAFETY: nobody else has a reference to it.
    unsafe { (&raw mut BUFFER).write_volatile(Buffer([0; 512])) };
    write(PEBS_BASE, physical((&raw const BUFFER) as u64));
    write(PEBS_INDEX, ENABLE | (threshold / 16) << THRESHOLD_AT);
}

/// Instruction n of a run is the loop's number n - 1, CALL being the first. Behind `mov ecx, 1000` its odd ones are the jumps.
fn loop_is_recorded(name: &str, counter: u64) {
    let code = code::loop_1_000::run as *const () as u64;
    line!("case {name}.offset {} {}", read(PEBS_INDEX) & 0x7ff_fff0, MADE * BYTES);
    for record in 0..MADE {
        let number = PERIOD * (record + 1);
        let left = 1000 - (number - 2) / 2;
        let seen = |at| word(record, at);
        let case = |what: &str, seen: u64, expected: u64| {
            line!("case {name}.{record}.{what} {seen} {expected}");
        };
        // In 64-bit mode, with the basic group and that of the registers.
        case("head", seen(0), RECORDS | REGISTERS | 1 << 30 | BYTES);
        case("ip", seen(2), code + 7);
        case("counters", seen(3), counter);
        case("behind", seen(9), code + 5);
        case("rcx", seen(11), left);
        case("later", u64::from(record == 0 || seen(4) > word(record - 1, 4)), 1);
    }
}

pub fn run(unit: &Unit) {
    let leaf = |subleaf| core::arch::x86_64::__cpuid_count(0x23, subleaf);
    case("leaf.groups", leaf(4).ebx.into(), 0x6006_0378);
    case("leaf.counters", leaf(5).eax.into(), 0x3ff);
    case("leaf.fixed", leaf(5).ecx.into(), 0xf);
    let reload = 1u64.wrapping_sub(PERIOD);
    let low = reload & 0xffff_ffff;
    write(0x38f, 0);

    begin(4096);
    write(CONFIG, RECORDS | REGISTERS | low);
    write(SELECT, INSTRUCTIONS | KERNEL | 1 << 22);
    write(COUNTER, reload & ((1 << 48) - 1));
    call(0x38f, 1 << 3, code::loop_1_000::run as *const () as u64);
    loop_is_recorded("general", 1 << 3);
    case("general.status", read(0x38e), 0);
    // 2,007 instructions, of which the last seven came after the last record.
    case("general.left", read(COUNTER), (reload & ((1 << 48) - 1)) + 7);
    write(CONFIG, 0);

    begin(4096);
    write(FIXED_CONFIG, RECORDS | REGISTERS | low);
    write(0x38d, 1);
    write(FIXED, reload & ((1 << 48) - 1));
    call(0x38f, 1 << 32, code::loop_1_000::run as *const () as u64);
    loop_is_recorded("fixed", 1 << 32);
    write(FIXED_CONFIG, 0);
    write(0x38d, 0);

    // An interrupt at the third record, taken after its instruction.
    begin(3 * BYTES);
    write(CONFIG, RECORDS | REGISTERS | low);
    write(COUNTER, reload & ((1 << 48) - 1));
    set_going_on(0);
    let (_, before) = noted();
    apic_write(LVTPC, PMI.into());
    x86_64::instructions::interrupts::enable();
    call(0x38f, 1 << 3, code::loop_1_000::run as *const () as u64);
    x86_64::instructions::interrupts::disable();
    let (rip, after) = noted();
    case("threshold.interrupts", after - before, 1);
    case("threshold.rip", rip, code::loop_1_000::run as *const () as u64 + 5);
    case("threshold.status", read(0x38e), REACHED);
    write(0x390, REACHED);
    case("threshold.cleared", read(0x38e), 0);
    case("threshold.third", word(2, 11), 1000 - (3 * PERIOD - 2) / 2);

    // A buffer without room: the nineteenth record does not fit.
    begin(4096);
    write(COUNTER, reload & ((1 << 48) - 1));
    call(0x38f, 1 << 3, code::loop_10_000::run as *const () as u64);
    case("full.index", read(PEBS_INDEX) & (1 << 31 | 0x7ff_fff0), (1 << 31) | (18 * BYTES));
    case("full.beyond", word(18, 0), 0);
    case("full.status", read(0x38e), REACHED);
    write(0x390, REACHED);
    write(CONFIG, 0);
    write(SELECT, 0);
    write(PEBS_INDEX, 0);

    let select = INSTRUCTIONS | KERNEL;
    case("reserved", unit.over(select, code::reserved::run), code::reserved::COUNT);
}

//! Lines on the serial port. Each program has one:
//!
//! `program NUMBER counts A,B devices N pmis COUNT:HASH registers HASH memory HASH records HASH`
//!
//! Behind it, of a program that did not come to its end, `abandoned VECTOR TOP NEXT CR2`; and of one that is to be told in
//! detail, `pmi VECTOR RIP STATUS COUNTS`, `register NAME VALUE`, `record REGISTER VALUE`, `stack ADDRESS VALUE` and `frame NUMBER
//! HASH`.

use crate::memory::Memory;
use crate::pmi::{self, Pmi};
use crate::run::Seen;
use core::fmt::{Arguments, Write};
use core::hash::Hasher;
use program_format::Program;
use siphasher::sip::SipHasher13;
use spin::Mutex;
use uart_16550::{BaudRate, Config, Uart16550Tty, backend::PioBackend};

static PORT: Mutex<Option<Uart16550Tty<PioBackend>>> = Mutex::new(None);

/// Writes a line.
pub fn line(text: Arguments) {
    let mut port = PORT.lock();
    if port.is_none() {
        let config = Config { baud_rate: BaudRate::Baud115200, ..Config::default() };
        // SAFETY: COM1's port, which nothing else uses.
        *port = unsafe { Uart16550Tty::new_port(0x3f8, config) }.ok();
    }
    if let Some(port) = port.as_mut() {
        let _ = writeln!(port, "{text}");
    }
}

/// `println!` for the serial port.
#[macro_export]
macro_rules! line {
    ($($text:tt)*) => { $crate::report::line(format_args!($($text)*)) };
}

const REGISTERS: [&str; 17] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15", "flags",
];

/// Words below a stack's end that are told.
const STACK_WORDS: u64 = 24;

/// Tells what was seen of a program.
pub fn program(number: usize, program: &Program, seen: &Seen, memory: &Memory) {
    let pmis = pmi::take();
    let mut all = SipHasher13::new();
    let frames = program.frames.iter().map(|frame| frame.number);
    frames.clone().for_each(|frame| all.write(memory.frame(frame)));
    line!(
        "program {number} counts {} devices {} pmis {}:{:016x} registers {:016x} memory {:016x} records {:016x}",
        List(&seen.counts),
        seen.devices,
        pmis.len(),
        of_pmis(&pmis),
        of(&seen.registers),
        all.finish(),
        of(&seen.records),
    );
    if let Some([vector, top, next, cr2]) = seen.abandoned {
        line!("abandoned {vector} {top:#x} {next:#x} {cr2:#x}");
    }
    if !program.detailed {
        return;
    }
    for Pmi { vector, rip, status, counts } in &pmis {
        line!("pmi {vector} {rip:#x} {status:#x} {}", List(counts));
    }
    for (name, value) in REGISTERS.iter().zip(seen.registers) {
        line!("register {name} {value:#x}");
    }
    for (register, value) in program.pmu.records.iter().zip(&seen.records) {
        line!("record {register:#x} {value:#x}");
    }
    for below in 1..=STACK_WORDS {
        let at = program.stack - 8 * below;
        // SAFETY: the program's stack is mapped, and nobody writes to it now.
        line!("stack {at:#x} {:#x}", unsafe { (at as *const u64).read_volatile() });
    }
    for frame in frames {
        let mut hasher = SipHasher13::new();
        hasher.write(memory.frame(frame));
        line!("frame {frame} {:016x}", hasher.finish());
    }
}

fn of(words: &[u64]) -> u64 {
    let mut hasher = SipHasher13::new();
    words.iter().for_each(|word| hasher.write_u64(*word));
    hasher.finish()
}

fn of_pmis(pmis: &[Pmi]) -> u64 {
    let mut hasher = SipHasher13::new();
    for pmi in pmis {
        [pmi.vector, pmi.rip, pmi.status].iter().for_each(|word| hasher.write_u64(*word));
        pmi.counts.iter().for_each(|count| hasher.write_u64(*count));
    }
    hasher.finish()
}

/// Numbers with commas between them.
struct List<'a>(&'a [u64]);

impl core::fmt::Display for List<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (index, value) in self.0.iter().enumerate() {
            write!(f, "{}{value}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

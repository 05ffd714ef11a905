//! The firmware itself failed: say what happened and where, then stop.
//!
//! Runs after something broke, so it trusts little: it takes the report from whoever held it, reads stacks
//! only within their bounds, and steps down to plain text and then to silence if it fails itself.

use super::display::{Display, TITLE};
use super::{finish, heap, output, saved, stacks};
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use arch::interrupts;
use arch::memory::image;
use arch::trap::{TrapFrame, exception};
use arch::{backtrace, machine_check, power};
use core::arch::asm;
use core::fmt::Arguments;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use kernel::screen::{Failure, said};
use protocol::hex::Hex;
use protocol::job::{OnEnd, SelfTest};
use protocol::record::{Crash, CrashKind, End, Outcome, Record, Registers};
use spin::Mutex;
use x86_64::registers::control::Cr2;

/// No item is running.
const NO_ITEM: u32 = u32::MAX;

static ITEM: AtomicU32 = AtomicU32::new(NO_ITEM);
/// Most of an item's name that is kept for the screen.
const NAME_BYTES: usize = 80;
/// Its name: bytes, and how many of them.
static NAME: Mutex<([u8; NAME_BYTES], usize)> = Mutex::new(([0; NAME_BYTES], 0));
/// How many failures there were: the second one happened in here.
static FAILURES: AtomicU32 = AtomicU32::new(0);
/// The report is finished: nothing may be written any more.
static FINISHED: AtomicBool = AtomicBool::new(false);

/// From now on, exceptions that nobody expects come here.
pub fn arm() {
    interrupts::set_crash_handler(on_exception);
}

/// The report is out: a failure after this only stops the machine.
pub fn disarm() {
    FINISHED.store(true, Ordering::Relaxed);
}

/// Notes which item runs.
pub fn at_item(index: u32, name: &str) {
    ITEM.store(index, Ordering::Relaxed);
    let mut noted = NAME.lock();
    let length = name.floor_char_boundary(NAME_BYTES);
    noted.0[..length].copy_from_slice(&name.as_bytes()[..length]);
    noted.1 = length;
}

fn on_exception(frame: &TrapFrame) -> ! {
    let (exception, cr2) = (frame.exception(), Cr2::read_raw());
    count_failure(format_args!("{exception} at {:#x}, address {cr2:#x}", frame.rip));
    let mut text = exception.to_string();
    if exception == exception::PAGE_FAULT {
        text += &format!(" at {cr2:#x}");
        if stacks::is_guard(cr2) {
            text += ": the stack overflowed";
        }
    }
    if exception == exception::MACHINE_CHECK {
        text += &format!(": {}", machine_check::said());
    }
    fail(Crash {
        kind: CrashKind::Exception,
        text,
        location: None,
        vector: Some(exception.0),
        error_code: frame.error().map(Hex),
        item: item(),
        registers: kernel::snippet::fault::registers(frame, cr2),
        backtrace: trace(Some(frame.rip), frame.rbp),
    })
}

#[panic_handler]
fn on_panic(info: &PanicInfo) -> ! {
    let rbp: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rbp", out(reg) rbp, options(nomem, nostack, preserves_flags)) };
    count_failure(format_args!("{info}"));
    fail(Crash {
        kind: CrashKind::Panic,
        text: info.message().to_string(),
        location: info.location().map(ToString::to_string),
        vector: None,
        error_code: None,
        item: item(),
        registers: Registers { rbp: Hex(rbp), ..Registers::default() },
        backtrace: trace(None, rbp),
    })
}

fn item() -> Option<u32> {
    Some(ITEM.load(Ordering::Relaxed)).filter(|&item| item != NO_ITEM)
}

/// Counts this failure. Returns only for the first one, and only if records can still be made; else it
/// leaves `text` on the line as it is and stops.
fn count_failure(text: Arguments) {
    interrupts_off();
    let earlier = FAILURES.fetch_add(1, Ordering::Relaxed);
    if FINISHED.load(Ordering::Relaxed) || earlier > 1 {
        power::stop();
    }
    if earlier == 1 || !heap::is_usable() {
        // SAFETY: whoever held the report is dead or waits for this processor: interrupts are off, and this never returns.
        let mut report = unsafe { output::seize() };
        report.raw(format_args!("\r\nbarecount failed: {text}\r\n"));
        report.sink_mut().drain();
        finish::exit_qemu(Outcome::Crash);
        power::stop();
    }
}

fn interrupts_off() {
    x86_64::instructions::interrupts::disable();
}

fn fail(crash: Crash) -> ! {
    let name = NAME.try_lock();
    let name = name.as_ref().and_then(|noted| core::str::from_utf8(&noted.0[..noted.1]).ok());
    let said = said(&crash, name.unwrap_or_default());
    // SAFETY: as in `count_failure`.
    let mut report = unsafe { output::seize() };
    report.break_line();
    report.send(&Record::Crash(crash));
    // Nobody may be there: what the job wants the machine to do, when its report is kept, holds for that of a failure too.
    let on_end = if saved::is_on() { finish::on_end() } else { OnEnd::Halt };
    report.end(End { on_end, ..End::without_items(Outcome::Crash) });
    report.sink_mut().drain();
    // Behind the report, because the screen's memory may be what is broken.
    // SAFETY: as for the report.
    if let Some(mut display) = unsafe { Display::seize() } {
        let unkept = report.sink_mut().trouble();
        display.failure(&Failure { title: TITLE, said: &said, unkept: unkept.as_ref() });
    }
    finish::exit_qemu(Outcome::Crash);
    if saved::finish(on_end) {
        // SAFETY: nothing runs any more, and what there is of a report is kept. Which register ACPI names is not known here.
        unsafe { power::reset(None) }
    }
    power::stop()
}

/// Return addresses, the failing instruction first.
fn trace(rip: Option<u64>, rbp: u64) -> Vec<Hex> {
    let mut found: Vec<Hex> = rip.into_iter().map(Hex).collect();
    // SAFETY: `walk` asks only for addresses that it checked to lie in a stack, and all of them are mapped.
    let read = |address: u64| unsafe { (address as *const u64).read() };
    backtrace::walk(rbp, &stacks::around(rbp), &image::range(), read, |address| {
        found.push(Hex(address));
    });
    found
}

/// Breaks the firmware before it knows what the machine has, if the job asks for that.
pub fn early_self_test(test: Option<SelfTest>) {
    assert!(test != Some(SelfTest::EarlyPanic), "an early panic on purpose");
}

/// Breaks the firmware in the way that the job asks for.
pub fn self_test(test: Option<SelfTest>) {
    /// An address of the lower half that nothing is mapped at.
    const NOWHERE: u64 = 0x6666_0000;
    match test {
        None | Some(SelfTest::EarlyPanic) => {}
        Some(SelfTest::Panic) => panic!("a panic on purpose"),
        // SAFETY: none of the following is sound, and each must end in the crash handler.
        Some(SelfTest::PageFault) => unsafe {
            (NOWHERE as *const u64).read_volatile();
        },
        Some(SelfTest::StackOverflow) => {
            recurse(0);
        }
        // SAFETY: as above.
        Some(SelfTest::WriteCode) => unsafe {
            (self_test as fn(Option<SelfTest>) as usize as *mut u8).write_volatile(0xcc);
        },
        // SAFETY: as above.
        Some(SelfTest::ExecuteData) => unsafe {
            static mut DATA: [u8; 16] = [0xc3; 16];
            let function: extern "sysv64" fn() = core::mem::transmute(&raw mut DATA);
            function();
        },
        Some(SelfTest::Hang) => loop {
            core::hint::spin_loop();
        },
    }
}

#[allow(unconditional_recursion, reason = "that is the test")]
fn recurse(depth: u64) -> u64 {
    let frame = core::hint::black_box([depth; 64]);
    recurse(depth + 1) + frame[0]
}

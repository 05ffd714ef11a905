//! Screen and keyboard.

use alloc::string::String;
use uefi::boot;
use uefi::proto::console::text::{Input, Key};
use uefi::runtime::ResetType;
use uefi::{Status, print, println, runtime, system};

/// What somebody in front of the screen wants.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Choice {
    /// Try to save once more.
    Again,
    /// The job.
    Job,
    /// What the machine boots else.
    Leave,
}

/// Rows of a console that does not say.
const ROWS: usize = 25;

/// Shows lines; where they are more than the screen has, it waits for a key at the end of each page.
pub fn pages(lines: &[String]) {
    let rows = system::with_stdout(|out| out.current_mode().ok().flatten().map(|mode| mode.rows()));
    // Two for the question below.
    let page = rows.unwrap_or(ROWS).saturating_sub(3).max(1);
    let count = lines.len().div_ceil(page);
    for (number, lines) in lines.chunks(page).enumerate() {
        for line in lines {
            println!("{line}");
        }
        if number + 1 < count {
            print!("page {} of {count}; any key shows the next, E the end ", number + 1);
            let letter = key();
            println!();
            if letter == 'e' {
                break;
            }
        }
    }
}

/// Asks what comes then. `again`: saving failed.
pub fn ask(again: bool) -> Choice {
    loop {
        let save = if again { "S: try to save again   " } else { "" };
        print!("{save}R: run the job again   O: switch off   B: boot something else ");
        let letter = key();
        println!();
        match letter {
            's' if again => return Choice::Again,
            'r' => return Choice::Job,
            'b' => return Choice::Leave,
            'o' => runtime::reset(ResetType::SHUTDOWN, Status::SUCCESS, None),
            _ => {}
        }
    }
}

/// Waits for a key; returns its letter in lower case. Without a keyboard it waits for good.
fn key() -> char {
    /// The least watchdog code that is not the firmware's own.
    const CODE: u64 = 0x1_0000;
    // Firmware resets the machine when a boot loader takes more than five minutes (UEFI specification 3.1.2).
    let _ = boot::set_watchdog_timer(0, CODE, None);
    loop {
        let event = system::with_stdin(|input| input.wait_for_key_event());
        if let Ok(event) = event {
            let _ = boot::wait_for_event(&[event]);
        }
        match system::with_stdin(Input::read_key) {
            Ok(Some(Key::Printable(letter))) => return char::from(letter).to_ascii_lowercase(),
            Ok(Some(Key::Special(_))) => return ' ',
            // Some consoles say that there is a key and then have none.
            Ok(None) | Err(_) => boot::stall(core::time::Duration::from_millis(10)),
        }
    }
}

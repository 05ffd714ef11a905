//! Screen and keyboard.

use super::time::Deadline;
use alloc::format;
use alloc::string::String;
use core::time::Duration;
use stick::ending::Failed;
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

/// Shows lines. If `waits` and they are more than the screen has, it waits for a key at the end of each page.
pub fn pages(lines: &[String], waits: bool) {
    let rows = system::with_stdout(|out| out.current_mode().ok().flatten().map(|mode| mode.rows()));
    // Two for the question below.
    let most = if waits { rows.unwrap_or(ROWS).saturating_sub(3) } else { lines.len() };
    let page = most.max(1);
    let count = lines.len().div_ceil(page);
    for (number, lines) in lines.chunks(page).enumerate() {
        for line in lines {
            println!("{line}");
        }
        if number + 1 < count {
            print!("page {} of {count}; any key shows the next, E the end ", number + 1);
            let letter = key(None);
            println!();
            if letter == Some('e') {
                break;
            }
        }
    }
}

/// Asks what comes then.
pub fn ask(failed: Failed) -> Choice {
    loop {
        let again = match failed {
            Failed::Nothing => String::new(),
            Failed::Saving => "S: try to save again   ".into(),
            Failed::Sending(time) => {
                format!("S: try again now, else in {} s   ", time.as_secs())
            }
        };
        print!("{again}R: run the job again   O: switch off   B: boot something else ");
        let letter = key(failed.patience());
        println!();
        match letter {
            None => return Choice::Again,
            Some('s') if failed != Failed::Nothing => return Choice::Again,
            Some('r') => return Choice::Job,
            Some('b') => return Choice::Leave,
            Some('o') => runtime::reset(ResetType::SHUTDOWN, Status::SUCCESS, None),
            Some(_) => {}
        }
    }
}

/// Waits for a key; returns its letter in lower case. Without a keyboard it waits for good, or until `patience` ends.
fn key(patience: Option<Duration>) -> Option<char> {
    // Firmware resets the machine when a boot loader takes more than five minutes (UEFI specification 3.1.2).
    uefi_start::stop_watchdog();
    let deadline = patience.and_then(|time| Deadline::after(time).ok());
    loop {
        let key = system::with_stdin(|input| input.wait_for_key_event());
        let key = key.ok();
        let events = [key.as_ref(), deadline.as_ref().map(Deadline::event)]
            .into_iter()
            .flatten()
            // SAFETY: neither is closed while it is waited for.
            .map(|event| unsafe { event.unsafe_clone() });
        let events: alloc::vec::Vec<_> = events.collect();
        let index = boot::wait_for_event(&events).ok();
        if deadline.is_some() && index == Some(events.len() - 1) {
            return None;
        }
        match system::with_stdin(Input::read_key) {
            Ok(Some(Key::Printable(letter))) => {
                return Some(char::from(letter).to_ascii_lowercase());
            }
            Ok(Some(Key::Special(_))) => return Some(' '),
            // Some consoles say that there is a key and then have none.
            Ok(None) | Err(_) => boot::stall(Duration::from_millis(10)),
        }
    }
}

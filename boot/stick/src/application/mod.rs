//! The application's parts: [`found`], what the run before has left; [`volume`], the stick; [`console`], screen and
//! keyboard; [`memory`], the region for the report to come; [`note`], what is remembered of the machine; [`next`], the boot
//! loader.

mod console;
mod found;
mod memory;
pub mod next;
mod note;
pub mod volume;

use alloc::format;
use alloc::string::{String, ToString};
use console::Choice;
use found::Found;
use note::Note;
use stick::names::Kind;
use stick::region::After;
use stick::settings::Settings;
use stick::summary;
use uefi::runtime::ResetType;
use uefi::{Status, println, runtime};

/// What comes behind this program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next {
    /// The boot loader, and with it the job.
    Job,
    /// Whatever else the machine boots.
    Leave,
}

/// Runs that left nothing, one after the other, until somebody is asked.
const MAX_SILENT: u32 = 2;

/// Saves what there is, and makes ready for the next run.
pub fn run(settings: &Settings) -> Next {
    let mut note = Note::read();
    if let Some(found) = found::look(&note) {
        if deliver(settings, &mut note, &found) == Next::Leave {
            return Next::Leave;
        }
    } else {
        if let Err(error) = volume::sweep() {
            println!("barecount: the folder of the reports cannot be looked at: {error}");
        }
        if note.silent >= MAX_SILENT {
            println!(
                "barecount: the last {} runs on this machine left no report: it was switched off, or it clears its\n\
                 memory, and its variables have no room.",
                note.silent
            );
            if console::ask(false) == Choice::Leave {
                return Next::Leave;
            }
            note.silent = 0;
        }
    }
    match memory::reserve(settings, &note) {
        Ok(region) => {
            note.region = Some(region);
            note.silent += 1;
        }
        Err(error) => {
            note.region = None;
            println!("barecount: nothing is saved: {error}");
        }
    }
    note.write();
    Next::Job
}

/// Saves and shows a report. Comes back when the job is to run again, or to leave.
fn deliver(settings: &Settings, note: &mut Note, found: &Found) -> Next {
    let kind = found.kind(settings.image);
    println!("barecount: saving {} bytes, found in {}", found.bytes.len(), found.place);
    loop {
        let said = match volume::save(&found.bytes, kind) {
            Ok(name) => {
                // Only now: a power cut before this leaves it where it was found.
                note.silent = 0;
                note.learn(found);
                note.write();
                found.forget();
                Ok(format!("saved: {}/{name}", stick::FOLDER))
            }
            Err(error) => Err(format!("NOT SAVED: {error}")),
        };
        let is_saved = said.is_ok();
        show(&said.unwrap_or_else(|error| error), kind, &found.bytes);
        if is_saved && kind == Kind::Report {
            match found.after {
                After::PowerOff => runtime::reset(ResetType::SHUTDOWN, Status::SUCCESS, None),
                After::Leave => return Next::Leave,
                After::Show => {}
            }
        }
        match console::ask(!is_saved) {
            Choice::Again => {}
            Choice::Job => return Next::Job,
            Choice::Leave => return Next::Leave,
        }
    }
}

fn show(said: &str, kind: Kind, report: &[u8]) {
    let mut lines: alloc::vec::Vec<String> = summary::lines(report);
    let what = match kind {
        Kind::Report => None,
        Kind::Partial => Some("this is a part: the run was cut off, or the memory for it was full"),
        Kind::Foreign => Some("this report was made by another image"),
        Kind::Damaged => Some("this is no report: its checksums are wrong"),
    };
    lines.splice(0..0, what.map(ToString::to_string));
    lines.insert(0, format!("barecount: {said}"));
    console::pages(&lines);
}

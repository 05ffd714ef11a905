//! The application's parts: [`home`], where its files are, and [`disk`], the volume that it may carry; [`found`], what the run
//! before has left; [`deliver`], what becomes of that: [`volume`], the stick; [`upload`], a server, and [`cards`], the way there;
//! [`console`], screen and keyboard; [`memory`], the region for the report to come; [`note`], what is remembered of the machine;
//! [`next`], the boot loader.

mod cards;
mod console;
mod deliver;
mod disk;
mod found;
pub mod home;
mod memory;
pub mod next;
mod note;
mod time;
mod upload;
pub mod volume;

use console::Choice;
use deliver::deliver;
use note::Note;
use stick::ending::Failed;
use stick::settings::Settings;
use uefi::{Handle, println};

/// What comes after this program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next {
    /// The boot loader, and with it the job.
    Job,
    /// Whatever else the machine boots.
    Leave,
}

/// Runs that left nothing, one after the other, until somebody is asked.
const MAX_SILENT: u32 = 2;

/// Saves and sends what there is, and makes ready for the next run.
pub fn run(home: Handle, settings: &Settings) -> Next {
    let mut note = Note::read();
    if let Some(found) = found::look(&note) {
        if deliver(home, settings, &mut note, &found) == Next::Leave {
            return Next::Leave;
        }
    } else {
        if settings.save
            && let Err(error) = volume::sweep(home)
        {
            println!("barecount: the folder of the reports cannot be read: {error}");
        }
        if note.silent >= MAX_SILENT {
            println!(
                "barecount: the last {} runs on this machine left no report: it was switched off, or it clears its\n\
                 memory, and its variables have no room.",
                note.silent
            );
            if console::ask(Failed::Nothing) == Choice::Leave {
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

//! What becomes of a report: it is saved on the stick, sent to a server, and shown.

use super::console::{self, Choice};
use super::found::Found;
use super::note::{Done, Note};
use super::{Next, upload, volume};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;
use protocol::checksum::crc32;
use stick::ending::{Failed, Then};
use stick::names::Kind;
use stick::settings::Settings;
use stick::summary;
use uefi::runtime::ResetType;
use uefi::{Handle, Status, println, runtime};

/// Until a server that has not taken a report is asked again.
const PAUSE: Duration = Duration::from_secs(60);

/// Saves, sends and shows a report. Comes back when the job is to run again, or to leave.
pub fn deliver(home: Handle, settings: &Settings, note: &mut Note, found: &Found) -> Next {
    let kind = found.kind(settings.image);
    let report = crc32(&found.bytes);
    let mut done = note.done.filter(|done| done.report == report);
    let is_saving = settings.save && !done.is_some_and(|done| done.saved);
    let doing = if is_saving { "saving" } else { "a report of" };
    println!("barecount: {doing} {} bytes, found in {}", found.bytes.len(), found.place);
    // Servers and keys take their time.
    uefi_start::stop_watchdog();
    let mut is_shown = false;
    loop {
        let now = done.get_or_insert(Done::nothing(report));
        let (failed, said) = once(home, settings, note, now, kind, &found.bytes);
        note.done = Some(*now).filter(|done| done.saved || done.sent);
        if failed == Failed::Nothing {
            // Only now: a power cut before this leaves it where it was found.
            note.silent = 0;
            note.learn(found);
            note.write();
            found.forget();
            note.done = None;
        } else if note.done.is_some() {
            note.write();
        }
        let then = Then::of(failed, kind, found.after);
        if is_shown {
            said.iter().for_each(|line| println!("barecount: {line}"));
        } else {
            show(&said, kind, &found.bytes, then.needs_somebody());
        }
        is_shown = true;
        match then {
            Then::PowerOff => runtime::reset(ResetType::SHUTDOWN, Status::SUCCESS, None),
            Then::Leave => return Next::Leave,
            Then::Ask(failed) => match console::ask(failed) {
                Choice::Again => {}
                Choice::Job => {
                    // What was not saved or sent must not be taken for what the next run leaves.
                    note.silent = 0;
                    found.forget();
                    note.done = None;
                    return Next::Job;
                }
                Choice::Leave => return Next::Leave,
            },
        }
    }
}

/// Does what has not been done; returns what failed, and what there is to say.
fn once(
    home: Handle,
    settings: &Settings,
    note: &mut Note,
    done: &mut Done,
    kind: Kind,
    report: &[u8],
) -> (Failed, Vec<String>) {
    let (mut failed, mut said) = (Failed::Nothing, Vec::new());
    if settings.save && !done.saved {
        match volume::save(home, report, kind) {
            Ok(name) => {
                done.saved = true;
                said.push(format!("saved: {}/{name}", stick::FOLDER));
            }
            Err(error) => {
                failed = Failed::Saving;
                said.push(format!("NOT SAVED: {error}"));
            }
        }
    }
    if let Some(target) = settings.upload.as_ref().filter(|_| !done.sent) {
        match upload::send(target, note, kind, report) {
            Ok(url) => {
                done.sent = true;
                note.sent = note.sent.wrapping_add(1);
                said.push(format!("sent: {url}"));
            }
            Err(error) => {
                failed = Failed::Sending(PAUSE);
                said.push(format!("NOT SENT: {error}"));
                said.push(
                    "it stays in this machine until it is sent, or the job runs again".into(),
                );
            }
        }
    }
    if said.is_empty() {
        said.push("saved and sent before the power was cut".to_string());
    }
    (failed, said)
}

fn show(said: &[String], kind: Kind, report: &[u8], waits: bool) {
    let what = match kind {
        Kind::Report => None,
        Kind::Partial => Some("this is a part: the run was cut off, or the memory for it was full"),
        Kind::Foreign => Some("this report was made by another image"),
        Kind::Damaged => Some("this is not a report: its checksums are wrong"),
    };
    let said = said.iter().map(|line| format!("barecount: {line}"));
    let lines = said.chain(what.map(ToString::to_string)).chain(summary::lines(report));
    console::pages(&lines.collect::<Vec<_>>(), waits);
}

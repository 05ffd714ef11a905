//! `collect --image`: reports that were saved on a stick.

use crate::cli::Collect;
use crate::collect::Collector;
use crate::stick::{self, Saved, Stick};
use crate::{Failure, Result, output};
use ::stick::names::Kind;
use std::fs;
use std::path::Path;

/// Lists what is on the stick, writes it to a folder if asked, and gives the report that was requested, or the newest whole one.
pub(super) fn read(path: &Path, arguments: &Collect) -> Result<(Collector, String)> {
    let stick = stick::read(path)?;
    let none = |what: &str| Failure::Usage(format!("{}: {what}", path.display()));
    list(path, &stick);
    if let Some(folder) = &arguments.copy {
        copy(&stick, folder)?;
    }
    let chosen = match &arguments.report {
        Some(wanted) => {
            let wanted = wanted.to_ascii_uppercase();
            let is_wanted = |saved: &&Saved| {
                let name = saved.name.to_string().to_ascii_uppercase();
                name == wanted || wanted.parse() == Ok(saved.name.number)
            };
            let found = stick.saved.iter().find(is_wanted);
            found.ok_or_else(|| none(&format!("no report {wanted}")))?
        }
        None => stick.last(Kind::Report).ok_or_else(|| none("it has no complete report"))?,
    };
    let mut collector = Collector::new();
    collector.feed(&chosen.bytes);
    Ok((collector, format!("{}: {}", path.display(), chosen.name)))
}

fn list(path: &Path, stick: &Stick) {
    let most = stick.rooms.iter().max().copied().unwrap_or(0);
    output::say(&format!(
        "{}: {} saved, room for {} more{}",
        path.display(),
        stick.saved.len(),
        stick.rooms.len(),
        if most > 0 { format!(", the largest {} KiB", most / 1024) } else { String::new() }
    ));
    for saved in &stick.saved {
        output::say(&format!(
            "  {}  {} bytes{}",
            saved.name,
            saved.bytes.len(),
            word(saved.name.kind)
        ));
    }
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Report => "",
        Kind::Partial => "  cut off: the run did not end, or its memory was full",
        Kind::Foreign => "  made by another image",
        Kind::Damaged => "  no report: half written, or its checksums are wrong",
    }
}

/// Writes each file, and the job, into `folder`; nothing there is overwritten by something else.
fn copy(stick: &Stick, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(Failure::file("create", folder))?;
    let reports = stick.saved.iter().map(|saved| (saved.name.to_string(), &saved.bytes));
    let job = stick.job.iter().map(|job| (::stick::JOB.to_string(), job));
    for (name, bytes) in reports.chain(job) {
        let path = folder.join(name);
        match fs::read(&path) {
            Ok(there) if &there == bytes => continue,
            Ok(_) => {
                let text = format!("{} already exists with other content", path.display());
                return Err(Failure::Usage(text));
            }
            Err(_) => output::write(&path, bytes)?,
        }
    }
    Ok(())
}

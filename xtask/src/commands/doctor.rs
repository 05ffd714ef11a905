//! `doctor`: what is needed, what is there, and how the rest would be got.

use crate::cli::{self, Machine};
use crate::machine::{Host, accel};
use crate::primitives::style::{ERROR, FAINT, GOOD, paint};
use crate::setup::{self, Need, Status, Toolchain, qemu};
use crate::{Failure, Result, output, parts};
use std::fmt::Write;

/// Needs without which everything runs but what they are for.
const OPTIONAL: [Need; 11] = [
    Need::Ovmf,
    Need::Grub,
    Need::Fsck,
    Need::Valgrind,
    Need::Compilers,
    Need::Chromium,
    Need::Axe,
    Need::Mutants,
    Need::Python,
    Need::Labgrid,
    Need::Parsers,
];

/// Runs the command. The exit code is 77 if something that `run` needs is missing. What is looked for is shown to the end,
/// even where there is no compiler.
///
/// # Errors
/// The recording cannot be written.
pub fn run(arguments: &cli::Doctor) -> Result<u8> {
    if let Some(folder) = &arguments.record {
        setup::record::record(folder).map_err(Failure::file("write", folder))?;
    }
    let toolchain = Toolchain::find().ok();
    let mut out = String::new();
    let (mut missing, mut no_qemu) = (false, false);
    for &need in Need::all() {
        match need.status(toolchain.as_ref()) {
            Status::Present(detail) => line(&mut out, &paint(GOOD, "ok"), need, &detail),
            Status::Missing { why } => {
                missing |= !OPTIONAL.contains(&need);
                line(&mut out, &paint(ERROR, "missing"), need, &why);
                // The same packages, and apt was requested them a line ago.
                let twice = need == Need::QemuForPmu && no_qemu;
                if !twice {
                    // Writing to a String does not fail, here and below.
                    let _ = writeln!(out, "         {}", need.hint());
                }
                no_qemu |= need == Need::Qemu;
            }
        }
    }
    if let Some(parts) = parts::installed() {
        let folder = parts.folder().map(|folder| folder.display().to_string());
        let folder = folder.unwrap_or_else(|error| error.to_string());
        let _ = writeln!(out, "{:<9}this program's files: {folder}", "");
    }
    let host = Host::read();
    let yes_no = |result: &std::result::Result<(), String>| match result {
        Ok(()) => "yes".to_string(),
        Err(reason) => format!("no: {reason}"),
    };
    let _ = writeln!(out, "{:<9}KVM: {}", "", yes_no(&host.kvm));
    let _ = writeln!(out, "{:<9}PMU for guests of KVM: {}", "", yes_no(&host.vpmu));
    let plugins = qemu::probe().and_then(|found| found.plugins());
    let _ = writeln!(out, "{:<9}plugins in QEMU: {}", "", yes_no(&plugins));
    if let Ok(choice) = accel::choose(&Machine::default(), &host) {
        let _ = writeln!(out, "{:<9}`run` would use {}", "", choice.line());
    }
    output::print(&out)?;
    Ok(if missing { 77 } else { 0 })
}

fn line(out: &mut String, mark: &str, need: Need, detail: &str) {
    // Padded by hand: the width of a coloured text is not its length.
    let width = anstream::adapter::strip_str(mark).to_string().len();
    let pad = " ".repeat(9usize.saturating_sub(width));
    let purpose = paint(FAINT, &format!("({})", need.purpose()));
    let _ = writeln!(out, "{mark}{pad}{}: {detail} {purpose}", need.name());
}

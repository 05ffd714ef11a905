//! `doctor`: what is needed, what is there, and how the rest would be got.

use crate::Result;
use crate::cli::Machine;
use crate::machine::{Host, accel};
use crate::render::style::{ERROR, FAINT, GOOD, paint};
use crate::setup::{Need, Status, Toolchain};

/// Runs the command. The exit code is 77 if something that `run` needs is missing.
///
/// # Errors
/// There is no compiler to ask.
pub fn run() -> Result<u8> {
    let toolchain = Toolchain::find()?;
    let mut missing = false;
    for need in Need::ALL {
        match need.status(&toolchain) {
            Status::Present(detail) => line(&paint(GOOD, "ok"), need, &detail),
            Status::Missing { why } => {
                missing |= !matches!(need, Need::Ovmf | Need::Grub);
                line(&paint(ERROR, "missing"), need, &why);
                anstream::println!(
                    "         `run` and `test` install it where they may. {}",
                    need.hint()
                );
            }
        }
    }
    let host = Host::read();
    let yes_no = |result: &std::result::Result<(), String>| match result {
        Ok(()) => "yes".to_string(),
        Err(reason) => format!("no: {reason}"),
    };
    anstream::println!("{:<9}KVM: {}", "", yes_no(&host.kvm));
    anstream::println!("{:<9}PMU for guests of KVM: {}", "", yes_no(&host.vpmu));
    if let Ok(choice) = accel::choose(&Machine::default(), &host) {
        anstream::println!("{:<9}`run` would use {}", "", choice.line());
    }
    Ok(if missing { 77 } else { 0 })
}

fn line(mark: &str, need: Need, detail: &str) {
    // Padded by hand: the width of a coloured text is not its length.
    let width = anstream::adapter::strip_str(mark).to_string().len();
    let pad = " ".repeat(9usize.saturating_sub(width));
    let purpose = paint(FAINT, &format!("({})", need.purpose()));
    anstream::println!("{mark}{pad}{}: {detail} {purpose}", need.name());
}

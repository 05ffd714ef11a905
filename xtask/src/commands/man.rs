//! `man`: the manual pages.

use crate::cli::{self, Man};
use crate::{Failure, Result};
use clap::Command;
use clap_mangen::Man as Page;
use std::io;

/// Runs the command.
///
/// # Errors
/// They cannot be written.
pub fn run(arguments: &Man) -> Result<u8> {
    let pages = pages().map_err(|error| Failure::Tool(format!("manual pages: {error}")))?;
    let Some(folder) = &arguments.out else {
        return super::write_text(None, &pages[0].1);
    };
    std::fs::create_dir_all(folder).map_err(Failure::file("create", folder))?;
    for (name, text) in &pages {
        super::write_text(Some(&folder.join(format!("{name}.1"))), text)?;
    }
    Ok(0)
}

/// Each page by its name: the tool's first, then one for each command.
fn pages() -> io::Result<Vec<(String, String)>> {
    let (mut command, _) = cli::described();
    let program = command.get_name().to_string();
    command.build();
    let commands: Vec<Command> = command.get_subcommands().cloned().collect();
    let commands =
        commands.into_iter().filter(|one| !one.is_hide_set() && one.get_name() != "help");
    let named = commands.map(|one| {
        let name = format!("{program}-{}", one.get_name());
        (name.clone(), one.display_name(name))
    });
    let render = |(name, command): (String, Command)| {
        let mut text = Vec::new();
        Page::new(command).render(&mut text)?;
        Ok((name, String::from_utf8_lossy(&text).into_owned()))
    };
    std::iter::once((program.clone(), command.clone())).chain(named).map(render).collect()
}

#[cfg(test)]
mod tests;

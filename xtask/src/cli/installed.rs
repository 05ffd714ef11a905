//! The command line of the installed program: the commands that need no checkout, under its own name.

use super::command::{EXIT_CODES, LONG, Options, User};
use crate::tool::{IN_CHECKOUT, INSTALLED};
use clap::builder::StyledStr;
use clap::{Arg, CommandFactory, FromArgMatches, Parser};
use std::ffi::OsString;

/// Measures code on the bare machine.
#[derive(Debug, Parser)]
#[command(name = INSTALLED, bin_name = INSTALLED, version, about, long_about = LONG, after_help = EXIT_CODES)]
struct Arguments {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: User,
}

/// What cargo puts in front of the arguments when it calls its subcommand: The Cargo Book, "Custom subcommands".
const SUBCOMMAND: &str = "barecount";

/// Reads the program's arguments, its own name first.
///
/// # Errors
/// They are wrong, or request help.
pub fn installed(
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<(Options, User), clap::Error> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments.get(1).is_some_and(|first| first == SUBCOMMAND) {
        arguments.remove(1);
    }
    let mut command = renamed(Arguments::command());
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    let read = Arguments::from_arg_matches_mut(&mut matches);
    let Arguments { options, command } = read.map_err(|error| error.format(&mut command))?;
    Ok((options, command))
}

/// The command line of the program that runs, under the name of its file, and its name after `cargo`: for completions and manual
/// pages, which `man cargo barecount` looks for by the former.
#[must_use]
pub fn described() -> (clap::Command, &'static str) {
    described_as(crate::parts::installed().is_some())
}

pub(super) fn described_as(is_installed: bool) -> (clap::Command, &'static str) {
    let (command, program, subcommand) = match is_installed {
        true => (renamed(Arguments::command()), "cargo-barecount", SUBCOMMAND),
        false => (super::Arguments::command(), "cargo-xtask", "xtask"),
    };
    (command.name(program).bin_name(program), subcommand)
}

/// The examples of the help texts with this program's name.
fn renamed(mut command: clap::Command) -> clap::Command {
    let own = |text: Option<&StyledStr>| {
        let text = text?.to_string();
        text.contains(IN_CHECKOUT).then(|| text.replace(IN_CHECKOUT, INSTALLED))
    };
    if let Some(text) = own(command.get_long_about()) {
        command = command.long_about(text);
    }
    if let Some(text) = own(command.get_after_help()) {
        command = command.after_help(text);
    }
    let option = |mut option: Arg| {
        if let Some(text) = own(option.get_help()) {
            option = option.help(text);
        }
        if let Some(text) = own(option.get_long_help()) {
            option = option.long_help(text);
        }
        option
    };
    command.mut_args(option).mut_subcommands(renamed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::ErrorKind;

    fn read(words: &[&str]) -> Result<User, clap::Error> {
        installed(words.iter().map(OsString::from)).map(|(_, command)| command)
    }

    #[test]
    fn it_is_called_by_cargo_and_by_its_own_name() {
        for words in [
            &["cargo-barecount", "barecount", "run", "--asm", "nop"][..],
            &["cargo-barecount", "run", "--asm", "nop"],
            &["/opt/other-name", "run", "--asm", "nop"],
        ] {
            assert!(matches!(read(words), Ok(User::Run(_))), "{words:?}");
        }
        // Only once: what stands after it is the user's.
        let twice = read(&["cargo-barecount", "barecount", "barecount"]).unwrap_err();
        assert_eq!(twice.kind(), ErrorKind::InvalidSubcommand);
    }

    #[test]
    fn commands_of_the_checkout_are_none_of_its() {
        for command in ["test", "bench", "mutants", "check", "package"] {
            let error = read(&["cargo-barecount", command]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidSubcommand, "{command}");
        }
    }

    #[test]
    fn each_program_is_described_with_its_own_commands() {
        let names = |(command, subcommand): (clap::Command, &'static str)| {
            let all: Vec<String> =
                command.get_subcommands().map(|one| one.get_name().to_string()).collect();
            (command.get_name().to_string(), subcommand, all)
        };
        let (program, subcommand, commands) = names(described_as(true));
        assert_eq!((&*program, subcommand), ("cargo-barecount", "barecount"));
        assert!(!commands.contains(&"bench".to_string()), "{commands:?}");
        let (program, subcommand, all) = names(described_as(false));
        assert_eq!((&*program, subcommand), ("cargo-xtask", "xtask"));
        assert!(commands.iter().all(|one| all.contains(one)) && all.len() > commands.len());
    }

    #[test]
    fn no_help_text_names_the_other_program() {
        let mut command = renamed(Arguments::command());
        command.build();
        let mut all = vec![command.render_long_help().to_string()];
        all.extend(command.get_subcommands_mut().map(|one| one.render_long_help().to_string()));
        assert!(all.len() >= 8, "{}", all.len());
        for text in &all {
            assert!(!text.contains(IN_CHECKOUT), "{text}");
        }
        assert!(all.iter().filter(|text| text.contains(INSTALLED)).count() >= 7);
        let usage = read(&["cargo-barecount", "run", "--frob"]).unwrap_err().to_string();
        assert!(usage.contains("cargo barecount run"), "{usage}");
    }
}

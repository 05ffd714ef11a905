//! `completions`: what a shell offers after `cargo xtask`, or `cargo barecount`.

use crate::Result;
use crate::cli::{self, Completions};
use clap_complete::{Shell, generate};

/// Runs the command.
///
/// # Errors
/// They cannot be written.
pub fn run(arguments: &Completions) -> Result<u8> {
    super::write_text(arguments.out.as_deref(), &script(arguments.shell))
}

/// The shell's script for the program by its own name, and for bash after `cargo` too.
fn script(shell: Shell) -> String {
    let (mut command, subcommand) = cli::described();
    // For bash, clap_complete 4.6 writes two different names of one function for a name with a hyphen.
    let name = match shell {
        Shell::Bash => format!("cargo_{subcommand}"),
        _ => format!("cargo-{subcommand}"),
    };
    let mut script = Vec::new();
    generate(shell, &mut command, name, &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if shell == Shell::Bash {
        script.push_str(&BEHIND_CARGO.replace("SUBCOMMAND", subcommand));
    }
    script
}

/// Cargo completes its own commands alone. What follows ours goes to our function, as if the program had been called by its name; the
/// rest to cargo's, which comes with the toolchain: The rustup Book, "Shell completions".
const BEHIND_CARGO: &str = r#"
if ! declare -F _cargo >/dev/null && command -v rustc >/dev/null; then
    source "$(rustc --print sysroot)/etc/bash_completion.d/cargo" 2>/dev/null
fi
_cargo_or_SUBCOMMAND() {
    if [[ $COMP_CWORD -ge 2 && ${COMP_WORDS[1]} == SUBCOMMAND ]]; then
        COMP_WORDS=(cargo-SUBCOMMAND "${COMP_WORDS[@]:2}")
        COMP_CWORD=$((COMP_CWORD - 1))
        _cargo_SUBCOMMAND cargo-SUBCOMMAND "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    elif [[ $COMP_CWORD -eq 1 && SUBCOMMAND == "$2"* && -n $2 ]]; then
        COMPREPLY=(SUBCOMMAND)
    elif declare -F _cargo >/dev/null; then
        _cargo "$@"
    fi
}
complete -F _cargo_SUBCOMMAND -o nosort -o bashdefault -o default cargo-SUBCOMMAND
complete -F _cargo_or_SUBCOMMAND -o nosort -o bashdefault -o default cargo
"#;

#[cfg(test)]
mod tests;

//! The call of the linker, and what it complains of.

use super::error::{Missing, ProgramError};
use super::input::Input;
use crate::interrupt;
use crate::process::tied;
use crate::setup::Toolchain;
use protocol::program::LINKED_AT;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What rust-lld puts before an error.
const PREFIX: &str = "rust-lld: error: ";

/// The linker of the toolchain.
fn linker() -> Result<PathBuf, ProgramError> {
    let toolchain = Toolchain::find().map_err(|error| ProgramError::Tool(error.to_string()))?;
    let linker = toolchain.tools().join("rust-lld");
    match linker.is_file() {
        true => Ok(linker),
        false => Err(ProgramError::Tool(format!("the toolchain has no {}", linker.display()))),
    }
}

/// Links `inputs` to `out`: the functions `roots` and what they need, with the archives' members and `runtime` where something
/// is missing. `keep` are C identifiers of sections that stay even so.
pub(super) fn link(
    inputs: &[Input],
    roots: &[String],
    keep: &[String],
    runtime: &Path,
    out: &Path,
) -> Result<(), ProgramError> {
    let mut command = tied(linker()?);
    command.args(["-flavor", "gnu", "-m", "elf_x86_64", "-static", "-nostdlib"]);
    command.arg(format!("--image-base={LINKED_AT:#x}"));
    // One kind of rights to a page.
    command.args(["-z", "max-page-size=4096", "-z", "separate-code", "-z", "norelro"]);
    command.args(["-z", "noexecstack", "--gc-sections", "-z", "nostart-stop-gc"]);
    // What is missing matters only where it is needed, and that is found out afterwards, function by function: `reach`.
    command.args(["--unresolved-symbols=ignore-all", "--emit-relocs"]);
    command.args(["--no-dynamic-linker", "--error-limit=0", "--color-diagnostics=never"]);
    for root in roots {
        command.arg(format!("--undefined={root}"));
    }
    for section in keep {
        command.arg(format!("--undefined=__start_{section}"));
    }
    // An entry point that is there, so that the linker does not warn.
    command.arg(format!("--entry={}", roots.first().map_or("_start", String::as_str)));
    command.args(inputs.iter().map(|input| &input.path));
    command.arg("--start-lib").arg(runtime).arg("--end-lib").arg("-o").arg(out);
    run(&mut command, out)
}

fn run(command: &mut Command, out: &Path) -> Result<(), ProgramError> {
    let _deferred = interrupt::defer();
    let output =
        command.output().map_err(|error| ProgramError::Tool(format!("rust-lld: {error}")))?;
    if output.status.success() && out.is_file() {
        return Ok(());
    }
    Err(explain(&String::from_utf8_lossy(&output.stderr)))
}

/// The first complaint, by its kind.
fn explain(said: &str) -> ProgramError {
    let lines: Vec<&str> = said.lines().collect();
    let errors = lines.iter().enumerate().filter_map(|(at, line)| {
        let text = line.strip_prefix(PREFIX)?;
        let details = lines[at + 1..].iter().take_while(|line| line.starts_with(">>> "));
        Some((text, details.map(|line| line[4..].trim()).collect::<Vec<_>>()))
    });
    let errors: Vec<_> = errors.collect();
    let Some((text, details)) = errors.first() else {
        return ProgramError::Linker(said.trim().to_string());
    };
    if let Some(name) = text.strip_prefix("duplicate symbol: ") {
        let defined = details.iter().filter_map(|line| line.strip_prefix("defined at "));
        let places: Vec<String> = defined.map(str::to_string).collect();
        return ProgramError::Ambiguous { name: name.to_string(), count: places.len(), places };
    }
    let undefined: Vec<Missing> =
        errors.iter().filter_map(|(text, details)| undefined(text, details)).collect();
    if !undefined.is_empty() {
        return ProgramError::Undefined(undefined);
    }
    if text.contains("out of range") {
        return ProgramError::Overflow((*text).to_string());
    }
    let more = errors.iter().map(|(text, _)| *text).collect::<Vec<_>>().join("; ");
    ProgramError::Linker(more)
}

/// A symbol of restricted visibility is missed by the linker itself.
fn undefined(text: &str, details: &[&str]) -> Option<Missing> {
    let (kind, name) = text.split_once(" symbol: ")?;
    let by = details.iter().find_map(|line| line.strip_prefix("referenced by "));
    let by = by.unwrap_or("the linker").to_string();
    kind.starts_with("undefined").then(|| Missing { name: name.to_string(), by })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_complaint_has_its_kind() {
        let duplicate = "rust-lld: error: duplicate symbol: sum\n>>> defined at a.c:4\n>>>            a.o:(sum)\n\
            >>> defined at b.c:4\n>>>            b.o:(.text+0x4)\n\nrust-lld: error: duplicate symbol: walk\n";
        let text = explain(duplicate).to_string();
        assert_eq!(text, "there are 2 symbols `sum`: a.c:4, b.c:4");
        let undefined =
            "rust-lld: error: undefined hidden symbol: gone\n>>> referenced by a.c:6 (/a.c:6)\n";
        assert_eq!(
            explain(undefined).to_string(),
            "undefined: `gone`, which `a.c:6 (/a.c:6)` uses"
        );
        let range = "rust-lld: error: a.o:(.text+0x3): relocation R_X86_64_PC32 out of range: 4294967296 is not in \
            [-2147483648, 2147483647]; references 'big'\n";
        assert!(matches!(explain(range), ProgramError::Overflow(text) if text.contains("'big'")));
        let text = explain("rust-lld: error: one\nrust-lld: error: two\n").to_string();
        assert_eq!(text, "rust-lld cannot link it: one; two");
        assert_eq!(explain(" killed \n").to_string(), "rust-lld cannot link it: killed");
    }
}

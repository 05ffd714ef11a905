//! How long a user waits: from the command to the answer, where everything is built.

use super::Figure;
use crate::build::Tree;
use crate::job::assemble;
use crate::machine::MachineError;
use crate::process::said;
use crate::progress::Work;
use crate::setup::toolchain::cargo;
use crate::{Failure, Result};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Words of eight bytes that come to 5 MB.
const WORDS: u32 = 5_000_000 / 8;

/// What is typed after `cargo xtask run`, and how it is called.
const WAYS: [(&str, &[&str]); 4] = [
    ("--asm nop", &["--asm", "nop"]),
    ("a function of an unchanged object", &["--object", "small.o", "--function", "f"]),
    ("a function of an unchanged object of 5 MB", &["--object", "large.o", "--function", "f"]),
    ("a function of an object of 5 MB, linked again", &["--object", "new.o", "--function", "f"]),
];

/// An object with a function, and so many words of data that it refers to.
fn object(words: u32, seed: u32) -> Result<Vec<u8>> {
    let text = format!(
        ".globl f; f: mov ecx, 100; 2: dec ecx; jnz 2b; lea rax, [rip + d]; ret\n.data\nd: .quad {seed}\n\
         .fill {words}, 8, 0x1234567"
    );
    assemble::object(&text).map_err(Failure::Tool)
}

/// Wall time of the commands, cargo's own look at the host tool included, in turns, so many after one that is not counted.
pub(super) fn measure(tree: &Tree, count: u32) -> Result<Vec<Figure>> {
    let folder = super::boots::scratch()?;
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).map_err(Failure::file("write", &path))
    };
    write("small.o", &object(1, 0)?)?;
    write("large.o", &object(WORDS, 0)?)?;
    let mut work = Work::of(u64::from(count), "from command to answer");
    let mut times = WAYS.map(|_| Vec::new());
    for round in 0..=count {
        work.tick(u64::from(round));
        // Of the time too: what an earlier call has linked is kept.
        write("new.o", &object(WORDS, std::process::id() ^ round << 24)?)?;
        for ((_, words), times) in WAYS.iter().zip(&mut times) {
            let elapsed = once(tree, words, folder.path())?;
            if round > 0 {
                times.push(elapsed);
            }
        }
    }
    let figure = |((what, _), times): (&(&str, &[&str]), Vec<f64>)| {
        Figure::time(format!("warm, from command to answer: cargo xtask run: {what}"), times)
    };
    Ok(WAYS.iter().zip(times).map(figure).collect())
}

fn once(tree: &Tree, words: &[&str], folder: &Path) -> Result<f64> {
    let mut command = Command::new(cargo());
    command.args(["xtask", "run"]).current_dir(tree.root()).stdin(Stdio::null());
    command.args(words.iter().map(|word| match word.ends_with(".o") {
        true => folder.join(word).into_os_string(),
        false => word.into(),
    }));
    let start = Instant::now();
    let output = command.output().map_err(|error| Failure::Tool(format!("cargo: {error}")))?;
    let elapsed = start.elapsed();
    if !output.status.success() {
        let text = format!("cargo xtask run {} failed: {}", words.join(" "), said(&output));
        return Err(MachineError::Unfinished(text).into());
    }
    Ok(elapsed.as_secs_f64())
}

//! A machine's answers as files: for a report of a set-up that went wrong, and for the tests, which decide on recorded
//! machines because the one that they run on has everything.

use super::plan::{Answer, Question, Wide};
use super::{Need, apt, packages};
use std::fs;
use std::path::Path;

/// The needs that packages meet, and how their files' names begin.
pub(super) const NEEDS: [(Need, &str); 6] = [
    (Need::QemuForPmu, "qemu"),
    (Need::Ovmf, "ovmf"),
    (Need::Grub, "grub"),
    (Need::Valgrind, "valgrind"),
    (Need::Compilers, "compilers"),
    (Need::Chromium, "chromium"),
];

/// Writes what apt says of every need to `folder`: the packages, versions and simulations, and what is installed. Hosts of
/// package sources are left out.
///
/// # Errors
/// A file that cannot be written.
pub fn record(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("installed.txt"), apt::installed())?;
    for (need, name) in NEEDS {
        fs::write(
            folder.join(format!("{name}.packages")),
            packages::debian(need).join(" ") + "\n",
        )?;
        write(folder, name, Question::Own, &apt::ask_own(need))?;
        match apt::ask_wide(need) {
            Ok(Wide { answer, .. }) => write(folder, name, Question::Wide, &answer)?,
            Err(reason) => fs::write(folder.join(format!("{name}.wide.error")), clean(&reason))?,
        }
    }
    Ok(())
}

fn write(folder: &Path, name: &str, from: Question, answer: &Answer) -> std::io::Result<()> {
    let file = |kind: &str| folder.join(format!("{name}.{}.{kind}", word(from)));
    fs::write(file("versions"), clean(&answer.versions))?;
    fs::write(file("simulation"), clean(&answer.simulation))
}

fn word(from: Question) -> &'static str {
    match from {
        Question::Own => "own",
        Question::Wide => "wide",
    }
}

/// Without hosts, and without the lines that say that what is installed is configured as well.
fn clean(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("Conf "));
    lines.map(|line| without_hosts(line.trim_end()) + "\n").collect()
}

fn without_hosts(line: &str) -> String {
    let word = |word: &str| match word.split_once("://") {
        Some((_, rest)) => format!("mirror:{}", rest.find('/').map_or("", |at| &rest[at..])),
        None => word.to_string(),
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Reads an answer that was recorded.
#[cfg(test)]
pub(super) fn read(folder: &Path, name: &str, from: Question) -> Option<Answer> {
    let file =
        |kind: &str| fs::read_to_string(folder.join(format!("{name}.{}.{kind}", word(from))));
    Some(Answer { versions: file("versions").ok()?, simulation: file("simulation").ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_without_hosts() {
        let folder = tempfile::tempdir().unwrap();
        let answer = Answer {
            versions: "q | 1:10.0 | https://some.host/debian x/main amd64 Packages".into(),
            simulation: "  Inst q [1] (2 x)\nConf q (2 x)\n".into(),
        };
        write(folder.path(), "qemu", Question::Wide, &answer).unwrap();
        let seen = read(folder.path(), "qemu", Question::Wide).unwrap();
        assert_eq!(seen.versions, "q | 1:10.0 | mirror:/debian x/main amd64 Packages\n");
        assert_eq!(seen.simulation, "  Inst q [1] (2 x)\n");
        assert!(read(folder.path(), "qemu", Question::Own).is_none());
    }
}

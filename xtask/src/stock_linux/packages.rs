//! The distribution's packages: downloaded from the machine's own package source and unpacked, never installed.

use super::error::StockError;
use crate::process::{said, stdout_of};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Packages without which `package` does not work, by name. Of alternatives, all.
pub fn dependencies(package: &str) -> Result<Vec<String>, StockError> {
    let listed = stdout_of(Command::new("apt-cache").args(["depends", "--important", package]));
    listed.map(|listed| parse(&listed)).ok_or_else(|| StockError::NoPackage(package.to_string()))
}

/// `apt-cache depends`: the package, then a line for each relation. A name in angle brackets is a virtual package.
fn parse(listed: &str) -> Vec<String> {
    let relations = listed.lines().filter_map(|line| {
        let line = line.trim().trim_start_matches('|');
        line.strip_prefix("Depends: ").or_else(|| line.strip_prefix("PreDepends: "))
    });
    relations.filter(|name| !name.starts_with('<')).map(str::to_string).collect()
}

/// Downloads packages to `folder`: their files.
pub fn download(packages: &[String], folder: &Path) -> Result<Vec<PathBuf>, StockError> {
    fs::create_dir_all(folder).map_err(StockError::file(folder))?;
    let listed = stdout_of(Command::new("apt-cache").arg("madison").args(packages));
    let wanted = wanted(packages, &listed.unwrap_or_default());
    run(Command::new("apt-get").args(["-qq", "download"]).args(wanted).current_dir(folder))?;
    let files: Vec<PathBuf> = files(folder)
        .filter(|file| file.extension().is_some_and(|extension| extension == "deb"))
        .collect();
    if files.len() < packages.len() {
        return Err(StockError::Few { files: files.len(), packages: packages.join(", ") });
    }
    Ok(files)
}

/// Packages with the newest version that a package source has, from `apt-cache madison`: `name | version | source`, newest
/// first. Without a version apt takes the installed one where that is newer, which nobody may have any more.
fn wanted(packages: &[String], listed: &str) -> Vec<String> {
    let newest = |package: &String| {
        let mut lines = listed.lines().map(|line| line.split('|').map(str::trim));
        lines.find_map(|mut fields| {
            let own = fields.next() == Some(package);
            own.then(|| fields.next()).flatten().filter(|version| !version.is_empty())
        })
    };
    let one = |package: &String| match newest(package) {
        Some(version) => format!("{package}={version}"),
        None => package.clone(),
    };
    packages.iter().map(one).collect()
}

/// Takes `parts` out of a package; all of it, if none is named.
pub fn unpack(package: &Path, parts: &[&str], folder: &Path) -> Result<(), StockError> {
    fs::create_dir_all(folder).map_err(StockError::file(folder))?;
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.arg("--fsys-tarfile").arg(package).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut dpkg = dpkg.spawn().map_err(|error| failed("dpkg-deb", error))?;
    let archive = dpkg.stdout.take().expect("piped");
    let mut tar = Command::new("tar");
    tar.args(["-x", "-f", "-"]).args(parts).current_dir(folder).stdin(archive);
    let unpacked = run(&mut tar);
    let status = dpkg.wait().map_err(|error| failed("dpkg-deb", error))?;
    unpacked?;
    let ended = || failed("dpkg-deb", format!("it ended with {status}"));
    if status.success() { Ok(()) } else { Err(ended()) }
}

/// What is in a folder.
pub fn files(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn failed(program: &str, reason: impl ToString) -> StockError {
    StockError::Program { program: program.to_string(), reason: reason.to_string() }
}

fn run(command: &mut Command) -> Result<(), StockError> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(failed(&name, said(&output))),
        Err(error) => Err(failed(&name, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read_with_alternatives_and_without_virtual_packages() {
        let listed = "tool\n PreDepends: first\n  Depends: libone\n |Depends: libtwo\n  Depends: <perl:any>\n    perl\n";
        assert_eq!(parse(listed), ["first", "libone", "libtwo"]);
        assert_eq!(parse("tool\n"), [""; 0]);
    }

    #[test]
    fn what_is_downloaded_is_the_newest_that_a_package_source_has() {
        let listed = " linux-perf | 6.1.172-1 | http://security main amd64 Packages\n \
                      linux-perf | 6.1.170-3 | http://main main amd64 Packages\n     \
                      perf | 1 | http://main main amd64 Packages\n";
        let packages = ["linux-perf", "perf", "busybox-static"].map(str::to_string);
        let found = wanted(&packages, listed);
        assert_eq!(found, ["linux-perf=6.1.172-1", "perf=1", "busybox-static"]);
    }
}

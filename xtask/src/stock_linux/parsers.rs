//! What the distribution has of programs that read test results, for tests of ours: the parser of KUnit's, which is in the
//! kernel's source alone, and LAVA's monitor.

use super::error::StockError;
use super::packages::{dependencies, download, unpack};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Debian's package whose only dependency is the current kernel's source: 140 MB, of which some files are kept.
const SOURCE: &str = "linux-source";
/// The folder in it.
const KUNIT: &str = "tools/testing/kunit";
/// LAVA's packages, 0.2 MB.
const LAVA: [&str; 2] = ["lava-common", "lava-dispatcher"];
/// Where Debian's packages have Python's.
const MODULES: &str = "./usr/lib/python3/dist-packages";

/// The folder with `kunit_parser.py`, below `folder`, where the first call leaves it.
///
/// # Errors
/// Why there is none: another distribution, no package lists, no connection.
pub fn kunit(folder: &Path) -> Result<PathBuf, StockError> {
    kept(folder, "kunit", |scratch, ready| {
        let package = dependencies(SOURCE)?.into_iter().next();
        let missing = |path: &str| StockError::NoFile {
            path: path.to_string(),
            packages: SOURCE.to_string(),
        };
        let package = package.ok_or_else(|| missing("of any kernel"))?;
        let files = download(&[package], scratch)?;
        let archive = files.first().ok_or_else(|| missing("with the source"))?;
        unpack_source(archive, scratch)?;
        let mut folders = fs::read_dir(scratch).map_err(StockError::file(scratch))?.flatten();
        let found =
            folders.find_map(|entry| Some(entry.path().join(KUNIT)).filter(|path| path.is_dir()));
        let found = found.ok_or_else(|| missing(KUNIT))?;
        fs::rename(&found, ready).map_err(StockError::file(&found))
    })
}

/// The folder with LAVA's modules, below `folder`, where the first call leaves it.
///
/// # Errors
/// As for [`kunit`].
pub fn lava(folder: &Path) -> Result<PathBuf, StockError> {
    kept(folder, "lava", |scratch, ready| {
        for archive in download(&LAVA.map(str::to_string), scratch)? {
            unpack(&archive, &[MODULES], scratch)?;
        }
        let found = scratch.join(MODULES);
        fs::rename(&found, ready).map_err(StockError::file(&found))
    })
}

/// What `make` leaves at its second argument, kept as `name`. The first one is a folder for its use alone.
fn kept(
    folder: &Path,
    name: &str,
    make: impl FnOnce(&Path, &Path) -> Result<(), StockError>,
) -> Result<PathBuf, StockError> {
    let place = folder.join(name);
    if place.exists() {
        return Ok(place);
    }
    fs::create_dir_all(folder).map_err(StockError::file(folder))?;
    let scratch = tempfile::tempdir_in(folder).map_err(StockError::file(folder))?;
    let ready = scratch.path().join("ready");
    make(scratch.path(), &ready)?;
    // In one step: another test may be looking, or have been quicker.
    fs::rename(&ready, &place)
        .or_else(|error| if place.exists() { Ok(()) } else { Err(error) })
        .map_err(StockError::file(&place))?;
    Ok(place)
}

/// The package holds one compressed archive; of that the one folder is unpacked, on the way.
fn unpack_source(package: &Path, folder: &Path) -> Result<(), StockError> {
    let failed = |program: &str, reason: String| StockError::Program {
        program: program.to_string(),
        reason,
    };
    let start = |command: &mut Command| {
        let name = command.get_program().to_string_lossy().into_owned();
        command.spawn().map_err(|error| failed(&name, error.to_string()))
    };
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.arg("--fsys-tarfile").arg(package).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut dpkg = start(&mut dpkg)?;
    let mut outer = Command::new("tar");
    outer.args(["-x", "-O", "-f", "-", "--wildcards", "./usr/src/linux-source-*.tar.xz"]);
    outer.stdin(dpkg.stdout.take().expect("piped")).stdout(Stdio::piped());
    let mut outer = start(&mut outer)?;
    let mut inner = Command::new("tar");
    inner.args(["-x", "-J", "-f", "-", "--wildcards"]).arg(format!("*/{KUNIT}/*.py"));
    inner.stdin(outer.stdout.take().expect("piped")).current_dir(folder);
    let mut inner = start(&mut inner)?;
    for (program, child) in [("tar", &mut inner), ("tar", &mut outer), ("dpkg-deb", &mut dpkg)] {
        let status = child.wait().map_err(|error| failed(program, error.to_string()))?;
        if !status.success() {
            return Err(failed(program, format!("it ended with {status}")));
        }
    }
    Ok(())
}

//! What leaves the program: standard output, standard error, files.
//!
//! A report that cannot be written is an error and no panic. A reader that has seen enough (`| head`) is not an error. A
//! file is written next to its place and then put there, so that what fails midway leaves the old one.

use crate::text::printable_lines;
use crate::{Failure, Result, interrupt};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Writes to standard output. Styles are left out where it is not a terminal.
///
/// # Errors
/// [`Failure::Output`], except that the reader has gone.
pub fn print(styled: &str) -> Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(styled.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Output(error)),
        _ => Ok(()),
    }
}

/// Says a line on standard error, made fit for a terminal.
pub fn say(text: &str) {
    say_styled(&printable_lines(text));
}

/// The same for a text with styles; whatever in it comes from outside went through [`crate::text`].
pub fn say_styled(styled: &str) {
    // There is nowhere to complain to.
    let _ = writeln!(anstream::stderr().lock(), "{styled}");
}

/// What is at a path.
enum Place {
    /// Nothing yet, or a plain file with one name: the new content can be put there as a whole.
    Whole(PathBuf, Option<Permissions>),
    /// A device, a pipe, a link to nothing, a file with several names: it is written where it is.
    InPlace,
}

fn place(path: &Path) -> io::Result<Place> {
    match fs::metadata(path) {
        Ok(data) if data.is_file() && data.nlink() == 1 => {
            Ok(Place::Whole(path.canonicalize()?, Some(data.permissions())))
        }
        Ok(_) => Ok(Place::InPlace),
        Err(error) if error.kind() == ErrorKind::NotFound => match fs::symlink_metadata(path) {
            Ok(_) => Ok(Place::InPlace),
            Err(_) => Ok(Place::Whole(path.to_path_buf(), None)),
        },
        Err(error) => Err(error),
    }
}

/// A file next to `path`. Its permissions are those of the old one, or what the user's mask leaves of rw-rw-rw-.
fn beside(path: &Path, old: Option<Permissions>) -> io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    // A folder that is not there is the system's to name.
    fs::metadata(folder)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".barecount-").permissions(Permissions::from_mode(0o666));
    let file = builder.tempfile_in(folder).map_err(unnamed)?;
    if let Some(old) = old {
        file.as_file().set_permissions(old)?;
    }
    Ok(file)
}

/// The reason without the name of a file that nobody asked for.
fn unnamed(error: io::Error) -> io::Error {
    match error.kind() {
        kind @ (ErrorKind::PermissionDenied
        | ErrorKind::NotADirectory
        | ErrorKind::ReadOnlyFilesystem
        | ErrorKind::StorageFull) => kind.into(),
        _ => error,
    }
}

/// Makes sure that `path` can be written, before work is done for it. Nothing is left there.
///
/// # Errors
/// It cannot.
pub fn check(path: &Path) -> Result<()> {
    let _deferred = interrupt::defer();
    let failed = Failure::file("write", path);
    let checked = place(path).and_then(|place| match place {
        Place::Whole(path, None) => beside(&path, None).map(drop),
        Place::Whole(path, old) => {
            OpenOptions::new().append(true).open(&path)?;
            match beside(&path, old) {
                Err(error) if error.kind() != ErrorKind::PermissionDenied => Err(error),
                _ => Ok(()),
            }
        }
        // A pipe would wait for its reader here.
        Place::InPlace => match fs::metadata(path) {
            Ok(data) if data.is_dir() => Err(ErrorKind::IsADirectory.into()),
            Ok(data) if data.file_type().is_block_device() => block_device(path).map(drop),
            _ => Ok(()),
        },
    });
    checked.map_err(failed)
}

/// Writes a whole file.
///
/// # Errors
/// It cannot be written; what was there before still is, unless it can only be written where it is.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    let _deferred = interrupt::defer();
    put(path, bytes.as_ref()).map_err(Failure::file("write", path))
}

fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let Place::Whole(whole, old) = place(path)? else { return put_in_place(path, bytes) };
    if old.is_some() {
        // The file's own permissions decide, not those of its folder.
        OpenOptions::new().append(true).open(&whole)?;
    }
    match beside(&whole, old.clone()) {
        Ok(mut file) => {
            file.write_all(bytes)?;
            file.flush()?;
            file.persist(&whole).map(drop).map_err(|error| error.error)
        }
        // A folder that takes no new files may have one that can be written.
        Err(error) if error.kind() == ErrorKind::PermissionDenied && old.is_some() => {
            File::create(&whole)?.write_all(bytes)
        }
        Err(error) => Err(error),
    }
}

/// Writes what is written where it is, and waits until it is there: what a device refuses shows only then.
fn put_in_place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let is_block = fs::metadata(path).is_ok_and(|data| data.file_type().is_block_device());
    let mut file = if is_block { block_device(path)? } else { File::create(path)? };
    file.write_all(bytes)?;
    synced(file.sync_all())
}

/// Opens a device that nothing else is using: a file system that is mounted would be overwritten, and would write its own over it.
fn block_device(path: &Path) -> io::Result<File> {
    // Without O_CREAT it is Linux' way to claim a device alone: open(2).
    OpenOptions::new().write(true).custom_flags(libc::O_EXCL).open(path).map_err(in_use)
}

/// The reason in words, for a device that is claimed.
fn in_use(error: io::Error) -> io::Error {
    if error.kind() != ErrorKind::ResourceBusy {
        return error;
    }
    let text = "it is in use: it, or a partition of it, is mounted; unmount it first";
    io::Error::new(ErrorKind::ResourceBusy, text)
}

/// What came of waiting. Pipes and devices that keep nothing cannot be waited for.
fn synced(result: io::Result<()>) -> io::Result<()> {
    let cannot = [libc::EINVAL, libc::ENOTSUP, libc::EROFS];
    result.or_else(|error| match error.raw_os_error() {
        Some(number) if cannot.contains(&number) => Ok(()),
        _ => Err(error),
    })
}

/// Refuses outputs that would overwrite an input or another output, whatever they are called.
///
/// # Errors
/// Both names.
pub fn distinct(outputs: &[&Path], inputs: &[&Path]) -> Result<()> {
    for (index, output) in outputs.iter().enumerate() {
        if let Some(input) = inputs.iter().find(|input| is_same(output, input)) {
            return Err(Failure::Usage(format!(
                "{} would overwrite {}, which this command reads",
                output.display(),
                input.display()
            )));
        }
        if let Some(other) = outputs[..index].iter().find(|other| is_same(output, other)) {
            return Err(Failure::Usage(format!(
                "{} and {} are one file, and each would overwrite the other",
                other.display(),
                output.display()
            )));
        }
    }
    Ok(())
}

/// Whether two names are of one file that keeps what is written into it: by device and inode, or by folder and name if
/// it does not exist yet.
fn is_same(one: &Path, other: &Path) -> bool {
    let keeps = |data: &Metadata| data.is_file();
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(a), Ok(b)) => keeps(&a) && (a.dev(), a.ino()) == (b.dev(), b.ino()),
        (Err(_), Err(_)) => {
            matches!((place_of(one), place_of(other)), (Some(a), Some(b)) if a == b)
        }
        _ => false,
    }
}

fn place_of(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
    Some(folder.join(path.file_name()?))
}

#[cfg(test)]
mod tests;

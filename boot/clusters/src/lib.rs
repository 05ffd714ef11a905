//! The image's FAT partition, with clusters that fit the BIOS loader.
//!
//! The loader's second stage walks a file cluster by cluster, and reads 16 KiB from the start of each one, however short
//! it is (bootloader 0.11.15, `bios/stage-2/src/main.rs`, `try_load_file`). The file system that the `bootloader` crate
//! makes has clusters of 1 or 2 KiB, so that every byte of the kernel is read eight or sixteen times. Clusters of
//! exactly 16 KiB have each byte read once.
#![warn(missing_docs)]

use anyhow::{Context, Result};
use fatfs::{Dir, FileSystem, FormatVolumeOptions, FsOptions, ReadWriteSeek};
use std::fs::OpenOptions;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Bytes of a cluster: as many as the loader reads at a time.
pub const CLUSTER_BYTES: u32 = 16 * 1024;
/// Bytes of a sector, for the loader as for FAT.
const SECTOR: u32 = 512;
/// The partition of the files; the one before it is the loader's second stage.
const FILES: usize = 2;

/// Makes the file system on the FAT partition of the disk image at `path` anew, with the same files and label.
///
/// # Errors
/// The image cannot be read or written, or is not one; the files do not fit any more.
pub fn enlarge(path: &Path) -> Result<()> {
    let mut disk = OpenOptions::new().read(true).write(true).open(path)?;
    let table = mbrman::MBR::read_from(&mut disk, SECTOR).context("no partition table")?;
    let place = &table[FILES];
    let start = SeekFrom::Start(u64::from(place.starting_lba) * u64::from(SECTOR));
    let mut old = vec![0; place.sectors as usize * SECTOR as usize];
    disk.seek(start)?;
    disk.read_exact(&mut old)?;
    let new = with_clusters(old, CLUSTER_BYTES)?;
    disk.seek(start)?;
    Ok(disk.write_all(&new)?)
}

/// A file system with the content of `old`, of the same size, with clusters of `bytes`.
fn with_clusters(old: Vec<u8>, bytes: u32) -> Result<Vec<u8>> {
    let mut new = vec![0; old.len()];
    let from = FileSystem::new(Cursor::new(old), FsOptions::new()).context("no FAT partition")?;
    let options = FormatVolumeOptions::new()
        .bytes_per_cluster(bytes)
        .volume_label(label(&from.volume_label()))
        .volume_id(from.volume_id());
    fatfs::format_volume(Cursor::new(&mut new[..]), options)?;
    let to = FileSystem::new(Cursor::new(&mut new[..]), FsOptions::new())?;
    copy(&from.root_dir(), &to.root_dir())?;
    to.unmount()?;
    Ok(new)
}

/// A label as it stands in the file system: eleven bytes, filled up with blanks.
fn label(text: &str) -> [u8; 11] {
    let mut label = [b' '; 11];
    for (to, from) in label.iter_mut().zip(text.bytes()) {
        *to = from;
    }
    label
}

/// Copies files and folders.
fn copy<A: ReadWriteSeek, B: ReadWriteSeek>(from: &Dir<A>, to: &Dir<B>) -> Result<()> {
    for entry in from.iter() {
        let entry = entry?;
        let name = entry.file_name();
        match name.as_str() {
            "." | ".." => (),
            _ if entry.is_dir() => copy(&entry.to_dir(), &to.create_dir(&name)?)?,
            _ => {
                let copied = io::copy(&mut entry.to_file(), &mut to.create_file(&name)?);
                copied.with_context(|| format!("{name} does not fit into the image"))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(megabytes: usize, files: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = vec![0; megabytes << 20];
        let options = FormatVolumeOptions::new().volume_label(*b"kernel\0\0\0\0\0").volume_id(7);
        fatfs::format_volume(Cursor::new(&mut bytes[..]), options).unwrap();
        {
            let system = FileSystem::new(Cursor::new(&mut bytes[..]), FsOptions::new()).unwrap();
            let root = system.root_dir();
            root.create_dir("efi").unwrap().create_dir("boot").unwrap();
            for (name, content) in files {
                root.create_file(name).unwrap().write_all(content).unwrap();
            }
        }
        bytes
    }

    fn content(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect()
    }

    #[test]
    fn the_same_files_are_there_in_larger_clusters() {
        let files = [
            ("efi/boot/bootx64.efi", content(70_001)),
            ("kernel-x86_64", content(1_130_592)),
            ("a name that is long.txt", content(1)),
            ("empty", Vec::new()),
        ];
        for megabytes in [4, 6, 80] {
            let old = volume(megabytes, &files);
            let length = old.len();
            let new = with_clusters(old, CLUSTER_BYTES).unwrap();
            assert_eq!(new.len(), length);
            let system = FileSystem::new(Cursor::new(new), FsOptions::new()).unwrap();
            assert_eq!(system.cluster_size(), CLUSTER_BYTES);
            assert_eq!(system.volume_id(), 7);
            assert!(system.volume_label().starts_with("kernel"));
            for (name, content) in &files {
                let mut read = Vec::new();
                system.root_dir().open_file(name).unwrap().read_to_end(&mut read).unwrap();
                assert_eq!(&read, content, "{name} in {megabytes} MiB");
            }
            assert_eq!(system.root_dir().iter().count(), 4);
        }
    }

    /// Eighty files of a byte take 16 KiB each, more than there is.
    #[test]
    fn what_does_not_fit_is_named() {
        let names: Vec<String> = (0..80).map(|n| format!("file{n}")).collect();
        let files: Vec<_> = names.iter().map(|name| (name.as_str(), content(1))).collect();
        let error = with_clusters(volume(1, &files), CLUSTER_BYTES).unwrap_err();
        assert!(format!("{error:#}").starts_with("file"), "{error:#}");
    }

    #[test]
    fn what_is_no_image_is_refused() {
        assert!(with_clusters(vec![0; 1 << 20], CLUSTER_BYTES).is_err());
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(enlarge(file.path()).is_err());
        std::fs::write(file.path(), vec![0; 1 << 20]).unwrap();
        assert!(enlarge(file.path()).is_err());
    }
}

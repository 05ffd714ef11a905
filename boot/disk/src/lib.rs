//! A disk image: an MBR with the BIOS loader's boot sector, the rest of that loader after it, and one active partition
//! with a FAT file system.
//!
//! A BIOS starts the boot sector and requests nothing else, though some look for exactly one active partition. UEFI
//! firmware looks into the partition, whose type must be that of the file system that is really there (UEFI
//! specification 5.2.1, 13.3.1).
#![warn(missing_docs)]

use anyhow::{Context, Result, ensure};
use fatfs::{Dir, FatType, FileSystem, FormatVolumeOptions, FsOptions, ReadWriteSeek};
use mbrman::{BOOT_ACTIVE, CHS, MBR, MBRPartitionEntry};
use std::io::{Cursor, Write};

mod folders;

/// Bytes of a sector, for BIOS, partition table and file system.
const SECTOR: usize = 512;
/// The partition begins at 1 MiB, as everywhere: what lies before it is the loader's.
const FIRST_SECTOR: u32 = 2048;
/// Bytes of the boot sector in front of the disk's signature and the partition table.
const BOOT_CODE: usize = 440;
/// "BARE" as the disk's signature and the volume's number.
const SIGNATURE: [u8; 4] = *b"BARE";
const LABEL: [u8; 11] = *b"BARECOUNT  ";
/// What the partition table assumes of a disk whose BIOS counts in cylinders: most sectors of a track, most heads.
const GEOMETRY: (u16, u8, u8) = (1023, 255, 63);
/// Room for folders and for files that a user adds.
const SPARE_BYTES: usize = 256 << 10;
/// Larger than any cluster that is used.
const ROUNDED: usize = 32 << 10;
/// Larger volumes would be FAT32, and no machine that boots from one loads so much.
const MAX_BYTES: usize = 256 << 20;
/// Fewer clusters than these make FAT12 ("FAT: General Overview of On-Disk Format", 1.03, page 14).
const MAX_FAT12: usize = 4085;
/// The volume's size is a multiple of this.
const STEP: usize = 1 << 20;

/// The image with `loader`, whose first sector is the boot sector, and with `files`: path, with slashes, and content.
/// `cluster`: bytes of the file system's clusters, if not as few as its size allows. A folder then has room for entries up to
/// that size without taking another cluster.
///
/// # Errors
/// The loader does not fit in front of the partition, or a file cannot be made.
pub fn image(loader: &[u8], files: &[(String, Vec<u8>)], cluster: Option<u32>) -> Result<Vec<u8>> {
    let room = FIRST_SECTOR as usize * SECTOR;
    ensure!(
        (SECTOR..=room).contains(&loader.len()),
        "the BIOS loader has {} bytes, not {SECTOR} to {room}",
        loader.len()
    );
    let (mut volume, kind) = volume(files, cluster)?;
    say_where(&mut volume, FIRST_SECTOR);
    let mut disk = vec![0; room];
    disk[..loader.len()].copy_from_slice(loader);
    disk.extend(&volume);
    let mut table = MBR::new_from(&mut Cursor::new(&disk[..]), SECTOR as u32, SIGNATURE)?;
    table.header.bootstrap_code.copy_from_slice(&loader[..BOOT_CODE]);
    table[1] = partition(kind, (volume.len() / SECTOR) as u32)?;
    table.write_into(&mut Cursor::new(&mut disk[..]))?;
    Ok(disk)
}

/// A file system by itself, with `files` as [`image`] has them.
///
/// # Errors
/// A file cannot be made.
pub fn file_system(files: &[(String, Vec<u8>)]) -> Result<Vec<u8>> {
    let (mut volume, _) = volume(files, None)?;
    say_where(&mut volume, 0);
    Ok(volume)
}

/// The table's row for a volume of `sectors`.
fn partition(kind: FatType, sectors: u32) -> Result<MBRPartitionEntry> {
    let (cylinders, heads, track) = GEOMETRY;
    let place = |sector: u32| CHS::from_lba_exact(sector, cylinders, heads, track);
    // After what can be counted in cylinders, all of it is at its maximum.
    let beyond = CHS::new(cylinders, heads - 1, track);
    Ok(MBRPartitionEntry {
        boot: BOOT_ACTIVE,
        first_chs: place(FIRST_SECTOR)?,
        // FAT16's is the one for numbers of sectors.
        sys: if kind == FatType::Fat12 { 0x01 } else { 0x0e },
        last_chs: place(FIRST_SECTOR + sectors - 1).unwrap_or(beyond),
        starting_lba: FIRST_SECTOR,
        sectors,
    })
}

/// A file system with `files`, as large as it must be.
fn volume(files: &[(String, Vec<u8>)], cluster: Option<u32>) -> Result<(Vec<u8>, FatType)> {
    let needed: usize =
        files.iter().map(|(_, content)| content.len().next_multiple_of(ROUNDED)).sum();
    // The tables take three or four bytes for each cluster of at least a sector.
    let all = (needed + needed / 64 + SPARE_BYTES).next_multiple_of(STEP);
    ensure!(all <= MAX_BYTES, "the files have {needed} bytes; an image holds {MAX_BYTES}");
    let mut bytes = vec![0; all];
    let mut options = FormatVolumeOptions::new()
        .volume_label(LABEL)
        .volume_id(u32::from_le_bytes(SIGNATURE))
        .drive_num(0x80)
        .sectors_per_track(GEOMETRY.2.into())
        .heads(GEOMETRY.1.into());
    if let Some(cluster) = cluster {
        let kind =
            if all / (cluster as usize) < MAX_FAT12 { FatType::Fat12 } else { FatType::Fat16 };
        options = options.bytes_per_cluster(cluster).fat_type(kind);
    }
    fatfs::format_volume(Cursor::new(&mut bytes[..]), options)?;
    let system = FileSystem::new(Cursor::new(&mut bytes[..]), FsOptions::new())?;
    let kind = system.fat_type();
    for (path, content) in files {
        add(system.root_dir(), path, content)
            .with_context(|| format!("{path} cannot be put into the image"))?;
    }
    system.unmount()?;
    folders::set_right(&mut bytes);
    Ok((bytes, kind))
}

fn add<D: ReadWriteSeek>(root: Dir<D>, path: &str, content: &[u8]) -> Result<()> {
    let mut folder = root;
    let mut parts: Vec<_> = path.split('/').collect();
    let name = parts.pop().expect("split gives at least one");
    for part in parts {
        folder = folder.create_dir(part)?;
    }
    folder.create_file(name)?.write_all(content)?;
    Ok(())
}

/// Writes into the volume's first sector how many sectors lie before it.
fn say_where(volume: &mut [u8], first: u32) {
    const HIDDEN_SECTORS: usize = 28;
    volume[HIDDEN_SECTORS..HIDDEN_SECTORS + 4].copy_from_slice(&first.to_le_bytes());
}

#[cfg(test)]
mod tests;

//! Reading files in the root directory of a FAT volume: Microsoft's "FAT: General Overview of On-Disk Format", 1.03.
//!
//! A loader of its own reads them, and not a crate: those that need no operating system either have no FAT12 or need
//! a heap. What is read is checked: a damaged volume gives an error, and no loop.

use crate::{Disk, SECTOR};
use thiserror::Error;

mod name;

/// Why a file cannot be read.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
pub enum Error<E> {
    /// The disk cannot be read.
    #[error("{0}")]
    Disk(E),
    /// The first sector is not that of a FAT volume with sectors of 512 bytes.
    #[error("the active partition has no FAT file system with sectors of 512 bytes")]
    NotFat,
    /// The table of clusters leads out of the volume, or ends before the file does.
    #[error("the file system is damaged: cluster {0} does not exist")]
    Damaged(u32),
}

/// Bits of an entry in the table of clusters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Width {
    Fat12,
    Fat16,
    Fat32,
}

/// A file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct File {
    first: u32,
    /// Its length in bytes.
    pub bytes: u32,
}

/// A volume.
pub struct Volume<D> {
    disk: D,
    width: Width,
    /// First sector of the table of clusters.
    table: u64,
    /// First sector and number of sectors of the root directory, if it lies before the clusters; else the first
    /// cluster.
    root: Root,
    /// Sector of cluster 2.
    data: u64,
    cluster_sectors: u32,
    clusters: u32,
    /// The sector of the table that was read last, and its number.
    cached: ([u8; SECTOR], Option<u64>),
}

#[derive(Clone, Copy)]
enum Root {
    Sectors(u64, u32),
    Cluster(u32),
}

/// The first two numbers name no cluster.
const FIRST_CLUSTER: u32 = 2;
const ENTRY_BYTES: usize = 32;

impl<D: Disk> Volume<D> {
    /// The volume that begins at sector `start`.
    ///
    /// # Errors
    /// The disk cannot be read, or holds no FAT volume there.
    pub fn open(mut disk: D, start: u64) -> Result<Self, Error<D::Error>> {
        let mut sector = [0; SECTOR];
        disk.read(start, &mut sector).map_err(Error::Disk)?;
        let word = |at: usize| u32::from(u16::from_le_bytes([sector[at], sector[at + 1]]));
        let double = |at: usize| word(at) | word(at + 2) << 16;
        let either = |short: usize, long: usize| match word(short) {
            0 => double(long),
            length => length,
        };
        let (reserved, tables, root_entries) = (word(14), u32::from(sector[16]), word(17));
        let (table_sectors, all) = (either(22, 36), either(19, 32));
        let cluster_sectors = u32::from(sector[13]);
        let root_sectors = (root_entries * ENTRY_BYTES as u32).div_ceil(SECTOR as u32);
        let before = u64::from(reserved)
            + u64::from(tables) * u64::from(table_sectors)
            + u64::from(root_sectors);
        let signed = sector[510..] == [0x55, 0xaa] && word(11) == SECTOR as u32;
        if !signed || !cluster_sectors.is_power_of_two() || before >= u64::from(all) {
            return Err(Error::NotFat);
        }
        let clusters = (all - before as u32) / cluster_sectors;
        // The number of clusters alone says which of the three it is.
        let width = match clusters {
            0..4085 => Width::Fat12,
            4085..65525 => Width::Fat16,
            _ => Width::Fat32,
        };
        let data = start + before;
        let root = match width {
            Width::Fat32 => Root::Cluster(double(44)),
            _ => Root::Sectors(data - u64::from(root_sectors), root_sectors),
        };
        let table = start + u64::from(reserved);
        let cached = ([0; SECTOR], None);
        Ok(Self { disk, width, table, root, data, cluster_sectors, clusters, cached })
    }

    /// The file `name` of the root directory, whatever its case.
    ///
    /// # Errors
    /// The disk cannot be read, or the directory is damaged.
    pub fn find(&mut self, name: &str) -> Result<Option<File>, Error<D::Error>> {
        let mut sought = name::Sought::new(name);
        match self.root {
            Root::Sectors(first, count) => {
                self.scan(first, count, &mut sought).map(Option::flatten)
            }
            Root::Cluster(mut cluster) => {
                // No directory has more clusters than the volume.
                for _ in 0..self.clusters {
                    let first = self.sector_of(cluster)?;
                    if let Some(found) = self.scan(first, self.cluster_sectors, &mut sought)? {
                        return Ok(found);
                    }
                    match self.next(cluster)? {
                        Some(next) => cluster = next,
                        None => break,
                    }
                }
                Ok(None)
            }
        }
    }

    /// Looks through a part of a directory. The inner `None`: the directory ends here, without the file.
    fn scan(
        &mut self,
        first: u64,
        sectors: u32,
        sought: &mut name::Sought,
    ) -> Result<Option<Option<File>>, Error<D::Error>> {
        let mut sector = [0; SECTOR];
        for at in 0..u64::from(sectors) {
            self.disk.read(first + at, &mut sector).map_err(Error::Disk)?;
            for entry in sector.as_chunks::<ENTRY_BYTES>().0 {
                if entry[0] == 0 {
                    return Ok(Some(None));
                }
                if sought.is(entry) {
                    let word =
                        |at: usize| u32::from(u16::from_le_bytes([entry[at], entry[at + 1]]));
                    let upper = if self.width == Width::Fat32 { word(20) << 16 } else { 0 };
                    let bytes = word(28) | word(30) << 16;
                    return Ok(Some(Some(File { first: upper | word(26), bytes })));
                }
            }
        }
        Ok(None)
    }

    /// Reads `file` to the beginning of `to`, which has room for whole sectors.
    ///
    /// # Errors
    /// The disk cannot be read, or the file system is damaged.
    ///
    /// # Panics
    /// If `to` is shorter than the file's length rounded up to a sector.
    pub fn read(&mut self, file: File, to: &mut [u8]) -> Result<(), Error<D::Error>> {
        let mut rest = &mut to[..(file.bytes as usize).next_multiple_of(SECTOR)];
        let cluster_bytes = self.cluster_sectors as usize * SECTOR;
        let mut next = Some(file.first);
        let mut last = file.first;
        while !rest.is_empty() {
            let first = next.ok_or(Error::Damaged(last))?;
            let sector = self.sector_of(first)?;
            // Neighbours are read together: each call of a BIOS takes its time.
            let mut bytes = cluster_bytes;
            last = first;
            next = self.next(last)?;
            while bytes < rest.len() && next == Some(last + 1) {
                bytes += cluster_bytes;
                last += 1;
                next = self.next(last)?;
            }
            let (part, behind) = rest.split_at_mut(bytes.min(rest.len()));
            self.disk.read(sector, part).map_err(Error::Disk)?;
            rest = behind;
        }
        Ok(())
    }

    fn sector_of(&self, cluster: u32) -> Result<u64, Error<D::Error>> {
        let index = cluster.checked_sub(FIRST_CLUSTER).filter(|&index| index < self.clusters);
        let index = index.ok_or(Error::Damaged(cluster))?;
        Ok(self.data + u64::from(index) * u64::from(self.cluster_sectors))
    }

    /// The cluster after `cluster`; `None` at the end of the file.
    fn next(&mut self, cluster: u32) -> Result<Option<u32>, Error<D::Error>> {
        self.sector_of(cluster)?;
        let at = u64::from(cluster);
        let (entry, end) = match self.width {
            Width::Fat12 => {
                let pair = u16::from_le_bytes([self.byte(at * 3 / 2)?, self.byte(at * 3 / 2 + 1)?]);
                (u32::from(if at % 2 == 0 { pair & 0xfff } else { pair >> 4 }), 0xff8)
            }
            Width::Fat16 => {
                let entry = u16::from_le_bytes([self.byte(at * 2)?, self.byte(at * 2 + 1)?]);
                (u32::from(entry), 0xfff8)
            }
            Width::Fat32 => {
                let mut bytes = [0; 4];
                for (byte, at) in bytes.iter_mut().zip(at * 4..) {
                    *byte = self.byte(at)?;
                }
                // The upper four bits are reserved.
                (u32::from_le_bytes(bytes) & 0x0fff_ffff, 0x0fff_fff8)
            }
        };
        Ok((entry < end).then_some(entry))
    }

    /// A byte of the table of clusters.
    fn byte(&mut self, at: u64) -> Result<u8, Error<D::Error>> {
        let number = self.table + at / SECTOR as u64;
        if self.cached.1 != Some(number) {
            self.cached.1 = None;
            self.disk.read(number, &mut self.cached.0).map_err(Error::Disk)?;
            self.cached.1 = Some(number);
        }
        Ok(self.cached.0[at as usize % SECTOR])
    }
}

#[cfg(test)]
mod tests;

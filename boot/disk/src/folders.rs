//! Folders as they should begin: with the entry of the folder itself and then that of its parent.
//!
//! fatfs 0.3 puts an entry for a long name in front of each of the two, though neither is a name; fsck.fat and the
//! specification ("FAT: General Overview of On-Disk Format", 1.03, page 26) want them in the first two places.

use super::SECTOR;

const ENTRY: usize = 32;
const LONG_NAME: u8 = 0x0f;
const FOLDER: u8 = 0x10;
const VOLUME: u8 = 0x08;
const DELETED: u8 = 0xe5;

/// Where things lie on a volume of FAT12 or FAT16, in bytes.
struct Layout {
    root: (usize, usize),
    data: usize,
    cluster: usize,
}

impl Layout {
    fn read(volume: &[u8]) -> Self {
        let word = |at: usize| usize::from(u16::from_le_bytes([volume[at], volume[at + 1]]));
        let (cluster, root_bytes) = (usize::from(volume[13]) * SECTOR, word(17) * ENTRY);
        let behind_tables = (word(14) + usize::from(volume[16]) * word(22)) * SECTOR;
        let data = behind_tables + root_bytes;
        Self { root: (behind_tables, root_bytes), data, cluster }
    }

    fn place(&self, number: usize) -> usize {
        self.data + (number - 2) * self.cluster
    }
}

/// Sets right the beginning of each folder of `volume`.
pub(super) fn set_right(volume: &mut [u8]) {
    let layout = Layout::read(volume);
    let (root, bytes) = layout.root;
    below(volume, &layout, root, bytes);
}

/// Does so for the folders in the directory at `start`, and those within them. No folder of an image has more entries
/// than a cluster.
fn below(volume: &mut [u8], layout: &Layout, start: usize, bytes: usize) {
    for at in (start..start + bytes).step_by(ENTRY) {
        let entry = &volume[at..at + ENTRY];
        let kind = entry[11];
        let is_folder = kind & FOLDER != 0 && kind & VOLUME == 0 && entry[0] != DELETED;
        if entry[0] == 0 || !is_folder || entry[0] == b'.' {
            continue;
        }
        let word = |at: usize| usize::from(u16::from_le_bytes([entry[at], entry[at + 1]]));
        let first = layout.place(word(26));
        shift(&mut volume[first..first + layout.cluster]);
        below(volume, layout, first, layout.cluster);
    }
}

/// Takes out the first and the third entry of a folder, if they are parts of long names.
fn shift(folder: &mut [u8]) {
    let entries = folder.as_chunks_mut::<ENTRY>().0;
    if entries[0][11] != LONG_NAME || entries[2][11] != LONG_NAME {
        return;
    }
    let last = entries.len() - 1;
    let is_full = entries[last][0] != 0;
    entries.copy_within(1..2, 0);
    entries.copy_within(3.., 1);
    for entry in &mut entries[last - 1..] {
        *entry = [0; ENTRY];
        entry[0] = if is_full { DELETED } else { 0 };
    }
}

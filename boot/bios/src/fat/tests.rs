use super::*;
use fatfs::{FatType, FileSystem, FormatVolumeOptions, FsOptions};
use proptest::prelude::*;
use std::io::{Cursor, Write};

struct Image<'a>(&'a [u8]);

impl Disk for Image<'_> {
    type Error = u64;

    fn read(&mut self, first: u64, to: &mut [u8]) -> Result<(), u64> {
        assert!(!to.is_empty() && to.len().is_multiple_of(SECTOR));
        let from = self.0.get(first as usize * SECTOR..).filter(|rest| rest.len() >= to.len());
        to.copy_from_slice(&from.ok_or(first)?[..to.len()]);
        Ok(())
    }
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect()
}

const LONG: &str = "a name of more than two times thirteen letters";
const START: usize = 5;

/// A volume after five other sectors, in which files lie scattered.
fn volume(kilobytes: usize, kind: FatType) -> Vec<u8> {
    let mut bytes = vec![0; kilobytes << 10];
    let options = FormatVolumeOptions::new().volume_label(*b"BARECOUNT  ").bytes_per_cluster(512);
    fatfs::format_volume(Cursor::new(&mut bytes[..]), options).unwrap();
    {
        let system = FileSystem::new(Cursor::new(&mut bytes[..]), FsOptions::new()).unwrap();
        assert_eq!(system.fat_type(), kind);
        let root = system.root_dir();
        root.create_dir("kernel").unwrap();
        root.create_file("ramdisk.old").unwrap().write_all(b"old").unwrap();
        let (mut one, mut other) =
            (root.create_file("kernel-x86_64").unwrap(), root.create_file(LONG).unwrap());
        // In turns, so that no two clusters of a file are neighbours, and then many that are.
        for part in content(20 * 512).chunks(512) {
            one.write_all(part).unwrap();
            other.write_all(part).unwrap();
        }
        one.write_all(&content(50_001)).unwrap();
        root.remove("ramdisk.old").unwrap();
        for index in 0..40 {
            root.create_file(&format!("one of many files, number {index}")).unwrap();
        }
        root.create_file("RAMDISK").unwrap().write_all(&content(513)).unwrap();
    }
    [vec![0xee; START * SECTOR], bytes].concat()
}

fn read(volume: &[u8], name: &str) -> Option<Vec<u8>> {
    let mut volume = Volume::open(Image(volume), START as u64).unwrap();
    let file = volume.find(name).unwrap()?;
    let mut bytes = vec![0; (file.bytes as usize).next_multiple_of(SECTOR)];
    volume.read(file, &mut bytes).unwrap();
    bytes.truncate(file.bytes as usize);
    Some(bytes)
}

#[test]
fn files_are_found_by_both_kinds_of_names_on_all_three_kinds_of_volumes() {
    for (kilobytes, kind) in
        [(1000, FatType::Fat12), (8000, FatType::Fat16), (40_000, FatType::Fat32)]
    {
        let volume = volume(kilobytes, kind);
        let kernel = [content(20 * 512), content(50_001)].concat();
        assert!(read(&volume, "kernel-x86_64") == Some(kernel), "{kind:?}");
        assert!(read(&volume, &LONG.to_uppercase()) == Some(content(20 * 512)), "{kind:?}");
        assert!(read(&volume, "ramdisk") == Some(content(513)), "{kind:?}");
        assert_eq!(read(&volume, "one of many files, number 7"), Some(Vec::new()));
        for absent in ["kernel", "kernel-x86_6", "ramdisk.old", "BARECOUNT", ""] {
            assert_eq!(read(&volume, absent), None, "{absent} on {kind:?}");
        }
    }
}

#[test]
fn what_is_no_fat_volume_is_said_to_be_none() {
    for volume in [vec![0; 20 * SECTOR], vec![0xff; 20 * SECTOR]] {
        assert_eq!(Volume::open(Image(&volume), START as u64).err(), Some(Error::NotFat));
    }
    assert_eq!(Volume::open(Image(&[]), 3).err(), Some(Error::Disk(3)));
}

#[test]
fn a_chain_that_ends_before_its_file_does_is_damage() {
    let bytes = volume(1000, FatType::Fat12);
    let mut volume = Volume::open(Image(&bytes), START as u64).unwrap();
    let file = volume.find("ramdisk").unwrap().unwrap();
    let longer = File { bytes: file.bytes + 4096, ..file };
    let Err(Error::Damaged(_)) = volume.read(longer, &mut [0; 8192]) else { panic!("an error") };
    let nowhere = File { first: 1, ..file };
    assert_eq!(volume.read(nowhere, &mut [0; 8192]), Err(Error::Damaged(1)));
}

proptest! {
    #[test]
    fn no_damage_makes_it_panic_or_hang(
        damage in proptest::collection::vec((0usize..40 * SECTOR, any::<u8>()), 1..40),
    ) {
        let mut bytes = volume(200, FatType::Fat12);
        for (at, byte) in damage {
            bytes[START * SECTOR + at] = byte;
        }
        if let Ok(mut volume) = Volume::open(Image(&bytes), START as u64) {
            for name in ["kernel-x86_64", LONG, "ramdisk"] {
                if let Ok(Some(file)) = volume.find(name) {
                    let length = (file.bytes as usize).min(1 << 20);
                    let file = File { bytes: length as u32, ..file };
                    let mut to = vec![0; length.next_multiple_of(SECTOR)];
                    let _ = volume.read(file, &mut to);
                }
            }
        }
    }
}

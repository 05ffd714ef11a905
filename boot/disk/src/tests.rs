use super::*;
use std::io::Read;
use std::process::Command;

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect()
}

fn files(large: usize) -> Vec<(String, Vec<u8>)> {
    [
        ("kernel-x86_64", content(1_130_592)),
        ("efi/boot/bootx64.efi", content(70_001)),
        ("efi/boot/a name that is long.txt", content(1)),
        ("empty", Vec::new()),
        ("ramdisk", content(large)),
    ]
    .map(|(name, content)| (name.to_string(), content))
    .to_vec()
}

/// Bytes of the ramdisk, those of the clusters, the kind of the file system, its partition type.
const KINDS: [(usize, Option<u32>, FatType, u8); 4] = [
    (100, None, FatType::Fat12, 0x01),
    (9 << 20, None, FatType::Fat16, 0x0e),
    (9 << 20, Some(8192), FatType::Fat12, 0x01),
    (40 << 20, Some(8192), FatType::Fat16, 0x0e),
];

#[test]
fn there_is_one_active_partition_of_the_type_of_its_file_system() {
    for (large, cluster, kind, number) in KINDS {
        let files = files(large);
        let disk = image(&content(30_000), &files, cluster).unwrap();
        let table = MBR::read_from(&mut Cursor::new(&disk), 512).unwrap();
        let used: Vec<_> = table.iter().filter(|(_, entry)| entry.is_used()).collect();
        let [(1, entry)] = used[..] else { panic!("{used:?}") };
        assert!(entry.is_active());
        assert_eq!((entry.sys, entry.starting_lba), (number, 2048));
        assert_eq!(2048 + entry.sectors as usize, disk.len() / 512);
        assert_eq!(disk[510..512], [0x55, 0xaa]);
        let volume = &disk[2048 * 512..];
        assert_eq!(volume[28..32], 2048u32.to_le_bytes());
        let system = FileSystem::new(Cursor::new(volume.to_vec()), FsOptions::new()).unwrap();
        assert_eq!(system.fat_type(), kind);
        if let Some(cluster) = cluster {
            assert_eq!(system.cluster_size(), cluster);
        }
        for (name, content) in &files {
            let mut read = Vec::new();
            system.root_dir().open_file(name).unwrap().read_to_end(&mut read).unwrap();
            assert!(&read == content, "{name} on {kind:?}");
        }
    }
}

#[test]
fn the_loader_lies_before_the_partition_around_the_table() {
    let loader = content(30_000);
    let disk = image(&loader, &files(0), None).unwrap();
    assert_eq!(disk[..440], loader[..440]);
    assert_eq!(disk[512..30_000], loader[512..]);
    assert!(disk[30_000..2048 * 512].iter().all(|&byte| byte == 0));
}

#[test]
fn what_does_not_fit_is_refused() {
    for bytes in [0, 511, 2048 * 512 + 1] {
        let error = image(&vec![0; bytes], &[], None).unwrap_err();
        assert!(error.to_string().contains(&format!("{bytes} bytes")), "{error}");
    }
    let large = vec![("ramdisk".to_string(), vec![0; 256 << 20])];
    let error = image(&[0; 512], &large, None).unwrap_err();
    assert!(error.to_string().contains("268435456 bytes"), "{error}");
    let twice = [("a".to_string(), vec![]), ("a/b".to_string(), vec![])];
    let error = image(&[0; 512], &twice, None).unwrap_err();
    assert!(error.to_string().starts_with("a/b cannot be put"), "{error}");
}

/// `fsck.fat` of dosfstools, an implementation that shares nothing with the one that made the file system.
#[test]
fn all_kinds_of_file_systems_are_clean_for_fsck() {
    // Where programs of the superuser lie, which need not be in a user's search path.
    let places = ["fsck.fat", "/usr/sbin/fsck.fat", "/sbin/fsck.fat"];
    let Some(program) = places.into_iter().find(|place| Command::new(place).output().is_ok())
    else {
        eprintln!("skipped: fsck.fat (dosfstools) is not installed");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    for (large, cluster, kind, _) in KINDS {
        let disk = image(&content(30_000), &files(large), cluster).unwrap();
        std::fs::write(&path, &disk[2048 * 512..]).unwrap();
        let checked = Command::new(program).args(["-n", "-v"]).arg(&path).output().unwrap();
        let said = String::from_utf8_lossy(&checked.stdout);
        assert!(checked.status.success(), "{kind:?}: {said}");
        for complaint in ["differ", "rong", "nvalid", "Dirty", "dirty", "rror"] {
            assert!(!said.contains(complaint), "{kind:?}: {said}");
        }
        // Five files, two folders, the label.
        assert!(said.contains(": 8 files"), "{kind:?}: {said}");
    }
}

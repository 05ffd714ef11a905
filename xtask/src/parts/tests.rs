use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// An archive of two parts.
fn bytes(kernel: &str) -> Vec<u8> {
    let contents =
        [(Part::Kernel, kernel.as_bytes().repeat(100)), (Part::ImageMaker, b"#!/bin/true".into())];
    pack::archive(Path::new("/build"), &contents)
}

fn parts(kernel: &str) -> Parts {
    Parts::read(bytes(kernel).leak()).expect("an archive")
}

/// What is in the folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_goes_in_comes_out() {
    let parts = parts("kernel");
    assert_eq!(parts.content(Part::Kernel).unwrap(), "kernel".repeat(100).into_bytes());
    assert_eq!(parts.content(Part::ImageMaker).unwrap(), b"#!/bin/true");
    assert_eq!(parts.source(), Path::new("/build"));
    let error = parts.content(Part::Plugin).unwrap_err();
    assert!(error.to_string().contains("libemulated_pmu_plugin.so"), "{error}");
}

#[test]
fn a_damaged_archive_is_an_error_wherever_it_is_damaged() {
    let whole = bytes("kernel");
    let readable = |archive: &[u8]| {
        let parts = Parts::read(archive.to_vec().leak())?;
        parts.content(Part::Kernel)?;
        parts.content(Part::ImageMaker)
    };
    readable(&whole).unwrap();
    for at in 0..whole.len() {
        let cut = readable(&whole[..at]);
        assert!(cut.is_err(), "cut at {at}");
        let mut other = whole.clone();
        other[at] ^= 0x10;
        // A change of where it was built does not damage what was built.
        let Ok(content) = readable(&other) else { continue };
        assert_eq!(content, b"#!/bin/true", "changed at {at}");
    }
    assert!(matches!(Parts::read(&[]), Err(PartsError::Absent)));
}

#[test]
fn a_part_is_written_once_and_again_whatever_became_of_it() {
    let parts = parts("kernel");
    let folder = tempfile::tempdir().unwrap();
    let (folder, file) = (folder.path().join("a/b"), folder.path().join("a/b/boot"));
    let state = || {
        let data = fs::metadata(&file).unwrap();
        (fs::read(&file).unwrap(), data.permissions().mode() & 0o777)
    };
    let inode = || std::os::unix::fs::MetadataExt::ino(&fs::metadata(&file).unwrap());
    let whole = (b"#!/bin/true".to_vec(), 0o755);
    parts.extract_to(&folder, Part::ImageMaker).unwrap();
    assert_eq!(state(), whole);
    let first = inode();
    parts.extract_to(&folder, Part::ImageMaker).unwrap();
    assert_eq!(inode(), first, "it is written once");
    let damages: [&dyn Fn(); 5] = [
        &|| fs::write(&file, "#!/bin/true").unwrap(),
        &|| fs::write(&file, "#!/bin/trve").unwrap(),
        &|| fs::write(&file, "").unwrap(),
        &|| fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap(),
        &|| fs::remove_file(&file).unwrap(),
    ];
    for damage in damages {
        damage();
        parts.extract_to(&folder, Part::ImageMaker).unwrap();
        assert_eq!(state(), whole);
    }
    assert_eq!(names(&folder), ["boot"], "nothing unfinished is left");
}

#[test]
fn many_at_once_see_whole_files_only() {
    let parts = parts(&"kernel".repeat(1000));
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    parts.extract_to(folder.path(), Part::Kernel).unwrap();
                    // Gone, if another one has just removed it; but never half.
                    if let Ok(content) = fs::read(folder.path().join("kernel")) {
                        assert_eq!(content.len(), 600_000);
                    }
                    let _ = fs::remove_file(folder.path().join("kernel"));
                }
            });
        }
    });
}

#[test]
fn two_archives_have_two_folders() {
    let [one, same, other] = ["kernel", "kernel", "kerneL"].map(parts);
    assert_eq!(one.id, same.id);
    assert_ne!(one.id, other.id);
    assert!(one.id.starts_with(env!("CARGO_PKG_VERSION")), "{}", one.id);
}

#[test]
fn a_place_that_takes_no_files_is_named_with_what_to_set() {
    let parts = parts("kernel");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    // Below a file nobody can make a folder, not even root.
    let error = parts.extract_to(&file.join("x"), Part::Kernel).unwrap_err().to_string();
    assert!(error.contains("file/x/kernel") && error.contains("BARECOUNT_CACHE"), "{error}");
    // A folder in the file's place.
    fs::create_dir_all(folder.path().join("kernel")).unwrap();
    let error = parts.extract_to(folder.path(), Part::Kernel).unwrap_err().to_string();
    assert!(error.contains("cannot write"), "{error}");
    assert_eq!(names(folder.path()), ["file", "kernel"], "nothing unfinished is left");
}

use super::*;
use std::os::unix::fs::symlink;

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_is_replaced_as_a_whole_and_keeps_its_permissions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report");
    check(&path).unwrap();
    assert_eq!(names(folder.path()), [""; 0], "the check leaves nothing");
    write(&path, "one").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let before = fs::metadata(&path).unwrap().ino();
    let old = File::open(&path).unwrap();
    check(&path).unwrap();
    write(&path, "two").unwrap();
    let after = fs::metadata(&path).unwrap();
    assert_ne!(after.ino(), before, "written beside and renamed");
    assert_eq!(after.permissions().mode() & 0o777, 0o640);
    assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    assert_eq!(io::read_to_string(old).unwrap(), "one", "a reader of the old one keeps it");
    assert_eq!(names(folder.path()), ["report"]);
}

#[test]
fn links_stay_links_and_devices_are_written_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let [link, file, other] = ["link", "file", "other"].map(|name| folder.path().join(name));
    symlink("file", &link).unwrap();
    write(&link, "through the link to nothing").unwrap();
    write(&link, "through the link").unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&file).unwrap(), "through the link");
    fs::hard_link(&file, &other).unwrap();
    write(&file, "both").unwrap();
    assert_eq!(fs::read_to_string(&other).unwrap(), "both");
    check(Path::new("/dev/null")).unwrap();
    write(Path::new("/dev/null"), "gone").unwrap();
    let full = write(Path::new("/dev/full"), "no").unwrap_err();
    assert!(full.to_string().contains("cannot write /dev/full"), "{full}");
    for bad in [folder.path(), Path::new("/proc/version"), &folder.path().join("no/such")] {
        assert!(check(bad).is_err(), "{}", bad.display());
        assert!(write(bad, "no").is_err(), "{}", bad.display());
    }
}

#[test]
fn a_device_is_waited_for_and_a_pipe_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let reader = {
        let pipe = pipe.clone();
        std::thread::spawn(move || fs::read_to_string(pipe).unwrap())
    };
    check(&pipe).unwrap();
    write(&pipe, "through the pipe").unwrap();
    assert_eq!(reader.join().unwrap(), "through the pipe");
    write(Path::new("/dev/null"), "gone").unwrap();
    // What fsync(2) says of a stick that was pulled out, and of what is not kept anywhere.
    let result = |number| synced(Err(io::Error::from_raw_os_error(number)));
    assert_eq!(result(libc::EIO).unwrap_err().raw_os_error(), Some(libc::EIO));
    assert_eq!(result(libc::ENOSPC).unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    result(libc::EINVAL).unwrap();
    result(libc::ENOTSUP).unwrap();
}

#[test]
fn a_device_that_is_mounted_is_said_to_be() {
    let reason = |number| in_use(io::Error::from_raw_os_error(number)).to_string();
    assert!(reason(libc::EBUSY).contains("is mounted; unmount it first"));
    assert!(!reason(libc::EACCES).contains("mounted"));
}

#[test]
fn an_output_that_is_an_input_is_refused_by_any_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("job"), "x").unwrap();
    fs::hard_link(path("job"), path("hard")).unwrap();
    symlink("job", path("soft")).unwrap();
    fs::create_dir(path("sub")).unwrap();
    let job = path("job");
    for name in ["job", "hard", "soft", "sub/../job"] {
        let error = distinct(&[&path(name)], &[&job]).unwrap_err();
        assert!(error.to_string().contains("would overwrite"), "{error}");
        assert_eq!(error.exit_code(), 2);
    }
    distinct(&[&path("other")], &[&job]).unwrap();
    // Two that do not exist yet, and a device that may be given twice.
    let error = distinct(&[&path("new"), &path("sub/../new")], &[]).unwrap_err();
    assert!(error.to_string().contains("are one file"), "{error}");
    let null = Path::new("/dev/null");
    distinct(&[null, null], &[null]).unwrap();
}

#[test]
fn a_folder_that_is_not_there_is_said_of_the_file_that_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("absent").join("report");
    for error in [check(&path).unwrap_err(), write(&path, "x").unwrap_err()] {
        let text = error.to_string();
        assert!(text.contains(&path.display().to_string()), "{text}");
        assert!(!text.contains(".barecount-"), "{text}");
    }
}

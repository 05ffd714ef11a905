//! Modules of the kernel that the distribution does not build in: for virtual machines, and for energy.

use super::error::StockError;
use super::packages::{download, files, unpack};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Modules that belong together.
struct Set {
    /// Where they are kept, in front of the kernel's release.
    folder: &'static str,
    /// In the order in which they are loaded.
    names: &'static [&'static str],
    /// Where they lie, below the folder of all modules.
    places: &'static [&'static str],
}

/// What `kvm_amd` and `kvm` depend on comes first.
const KVM: Set = Set {
    folder: "modules",
    names: &["ccp", "irqbypass", "kvm", "kvm-amd"],
    places: &["kernel/drivers/crypto/ccp", "kernel/virt/lib", "kernel/arch/x86/kvm"],
};
/// perf's PMU `power`.
const RAPL: Set = Set { folder: "rapl", names: &["rapl"], places: &["kernel/arch/x86/events"] };
/// In some releases `/lib` is below `/usr`.
const ROOTS: [&str; 2] = ["usr/lib/modules", "lib/modules"];

/// The modules of KVM for AMD's processors that go with `kernel`, from the folder in which it lies, where the first call leaves
/// them. In the order in which they must be loaded.
///
/// # Errors
/// Why there are none: another distribution, no package lists, no connection.
pub fn kvm(kernel: &Path) -> Result<Vec<PathBuf>, StockError> {
    modules(kernel, &KVM)
}

/// The module by which `perf` reads energy, as [`kvm`].
///
/// # Errors
/// The same.
pub fn rapl(kernel: &Path) -> Result<Vec<PathBuf>, StockError> {
    modules(kernel, &RAPL)
}

fn modules(kernel: &Path, set: &Set) -> Result<Vec<PathBuf>, StockError> {
    let folder = kernel.parent().unwrap_or(Path::new("."));
    let release = release(kernel);
    let place = folder.join(format!("{}-{release}", set.folder));
    if !place.exists() {
        let scratch = tempfile::tempdir_in(folder).map_err(StockError::file(folder))?;
        let ready = scratch.path().join("ready");
        let package = format!("linux-image-{release}");
        for archive in download(&[package], scratch.path())? {
            collect(set, &archive, &release, scratch.path(), &ready)?;
        }
        // In one step: another test may be looking, or have been quicker.
        fs::rename(&ready, &place)
            .or_else(|error| if place.exists() { Ok(()) } else { Err(error) })
            .map_err(StockError::file(&place))?;
    }
    Ok(set.names.iter().map(|name| place.join(format!("{name}.ko"))).collect())
}

/// The kernel's release, which its file is named by.
fn release(kernel: &Path) -> String {
    let name = kernel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.strip_prefix(super::kernel::KERNEL).map(str::to_string).unwrap_or(name)
}

/// Takes the modules out of the kernel's package, and puts them into `ready`, not compressed.
fn collect(
    set: &Set,
    archive: &Path,
    release: &str,
    scratch: &Path,
    ready: &Path,
) -> Result<(), StockError> {
    let root = ROOTS.into_iter().find_map(|root| {
        let part = |place: &&str| format!("./{root}/{release}/{place}");
        let parts: Vec<String> = set.places.iter().map(part).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        unpack(archive, &parts, scratch).ok()?;
        Some(scratch.join(root).join(release))
    });
    let packages = archive.display().to_string();
    let missing =
        |name: &str| StockError::NoFile { path: format!("{name}.ko"), packages: packages.clone() };
    let root = root.ok_or_else(|| missing(set.names[0]))?;
    fs::create_dir_all(ready).map_err(StockError::file(ready))?;
    for name in set.names {
        let all = set.places.iter().flat_map(|place| files(&root.join(place)));
        let is_it = |file: &PathBuf| {
            let file = file.file_name().unwrap_or_default().to_string_lossy();
            file.split('.').next() == Some(*name)
        };
        let found = all.into_iter().find(is_it).ok_or_else(|| missing(name))?;
        let to = ready.join(format!("{name}.ko"));
        let bytes = uncompressed(&found)?;
        fs::write(&to, bytes).map_err(StockError::file(&to))?;
    }
    Ok(())
}

/// The module's bytes: some releases compress them.
fn uncompressed(file: &Path) -> Result<Vec<u8>, StockError> {
    let program = match file.extension().and_then(|ending| ending.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return fs::read(file).map_err(StockError::file(file)),
    };
    let failed = |reason: String| StockError::Program { program: program.to_string(), reason };
    let output = Command::new(program).args(["-d", "-c"]).arg(file).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_those_of_the_kernels_release() {
        assert_eq!(release(Path::new("/a/vmlinuz-6.1.0-48-amd64")), "6.1.0-48-amd64");
        let folder = tempfile::tempdir().unwrap();
        let kernel = folder.path().join("vmlinuz-1.2");
        fs::create_dir(folder.path().join("modules-1.2")).unwrap();
        let names: Vec<_> =
            kvm(&kernel).unwrap().iter().map(|file| file.file_name().unwrap().to_owned()).collect();
        assert_eq!(names, ["ccp.ko", "irqbypass.ko", "kvm.ko", "kvm-amd.ko"]);
    }

    #[test]
    fn a_module_is_read_whether_it_is_compressed_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("a.ko");
        fs::write(&plain, b"module").unwrap();
        assert_eq!(uncompressed(&plain).unwrap(), b"module");
        let gzip = Command::new("gzip").arg("-k").arg(&plain).status();
        if gzip.is_ok_and(|status| status.success()) {
            assert_eq!(uncompressed(&folder.path().join("a.ko.gz")).unwrap(), b"module");
        }
        fs::write(folder.path().join("b.ko.gz"), b"no such thing").unwrap();
        let error = uncompressed(&folder.path().join("b.ko.gz")).unwrap_err().to_string();
        assert!(error.starts_with("gzip: "), "{error}");
    }
}

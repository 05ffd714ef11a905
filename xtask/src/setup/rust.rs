//! Getting the parts of the Rust toolchain that a minimal installation lacks.

use super::{Toolchain, apt};
use crate::process::said;
use std::fs;
use std::path::Path;
use std::process::Command;

/// `rustup component add`, which fails quickly where the Rust project's servers cannot be reached.
fn rustup_add(component: &str, toolchain: &Toolchain) -> Result<(), String> {
    let mut command = Command::new("rustup");
    command.args(["component", "add", component, "--toolchain", &toolchain.version]);
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(said(&output)),
        Err(error) => Err(format!("rustup cannot be run: {error}")),
    }
}

/// The library source: from rustup, else from a Debian package of the same version.
pub(super) fn install_source(toolchain: &Toolchain) -> Result<(), String> {
    if rustup_add("rust-src", toolchain).is_ok() {
        return Ok(());
    }
    source_from_debian(toolchain)
        .map_err(|why| format!("rustup could not add rust-src, and Debian's package: {why}"))
}

fn source_from_debian(toolchain: &Toolchain) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let version = &toolchain.version;
    let package = apt::download_package("rust-src", version, &apt::debian_suites(), folder.path())?;
    let unpacked = folder.path().join("unpacked");
    let output = Command::new("dpkg").arg("-x").arg(&package).arg(&unpacked).output();
    match output {
        Ok(output) if output.status.success() => {}
        Ok(output) => return Err(said(&output)),
        Err(error) => return Err(format!("dpkg cannot be run: {error}")),
    }
    let library = unpacked.join(format!("usr/src/rustc-{version}/library"));
    copy_tree(&library, &toolchain.library_source())
        .map_err(|error| format!("cannot copy it into the toolchain: {error}"))
}

/// Copies a folder; a copy that was cut off is not taken for a whole one, because it is renamed last.
fn copy_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    let parent = to.parent().expect("the library has a parent");
    fs::create_dir_all(parent)?;
    let unfinished = tempfile::Builder::new().prefix(".library-").tempdir_in(parent)?;
    copy_into(from, unfinished.path())?;
    fs::rename(unfinished.keep(), to)
}

fn copy_into(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            fs::create_dir(&target)?;
            copy_into(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

/// objcopy and objdump. The boot loader's build looks for both and calls objcopy only; every toolchain
/// carries that program under another name.
pub(super) fn install_tools(toolchain: &Toolchain) -> Result<(), String> {
    if rustup_add("llvm-tools", toolchain).is_ok() {
        return Ok(());
    }
    let tools = toolchain.tools();
    if !tools.join("rust-objcopy").exists() {
        return Err("rustup could not add llvm-tools, and there is no rust-objcopy".to_string());
    }
    for name in ["llvm-objcopy", "llvm-objdump"] {
        let link = tools.join(name);
        if !link.exists() {
            std::os::unix::fs::symlink("rust-objcopy", &link)
                .map_err(|error| format!("cannot make {}: {error}", link.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_copied_with_its_links() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("a/b/to"));
        fs::create_dir_all(from.join("core/src")).unwrap();
        fs::write(from.join("core/src/lib.rs"), "x").unwrap();
        std::os::unix::fs::symlink("src/lib.rs", from.join("core/link")).unwrap();
        copy_tree(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("core/link")).unwrap(), "x");
        assert_eq!(fs::read_dir(to.parent().unwrap()).unwrap().count(), 1, "nothing unfinished");
    }
}

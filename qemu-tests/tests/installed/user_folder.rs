//! The installed program, and a user's folder and home for it.

use qemu_tests::{Called, tree};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A job whose figures are known.
pub const JOB: &str = r#"
[[snippet]]
name = "load and add"
asm = "add rax, rbx; mov rdx, [r14]"
events = ["instructions", "loads"]
expect = { instructions = 2, loads = 1 }
"#;

const PROGRAM: &str = "cargo-barecount";

/// Installs it below the build folder, as the guide has it but for the profile: optimising it takes minutes. What is up to
/// date is not built again.
fn installed() -> PathBuf {
    let tree = tree();
    let root = tree.target().join("tmp/installed");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(tree.root()).args(["install", "--locked", "--path", "xtask", "--quiet"]);
    command.args(["--profile", "quick", "--root"]).arg(&root);
    command.arg("--target-dir").arg(tree.target());
    let output = command.stdin(Stdio::null()).output().expect("cargo can be called");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo install: {said}");
    root.join("bin").join(PROGRAM)
}

/// A folder with the program in it, a user's home and a folder that the user is in.
pub struct UserFolder(tempfile::TempDir);

impl UserFolder {
    pub fn new() -> Self {
        Self::with(&installed())
    }

    /// The same with another program.
    pub fn with(program: &Path) -> Self {
        let user_folder = Self(tempfile::tempdir().unwrap());
        for folder in ["bin", "home", "here"] {
            fs::create_dir(user_folder.0.path().join(folder)).unwrap();
        }
        fs::copy(program, user_folder.program()).unwrap();
        user_folder
    }

    /// The program, which was moved from where cargo had put it.
    pub fn program(&self) -> PathBuf {
        self.0.path().join("bin").join(PROGRAM)
    }

    pub fn home(&self) -> PathBuf {
        self.0.path().join("home")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join("here").join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// What stands in a folder of the user's.
    pub fn names(&self, folder: &str) -> Vec<String> {
        names(&self.path(folder))
    }

    pub fn home_names(&self, folder: &str) -> Vec<String> {
        names(&self.home().join(folder))
    }

    /// `program` as this user calls it: nothing of what cargo told this test, the toolchain's own programs, since rustup's
    /// would look into the home.
    pub fn command(&self, program: &Path, folder: &str) -> Command {
        let rust = tree().toolchain().sysroot.join("bin");
        let search = [self.0.path().join("bin"), rust, "/usr/bin".into(), "/bin".into()];
        let mut command = Command::new(program);
        command.env_clear().env("HOME", self.home());
        command.env("PATH", std::env::join_paths(search).unwrap());
        command.current_dir(self.path(folder)).stdin(Stdio::null());
        for name in ["BARECOUNT_QEMU", "TMPDIR"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command
    }

    /// `cargo barecount` with arguments.
    pub fn call(&self, arguments: &[&str]) -> Called {
        self.call_in("", arguments)
    }

    pub fn call_in(&self, folder: &str, arguments: &[&str]) -> Called {
        let cargo = tree().toolchain().sysroot.join("bin/cargo");
        let mut command = self.command(&cargo, folder);
        called(command.arg("barecount").args(patient(arguments)))
    }

    /// The program by its own name.
    pub fn direct(&self, arguments: &[&str]) -> Called {
        called(self.command(&self.program(), "").args(patient(arguments)))
    }

    /// Gives the program's archive another identity.
    pub fn become_another(&self) {
        let mut bytes = fs::read(self.program()).unwrap();
        let mark = b"bcparts1";
        let source = b"\"source\":\"/";
        let find = |part: &[u8], from: usize| {
            let found = bytes[from..].windows(part.len()).position(|at| at == part);
            found.map(|at| from + at)
        };
        // The mark stands in the code as well, so the index is looked for after each.
        let mut at = 0;
        let place = loop {
            at = find(mark, at).expect("an archive") + mark.len();
            let near = find(source, at).filter(|place| *place < at + 64);
            if let Some(place) = near {
                break place + source.len();
            }
        };
        bytes[place] = if bytes[place] == b'x' { b'y' } else { b'x' };
        // Written anew: the file may still be busy.
        fs::remove_file(self.program()).unwrap();
        fs::write(self.program(), bytes).unwrap();
        fs::set_permissions(self.program(), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// The arguments with more time for `run` than its default: the machine may be busy.
fn patient<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let more: &[&str] = match arguments {
        ["run", rest @ ..] if !rest.contains(&"--help") => &["--timeout", "600"],
        _ => &[],
    };
    [arguments, more].concat()
}

pub fn called(command: &mut Command) -> Called {
    let output = command.output().expect("it can be called");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().expect("it ends by itself");
    Called { code, out: text(&output.stdout), err: text(&output.stderr) }
}

/// What stands in a folder, in alphabetical order.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

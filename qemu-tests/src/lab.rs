//! A lab on the loopback interface: labgrid's coordinator and exporter, and boards, each a machine of QEMU with a power switch
//! and a serial line that outlive it.

mod board;

pub use board::{Board, Fault, Media};

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use xtask::process::tied;
use xtask::setup::labgrid;

/// Longer than anything of labgrid's takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// What is said to be the exporter's host: [`SSH`] takes each for this one.
const HOST: &str = "localhost";

/// In the place of ssh, as labgrid calls it: there is one host, this one. A block device's size is asked for by its name in
/// /sys; the stick of a board is a file.
const SSH: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in
    -O) exit 0;;
    -o) shift 2;;
    -*) shift;;
    *) break;;
  esac
done
shift
[ "$1" = -- ] && shift
case "$*" in
  "cat /sys/class/block/"*) echo 2048;;
  *) exec sh -c "$*";;
esac
"#;

/// The lab; it ends with this.
#[derive(Debug)]
pub struct Lab {
    folder: tempfile::TempDir,
    /// The coordinator's address.
    pub coordinator: String,
    /// The boards.
    pub boards: Vec<Board>,
    children: Vec<Child>,
}

/// A board that a lab is to have.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// Its place.
    pub place: &'a str,
    /// The place's tags, as labgrid takes them.
    pub tags: &'a [&'a str],
    /// Its processor, as QEMU's -cpu has it.
    pub cpu: &'a str,
    /// What it boots from.
    pub media: Media,
    /// What is wrong with it.
    pub fault: Fault,
}

impl Lab {
    /// Starts it.
    ///
    /// # Panics
    /// If labgrid is not there, or does not come up.
    #[must_use]
    pub fn new(wanted: &[Wanted]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let coordinator = format!("{}:{}", Ipv4Addr::LOCALHOST, free_port());
        let boards: Vec<Board> =
            wanted.iter().map(|one| Board::new(&folder.path().join(one.place), one)).collect();
        let tools = folder.path().join("bin");
        fs::create_dir(&tools).expect("a folder");
        script(&tools.join("ssh"), SSH);
        // The stick's switch: the board looks at this file when it is switched on.
        script(&tools.join("usbsdmux"), "#!/bin/sh\nprintf %s \"$2\" >\"$1\"\n");
        let mut lab = Self { folder, coordinator, boards, children: Vec::new() };
        let listen = lab.coordinator.clone();
        lab.start("coordinator", &["-l", &listen]);
        lab.wait_for_coordinator();
        let exported: String =
            lab.boards.iter().zip(wanted).map(|(board, one)| board.exported(one.place)).collect();
        fs::write(lab.folder.path().join("exporter.yaml"), exported).expect("a file");
        let name = ["-c", &listen, "-n", "exporter", "--hostname", HOST, "exporter.yaml"];
        lab.start("exporter", &name);
        let lab_ref = &lab;
        // Each call of labgrid's client takes a second.
        std::thread::scope(|scope| {
            for one in wanted {
                scope.spawn(move || {
                    let client = |arguments: &[&str]| {
                        let all = [&["-p", one.place][..], arguments].concat();
                        lab_ref.succeeds(&all);
                    };
                    client(&["create"]);
                    client(&["add-match", &format!("exporter/{}/*", one.place)]);
                    client(&[&["set-tags"][..], one.tags].concat());
                });
            }
        });
        lab.wait_for_resources();
        lab
    }

    fn start(&mut self, program: &str, arguments: &[&str]) {
        let log = File::create(self.folder.path().join(format!("{program}.log"))).expect("a file");
        let python = labgrid::python().expect("labgrid is there");
        let mut command = tied(python.with_file_name(format!("labgrid-{program}")));
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command.stdout(log.try_clone().expect("another handle")).stderr(log);
        self.children.push(command.spawn().expect("labgrid starts"));
    }

    fn wait_for_coordinator(&self) {
        let start = Instant::now();
        while TcpStream::connect(&self.coordinator).is_err() {
            assert!(start.elapsed() < PATIENCE, "no coordinator: {}", self.log("coordinator"));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// An exporter tells its resources one by one.
    fn wait_for_resources(&self) {
        let start = Instant::now();
        let all = self.boards.len() * Board::RESOURCES;
        loop {
            let listed = self.succeeds(&["resources"]);
            if listed.lines().filter(|line| !line.trim().is_empty()).count() == all {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{listed}: {}", self.log("exporter"));
        }
    }

    fn log(&self, program: &str) -> String {
        let file = self.folder.path().join(format!("{program}.log"));
        fs::read_to_string(file).unwrap_or_default()
    }

    /// labgrid's client.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn client(&self, arguments: &[&str]) -> Output {
        let python = labgrid::python().expect("labgrid is there");
        let mut command = Command::new(python.with_file_name("labgrid-client"));
        command.args(["-x", &self.coordinator]).args(arguments).stdin(Stdio::null());
        command.output().expect("labgrid's client starts")
    }

    /// What it says, where it has to succeed.
    ///
    /// # Panics
    /// If it does not.
    pub fn succeeds(&self, arguments: &[&str]) -> String {
        let output = self.client(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A search path in which `SSH` comes first.
    #[must_use]
    pub fn path(&self) -> OsString {
        let mut path = OsString::from(self.folder.path().join("bin"));
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        path
    }

    /// What a call of the host tool has in its environment.
    #[must_use]
    pub fn environment<'a>(&'a self, path: &'a OsStr) -> [(&'a str, &'a OsStr); 2] {
        [("LG_COORDINATOR", OsStr::new(&self.coordinator)), ("PATH", path)]
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn script(path: &Path, text: &str) {
    fs::write(path, text).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
}

/// A port that nobody listens on now.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("its port").port()
}

/// The environments of the source.
#[must_use]
pub fn environment(name: &str) -> PathBuf {
    crate::tree().root().join("lab").join(name)
}

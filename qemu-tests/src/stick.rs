//! A machine with UEFI firmware, and a USB stick on which reports are saved or a network card.

use crate::monitor::Monitor;
use crate::program::xtask;
use ::xtask::process::tied;
use ::xtask::setup::firmware::Ovmf;
use ::xtask::setup::{firmware, qemu};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Longer than any of these boots takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);
/// Where the partition of an image begins.
pub const PARTITION: usize = 2048 * 512;

/// The machine between its boots.
#[derive(Clone, Debug)]
pub struct Machine {
    folder: PathBuf,
    ovmf: Ovmf,
    /// What is on the stick.
    pub image: PathBuf,
}

/// What the machine does at a reset.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OnReset {
    /// It boots again, with its memory as it was.
    Boots,
    /// It ends, and its memory is lost.
    Ends,
}

/// The machine while it is on.
pub struct On {
    child: Child,
    console: Arc<Mutex<Vec<u8>>>,
    socket: PathBuf,
}

/// Makes the image of `job` in `folder`, with further arguments.
///
/// # Panics
/// If it cannot be made.
pub fn image(folder: &Path, name: &str, job: &str, more: &[&str]) -> PathBuf {
    let (file, path) = (folder.join(name).with_extension("toml"), folder.join(name));
    fs::write(&file, job).expect("the job can be written");
    let (file, out) = (file.display().to_string(), path.display().to_string());
    let made = xtask(folder, &[&["image", &file, "--out", &out], more].concat());
    assert_eq!(made.code, 0, "{made:#?}");
    path
}

impl Machine {
    /// A machine with that stick; its variables are as the firmware comes.
    ///
    /// # Panics
    /// Without UEFI firmware.
    #[must_use]
    pub fn new(folder: &Path, image: PathBuf) -> Self {
        fs::create_dir_all(folder).expect("a folder can be made");
        let ovmf = firmware::find().expect("UEFI firmware").for_run(folder);
        Self { folder: folder.to_path_buf(), ovmf: ovmf.expect("variables can be copied"), image }
    }

    /// The same machine once more, switched off, with its stick: what one does, the other does not see.
    ///
    /// # Panics
    /// If files cannot be copied.
    #[must_use]
    pub fn copy(&self, name: &str) -> Self {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder).expect("a folder can be made");
        let (image, variables) = (folder.join("stick.img"), folder.join("variables.fd"));
        fs::copy(&self.image, &image).expect("the stick can be copied");
        fs::copy(&self.ovmf.variables, &variables).expect("variables can be copied");
        Self { image, ovmf: Ovmf { variables, ..self.ovmf.clone() }, folder }
    }

    /// The file of its variables.
    #[must_use]
    pub fn variables(&self) -> &Path {
        &self.ovmf.variables
    }

    /// Switches it on.
    #[must_use]
    pub fn start(&self, on_reset: OnReset) -> On {
        let drive = format!("if=none,id=stick,format=raw,file={}", self.image.display());
        self.start_with(on_reset, &["-drive", &drive])
    }

    /// The same with what is written to the stick noted in `log`, one after the other.
    #[must_use]
    pub fn start_logged(&self, log: &Path) -> On {
        fs::write(log, []).expect("the log can be written");
        let stick = format!("driver=file,node-name=image,filename={}", self.image.display());
        let log = format!("driver=file,node-name=log,filename={}", log.display());
        let both = "driver=blklogwrites,node-name=stick,file=image,log=log,log-sector-size=512";
        self.start_with(OnReset::Ends, &["-blockdev", &stick, "-blockdev", &log, "-blockdev", both])
    }

    /// Switches it on with these arguments for its stick, called `stick`.
    #[must_use]
    pub fn start_with(&self, on_reset: OnReset, stick: &[&str]) -> On {
        let usb = ["-device", "qemu-xhci", "-device", "usb-storage,drive=stick,bootindex=0"];
        self.start_devices(on_reset, &[stick, &usb].concat())
    }

    /// Switches it on with these arguments for its devices.
    ///
    /// # Panics
    /// If QEMU cannot be started.
    #[must_use]
    pub fn start_devices(&self, on_reset: OnReset, devices: &[&str]) -> On {
        let mut command = plain();
        for (unit, file) in [("0,readonly=on", &self.ovmf.code), ("1", &self.ovmf.variables)] {
            let file = file.display();
            command.args(["-drive", &format!("if=pflash,format=raw,unit={unit},file={file}")]);
        }
        command.args(devices);
        let action = if on_reset == OnReset::Boots { "reset" } else { "shutdown" };
        command.args(["-action", &format!("reboot={action}")]);
        On::new(&mut command, self.folder.join("monitor"))
    }
}

/// QEMU without devices.
fn plain() -> Command {
    let program = qemu::probe().map_or_else(|_| qemu::program().into(), |found| found.path);
    let mut command = tied(program);
    command.args(["-nodefaults", "-no-user-config", "-display", "none"]);
    command.args(["-machine", "pc,accel=tcg", "-cpu", "max", "-m", "256"]);
    command
}

impl On {
    /// A machine with a BIOS and these devices, switched on; files of the run are in `folder`.
    #[must_use]
    pub fn bios(folder: &Path, devices: &[&str]) -> Self {
        let mut command = plain();
        command.args(devices);
        Self::new(&mut command, folder.join("monitor"))
    }

    fn new(command: &mut Command, socket: PathBuf) -> Self {
        command.args(["-chardev", "stdio,id=serial,signal=off", "-serial", "chardev:serial"]);
        command.args(Monitor::arguments(&socket));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("QEMU starts");
        let mut stream = child.stdout.take().expect("piped");
        let console = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&console);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                sink.lock().expect("nobody panics with it").extend_from_slice(&buffer[..count]);
            }
        });
        Self { child, console, socket }
    }

    /// Everything that came over the serial line.
    ///
    /// # Panics
    /// If its reader did.
    #[must_use]
    pub fn console(&self) -> Vec<u8> {
        self.console.lock().expect("nobody panics with it").clone()
    }

    /// The same as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.console()).into_owned()
    }

    /// Waits until `text` has come for the `times`-th time; returns how long that took.
    ///
    /// # Panics
    /// If it does not come, or the machine ends without it.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str, times: usize) -> Duration {
        self.wait_until(&format!("`{text}` ({times})"), |now| now.matches(text).count() >= times)
    }

    /// Waits until one of these texts has come.
    ///
    /// # Panics
    /// If none comes, or the machine ends without it.
    #[track_caller]
    pub fn wait_for_any(&mut self, texts: &[&str]) {
        self.wait_until(&format!("{texts:?}"), |now| texts.iter().any(|text| now.contains(text)));
    }

    #[track_caller]
    fn wait_until(&mut self, what: &str, has_come: impl Fn(&str) -> bool) -> Duration {
        let start = Instant::now();
        loop {
            let ended = self.child.try_wait().expect("it can be asked").is_some();
            if ended {
                // What is on its way still comes.
                std::thread::sleep(Duration::from_millis(100));
            }
            let now = self.text();
            if has_come(&now) {
                return start.elapsed();
            }
            assert!(!ended && start.elapsed() < PATIENCE, "no {what}: {now}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Types letters at the serial console.
    ///
    /// # Panics
    /// If the machine is off.
    pub fn type_in(&mut self, letters: &str) {
        let line = self.child.stdin.as_mut().expect("piped");
        line.write_all(letters.as_bytes()).and_then(|()| line.flush()).expect("it takes letters");
    }

    /// Presses the machine's reset button.
    ///
    /// # Panics
    /// If QEMU does not answer.
    pub fn reset(&mut self) {
        let mut monitor = Monitor::connect(&self.socket, PATIENCE).expect("a monitor");
        monitor.command(r#"{"execute":"system_reset"}"#).expect("an answer");
    }

    /// What stands on its text screen.
    ///
    /// # Panics
    /// If QEMU does not answer.
    #[must_use]
    pub fn text_screen(&self) -> String {
        let monitor = Monitor::connect(&self.socket, PATIENCE);
        monitor.and_then(|mut monitor| monitor.text_screen()).expect("a text screen")
    }

    /// Waits until it is off by itself.
    ///
    /// # Panics
    /// If it stays on.
    #[track_caller]
    pub fn wait_off(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be asked") {
                std::thread::sleep(Duration::from_millis(100));
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "it stays on: {}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Cuts its power.
    pub fn cut_power(&mut self) {
        // It may be off.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for On {
    fn drop(&mut self) {
        self.cut_power();
    }
}

/// Where `fsck.fat` is: the folder of the superuser's programs need not be in a user's search path.
#[must_use]
pub fn fsck() -> Option<&'static str> {
    let places = ["fsck.fat", "/usr/sbin/fsck.fat", "/sbin/fsck.fat"];
    places.into_iter().find(|place| Command::new(place).output().is_ok())
}

/// Asserts that the file system of a stick is whole: `fsck.fat` finds nothing to mend.
///
/// # Panics
/// If it does.
#[track_caller]
pub fn is_clean(program: &str, stick: &[u8]) {
    let volume = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(volume.path(), &stick[PARTITION..]).expect("it can be written");
    let checked = Command::new(program).args(["-n", "-v"]).arg(volume.path()).output();
    let checked = checked.expect("it can be called");
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}");
    for complaint in
        ["differ", "rong", "nvalid", "irty", "rror", "Reclaim", "Truncat", "Free cluster"]
    {
        assert!(!said.contains(complaint), "{said}");
    }
}

/// A write to the stick.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Written {
    /// Where, in bytes.
    pub at: usize,
    /// What was written there.
    pub bytes: Vec<u8>,
}

/// Reads the log of [`Machine::start_logged`]: the form of Linux' dm-log-writes, which QEMU's driver `blklogwrites` writes.
///
/// # Panics
/// If it has another form.
#[must_use]
pub fn writes(log: &Path) -> Vec<Written> {
    /// First word of the log.
    const MAGIC: u64 = 0x6a_7366_7773_6872;
    /// Bit 2 of an entry's flags: discarded, without data.
    const DISCARD: u64 = 1 << 2;
    let log = fs::read(log).expect("the log can be read");
    let word = |at: usize| u64::from_le_bytes(log[at..at + 8].try_into().expect("eight bytes"));
    assert_eq!(word(0), MAGIC, "a log");
    let (entries, sector) = (word(16), 512);
    let (mut at, mut writes) = (sector, Vec::new());
    for _ in 0..entries {
        let (place, count, flags) = (word(at) as usize, word(at + 8) as usize, word(at + 16));
        at += sector;
        assert_eq!(flags & DISCARD, 0, "firmware discards nothing");
        let bytes = log[at..at + count * sector].to_vec();
        at += bytes.len();
        if !bytes.is_empty() {
            writes.push(Written { at: place * sector, bytes });
        }
    }
    writes
}

/// What the kernel wrote to the serial line in its boot of that number, from 0: from its first record to the end of its last
/// one.
///
/// # Panics
/// There is no whole report of that boot.
#[must_use]
pub fn report_of(console: &[u8], boot: usize) -> Vec<u8> {
    let text = String::from_utf8_lossy(console);
    let start = text.match_indices("{\"seq\":0,").nth(boot).expect("a report").0;
    let end = start + text[start..].find("\"type\":\"end\"").expect("its end");
    let end = end + text[end..].find("\r\n").expect("a line end") + 2;
    text[start..end].as_bytes().to_vec()
}

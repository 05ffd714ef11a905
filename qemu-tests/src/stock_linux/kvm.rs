//! Virtual machines within the virtual machine: Linux runs KVM, QEMU starts barecount in guests of it, as `run --pmu host` does
//! on a machine that has both.

use super::steps::{Console, Step};
use super::{StockError, Tools, emulator, file_system, kernel, modules, tools};
use crate::stock_linux::machine::{Machine, Ran, folder, found};
use crate::tree;
use std::fs;
use std::path::{Path, PathBuf};
use xtask::collect::{Collector, Report};
use xtask::job::{self, Purpose, file};
use xtask::machine::devices::{Boot, Console as Serial, Cpus, Pmu, Virtual, arguments};
use xtask::setup::qemu;

/// Where the guest has what is booted within it.
const FOLDER: &str = "vm";
/// How each line of a report begins, and how it does on the way through the outer machine's console.
const LINE: &str = r#"{"seq":"#;
const HIDDEN: &str = r#"["seq":"#;
/// The same for `sed`.
const HIDE: &str = r#"s/^{"seq":/["seq":/"#;
const LOADER: &str = "direct.bin";

/// A job for a guest of KVM.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Its name: one word.
    pub name: &'a str,
    /// The job file.
    pub toml: &'a str,
}

impl Job<'_> {
    /// The command that runs it, for the guest's shell, which tells how QEMU ended as the last line.
    #[must_use]
    pub fn command(&self) -> String {
        let machine = Virtual {
            boot: Boot::Direct {
                loader: LOADER.into(),
                modules: vec!["kernel".to_string(), self.ramdisk()],
            },
            kvm: true,
            pmu: Pmu::Host,
            plugin: None,
            icount: None,
            cpus: Cpus::One,
            memory: 256,
            cpu: None,
            serial: Some(Serial::Pipe),
            screen: false,
            extra: vec!["-L".to_string(), format!("/{}", emulator::DATA)],
        };
        let line = arguments(&machine);
        let line: Vec<_> = line.iter().map(|word| word.to_string_lossy()).collect();
        // Its lines do not look like those of a report, for the end of which the host waits.
        let all = line.join(" ");
        format!(
            "( cd /{FOLDER}; qemu-system-x86_64 {all} < /dev/null; echo ended with $? ) | sed '{HIDE}'"
        )
    }

    /// The step that runs it alone, with its name.
    #[must_use]
    pub fn step(&self) -> Step {
        Step::new(self.name, &self.command())
    }

    fn ramdisk(&self) -> String {
        format!("{}.ramdisk", self.name)
    }
}

/// The step that loads KVM.
#[must_use]
pub fn load() -> Step {
    Step::new("kvm", "for module in /modules/*; do insmod $module || exit 1; done")
}

/// The report that a job has left in the output of its step, and the code with which QEMU ended.
///
/// # Panics
/// If QEMU did not say how it ended.
#[must_use]
pub fn report(output: &str) -> (Report, u8) {
    let mut collector = Collector::new();
    let mut code = None;
    for line in output.lines().map(|line| line.trim_end_matches('\r').replace(HIDDEN, LINE)) {
        collector.feed(line.as_bytes());
        collector.feed(b"\n");
        code = line.strip_prefix("ended with ").and_then(|code| code.trim().parse().ok()).or(code);
    }
    (collector.finish(), code.unwrap_or_else(|| panic!("QEMU did not end: {output}")))
}

impl Machine {
    /// Boots Linux with these jobs at hand, and carries out the steps. `None`, with the reason told, if something cannot be
    /// had.
    ///
    /// # Panics
    /// If it does not come to its end, or a job is wrong.
    #[must_use]
    pub fn run_kvm(&self, jobs: &[Job], steps: &[Step]) -> Option<Ran> {
        let kernel = found("stock kernel", kernel(&folder()))?;
        let tools = found("shell", tools(&folder()))?;
        let modules = found("modules of KVM", modules::kvm(&kernel))?;
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let emulator = qemu::probe()
            .map_err(|reason| StockError::Program { program: "QEMU".to_string(), reason })
            .and_then(|found| emulator::files(&found.path));
        let emulator = found("QEMU", emulator)?;
        let files = files(&tools, &modules, emulator, jobs, scratch.path());
        Some(self.run(&kernel, |out| file_system::with_files(&files, steps, out)))
    }
}

/// All of it: name in the guest and file here.
fn files(
    tools: &Tools,
    modules: &[PathBuf],
    emulator: Vec<(String, PathBuf)>,
    jobs: &[Job],
    scratch: &Path,
) -> Vec<(String, PathBuf)> {
    let mut files = emulator;
    files.extend(tools.files.iter().filter(|(name, _)| name == "bin/busybox").cloned());
    // In the order of their names they are loaded.
    let modules = modules.iter().enumerate();
    files.extend(modules.map(|(index, file)| (format!("modules/{index}.ko"), file.clone())));
    let mut add = |name: &str, file: PathBuf| files.push((format!("{FOLDER}/{name}"), file));
    add(LOADER, tree().direct());
    add("kernel", tree().kernel());
    for job in jobs {
        let parsed = file::parse(job.toml, "test.toml").unwrap_or_else(|error| panic!("{error}"));
        let packed = job::pack(&parsed, Purpose::Qemu).unwrap_or_else(|error| panic!("{error}"));
        let ramdisk = scratch.join(job.ramdisk());
        fs::write(&ramdisk, packed.bytes).unwrap_or_else(|error| panic!("{error}"));
        add(&job.ramdisk(), ramdisk);
    }
    files
}

/// What KVM itself has said in the log of [`dmesg -r`](super::kernel_log), without the time.
#[must_use]
pub fn said(console: &Console, step: &str) -> Vec<String> {
    let log = console.output(step);
    let texts = log.lines().filter_map(|line| Some(line.split_once("] ")?.1.trim().to_string()));
    texts.filter(|text| text.contains("kvm") || text.contains("SVM")).collect()
}

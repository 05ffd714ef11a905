//! A virtual machine that boots the distribution's kernel under UEFI, with the emulated PMU in front.

use super::steps::{Console, Step};
use super::{StockError, file_system, kernel, partition, tools};
use crate::tree;
use pmu_model::Model;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use xtask::cli::Counting;
use xtask::commands::run::counter;
use xtask::machine::devices::{Boot as Files, Console as Serial, Cpus, Pmu, Virtual, arguments};
use xtask::machine::qemu::Launch;
use xtask::machine::{self, Counter, Ending, Given, pmu_log};
use xtask::setup::firmware;

/// The date that the machine begins with: the kernel stirs it into its random numbers, which place code and stacks.
pub const SAME_EACH_TIME: [&str; 2] = ["-rtc", "base=2026-01-01T00:00:00,clock=vm"];

/// A run that came to its end.
#[derive(Clone, Debug)]
pub struct Ran {
    /// What was said on the console.
    pub console: Console,
    /// What the emulated PMU said.
    pub pmu_said: Vec<String>,
}

/// The machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The PMU.
    pub model: Model,
    /// Who counts for it.
    pub counting: Counting,
    /// Processors.
    pub cpus: u32,
    /// QEMU's -cpu, if not the one that fits.
    pub processor: Option<String>,
    /// Nanoseconds of the guest's clock for an instruction, as a power of two.
    pub icount: u8,
    /// MiB.
    pub memory: u32,
    /// More options for the kernel.
    pub options: String,
    /// When to give up.
    pub timeout: Duration,
}

impl Machine {
    /// One with one processor.
    #[must_use]
    pub fn new(model: Model) -> Self {
        Self {
            model,
            counting: Counting::from_environment().unwrap_or_else(|wrong| panic!("{wrong}")),
            cpus: 1,
            processor: None,
            // A compromise: less, and the firmware's delays last; more, and the kernel's clock runs ahead of its work.
            icount: 4,
            memory: 512,
            options: String::new(),
            timeout: Duration::from_secs(500),
        }
    }

    /// Boots it with one program alone. `None`, with the reason told, if there is no kernel.
    ///
    /// # Panics
    /// If it does not come to its end.
    #[must_use]
    pub fn run_program(&self, init: &Path) -> Option<Ran> {
        let kernel = found("stock kernel", kernel(&folder()))?;
        Some(self.run(&kernel, |out| file_system::with_init(init, out)))
    }

    /// Boots it with the distribution's perf, and carries out the steps. `None`, with the reason told, if there is no
    /// kernel or no perf.
    ///
    /// # Panics
    /// If it does not come to its end.
    #[must_use]
    pub fn run_steps(&self, steps: &[Step]) -> Option<Ran> {
        self.run_with(steps, &[], |_| Ok(Vec::new()))
    }

    /// The same with further programs, by their names in `/bin`.
    ///
    /// # Panics
    /// As [`Machine::run_steps`].
    #[must_use]
    pub fn run_with_programs(&self, steps: &[Step], programs: &[(&str, PathBuf)]) -> Option<Ran> {
        self.run_with(steps, programs, |_| Ok(Vec::new()))
    }

    /// The same with modules, which the steps find in `/modules`.
    ///
    /// # Panics
    /// As [`Machine::run_steps`].
    #[must_use]
    pub fn run_with_modules(
        &self,
        steps: &[Step],
        modules: impl Fn(&Path) -> Result<Vec<PathBuf>, StockError>,
    ) -> Option<Ran> {
        self.run_with(steps, &[], modules)
    }

    fn run_with(
        &self,
        steps: &[Step],
        programs: &[(&str, PathBuf)],
        modules: impl Fn(&Path) -> Result<Vec<PathBuf>, StockError>,
    ) -> Option<Ran> {
        let kernel = found("stock kernel", kernel(&folder()))?;
        let modules = found("modules", modules(&kernel))?;
        let tools = found("perf", tools(&folder()))?;
        let known = tree().build_guest("linux-known").unwrap_or_else(|error| panic!("{error}"));
        Some(self.run(&kernel, |out| {
            let mut files = tools.files.clone();
            files.push(("bin/known".to_string(), known.clone()));
            let programs = programs.iter();
            files.extend(programs.map(|(name, file)| (format!("bin/{name}"), file.clone())));
            for module in &modules {
                let name = module.file_name().unwrap_or_default().to_string_lossy();
                files.push((format!("modules/{name}"), module.clone()));
            }
            file_system::with_files(&files, steps, out)
        }))
    }

    /// Whether the PMU is counted by stepping, with which a second of the guest's time takes hours.
    ///
    /// # Panics
    /// If the plugin was asked for and cannot be had.
    #[must_use]
    pub fn is_stepped(&self) -> bool {
        self.counter().plugin.is_none()
    }

    fn counter(&self) -> Counter {
        let given = match self.model {
            Model::None => Given::None,
            model => Given::Emulated(model),
        };
        counter(tree(), given, self.counting).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(super) fn run(&self, kernel: &Path, initial: impl Fn(&Path) -> io::Result<()>) -> Ran {
        tree().build_uefi_pmu().unwrap_or_else(|error| panic!("{error}"));
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join("partition");
        partition::fill(tree(), kernel, self.model, &self.options, &files).unwrap();
        initial(&files.join(partition::INITIAL)).unwrap();
        // QEMU makes a FAT disk of a folder.
        let image = PathBuf::from(format!("fat:{}", files.display()));
        let ovmf = firmware::find().unwrap().for_run(folder.path()).unwrap();
        let counter = self.counter();
        let by_plugin = counter.plugin.is_some();
        let machine = Virtual {
            boot: Files::Uefi { image, ovmf },
            kvm: false,
            pmu: match self.model {
                Model::None => Pmu::None,
                // An image has the hypervisor's options within it.
                model => Pmu::Emulated { model, options: String::new() },
            },
            plugin: counter.plugin,
            icount: Some(self.icount),
            cpus: Cpus::Many(self.cpus),
            memory: self.memory,
            cpu: self.processor.clone(),
            serial: Some(Serial::Pipe),
            screen: false,
            extra: SAME_EACH_TIME.map(String::from).to_vec(),
        };
        let line = arguments(&machine);
        let limits = self.timeout.into();
        let launch = Launch { program: None, arguments: &line, folder: folder.path(), limits };
        let ran = machine::run(&launch, |_| ());
        let ran = ran.unwrap_or_else(|error| panic!("{error}"));
        let console = String::from_utf8_lossy(ran.collector.raw()).into_owned();
        let pmu_said = pmu_log::read(folder.path(), self.model);
        assert_eq!(ran.ending, Ending::Exited(Some(0)), "no power-off; {pmu_said:?}; {console}");
        let greeting = pmu_log::greeting(folder.path(), self.model);
        let found = greeting.as_ref().is_some_and(|greeting| greeting.contains("plugin"));
        assert_eq!(found, by_plugin, "{greeting:?}");
        Ran { console: Console(console), pmu_said }
    }
}

/// Where the distribution's files are kept.
pub(super) fn folder() -> PathBuf {
    tree().target().join("linux")
}

pub(super) fn found<T>(what: &str, result: Result<T, StockError>) -> Option<T> {
    result.map_err(|reason| eprintln!("skipped: no {what}: {reason}")).ok()
}

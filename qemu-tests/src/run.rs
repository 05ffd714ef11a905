//! A run in QEMU.

use crate::tree;
use pmu_model::Mixture;
use protocol::authentication::Key;
use protocol::record::{ErrorRecord, SnippetResult};
use std::path::{Path, PathBuf};
use std::time::Duration;
use xtask::cli::{self, Counting, Icount};
use xtask::collect::{Collector, Report};
use xtask::commands::run::{mix, plant, record, stage_files, stage_pmu};
use xtask::console::{Driver, Script};
use xtask::job::{self, Purpose, file};
use xtask::machine::devices::{Boot, Console, Cpus, Pmu, Virtual, arguments};
use xtask::machine::{self, Ending, Given, Launch, counting, pmu_log};
use xtask::recording::Recorded;
use xtask::setup::qemu::{self, Found};

/// A machine to boot: start from [`Guest::new`] and change what the test is about.
pub struct Guest {
    /// How to boot.
    pub boot: cli::Boot,
    /// In place of the staged boot files.
    pub boot_from: Option<Boot>,
    /// The kernel; else the project's.
    pub kernel: Option<PathBuf>,
    /// The ramdisk.
    pub ramdisk: Option<Vec<u8>>,
    /// KVM instead of TCG.
    pub kvm: bool,
    /// The PMU.
    pub pmu: Given,
    /// Models of several kinds of core, the first of which is that of `pmu`.
    pub mixture: Option<Mixture>,
    /// A recorded processor for an emulated PMU that behaves as its model.
    pub recorded: Option<&'static Recorded>,
    /// In place of the QEMU that the other tests run on.
    pub qemu: Option<PathBuf>,
    /// Who counts for an emulated one.
    pub counting: Counting,
    /// In place of the loader's command line that names the emulated PMU's model.
    pub pmu_options: Option<String>,
    /// A fault of the emulated PMU.
    pub pmu_fault: Option<&'static str>,
    /// TCG's icount.
    pub icount: Icount,
    /// QEMU's -cpu.
    pub cpu: Option<String>,
    /// Processors.
    pub cpus: Cpus,
    /// MiB.
    pub memory: u32,
    /// Attach a UART.
    pub serial: bool,
    /// Attach a screen.
    pub screen: bool,
    /// Further arguments.
    pub extra: Vec<String>,
    /// A script for the consoles of the job's items.
    pub commands: Option<String>,
    /// When to give up.
    pub timeout: Duration,
}

/// A run that is over.
pub struct Ran {
    /// The report.
    pub report: Report,
    /// Every byte of the serial line.
    pub raw: Vec<u8>,
    /// How QEMU ended.
    pub ending: Ending,
    /// What the host tool would say about that.
    pub complaint: Option<String>,
    /// What the emulated PMU said.
    pub pmu_said: Vec<String>,
}

impl Guest {
    /// A machine with the job that `toml` describes.
    ///
    /// # Panics
    /// If the job is wrong.
    #[must_use]
    pub fn new(boot: cli::Boot, toml: &str) -> Self {
        let file = file::parse(toml, "test.toml").unwrap_or_else(|error| panic!("{error}"));
        let packed = job::pack(&file, Purpose::Qemu).unwrap_or_else(|error| panic!("{error}"));
        Self::with_ramdisk(boot, Some(packed.bytes))
    }

    /// The same in a boot with a key, as `run` boots: each line carries a code.
    ///
    /// # Panics
    /// If the job is wrong.
    #[must_use]
    pub fn keyed(boot: cli::Boot, toml: &str, key: Key) -> Self {
        let file = file::parse(toml, "test.toml").unwrap_or_else(|error| panic!("{error}"));
        let packed = job::pack(&file, Purpose::Qemu).unwrap_or_else(|error| panic!("{error}"));
        let packed = packed.rest(0, Some(key)).unwrap_or_else(|error| panic!("{error}"));
        Self::with_ramdisk(boot, Some(packed.bytes))
    }

    /// A machine with any bytes as its ramdisk.
    #[must_use]
    pub fn with_ramdisk(boot: cli::Boot, ramdisk: Option<Vec<u8>>) -> Self {
        Self {
            boot,
            boot_from: None,
            kernel: None,
            ramdisk,
            kvm: false,
            pmu: Given::None,
            mixture: None,
            recorded: None,
            qemu: None,
            counting: Counting::from_environment().unwrap_or_else(|wrong| panic!("{wrong}")),
            pmu_options: None,
            pmu_fault: None,
            icount: Icount::Auto,
            cpu: None,
            cpus: Cpus::One,
            memory: 256,
            serial: true,
            screen: false,
            extra: Vec::new(),
            commands: None,
            timeout: Duration::from_secs(240),
        }
    }

    /// Boots it and waits for its end.
    ///
    /// # Panics
    /// If QEMU cannot be started.
    #[must_use]
    pub fn run(self) -> Ran {
        let folder = tempfile::tempdir().expect("a temporary folder");
        self.run_in(folder.path())
    }

    /// Boots it with its files in `folder`.
    ///
    /// # Panics
    /// If QEMU cannot be started.
    #[must_use]
    pub fn run_in(self, folder: &Path) -> Ran {
        let plugin = self.plugin();
        let kernel = self.kernel.clone().unwrap_or_else(|| tree().kernel());
        let mut staged = self.boot_from.clone().unwrap_or_else(|| {
            let ramdisk = self.ramdisk.as_deref();
            stage_files(tree(), &kernel, ramdisk, self.boot, folder).expect("files can be staged")
        });
        let icount = self.icount.shift(self.boot);
        let mut pmu = stage_pmu(tree(), self.pmu, icount, &mut staged, folder)
            .unwrap_or_else(|failure| panic!("{failure}"));
        if let Some(mixture) = self.mixture {
            mix(&mixture, &mut pmu);
        }
        if let (Pmu::Emulated { options, .. }, Some(other)) = (&mut pmu, self.pmu_options) {
            *options = other;
        }
        if let Some(fault) = self.pmu_fault {
            plant(tree(), fault, self.boot, &mut pmu, folder)
                .unwrap_or_else(|failure| panic!("{failure}"));
        }
        if let Some(recorded) = self.recorded {
            record(recorded, folder).unwrap_or_else(|failure| panic!("{failure}"));
        }
        let machine = Virtual {
            boot: staged,
            kvm: self.kvm,
            pmu,
            plugin,
            icount,
            cpus: self.cpus,
            memory: self.memory,
            cpu: self.cpu,
            serial: self.serial.then_some(Console::Pipe),
            screen: self.screen,
            extra: self.extra,
        };
        let line = arguments(&machine);
        let (program, limits) = (self.qemu.as_deref(), self.timeout.into());
        let launch = Launch { program, arguments: &line, folder, limits };
        let script = self.commands.map(|text| Script::parse(&text, "script").expect("a script"));
        let mut driver = Driver::of_script(script.clone().unwrap_or_default());
        let finished = match script {
            Some(_) => machine::run_driven(Collector::new(), &launch, &mut driver, |_| ()),
            None => machine::run(&launch, |_| ()),
        };
        let finished = finished.expect("QEMU starts");
        let pmu_said = match self.pmu {
            Given::Emulated(model) => pmu_log::read(folder, model),
            Given::None | Given::Host => Vec::new(),
        };
        Ran {
            pmu_said,
            complaint: finished.complaint().or(driver.complaint()),
            raw: finished.collector.raw().to_vec(),
            ending: finished.ending,
            report: finished.collector.finish(),
        }
    }
}

impl Guest {
    /// The plugin, if it counts.
    fn plugin(&self) -> Option<PathBuf> {
        let Given::Emulated(_) = self.pmu else { return None };
        let qemu = self.qemu.clone().map_or_else(qemu::probe, Found::at);
        let counter = counting::choose(self.counting, &tree().plugin(), qemu);
        counter.unwrap_or_else(|error| panic!("{error}")).plugin
    }
}

/// Boots `toml` directly under TCG with icount 0.
#[must_use]
pub fn direct(toml: &str) -> Ran {
    Guest::new(cli::Boot::Direct, toml).run()
}

impl Ran {
    /// The results, in order.
    #[must_use]
    pub fn results(&self) -> Vec<&SnippetResult> {
        self.report.results().collect()
    }

    /// The error records, in order.
    #[must_use]
    pub fn errors(&self) -> Vec<&ErrorRecord> {
        self.report.errors().collect()
    }

    /// Median ticks of each result, by name.
    #[must_use]
    pub fn medians(&self) -> Vec<(&str, f64)> {
        let median = |result: &&SnippetResult| result.metrics[0].value.median;
        self.results().iter().map(|result| (result.name.as_str(), median(result))).collect()
    }

    /// Asserts that the report is whole and the run ended with `code`.
    ///
    /// # Panics
    /// If that is not so.
    #[track_caller]
    pub fn ends_with(&self, code: u8) -> &Self {
        let text = String::from_utf8_lossy(&self.raw);
        assert_eq!(self.report.problems, [], "{text}");
        assert_eq!(self.complaint, None, "{text}");
        assert_eq!(self.report.exit_code(), code, "{text}");
        self
    }
}

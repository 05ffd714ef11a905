//! QEMU's command line: the quickest set of devices that boots each way.

use super::stop_line;
use crate::setup::firmware::Ovmf;
use pmu_model::Model;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What to boot. All paths are relative to the run's folder or absolute.
#[derive(Clone, Debug)]
pub enum Boot {
    /// Multiboot: loader, then its modules.
    Direct {
        /// The loader.
        loader: PathBuf,
        /// Kernel, and ramdisk if there is one. Names in the run's folder: QEMU separates them by commas.
        modules: Vec<String>,
    },
    /// A disk image under SeaBIOS.
    Bios {
        /// The image.
        image: PathBuf,
    },
    /// A disk image under OVMF.
    Uefi {
        /// The image.
        image: PathBuf,
        /// Firmware, its variables a copy of this run's own.
        ovmf: Ovmf,
    },
    /// A CD image under SeaBIOS.
    Iso {
        /// The image.
        image: PathBuf,
    },
}

/// What QEMU does for the guest's PMU.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Pmu {
    /// Nothing.
    #[default]
    None,
    /// Lets KVM hand the host's on.
    Host,
    /// What the emulated one takes in addition to icount: see `boot/emulated-pmu`. Its hypervisor is the last of the direct
    /// boot's modules.
    Emulated {
        /// Its model: QEMU's processor has the same vendor, as the two vendors' instructions differ.
        model: Model,
        /// The direct loader's command line, which names the model. An image has its orders within it.
        options: String,
    },
}

/// In the run's folder: what the emulated PMU's hypervisor says on QEMU's debug console.
pub const PMU_LOG: &str = "pmu.log";

/// The machine as a whole.
#[derive(Clone, Debug)]
pub struct Virtual {
    /// What to boot.
    pub boot: Boot,
    /// KVM instead of TCG.
    pub kvm: bool,
    /// The guest's PMU.
    pub pmu: Pmu,
    /// The plugin that counts for an emulated one; without it, the hypervisor steps.
    pub plugin: Option<PathBuf>,
    /// Under TCG: ticks per instruction as a power of two.
    pub icount: Option<u8>,
    /// Processors.
    pub cpus: Cpus,
    /// MiB.
    pub memory: u32,
    /// In place of the model that fits.
    pub cpu: Option<String>,
    /// Attach a UART.
    pub serial: Option<Console>,
    /// Attach a screen.
    pub screen: bool,
    /// Further arguments, for tests.
    pub extra: Vec<String>,
}

/// Who is at the other end of the serial line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Console {
    /// This program, through QEMU's standard output.
    Pipe,
    /// Somebody at a terminal, with QEMU's monitor after C-a.
    Terminal,
}

/// How many processors.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Cpus {
    /// One.
    #[default]
    One,
    /// So many, in one socket.
    Many(u32),
    /// As QEMU's -smp says it.
    As(String),
}

/// Timers of QEMU's HPET whose registers lie within its 0x400 bytes; `hpet.timers` takes up to 32.
const MAX_HPET_TIMERS: u32 = 24;
/// Processors that the emulated PMU can be on: one timer each, after the two that may replace the PC's old ones.
pub const MAX_EMULATED: u32 = MAX_HPET_TIMERS - 2;

/// MiB that a guest gets if nobody says how much: 256 for one processor, and for each other one its stacks, its memory areas
/// and its copy of the emulated PMU's hypervisor, some 13 MiB in all.
#[must_use]
pub fn default_memory(cpus: u32) -> u32 {
    256 + 16 * (cpus.max(1) - 1)
}

/// MiB without which so many processors cannot all be used. `emulated`: with the emulated PMU.
#[must_use]
pub fn least_memory(cpus: u32, emulated: bool) -> u32 {
    96 + if emulated { 14 } else { 8 } * (cpus.max(1) - 1)
}

impl Cpus {
    /// How many there are at the start: -smp begins with that, or has it as `cpus=`.
    fn count(&self) -> u32 {
        match self {
            Self::One => 1,
            Self::Many(count) => (*count).max(1),
            Self::As(text) => {
                let first = text.split(',').next().unwrap_or_default();
                first.strip_prefix("cpus=").unwrap_or(first).parse().unwrap_or(1)
            }
        }
    }

    fn argument(&self) -> Option<String> {
        match self {
            Self::One | Self::Many(0 | 1) => None,
            Self::Many(count) => Some(count.to_string()),
            Self::As(text) => Some(text.clone()),
        }
    }
}

/// I/O port of the exit device.
pub const EXIT_PORT: u16 = crate::job::EXIT_PORT;

/// QEMU's arguments.
#[must_use]
pub fn arguments(machine: &Virtual) -> Vec<OsString> {
    let mut list = List::default();
    // Nothing that was not requested: each default device costs boot time.
    list.add(&["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
    list.add(&["-machine", if machine.kvm { "pc,accel=kvm" } else { "pc,accel=tcg" }]);
    list.add(&["-cpu", &cpu(machine)]);
    list.add(&["-m", &machine.memory.to_string()]);
    if let Some(smp) = machine.cpus.argument() {
        list.add(&["-smp", &smp]);
    }
    if let (false, Some(shift)) = (machine.kvm, machine.icount) {
        // The guest's clock counts instructions; sleep=off skips the time that it spends halted.
        list.add(&["-icount", &format!("shift={shift},sleep=off"), "-rtc", "clock=vm"]);
        // What RDRAND and RDSEED give is the same in each run as well.
        list.add(&["-seed", "1"]);
    }
    if let Pmu::Emulated { options, .. } = &machine.pmu {
        // Its alarm clock, its voice, and its orders.
        list.add(&["-global", "hpet.msi=on", "-debugcon", &format!("file:{PMU_LOG}")]);
        let cpus = machine.cpus.count();
        if cpus > 1 {
            // One alarm clock for each processor, after the two that may replace the PC's old timers.
            list.add(&["-global", &format!("hpet.timers={}", (cpus + 2).min(MAX_HPET_TIMERS))]);
        }
        if let Some(file) = &machine.plugin {
            plugin(&mut list, file);
        }
        if matches!(machine.boot, Boot::Direct { .. }) {
            let cpus = cpus.min(MAX_EMULATED);
            let more = if cpus > 1 { format!(" cpus={cpus}") } else { String::new() };
            list.add(&["-append", &format!("{options}{more}")]);
        }
    }
    list.add(&["-device", &format!("isa-debug-exit,iobase={EXIT_PORT:#x}")]);
    if let Some(console) = machine.serial {
        let mux = if console == Console::Terminal { ",mux=on" } else { "" };
        let device = format!("stdio,id=serial,signal=off{mux}");
        list.add(&["-chardev", &device, "-serial", "chardev:serial"]);
        if console == Console::Terminal {
            list.add(&["-mon", "chardev=serial"]);
        }
    }
    if machine.screen {
        list.add(&["-device", "VGA"]);
    }
    boot(&mut list, &machine.boot);
    list.0.extend(machine.extra.iter().map(OsString::from));
    list.0
}

/// The plugin and the line by which it stops the guest: see [`stop_line`]. QEMU's test protocol would tell each command on
/// standard error.
fn plugin(list: &mut List, file: &Path) {
    list.add(&["-chardev", &format!("socket,id=stop,fd={}", stop_line::QEMUS)]);
    list.add(&["-qtest", "chardev:stop", "-qtest-log", "/dev/null"]);
    list.add(&["-plugin", &format!("file={},stop={}", escaped(file), stop_line::PLUGINS)]);
}

/// The same arguments for a shell, which has no line to hand on: overflows then take the hypervisor longer to find.
#[must_use]
pub fn without_stop_line(arguments: &[OsString]) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let stop = format!(",stop={}", stop_line::PLUGINS);
        let text = argument.to_string_lossy();
        if text == "-qtest" || text == "-qtest-log" {
            rest.next();
        } else if text.starts_with("socket,id=stop,") {
            kept.pop();
        } else if let Some(file) = text.strip_suffix(&stop) {
            kept.push(file.into());
        } else {
            kept.push(argument.clone());
        }
    }
    kept
}

/// Everything that the accelerator can do, or the model that was requested. Under icount without x2APIC: QEMU 10.0
/// aborts ("Bad icount read") when RDMSR or WRMSR reaches a timer of the APIC in the middle of a translated block.
fn cpu(machine: &Virtual) -> String {
    let mut model = machine.cpu.clone().unwrap_or_else(|| {
        if machine.kvm { "host,migratable=off".to_string() } else { "max".to_string() }
    });
    if machine.kvm && !model.contains("pmu=") {
        model += if machine.pmu == Pmu::Host { ",pmu=on" } else { ",pmu=off" };
    }
    // Some hosts' KVM names bits of IA32_ARCH_CAPABILITIES that it then refuses to set, and QEMU 10.0 aborts ("failed to
    // set MSR 0x10a"). Nothing here reads the register.
    if machine.kvm && !model.contains("arch-capabilities") {
        model += ",-arch-capabilities";
    }
    // SYSCALL outside 64-bit mode, for one, is an instruction on AMD alone (SDM vol. 2, SYSCALL).
    if let Pmu::Emulated { model: emulated, .. } = &machine.pmu
        && let Some(identity) = &emulated.spec().identity
        && !model.contains("vendor=")
    {
        model += &format!(",vendor={}", identity.vendor.name());
    }
    if !machine.kvm && machine.icount.is_some() && !model.contains("x2apic") {
        model += ",-x2apic";
    }
    model
}

fn boot(list: &mut List, boot: &Boot) {
    match boot {
        Boot::Direct { loader, modules } => {
            list.path("-kernel", loader);
            list.add(&["-initrd", &modules.join(",")]);
        }
        Boot::Bios { image } => disk(list, image),
        Boot::Uefi { image, ovmf } => {
            list.drive("if=pflash,format=raw,unit=0,readonly=on", &ovmf.code);
            list.drive("if=pflash,format=raw,unit=1", &ovmf.variables);
            disk(list, image);
        }
        Boot::Iso { image } => {
            list.drive("if=ide,media=cdrom,format=raw,readonly=on", image);
        }
    }
}

/// A virtio disk: half the time of an IDE one under SeaBIOS.
fn disk(list: &mut List, image: &std::path::Path) {
    list.drive("if=none,id=disk,format=raw,snapshot=on", image);
    list.add(&["-device", "virtio-blk-pci,drive=disk,bootindex=0"]);
}

#[derive(Default)]
struct List(Vec<OsString>);

impl List {
    fn add(&mut self, arguments: &[&str]) {
        self.0.extend(arguments.iter().map(OsString::from));
    }

    fn path(&mut self, option: &str, path: &std::path::Path) {
        self.0.extend([OsString::from(option), path.into()]);
    }

    /// A drive; QEMU wants commas in file names doubled.
    fn drive(&mut self, options: &str, file: &std::path::Path) {
        self.add(&["-drive", &format!("{options},file={}", escaped(file))]);
    }
}

fn escaped(file: &Path) -> String {
    file.to_string_lossy().replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(change: impl FnOnce(&mut Virtual)) -> String {
        let mut machine = Virtual {
            boot: Boot::Direct {
                loader: "direct.bin".into(),
                modules: vec!["kernel".into(), "job".into()],
            },
            kvm: false,
            pmu: Pmu::None,
            plugin: None,
            icount: Some(3),
            cpus: Cpus::One,
            memory: 256,
            cpu: None,
            serial: Some(Console::Pipe),
            screen: false,
            extra: vec![],
        };
        change(&mut machine);
        let arguments = arguments(&machine);
        arguments.iter().map(|a| a.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn icount_belongs_to_tcg_alone_and_switches_x2apic_off() {
        let tcg = line(|_| ());
        assert!(
            tcg.contains("-icount shift=3,sleep=off") && tcg.contains("-cpu max,-x2apic"),
            "{tcg}"
        );
        let free = line(|machine| machine.icount = None);
        assert!(!free.contains("-icount") && free.contains("-cpu max "), "{free}");
        let kvm = line(|machine| machine.kvm = true);
        assert!(
            !kvm.contains("-icount")
                && kvm.contains("-cpu host,migratable=off,pmu=off,-arch-capabilities"),
            "{kvm}"
        );
        let named = |icount, cpu: &str| {
            line(|machine| (machine.icount, machine.cpu) = (icount, Some(cpu.to_string())))
        };
        assert!(named(Some(0), "qemu64,-svm").contains("-cpu qemu64,-svm,-x2apic "));
        assert!(named(Some(0), "max,x2apic=off").contains("-cpu max,x2apic=off "));
        assert!(named(None, "qemu64").contains("-cpu qemu64 "));
    }

    #[test]
    fn i7_processors_are_named_only_when_there_are_several() {
        assert!(!line(|_| ()).contains("-smp"));
        assert!(!line(|machine| machine.cpus = Cpus::Many(1)).contains("-smp"));
        assert!(line(|machine| machine.cpus = Cpus::Many(4)).contains("-smp 4"));
        let named = Cpus::As("4,sockets=2".to_string());
        assert!(line(|machine| machine.cpus = named).contains("-smp 4,sockets=2"));
    }

    #[test]
    fn m13_the_emulated_pmu_is_on_as_many_processors_as_there_are_timers_for() {
        let of = |cpus| {
            let (model, options) = (Model::Zen4, "pmu=zen4".to_string());
            let pmu = Pmu::Emulated { model, options };
            line(|machine| (machine.pmu, machine.cpus) = (pmu, Cpus::Many(cpus)))
        };
        assert!(of(4).contains("hpet.timers=6") && of(4).contains("-append pmu=zen4 cpus=4"));
        let many = of(30);
        assert!(
            many.contains("hpet.timers=24") && many.contains("-append pmu=zen4 cpus=22"),
            "{many}"
        );
    }

    #[test]
    fn i7_memory_grows_with_the_processors_and_is_never_less_than_the_least() {
        assert_eq!((default_memory(1), default_memory(30)), (256, 720));
        for cpus in 1..=255 {
            assert!(default_memory(cpus) >= least_memory(cpus, cpus <= MAX_EMULATED));
        }
    }

    #[test]
    fn a_pmu_is_the_hosts_or_has_its_alarm_and_its_orders() {
        let host = line(|machine| (machine.kvm, machine.pmu) = (true, Pmu::Host));
        assert!(
            host.contains("-cpu host,migratable=off,pmu=on,-arch-capabilities")
                && !host.contains("hpet"),
            "{host}"
        );
        let options = "pmu=zen4 shift=3".to_string();
        let model = Model::Zen4;
        let emulated = line(|machine| machine.pmu = Pmu::Emulated { model, options });
        for part in [
            "-cpu max,vendor=AuthenticAMD,-x2apic",
            "-global hpet.msi=on",
            "-debugcon file:pmu.log",
            "-append pmu=zen4 shift=3",
            "shift=3,sleep",
        ] {
            assert!(emulated.contains(part), "{emulated}");
        }
        assert!(!line(|_| ()).contains("hpet"));
        let image = line(|machine| {
            machine.boot = Boot::Iso { image: "x".into() };
            machine.pmu = Pmu::Emulated { model: Model::Skylake, options: String::new() };
        });
        assert!(image.contains("-global hpet.msi=on") && !image.contains("-append"), "{image}");
        assert!(image.contains("vendor=GenuineIntel"), "{image}");
    }

    #[test]
    fn the_plugin_comes_with_its_line_and_only_with_an_emulated_pmu() {
        let with = |pmu| {
            line(|machine| (machine.pmu, machine.plugin) = (pmu, Some("/a,b/plugin.so".into())))
        };
        let model = Model::Zen4;
        let text = with(Pmu::Emulated { model, options: "pmu=zen4".to_string() });
        assert!(
            text.contains(
                "-chardev socket,id=stop,fd=3 -qtest chardev:stop -qtest-log /dev/null \
                 -plugin file=/a,,b/plugin.so,stop=4 "
            ),
            "{text}"
        );
        assert!(!with(Pmu::None).contains("-plugin") && !with(Pmu::Host).contains("-plugin"));
        let words: Vec<OsString> = text.split(' ').map(OsString::from).collect();
        let kept: Vec<OsString> = without_stop_line(&words);
        let kept: Vec<_> = kept.iter().map(|word| word.to_string_lossy()).collect();
        let kept = kept.join(" ");
        assert!(kept.contains(" -plugin file=/a,,b/plugin.so "), "{kept}");
        for gone in ["stop", "-qtest"] {
            assert!(!kept.contains(gone), "{kept}");
        }
        assert_eq!(kept.matches("-chardev").count(), 1, "the serial line's: {kept}");
    }

    #[test]
    fn every_machine_is_without_display_and_does_not_reboot() {
        for text in [line(|_| ()), line(|m| m.boot = Boot::Iso { image: "a,b.iso".into() })] {
            assert!(text.contains("-display none") && text.contains("-no-reboot"), "{text}");
        }
        assert!(line(|m| m.boot = Boot::Iso { image: "a,b.iso".into() }).contains("file=a,,b.iso"));
    }
}

//! `run`: boot a job in QEMU and show what it measured.

pub(super) mod boots;
mod gate;
mod staging;
use staging::cpus;
pub use staging::{
    hypervisor, mix, plant, record, shape, stage, stage_files, stage_pmu, stage_with_pmu,
};

use super::{check_output, deliver, deliver_text};
use crate::build::{self, Tree};
use crate::cli::{self, Machine, Run};
use crate::collect::{Collector, Report};
use crate::console::{Driver, Script, typed};
use crate::events::{CpuName, cpu};
use crate::honest::Certificate;
use crate::job::{self, Packed, Purpose, forecast};
use crate::machine::devices::{
    Console, Cpus, MAX_EMULATED, PMU_LOG, Virtual, arguments, default_memory, least_memory,
    without_stop_line,
};
use crate::machine::{
    self, Choice, Counter, Finished, Given, Host, Launch, Limits, MachineError, accel, pmu_log,
};
use crate::metrics::{Target, evaluate};
use crate::program::places;
use crate::progress::Work;
use crate::render::{Context, Tools};
use crate::samples::short;
use crate::setup::{self, Need, SetupError, Toolchain};
use crate::symbols::{Symbols, image_base};
use crate::{Failure, Result, interrupt, output, verdict};
use pmu_model::{Mixture, Model};
use protocol::job::Item;
use protocol::ramdisk::{self, SectionKind};
use protocol::record::CountedBy;
use staging::write;
use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Runs the command.
///
/// # Errors
/// Why there is no report.
pub fn run(arguments: &Run) -> Result<u8> {
    check_output(&arguments.output, &inputs(arguments))?;
    check_kept(arguments)?;
    let drawn = arguments.output.format == cli::Format::Html;
    let mut gate = gate::Ready::of(&arguments.gate, drawn)?;
    // The job is assembled by the compiler: without one that would be the job's fault.
    setup::assembler()?;
    let mut choice = accel::choose(&arguments.machine, &Host::read())?;
    let mut packed = load(arguments, &choice)?;
    let driver = driver(arguments, &packed)?.map(RefCell::new);
    let tree = prepare(&[arguments.machine.boot])?;
    if let (Given::Emulated(_), Err(error)) = (choice.pmu, trusted(&choice, &tree)) {
        if arguments.machine.pmu != cli::Pmu::Auto {
            return Err(error.into());
        }
        choice = choice.without(&format!("{}: {}", error.need, error.why));
        output::say(&error.hint);
        packed = load(arguments, &choice)?;
    }
    if let (cli::Boot::Uefi, Given::Emulated(_)) = (arguments.machine.boot, choice.pmu) {
        tree.build_uefi_pmu()?;
    }
    if let Some(cpu) = &arguments.machine.cpu {
        machine::cpu_model::check(cpu)?;
    }
    let counter = counter(&tree, choice.pmu, arguments.machine.by.counting)?;
    output::say(&choice.line());
    if let Some(note) = &counter.note {
        output::say(&format!("pmu: {note}"));
    }
    for line in choice.recorded.iter().flat_map(|recorded| &recorded.inferred) {
        output::say(&format!("pmu: {line}"));
    }
    let listed = arguments.gate.is_open() || drawn;
    // The spread of a metric is over its values in each run.
    let unasked =
        if listed || !packed.metrics.is_empty() { packed.list_values() } else { Vec::new() };
    let model = match choice.pmu {
        Given::Emulated(model) => Some(model),
        _ => None,
    };
    let cpus = cpus(&arguments.machine, &packed)?;
    let machine = Machine { cpus: Some(cpus), ..arguments.machine.clone() };
    check_memory(&machine, cpus, &choice)?;
    if matches!(choice.pmu, Given::Emulated(_)) && cpus > MAX_EMULATED {
        output::say(&format!(
            "pmu: on {MAX_EMULATED} of the {cpus} processors; QEMU's HPET has no timers for more"
        ));
    }
    let steps = forecast::forecast(&packed.job, model, cpus);
    if counter.plugin.is_none()
        && let Some(said) = forecast::warning(&steps, arguments.machine.timeout.duration())
    {
        output::say(&format!("warning: {said}"));
    }
    // From here on there is a machine and a folder to be cleaned up.
    let _deferred = interrupt::defer();
    let scratch = Scratch::new(arguments.keep.as_deref())?;
    let boot = |packed: &Packed| {
        let packed = in_form(packed, arguments.ktap)?;
        let mut driver = driver.as_ref().map(RefCell::borrow_mut);
        let place = (scratch.path(), driver.as_deref_mut());
        boot(&tree, &packed, &machine, (&choice, &counter), place)
    };
    let mut whole = boots::run(&packed, arguments.machine.reboots, boot)?;
    let unsent = driver.and_then(|driver| driver.into_inner().complaint());
    whole.complaint = whole.complaint.or(unsent);
    verdict::judge(&mut whole.report, &packed.job);
    let unnamed = places::name(&mut whole.report);
    verdict::add_up(&mut whole.report);
    scratch.write("serial.log", &whole.raw)?;
    let mut context =
        context(&arguments.machine, &choice, &packed, whole.complaint, &arguments.output);
    context.interrupted = whole.interrupted;
    if whole.interrupted.is_some() {
        // It is told by the exit code, after the report.
        let _ = interrupt::take();
    }
    if listed || arguments.output.format == cli::Format::Json {
        context.job = Some(packed.about());
        context.tools = Some(tools(&tree));
    }
    context.notes = whole.notes;
    context.notes.extend(unnamed);
    context.notes.extend(counter.note.clone());
    if let Some(recorded) = choice.recorded {
        let line = |line: &String| format!("the PMU of a recorded processor: {line}");
        context.notes.extend(recorded.inferred.iter().map(line));
    }
    context.authentication = Some("verified: each record carries the code of its boot's key");
    if let Given::Emulated(model) = choice.pmu {
        context.pmu_said = pmu_log::read(scratch.path(), model);
        for (other, _) in arguments.machine.pmu.mixture().iter().flat_map(Mixture::kinds) {
            context.pmu_said.retain(|line| !line.starts_with(&format!("{other:?}; ")));
        }
        // A PMU that announces counters of which none counts is what a certificate is about.
        let lies = Certificate::of(&whole.report).is_some_and(|one| one.honest == Some(false));
        if arguments.machine.pmu != cli::Pmu::Auto && !lies {
            has_pmu(&whole.report, model, &context.pmu_said)?;
        }
        if arguments.machine.by.counting == cli::Counting::Plugin {
            has_plugin(&whole.report, &context.pmu_said)?;
        }
    }
    let mut report = whole.report;
    let of_instructions = context.ticks_per_instruction.is_some();
    context.metrics = evaluate::of(&report, &packed.metrics, of_instructions);
    let text = gate.text(&report, &context);
    if !drawn {
        gate::without_values(&mut report, &unasked);
    }
    let page = match &text {
        Some(text) => gate.page(text, context.exit_code(&report))?,
        None => None,
    };
    let code = self::report(&report, context, &arguments.output, page)?;
    text.map_or(Ok(code), |text| gate.close(&text, code, &arguments.output))
}

/// The job with what its report is to look like.
fn in_form(packed: &Packed, ktap: bool) -> Result<Cow<'_, Packed>> {
    if !ktap {
        return Ok(Cow::Borrowed(packed));
    }
    let mut packed = packed.clone();
    ramdisk::add_section(&mut packed.bytes, SectionKind::Ktap, &[])
        .map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(Cow::Owned(packed))
}

/// What makes the report.
fn tools(tree: &Tree) -> Tools {
    let qemu = setup::qemu::probe().ok().and_then(|found| found.version);
    Tools {
        barecount: env!("CARGO_PKG_VERSION").to_string(),
        rustc: tree.toolchain().version.clone(),
        qemu: qemu.map(|version| version.to_string()),
    }
}

/// The job as the chosen machine is to run it.
fn load(arguments: &Run, choice: &Choice) -> Result<Packed> {
    let (path, overrides) = (arguments.job.as_deref(), &arguments.overrides);
    let asks = !overrides.event_files.is_empty();
    let cpu = asks.then(|| cpu_of(choice, &arguments.machine)).flatten();
    let known = (cpu.as_ref(), arguments.machine.cpus);
    let target = target(choice, &arguments.machine);
    Ok(job::load_for(path, overrides, Purpose::Qemu, known, target.as_ref())?)
}

/// The machine whose metrics can be requested.
fn target(choice: &Choice, machine: &Machine) -> Option<Target> {
    match choice.pmu {
        Given::Emulated(model) => match choice.recorded {
            Some(recorded) => Target::of_recorded(recorded),
            None => Target::of_model(model),
        },
        Given::Host if choice.kvm && machine.cpu.is_none() => {
            cpu::key_of_host().ok().map(|key| Target::of_host(CpuName::of(&key)))
        }
        Given::Host | Given::None => None,
    }
}

/// Gets the QEMU that an emulated PMU takes.
fn trusted(choice: &Choice, tree: &Tree) -> std::result::Result<(), SetupError> {
    match choice.pmu {
        Given::Emulated(_) => setup::ensure(&[Need::QemuForPmu], tree.toolchain()),
        Given::Host | Given::None => Ok(()),
    }
}

/// Builds the plugin and decides whether it counts for the chosen PMU.
///
/// # Errors
/// It does not build; it was requested and QEMU does not take it.
pub fn counter(tree: &Tree, pmu: Given, asked: cli::Counting) -> Result<Counter> {
    if !matches!(pmu, Given::Emulated(_)) || asked == cli::Counting::Stepping {
        return Ok(Counter::default());
    }
    let counter = machine::counting::choose(asked, &tree.plugin(), setup::qemu::probe())?;
    if counter.plugin.is_some() {
        tree.build_plugin()?;
    }
    Ok(counter)
}

/// Makes sure that the emulated PMU of a machine that came up counts by the plugin, which was requested by name.
fn has_plugin(report: &Report, said: &[String]) -> Result<()> {
    let emulated = report.machine().and_then(|machine| machine.emulated_pmu);
    match emulated.map(|pmu| pmu.counted_by) {
        Some(CountedBy::Stepping) => {
            let why = "the hypervisor found no plugin of its version";
            let said = said.join("; ");
            let text = format!(
                "--counting plugin: {why}{}{said}",
                if said.is_empty() { "" } else { ": " }
            );
            Err(MachineError::NoAccelerator(text).into())
        }
        Some(CountedBy::Plugin) | None => Ok(()),
    }
}

/// Makes sure that the machine came up with the PMU of `model`, which was named; a machine that did not come up is
/// complained of elsewhere. Nothing is rendered without it: every count would be missing or another's.
fn has_pmu(report: &Report, model: Model, said: &[String]) -> Result<()> {
    let Some(machine) = report.machine() else { return Ok(()) };
    let is_it = machine.emulated_pmu.is_some_and(|pmu| pmu.model == model as u32);
    if is_it && machine.pmu.is_some() {
        return Ok(());
    }
    // The loader's words, in front of the firmware's first line; the hypervisor's; the firmware's.
    let loader = report.foreign.iter().map(|line| line.text.as_str());
    let firmware = machine.pmu_absent.as_deref();
    let why: Vec<&str> = loader.chain(said.iter().map(String::as_str)).chain(firmware).collect();
    let model = model.spec().name;
    Err(MachineError::NoPmu { model, why: why.join("; ") }.into())
}

/// Refuses less memory than the processors take: without it some of them would not be used.
fn check_memory(machine: &Machine, cpus: u32, choice: &Choice) -> Result<()> {
    let Some(memory) = machine.memory else { return Ok(()) };
    let emulated = matches!(choice.pmu, Given::Emulated(_));
    let least = least_memory(cpus, emulated);
    if memory >= least {
        return Ok(());
    }
    let with = if emulated { " with the emulated PMU" } else { "" };
    Err(Failure::Usage(format!(
        "--memory {memory}: {cpus} processors{with} need at least {least} MiB"
    )))
}

/// Who sends lines to the consoles, if somebody does.
fn driver(arguments: &Run, packed: &Packed) -> Result<Option<Driver>> {
    let driver = match (&arguments.console.commands, arguments.console.console) {
        (Some(file), _) => {
            let text = fs::read_to_string(file).map_err(Failure::file("read", file))?;
            let script = Script::parse(&text, &file.display().to_string());
            Driver::of_script(script.map_err(|error| Failure::Usage(error.to_string()))?)
        }
        (None, true) => Driver::of_lines(typed()),
        (None, false) => return Ok(None),
    };
    let listens = |item: &Item| matches!(item, Item::Count(count) if count.console);
    if !packed.job.items.iter().any(listens) {
        let text = "no item of the job takes lines: give a [[count]] `console = true`";
        return Err(Failure::Usage(text.to_string()));
    }
    Ok(Some(driver.telling()))
}

/// The files that the command reads.
fn inputs(arguments: &Run) -> Vec<&Path> {
    let events = arguments.overrides.event_files.iter().map(|file| file.path.as_path());
    let commands = arguments.console.commands.as_deref();
    events.chain(arguments.job.as_deref()).chain(commands).collect()
}

/// What `--keep` leaves, in whatever way the machine is booted.
const KEPT: [&str; 9] = [
    "direct.bin",
    "kernel",
    "ramdisk",
    staging::HYPERVISOR,
    "disk.img",
    "variables.fd",
    "command.txt",
    "serial.log",
    PMU_LOG,
];

/// Refuses a folder to keep the run's files in where one of them would overwrite what the command reads or the report.
fn check_kept(arguments: &Run) -> Result<()> {
    let Some(folder) = &arguments.keep else { return Ok(()) };
    let kept = KEPT.map(|name| folder.join(name));
    let mut outputs = arguments.output.files();
    outputs.extend(kept.iter().map(PathBuf::as_path));
    output::distinct(&outputs, &inputs(arguments))
}

/// The processor that the guest sees, if the tables may know it.
fn cpu_of(choice: &Choice, machine: &Machine) -> Option<CpuName> {
    let key = match choice.pmu {
        Given::Emulated(model) => match choice.recorded {
            Some(recorded) => cpu::key_of_leaves(&recorded.leaves),
            None => cpu::key_of(model),
        },
        _ if choice.kvm && machine.cpu.is_none() => cpu::key_of_host().ok(),
        _ => None,
    };
    key.as_ref().map(CpuName::of)
}

/// Gets and builds everything that booting in these ways takes.
///
/// # Errors
/// What is missing, or does not build.
pub fn prepare(boots: &[cli::Boot]) -> Result<Tree> {
    let toolchain = Toolchain::find()?;
    setup::ensure(Need::build(), &toolchain)?;
    setup::ensure(&[Need::Qemu], &toolchain)?;
    if boots.contains(&cli::Boot::Uefi) {
        setup::ensure(&[Need::Ovmf], &toolchain)?;
    }
    let tree = Tree::new(toolchain)?;
    tree.writable()?;
    if boots.contains(&cli::Boot::Direct) {
        tree.build_direct()?;
    }
    if boots.iter().any(|boot| *boot != cli::Boot::Direct) {
        tree.build_images()?;
    }
    Ok(tree)
}

/// Boots `packed` in a folder, where the run's files stay, with somebody at the console if there is a driver.
///
/// # Errors
/// A file that cannot be written, or QEMU cannot be started.
pub fn boot(
    tree: &Tree,
    packed: &Packed,
    machine: &Machine,
    (choice, counter): (&Choice, &Counter),
    (folder, driver): (&Path, Option<&mut Driver>),
) -> Result<Finished> {
    let icount = machine.icount.shift(machine.boot);
    let given = (choice.pmu, choice.recorded, icount);
    let (kernel, job) = (tree.kernel(), Some(&packed.bytes[..]));
    let (boot, mut pmu) = stage_with_pmu(tree, &kernel, job, machine.boot, given, folder)?;
    if let Some(mixture) = machine.pmu.mixture() {
        mix(&mixture, &mut pmu);
    }
    if let Some(parameters) = machine.pmu.parameters() {
        shape(parameters, &mut pmu);
    }
    if let Some(fault) = &machine.pmu_fault {
        tree.build_faulty_pmu()?;
        plant(tree, fault, &mut pmu, folder)?;
    }
    if let (Some(recorded), cli::Boot::Direct) = (choice.recorded, machine.boot) {
        record(recorded, folder)?;
    }
    let virtual_machine = Virtual {
        boot,
        kvm: choice.kvm,
        pmu,
        plugin: counter.plugin.clone(),
        icount,
        cpus: Cpus::Many(machine.cpus.unwrap_or(packed.cpus)),
        memory: machine.memory.unwrap_or_else(|| {
            let least = default_memory(machine.cpus.unwrap_or(packed.cpus));
            least.saturating_add(packed.program_mib()).saturating_add(packed.mib)
        }),
        cpu: machine.cpu.clone(),
        serial: Some(Console::Pipe),
        screen: false,
        extra: Vec::new(),
    };
    let line = arguments(&virtual_machine);
    let by_hand = command_line(&without_stop_line(&line));
    write(&folder.join("command.txt"), by_hand.as_bytes())?;
    let mut work = Work::of(packed.job.items.len() as u64, "running");
    let tick = |collector: &Collector| work.tick(collector.items());
    let limits = Limits {
        timeout: machine.timeout.duration(),
        silence: machine.item_timeout.map(cli::Timeout::duration),
    };
    let collector = packed.key.map_or_else(Collector::new, Collector::with_key);
    let launch = Launch { program: None, arguments: &line, folder, limits };
    let finished = match driver {
        Some(driver) => machine::run_driven(collector, &launch, driver, tick)?,
        None => machine::run_into(collector, &launch, tick)?,
    };
    match machine.cpu.as_ref().and_then(|cpu| machine::cpu_model::refused(cpu, &finished)) {
        Some(refused) => Err(refused.into()),
        None => Ok(finished),
    }
}

fn command_line(arguments: &[OsString]) -> String {
    let quoted = arguments.iter().map(|argument| {
        let text = argument.to_string_lossy();
        if text.contains(' ') { format!("'{text}'") } else { text.into_owned() }
    });
    format!(
        "{} {}\n",
        setup::qemu::program().to_string_lossy(),
        quoted.collect::<Vec<_>>().join(" ")
    )
}

fn context(
    machine: &Machine,
    choice: &Choice,
    packed: &Packed,
    complaint: Option<String>,
    wanted: &cli::Output,
) -> Context {
    let shift = machine.icount.shift(machine.boot).filter(|_| !choice.kvm);
    Context {
        source: "qemu".to_string(),
        accelerator: Some(if choice.kvm { "kvm" } else { "tcg" }.to_string()),
        pmu: Some(choice.what()),
        reason: Some(choice.reason.clone()),
        boot: Some(format!("{:?}", machine.boot).to_lowercase()),
        ticks_per_instruction: shift.map(|shift| 1 << shift),
        metrics: Vec::new(),
        backtrace: Vec::new(),
        sampled: packed.sampled.clone(),
        kernel: None,
        tools: None,
        job: None,
        items: packed.job.items.iter().map(|item| item.name().to_string()).collect(),
        complaint,
        interrupted: None,
        width: wanted.width(),
        pmu_said: Vec::new(),
        notes: Vec::new(),
        authentication: None,
    }
}

/// Resolves a crash's backtrace, renders the report, unless it is there as a `page`, and tells the exit code.
fn report(
    report: &Report,
    mut context: Context,
    wanted: &cli::Output,
    page: Option<String>,
) -> Result<u8> {
    if needs_symbols(report)
        && let Some(kernel) = build::symbols()
    {
        resolve(report, &mut context, &kernel);
        context.kernel = Some(kernel);
    }
    match page {
        Some(page) => deliver_text(report, &context, wanted, &page),
        None => deliver(report, &context, wanted),
    }
}

/// Whether a report has addresses in the firmware.
pub(super) fn needs_symbols(report: &Report) -> bool {
    report.crash().is_some() || report.sampled().next().is_some()
}

/// Adds the resolved backtrace of a crash to `context`.
pub(super) fn resolve(report: &crate::collect::Report, context: &mut Context, kernel: &Path) {
    let Some(crash) = report.crash() else { return };
    // An exception's first address is the failing instruction, a panic's a return address.
    let exact = crash.vector.is_some();
    let mut frames = Symbols::of(kernel).resolve(&crash.backtrace, image_base(report), exact);
    for location in frames.iter_mut().filter_map(|frame| frame.location.as_mut()) {
        *location = short(location);
    }
    context.backtrace = frames.iter().map(ToString::to_string).collect();
}

/// The run's folder: a temporary one, or one that is kept.
pub(super) struct Scratch {
    path: PathBuf,
    _temporary: Option<tempfile::TempDir>,
}

impl Scratch {
    pub(super) fn new(keep: Option<&Path>) -> Result<Self> {
        if let Some(path) = keep {
            fs::create_dir_all(path).map_err(Failure::file("create", path))?;
            let path = path.canonicalize().map_err(Failure::file("open", path))?;
            return Ok(Self { path, _temporary: None });
        }
        let folder = tempfile::tempdir();
        let folder = folder.map_err(Failure::file("create", &std::env::temp_dir()))?;
        Ok(Self { path: folder.path().to_path_buf(), _temporary: Some(folder) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        write(&self.path.join(name), bytes)
    }
}

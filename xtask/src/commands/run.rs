//! `run`: boot a job in QEMU and show what it measured.

pub(super) mod boots;
mod emulated;
mod files;
mod gate;
mod launch;
mod load;
mod report;
mod staging;

pub use emulated::counter;
pub use launch::boot;
pub use staging::{
    hypervisor, mix, plant, record, shape, stage, stage_files, stage_pmu, stage_with_pmu,
};

pub(super) use files::Scratch;
pub(super) use report::{needs_symbols, resolve};

use super::check_output;
use crate::build::Tree;
use crate::cli::{self, Machine, Run};
use crate::console::{Driver, Script, typed};
use crate::context::Tools;
use crate::honest::Certificate;
use crate::job::Packed;
use crate::kinds::places;
use crate::machine::devices::{MAX_EMULATED, least_memory};
use crate::machine::{self, Choice, Given, Host, accel, pmu_log};
use crate::metrics::evaluate;
use crate::setup::{self, Need, Toolchain};
use crate::{Failure, Result, exit_code, forecast, interrupt, output, verdict};
use emulated::{has_plugin, has_pmu, trusted};
use files::{check_kept, inputs};
use load::{in_form, load};
use pmu_model::Mixture;
use protocol::job::Item;
use report::{context, report};
use staging::cpus;
use std::cell::RefCell;
use std::fs;

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
        Some(text) => gate.page(text, exit_code::of(&context, &report))?,
        None => None,
    };
    let code = self::report(&report, context, &arguments.output, page)?;
    text.map_or(Ok(code), |text| gate.close(&text, code, &arguments.output))
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

//! The job kind `count` on this machine: its tasks run under the schedulers, which tell the counters of every switch.

mod platform;
mod remote;
mod watch;

pub(super) use platform::Processor;

use super::per_cpu::AllProcessors;
use super::tasks;
use crate::firmware::probe::Machine;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::smp;
use kernel::counting::job::sets::named_cpus;
use kernel::counting::job::{Sets, Shares, timed, whole};
use kernel::processors::{Member, agreement};
use kernel::tasks::{Machine as _, Summary, run_beating};
use protocol::job::count::Count;
use protocol::record::CountResult;
use remote::Remote;
use watch::Watch;

/// The numbers of all processors in use.
pub fn in_use() -> Vec<u16> {
    smp::in_use().map(|one| one.index() as u16).collect()
}

/// Counts while the tasks of `item` run, which has that index.
///
/// # Errors
/// Why the tasks cannot run or the PMU refuses, in a sentence.
pub fn count(
    item: &Count,
    index: u32,
    machine: &Machine,
    processors: &mut tasks::Processors,
) -> Result<CountResult, String> {
    let named = named_cpus(item, &in_use());
    for &cpu in &named {
        processors.has(cpu).map_err(|why| alloc::format!("processor {cpu} is named: {why}"))?;
    }
    // Events are chosen for the first processor that is named, or else for the boot processor.
    let all = processors.processors();
    let own = named.first().and_then(|&cpu| Some((cpu, all?.known(all?.place(cpu.into())?)?)));
    let known = own.map(|(_, known)| known).or(machine.known.as_ref());
    let basis = own.map_or(0, |(cpu, _)| cpu);
    let sets = match (known, &machine.pmu) {
        (Some(known), _) => Sets::new(item, known, &in_use()),
        (None, Err(missing)) => {
            Sets::uncounted(item, &alloc::format!("there is no PMU: {missing}"))
        }
        (None, Ok(_)) => Sets::uncounted(item, "the PMU's events are not known"),
    };
    let cpus = sets.cpus();
    let members: &[Member] =
        processors.processors().map(AllProcessors::members).unwrap_or_default();
    let counted =
        members.iter().filter(|member| cpus.iter().any(|&c| u32::from(c) == member.number));
    let chosen_for = |member: &&Member| member.number == u32::from(basis);
    let boot = members.iter().filter(chosen_for).filter(|_| !cpus.contains(&basis));
    let counted: Vec<Member> = boot.chain(counted).cloned().collect();
    agreement::check(&counted).map_err(|difference| difference.to_string())?;
    let mut watched = Vec::new();
    for &cpu in &cpus {
        let has = processors.pmu(cpu).map_err(|why| alloc::format!("processor {cpu}: {why}"))?;
        let watch = Watch::new(item, sets.shares(cpu), Some(has.clone()));
        let about = (known, sets.why_not());
        watched.push((cpu, watch.listening(|| Remote::open(item, index, about, processors))));
    }
    if let (true, true, Some(&cpu)) = (item.console, watched.is_empty(), named.first()) {
        // Somebody is told why, and lets the tasks go on.
        let watch = Watch::new(item, Shares::default(), None);
        let about = (known, sets.why_not());
        watched.push((cpu, watch.listening(|| Remote::open(item, index, about, processors))));
    }
    let (workload, heart) = (&item.workload, processors.heart());
    let ran = run_beating(workload, item.limit_us, processors, &mut watched, heart);
    let Summary { mut tasks, switches, ticks, together, .. } = ran?;
    processors.explain(workload, &mut tasks);
    let mut parts = Vec::new();
    for (cpu, watch) in watched.into_iter().filter(|(_, watch)| watch.counts()) {
        let part = watch.part();
        parts.push((
            cpu,
            part.map_err(|error| match cpu {
                0 => error,
                _ => alloc::format!("on processor {cpu}: {error}"),
            })?,
        ));
    }
    let uncounted = parts.is_empty();
    let lengthened = ticks.lengthened;
    let whole = timed(whole(item, sets, parts), machine.clock.hz);
    let result = CountResult { tasks, together, lengthened, ..whole };
    Ok(match uncounted {
        true => CountResult { switches, ticks: ticks.count, ..result },
        false => result,
    })
}

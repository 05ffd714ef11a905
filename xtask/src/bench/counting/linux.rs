//! The distribution's Linux with the emulated PMU below it: its boot to a shell, and a load like that of a compiler's run.

use super::cost::{Cost, Least};
use super::unfinished;
use crate::bench::Figure;
use crate::bench::boots::scratch;
use crate::build::Tree;
use crate::cli::Counting;
use crate::collect::Collector;
use crate::commands::run::counter;
use crate::machine::accel::DEFAULT_MODEL;
use crate::machine::devices::{Boot, Console, Cpus, Pmu, Virtual, arguments};
use crate::machine::{self, CpuClock, Ending, Given, Launch, pmu_log};
use crate::setup::firmware;
use crate::stock_linux::steps::Step;
use crate::stock_linux::{Tools, file_system, kernel, partition, tools};
use crate::{Failure, Result, output};
use pmu_model::Model;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Times that a boot does each of its loads, in turn: a boot takes long.
const ROUNDS: usize = 2;
/// Nanoseconds of the guest's clock for an instruction, as a power of two: less, and the firmware's delays last.
const SHIFT: u8 = 4;
/// Longer than any of the runs.
const TIMEOUT: Duration = Duration::from_secs(1_800);

/// What is counted together on all processors, as perf is told; the raw ones are Skylake's loads and stores.
const EVENTS: [(&str, &str); 3] = [
    ("instructions", "instructions"),
    ("branches, loads, stores", "branches,r81d0,r82d0"),
    ("predictor and caches", "branches,branch-misses,r81d0,L1-dcache-load-misses"),
];
/// The load while nothing is counted, and while the kernel's NMI watchdog counts cycles, as it does by itself.
const FREE: &str = "no event";
const WATCHDOG: &str = "NMI watchdog";
const SWITCH: &str = "/proc/sys/kernel/nmi_watchdog";

/// The same kernel work on all machines: by itself the kernel changes page tables at each system call of a processor that it
/// knows as Intel's, and does not on QEMU's own.
const OPTIONS: &str = "mitigations=off";

/// What the guest's shell does: nine processes a turn that make, sort, rewrite, search, pack and sum up a text.
const LOAD: &str = r#"#!/bin/sh
echo "== load begins $1"
turn=0
while [ $turn -lt 8 ]; do
awk 'BEGIN { for (n = 0; n < 2000; n++) { s = (s * 31 + n) % 65521; w[s % 97] = w[s % 97] " " s }
for (k in w) print k, w[k] }' > /tmp/made
sort -n /tmp/made | sed 's/1/one/g; s/7/seven/g' | tr a-z A-Z > /tmp/text
grep -c ONE /tmp/text > /tmp/found
gzip -c /tmp/text > /tmp/packed
md5sum /tmp/packed > /tmp/sum
cp /tmp/packed /tmp/copy
rm /tmp/made /tmp/text /tmp/packed /tmp/copy
turn=$((turn + 1))
done
echo "== load ends $1"
"#;

const SHELL: &str = "== begin ";
const BEGINS: &str = "== load begins ";
const ENDS: &str = "== load ends ";

/// The steps of a boot: the load once so that all of its code has been translated, and then as asked.
fn steps(counted: bool) -> Vec<Step> {
    let mut steps = vec![Step::new("first", "sh /bin/load first")];
    // Without a PMU there is no watchdog to switch.
    let switched = |on: u8, load: String| match counted {
        true => format!("echo {on} > {SWITCH}; {load}"),
        false => load,
    };
    for round in 0..ROUNDS {
        let load = |name: &str| format!("sh /bin/load '{name}, {round}'");
        steps.push(Step::new(&format!("free-{round}"), &switched(0, load(FREE))));
        if counted {
            let watchdog = format!("{}; echo 0 > {SWITCH}", switched(1, load(WATCHDOG)));
            steps.push(Step::new(&format!("watchdog-{round}"), &watchdog));
        }
        for (name, events) in EVENTS.iter().filter(|_| counted) {
            let command = format!("perf stat -a -e {events} {}", load(name));
            steps.push(Step::new(&format!("{}-{round}", events.replace(',', "-")), &command));
        }
    }
    steps
}

/// What a boot needs.
struct Files {
    kernel: PathBuf,
    tools: Tools,
    load: PathBuf,
}

/// When lines came on the console: in all, since the start.
#[derive(Default)]
struct Moments {
    seen: usize,
    at: HashMap<String, Cost>,
}

impl Moments {
    fn look(&mut self, console: &[u8], now: impl Fn() -> Option<Cost>) {
        let Some(end) = console.iter().rposition(|byte| *byte == b'\n') else { return };
        if end < self.seen {
            return;
        }
        let new = String::from_utf8_lossy(&console[self.seen..=end]).into_owned();
        self.seen = end + 1;
        let marks = new.lines().map(str::trim_end).filter(|line| line.starts_with("== "));
        for (mark, now) in marks.filter_map(|mark| Some((mark, now()?))) {
            let mark = if mark.starts_with(SHELL) { SHELL } else { mark };
            self.at.entry(mark.to_string()).or_insert(now);
        }
    }

    fn of(&self, mark: &str) -> Result<Cost> {
        self.at.get(mark).copied().ok_or_else(|| unfinished("Linux did not finish its load"))
    }

    /// The least of a load's rounds.
    fn load(&self, name: &str) -> Result<Cost> {
        let mut least = Least::default();
        for round in 0..ROUNDS {
            let at = |mark| self.of(&format!("{mark}{name}, {round}"));
            least.take(at(ENDS)?.minus(at(BEGINS)?));
        }
        Ok(least.get())
    }
}

fn boot(tree: &Tree, files: &Files, model: Model) -> Result<Moments> {
    let counts = model != Model::None;
    let given = if counts { Given::Emulated(model) } else { Given::None };
    let counter = counter(tree, given, if counts { Counting::Plugin } else { Counting::Auto })?;
    let folder = scratch()?;
    let place = folder.path().join("partition");
    let written = Failure::file("write", &place);
    let steps = steps(counts);
    partition::fill(tree, &files.kernel, model, OPTIONS, &place)
        .and_then(|()| {
            let programs = [("load", &files.load as &Path)];
            let initial = place.join(partition::INITIAL);
            file_system::with_steps(&files.tools, &programs, &steps, &initial)
        })
        .map_err(written)?;
    let ovmf = firmware::find().ok_or_else(|| Failure::Usage("no UEFI firmware".to_string()))?;
    let ovmf = ovmf.for_run(folder.path()).map_err(Failure::file("write", folder.path()))?;
    // QEMU makes a FAT disk of a folder.
    let image = PathBuf::from(format!("fat:{}", place.display()));
    let line = arguments(&Virtual {
        boot: Boot::Uefi { image, ovmf },
        kvm: false,
        pmu: if counts { Pmu::Emulated { model, options: String::new() } } else { Pmu::None },
        plugin: counter.plugin,
        icount: Some(SHIFT),
        cpus: Cpus::One,
        memory: 512,
        cpu: None,
        serial: Some(Console::Pipe),
        screen: false,
        extra: Vec::new(),
    });
    let limits = TIMEOUT.into();
    let launch = Launch { program: None, arguments: &line, folder: folder.path(), limits };
    let (start, mut moments) = (Instant::now(), Moments::default());
    let finished = machine::run_timed(Collector::new(), &launch, |collector, clock: &CpuClock| {
        let now = || Some(Cost::new(clock.now()?, start.elapsed()));
        moments.look(collector.raw(), now);
    })?;
    if let Ending::Interrupted(signal) = finished.ending {
        return Err(Failure::Interrupted(signal));
    }
    let said = pmu_log::greeting(folder.path(), model);
    if counts && !said.as_ref().is_some_and(|greeting| greeting.contains("plugin")) {
        return Err(unfinished("Linux was not counted by the plugin"));
    }
    Ok(moments)
}

/// The figures; none, with the reason told, where the distribution's files are not available.
pub fn measure(tree: &Tree) -> Result<Vec<Figure>> {
    let folder = tree.target().join("linux");
    let found = kernel(&folder).and_then(|kernel| Ok((kernel, tools(&folder)?)));
    let (kernel, tools) = match found {
        Ok(found) => found,
        Err(error) => {
            output::say(&format!("no figures of Linux: {error}"));
            return Ok(Vec::new());
        }
    };
    tree.build_uefi_pmu()?;
    let scratch = scratch()?;
    let load = scratch.path().join("load");
    std::fs::write(&load, LOAD).map_err(Failure::file("write", &load))?;
    let files = Files { kernel, tools, load };
    let plain = boot(tree, &files, Model::None)?;
    let pmu = boot(tree, &files, DEFAULT_MODEL)?;
    let shell = plain.of(SHELL)?;
    let mut figures = shell.seconds("Linux to its shell, plain TCG").to_vec();
    figures.extend(pmu.of(SHELL)?.to(shell, "Linux to its shell, to plain TCG: no event"));
    let load = plain.load(FREE)?;
    figures.extend(load.seconds("Linux, shell load, plain TCG"));
    for name in [FREE, WATCHDOG].into_iter().chain(EVENTS.map(|(name, _)| name)) {
        let figure = format!("Linux, shell load, to plain TCG: {name}");
        figures.extend(pmu.load(name)?.to(load, &figure));
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_noted_when_it_is_complete_and_once() {
        let mut moments = Moments::default();
        let at = |seconds: f64| move || Some(Cost { cpu: seconds, wall: seconds });
        let console =
            b"== begin first\r\n== load begins x, 0\r\nother\n== load ends x, 0\r\n== begin y\r\n\
            == load begins x, 1\r\n== load ends x, 1\r\n";
        moments.look(&console[..20], at(1.0));
        moments.look(&console[..20], at(2.0));
        moments.look(&console[..45], at(3.0));
        moments.look(&console[..85], at(5.0));
        moments.look(console, at(9.0));
        assert_eq!(moments.of(SHELL).unwrap().cpu, 1.0);
        assert_eq!(moments.of("== load ends x, 0").unwrap().wall, 5.0);
        assert_eq!(moments.load("x").unwrap().wall, 0.0, "the second round");
        assert!(moments.load("y").is_err());
    }

    #[test]
    fn the_load_says_where_it_begins_and_ends() {
        for mark in [BEGINS, ENDS] {
            assert_eq!(LOAD.matches(&format!("echo \"{mark}$1\"")).count(), 1);
        }
        // Its name stands between apostrophes.
        for name in [FREE, WATCHDOG].into_iter().chain(EVENTS.map(|(name, _)| name)) {
            assert!(!name.contains('\''), "{name}");
        }
    }
}

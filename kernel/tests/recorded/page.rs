//! The guide's page of all recorded cores: `docs/guide/recorded.md`.

use crate::emulated::presented;
use crate::outcome::{Outcome, Pmu};
use crate::outcomes;
use recorded::{Leaves, cores};
use std::path::{Path, PathBuf};

/// Set: the page is written in place of being compared.
const WRITE: &str = "BARECOUNT_WRITE_PAGES";

const HEAD: &str = "\
# Recorded processors

Each of 444 real cores whose CPUID somebody recorded goes through the firmware's own identity, capabilities, choice of a driver, event
tables and planning, on the host. This page is what each came to. A test makes it anew and compares; with `BARECOUNT_WRITE_PAGES=1` in
the environment `cargo test -p kernel --test recorded` writes it.

The recordings are libcpuid's (`NOTICE`). Registers cannot be recorded by CPUID: in the test each holds what is written to it.

- *PMU*: whose kind, its version (AMD: 0 four counters, 1 extended ones, 2 PerfMonV2), counters and their width, fixed counters.
- *table*: where the names of its events come from. *architectural*: there is no table, only the events that every such processor
  has, and raw codes. The report says so.
- *generic*: how many of the 46 [generic events](events.md) it counts, and in how many passes all of these.
- *emulated*: the [emulated PMU](emulated-pmu.md#recorded-processors) boots as it, with the behaviour of that model; *own* if it is of
  the model's microarchitecture. *host only*: it has a PMU that the firmware drives here, and that the emulator does not show, for the
  reason given. `cargo nextest run -p qemu-tests --run-ignored only x10_every` boots each and runs the whole conformance suite on it.

";

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide/recorded.md")
}

fn cell(pmu: &Pmu) -> String {
    let vendor = if pmu.intel { "Intel" } else { "AMD" };
    let fixed = if pmu.fixed == 0 {
        String::new()
    } else {
        format!(", {} fixed of {}", pmu.fixed, pmu.fixed_bits)
    };
    format!("{vendor} {}: {} of {} bits{fixed}", pmu.version, pmu.counters, pmu.bits)
}

/// What the emulator makes of it.
fn emulated(leaves: &Leaves, pmu: &Result<Pmu, String>) -> String {
    match (presented(leaves), pmu) {
        (Ok(recording), _) => {
            let own = if recording.is_of_nearest() { ", own" } else { "" };
            format!("{}{own}", recording.nearest().spec().name)
        }
        (Err(why), Ok(_)) => format!("host only: {why}"),
        (Err(_), Err(_)) => String::new(),
    }
}

fn row(name: &str, outcome: &Outcome, emulated: &str) -> String {
    let identity = &outcome.identity;
    let who = format!("{:x}.{:02x}.{:x}", identity.family, identity.model, identity.stepping);
    match &outcome.pmu {
        Ok(pmu) => {
            let table = pmu.table.as_deref().unwrap_or("*architectural*");
            let passes = if pmu.passes == 1 { "pass" } else { "passes" };
            let generic = format!("{} in {} {passes}", pmu.generic, pmu.passes);
            format!("| {name} | {who} | {} | {table} | {generic} | {emulated} |\n", cell(pmu))
        }
        Err(_) => format!("| {name} | {who} | none | | | |\n"),
    }
}

fn page() -> String {
    let all = outcomes();
    let with: Vec<&Pmu> = all.iter().filter_map(|(_, one)| one.pmu.as_ref().ok()).collect();
    let tables = with.iter().filter(|pmu| pmu.table.is_ok()).count();
    let emulated: Vec<String> = cores::all()
        .iter()
        .zip(all)
        .map(|(core, (_, outcome))| emulated(&core.leaves, &outcome.pmu))
        .collect();
    let host_only = emulated.iter().filter(|text| text.starts_with("host only")).count();
    let booted = emulated.iter().filter(|text| !text.is_empty()).count() - host_only;
    let counts = format!(
        "Of {}, {} have a PMU that the firmware drives, {tables} of these with a table of events. The emulated PMU boots as {booted} of \
         them;\n{host_only} are driven on the host only. The others announce none: they are older than Intel's leaf 0xA or AMD's \
         family 0Fh, and nearly all lack the\n64-bit mode in which the firmware runs.\n\n",
        all.len(),
        with.len(),
    );
    let mut page = format!("{HEAD}{counts}");
    page.push_str("| core | family.model.stepping | PMU | table | generic | emulated |\n");
    page.push_str("| --- | --- | --- | --- | --- | --- |\n");
    for ((name, outcome), emulated) in all.iter().zip(&emulated) {
        page.push_str(&row(name, outcome, emulated));
    }
    page
}

#[test]
fn c6_the_guide_lists_what_each_recorded_core_came_to() {
    let page = page();
    assert_eq!(page.lines().filter(|line| line.starts_with("| ")).count(), cores::all().len() + 2);
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(file(), &page).unwrap();
    }
    let written = std::fs::read_to_string(file()).unwrap_or_default();
    assert!(written == page, "{WRITE}=1 cargo test -p kernel --test recorded");
}

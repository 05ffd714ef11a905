//! What a core is.

mod direct;
mod front;
mod retire;
mod stores;
mod window;

use super::{Row, size, sureness, told, unit};
use crate::primitives::number;
use protocol::record::{
    CodeCacheFact, FactsResult, FactsTimer, HazardFact, PipelineFacts, ReturnsFact, TargetsFact,
    WidthFact,
};

/// How it was measured.
pub(crate) fn heading(sheet: &FactsResult) -> String {
    let clock = match sheet.timer {
        FactsTimer::CoreCycles => "a counter of core cycles",
        FactsTimer::Tsc => "the TSC",
    };
    format!("the core, derived only from the time that code takes, by {clock}")
}

/// All figures.
pub(crate) fn rows(sheet: &FactsResult, core: &PipelineFacts) -> Vec<Row> {
    let unit = unit(sheet);
    let cycles = |tenths: u64| number(tenths as f64 / 10.0);
    let times = core.mispredict_tenths;
    let value = match times.median {
        0 => "none seen".to_string(),
        tenths => format!("{} {unit}", cycles(tenths)),
    };
    let evidence = format!(
        "a changed return address against an unchanged one; {} samples, {} to {}",
        times.runs,
        cycles(times.least),
        cycles(times.most)
    );
    let mut all = vec![
        Row {
            figure: "misprediction".to_string(),
            value,
            told: sureness(times.least, times.median, times.ninetieth).to_string(),
            evidence,
        },
        returns(&core.returns, unit),
        targets(&core.targets),
        code(&core.code, &told::Says::of(&sheet.cpuid), unit),
    ];
    all.extend(stores::rows(&core.stores, unit));
    all.push(issue(&core.issue, unit));
    all.push(retire::row(&core.retire));
    all.extend(front::rows(&core.front, unit));
    all.push(direct::row(&core.direct, unit));
    all.extend(window::rows(&core.window, unit));
    all.extend(core.hazards.iter().map(|one| stores::hazard(one, unit)));
    all
}

fn returns(fact: &ReturnsFact, unit: &str) -> Row {
    let cost = |depth: i64| {
        let found = fact.evidence.iter().find(|[at, _]| *at == depth);
        found.map(|[_, tenths]| number(*tenths as f64 / 10.0))
    };
    let depths = fact.entries.map_or([1, 16, 64], |entries| {
        let entries = i64::from(entries);
        [entries - 1, entries, entries + 1]
    });
    let told = depths.into_iter().filter_map(|depth| Some(format!("{depth}: {}", cost(depth)?)));
    let told: Vec<String> = told.collect();
    let evidence = match told.is_empty() {
        true => String::new(),
        false => format!("{unit} of returns from this depth of calls: {}", told.join(", ")),
    };
    let value = fact.entries.map_or("not told".to_string(), |entries| format!("{entries} entries"));
    let sure = match (fact.entries, fact.doubtful) {
        (None, _) => String::new(),
        (_, 0) => "steady".to_string(),
        (_, 1) => "varies at 1 depth".to_string(),
        (_, depths) => format!("varies at {depths} depths"),
    };
    Row { figure: "return stack".to_string(), value, told: sure, evidence }
}

fn targets(fact: &TargetsFact) -> Row {
    let value = match (fact.entries(), fact.ways, fact.granule) {
        (Some(entries), _, None) => format!("{entries} entries in one set"),
        (Some(entries), Some(ways), Some(granule)) => {
            format!("{entries} entries, {ways} ways, a set for each {granule} bytes of code")
        }
        _ => "not told".to_string(),
    };
    let evidence = match fact.evidence.len() {
        0 => String::new(),
        count => format!("{count} numbers and distances of indirect jumps"),
    };
    let sure = match (fact.ways, fact.doubtful) {
        (None, _) => String::new(),
        (_, 0) => "steady".to_string(),
        (_, 1) => "varies in 1 try".to_string(),
        (_, tries) => format!("varies in {tries} tries"),
    };
    Row { figure: "targets of jumps".to_string(), value, told: sure, evidence }
}

fn code(fact: &CodeCacheFact, says: &told::Says, unit: &str) -> Row {
    let value = match (fact.bytes(), fact.ways, fact.line) {
        (Some(bytes), Some(ways), Some(line)) => {
            let told = says.code().map_or(String::new(), |told| {
                let agrees = (told.bytes, told.ways) == (bytes.into(), ways);
                format!("; CPUID: {told}{}", if agrees { "" } else { " (contradicts)" })
            });
            format!("{}, {ways} ways, lines of {line} bytes{told}", size(bytes.into()))
        }
        _ => "not told".to_string(),
    };
    let evidence = match fact.evidence.len() {
        0 => String::new(),
        count => format!(
            "{count} numbers and distances of lines; {} {unit} for a line that is not there",
            number(fact.miss_tenths as f64 / 10.0)
        ),
    };
    let sure = match (fact.ways, fact.doubtful) {
        (None, _) => String::new(),
        (_, 0) => "steady".to_string(),
        (_, 1) => "varies in 1 try".to_string(),
        (_, tries) => format!("varies in {tries} tries"),
    };
    Row { figure: "L1 code".to_string(), value, told: sure, evidence }
}

/// So many in a cycle.
fn instructions(width: u32) -> String {
    format!("{width} instruction{} a cycle", if width == 1 { "" } else { "s" })
}

fn issue(fact: &WidthFact, unit: &str) -> Row {
    let value = fact.width.map_or("not told".to_string(), instructions);
    let evidence = match fact.nops {
        0 => String::new(),
        nops => format!("{nops} NOPs more took {} {unit} more", fact.cycles),
    };
    // The width is determined if they are within a twentieth of a whole number.
    let sure = fact.width.map_or(String::new(), |width| {
        let off = fact.nops.abs_diff(u64::from(width) * fact.cycles);
        if off * 100 <= fact.nops { "steady" } else { "varies" }.to_string()
    });
    Row { figure: "issue".to_string(), value, told: sure, evidence }
}

/// What was not determined, and why, in sentences.
pub(crate) fn untold(core: &PipelineFacts) -> Vec<String> {
    let returns = core.returns.reason.iter().map(|why| format!("the return stack: {why}"));
    let targets = core.targets.reason.iter().map(|why| format!("targets of jumps: {why}"));
    let code = core.code.reason.iter().map(|why| format!("the instruction cache: {why}"));
    let stores = core.stores.reason.iter().map(|why| format!("the store buffer: {why}"));
    let issue = core.issue.reason.iter().map(|why| format!("the width of issue: {why}"));
    let retire = core.retire.reason.iter().map(|why| format!("the width of retirement: {why}"));
    let direct = core.direct.reason.iter().map(|why| format!("direct jumps: {why}"));
    let window = window::untold(&core.window);
    let hazard = |one: &HazardFact| Some(format!("{}: {}", one.name, one.reason.as_ref()?));
    let hazards = core.hazards.iter().filter_map(hazard);
    returns
        .chain(targets)
        .chain(code)
        .chain(stores)
        .chain(issue)
        .chain(retire)
        .chain(front::untold(&core.front))
        .chain(direct)
        .chain(window)
        .chain(hazards)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::record::Times;

    #[test]
    fn d1_a_predictor_is_told_with_how_sure_it_is() {
        let returns = ReturnsFact {
            entries: Some(2),
            evidence: vec![[1, 40], [2, 80], [3, 280]],
            ..ReturnsFact::default()
        };
        let told = super::returns(&returns, "cycles");
        assert_eq!((told.value.as_str(), told.told.as_str()), ("2 entries", "steady"));
        assert!(told.evidence.ends_with("1: 4, 2: 8, 3: 28"), "{}", told.evidence);
        let doubtful = ReturnsFact { doubtful: 2, ..returns };
        assert_eq!(super::returns(&doubtful, "cycles").told, "varies at 2 depths");
        let targets = TargetsFact {
            ways: Some(4),
            sets: Some(16),
            granule: Some(8),
            ..TargetsFact::default()
        };
        let value = super::targets(&targets).value;
        assert_eq!(value, "64 entries, 4 ways, a set for each 8 bytes of code");
        let one_set = TargetsFact { sets: Some(1), granule: None, ..targets };
        assert_eq!(super::targets(&one_set).value, "4 entries in one set");
        let nothing = PipelineFacts {
            mispredict_tenths: Times::default(),
            returns: ReturnsFact { reason: Some("free".into()), ..ReturnsFact::default() },
            targets: TargetsFact { reason: Some("free".into()), ..TargetsFact::default() },
            code: CodeCacheFact { reason: Some("free".into()), ..CodeCacheFact::default() },
            ..PipelineFacts::default()
        };
        let untold = super::untold(&nothing);
        let all =
            ["the return stack: free", "targets of jumps: free", "the instruction cache: free"];
        assert_eq!(untold, all);
    }

    #[test]
    fn d1_the_width_of_issue_is_told_with_how_sure_it_is() {
        let told = |nops, cycles| {
            let row = issue(&WidthFact { width: Some(4), reason: None, nops, cycles }, "cycles");
            (row.value, row.told)
        };
        let value = "4 instructions a cycle".to_string();
        assert_eq!(told(800, 200), (value.clone(), "steady".to_string()));
        assert_eq!(told(800, 206), (value, "varies".to_string()));
        assert_eq!(issue(&WidthFact::default(), "cycles").value, "not told");
    }

    #[test]
    fn d1_an_instruction_cache_is_told_beside_what_cpuid_says() {
        let answers = [[4, 1, 0x1c00_4122, 0x01c0_003f, 0x3f, 0]];
        let fact = CodeCacheFact {
            miss_tenths: 125,
            line: Some(64),
            ways: Some(8),
            set_stride: Some(4096),
            ..CodeCacheFact::default()
        };
        let told = |fact: &CodeCacheFact| code(fact, &told::Says::of(&answers), "cycles");
        let row = told(&fact);
        let same =
            "32 KiB, 8 ways, lines of 64 bytes; CPUID: 32 KiB, 8 ways, for up to 2 processors";
        assert_eq!((row.value.as_str(), row.told.as_str()), (same, "steady"));
        let other = told(&CodeCacheFact { ways: Some(7), ..fact });
        assert!(other.value.ends_with("(contradicts)"), "{}", other.value);
        assert_eq!(told(&CodeCacheFact::default()).value, "not told");
    }
}

//! Energy of items that run on one processor or several: a register counts a whole package, so it was read once for all of them.

use crate::primitives::csv::Row;
use crate::primitives::joules;
use crate::primitives::point::{Data, Point};
use protocol::record::{CountedEnergy, Metric, ProcessorsResult};

/// Energy of tasks in a sentence.
pub(crate) fn line(one: &CountedEnergy) -> String {
    let CountedEnergy { event, register, ticks, .. } = one;
    let [value, resolution] = [one.joules, one.resolution].map(joules);
    let whose = whose(one.reader, &one.processors);
    format!(
        "{event}: {value} ± {resolution} in {ticks} TSC ticks, of everything that ran ({register}{whose})"
    )
}

/// Energy of a snippet on several processors, each figure in a sentence.
pub(crate) fn of_processors(result: &ProcessorsResult) -> Vec<String> {
    let all = result.processors.iter().flat_map(|one| &one.metrics);
    let line = |metric: &Metric| {
        let energy = metric.energy.as_ref()?;
        let register = metric.counting.as_ref().map_or("", |counting| &counting.counter);
        let [value, resolution] = [metric.value.median, energy.resolution].map(joules);
        let whose = whose(energy.reader, &energy.processors);
        Some(format!(
            "{}: {value} ± {resolution} of an execution on each ({register}{whose})",
            metric.event
        ))
    };
    all.filter_map(line).collect()
}

/// Who read a register for whom.
pub(super) fn whose(reader: u32, processors: &[u32]) -> String {
    let what = match processors {
        [] => return String::new(),
        [_] => "processor",
        _ => "processors",
    };
    let numbers: Vec<String> = processors.iter().map(u32::to_string).collect();
    format!(", read once, by processor {reader}, for {what} {}", numbers.join(", "))
}

/// Rows of a CSV: of several packages each behind the number of the processor that read it.
pub(crate) fn rows((item, name): (u32, &str), all: &[CountedEnergy], verdict: &str) -> Vec<Row> {
    let row = |one: &CountedEnergy| {
        let several = all.iter().filter(|other| other.event == one.event).count() > 1;
        let cpu = if several { format!(", cpu {}", one.reader) } else { String::new() };
        let mut fields = vec![item.to_string(), name.to_string(), format!("{}{cpu}", one.event)];
        let [least, most] = [one.joules - one.resolution, one.joules + one.resolution];
        let figures = [one.joules, least, one.joules, most].map(|joules| joules.to_string());
        fields.extend(figures);
        fields.extend(["1", "1", "false", "1", "1", verdict].map(String::from));
        fields
    };
    all.iter().map(row).collect()
}

/// Adds it to a test point.
pub(crate) fn push(point: &mut Point, all: &[CountedEnergy]) {
    for one in all {
        let data = Data::new().text("event", &one.event).plain("joules", one.joules);
        point.push("energy", data.plain("resolution", one.resolution));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s4_several_packages_are_told_apart_and_one_has_its_plain_name() {
        let of = |event: &str, reader, processors: &[u32]| CountedEnergy {
            event: event.to_string(),
            register: "MSR 0x611".to_string(),
            joules: 0.5,
            resolution: 0.25,
            ticks: 9,
            reader,
            processors: processors.to_vec(),
            ..CountedEnergy::default()
        };
        let all =
            [of("energy-pkg", 0, &[0, 1]), of("energy-pkg", 4, &[5]), of("energy-ram", 0, &[])];
        let shown: Vec<String> = all.iter().map(line).collect();
        let text = "energy-pkg: 500 mJ ± 250 mJ in 9 TSC ticks, of everything that ran (MSR 0x611";
        assert_eq!(shown[0], format!("{text}, read once, by processor 0, for processors 0, 1)"));
        assert_eq!(shown[1], format!("{text}, read once, by processor 4, for processor 5)"));
        assert!(shown[2].ends_with("(MSR 0x611)"), "{shown:?}");
        let names: Vec<String> =
            rows((3, "n"), &all, "").into_iter().map(|row| row[2].clone()).collect();
        assert_eq!(names, ["energy-pkg, cpu 0", "energy-pkg, cpu 4", "energy-ram"]);
        // The sum comes first, and is what a job may bound.
        let sums = CountedEnergy::sums(&all);
        let sums: Vec<(&str, f64)> = sums.iter().map(|(name, sum)| (&**name, *sum)).collect();
        let [a, b] = ["energy-pkg, cpu 0", "energy-pkg, cpu 4"];
        assert_eq!(sums, [("energy-pkg", 1.0), (a, 0.5), (b, 0.5), ("energy-ram", 0.5)]);
    }
}

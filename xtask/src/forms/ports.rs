//! Ports of the forms of a report, out of the items that show them.

use super::metric;
use crate::job::form::blocked::{BLOCKERS, NOTHING};
use crate::job::form::case::{Case, Kind};
use crate::ports::{Figures, Found, Untold, by_events, by_throughput};
use protocol::record::SnippetResult;
use std::collections::HashMap;

/// A form, how many of it are in a row, and how many of which other one stand before them.
type Key<'a> = (usize, u32, Option<(u32, &'a str)>);

/// What was found of each form that has items for it, in their order.
pub(super) fn found(cases: &[(Case, &SnippetResult)]) -> Vec<(String, Found)> {
    let mut forms: Vec<&str> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut results: HashMap<Key<'_>, &SnippetResult> = HashMap::new();
    for (case, result) in cases {
        let Kind::Ports { behind, row, .. } = &case.kind else { continue };
        let place = *places.entry(&case.form).or_insert_with(|| {
            forms.push(&case.form);
            forms.len() - 1
        });
        let behind = behind.as_ref().map(|(count, form)| (*count, form.as_str()));
        results.entry((place, *row, behind)).or_insert(result);
    }
    let Some(first) = results.values().next() else { return Vec::new() };
    let events = port_events(first);
    let measure = |mix: &crate::ports::Mix| {
        let (of, before) = match *mix {
            [of] => (of, None),
            [before, of] => (of, Some(before)),
            _ => return None,
        };
        let key = |of: (usize, u32), before: Option<(usize, u32)>| {
            (of.0, of.1, before.map(|(form, count)| (count, forms[form])))
        };
        let straight = results.get(&key(of, before)).map(|result| (result, of.1));
        // Of two that keep ports busy either may are in front.
        let turned = || {
            let before = before?;
            results.get(&key(before, Some(of))).map(|result| (result, before.1))
        };
        let (result, row) = straight.or_else(turned)?;
        figures(result, &events).map(|figures| figures.times(row))
    };
    let place = |name: &&str| forms.iter().position(|form| form == name);
    let candidates: Vec<usize> = BLOCKERS.iter().filter_map(place).collect();
    let counts = |form: &usize| {
        measure(&[(*form, 1)]).is_some_and(|figures| figures.ports.iter().any(|count| *count > 0.0))
    };
    let by_name = |(index, found): (usize, Found)| (forms[index].to_string(), found);
    if candidates.iter().any(counts) {
        let names: Vec<String> = events.iter().filter_map(|event| port_of(event)).collect();
        let told = by_events(forms.len(), &candidates, measure).into_iter();
        let found = told.map(|told| Found::by_events(told, &names));
        return found.enumerate().map(by_name).collect();
    }
    let Some(nothing) = place(&NOTHING) else {
        let none = || Found::by_throughput(Err(Untold::NoMethod(NO_NOTHING)), &[], &forms);
        return (0..forms.len()).map(|index| by_name((index, none()))).collect();
    };
    let told = by_throughput(forms.len(), &candidates, nothing, measure);
    let found = told.forms.into_iter().map(|one| Found::by_throughput(one, &told.sets, &forms));
    found.enumerate().map(by_name).collect()
}

const NO_NOTHING: &str = "the report has no item of NOP, so the front end's rate is unknown";

/// The events of ports that an item has counts of.
fn port_events(result: &SnippetResult) -> Vec<String> {
    let named = result.metrics.iter().filter(|metric| port_of(&metric.event).is_some());
    named.map(|metric| metric.event.clone()).collect()
}

/// The ports of an event, as in `0` or `23A`: ports 10 and 11 are A and B.
fn port_of(event: &str) -> Option<String> {
    let ports = event.strip_prefix("uops_dispatched")?.split_once(".port_")?.1;
    let one = |port: &str| char::from_digit(port.parse().ok()?, 16);
    let text: Option<String> = ports.split('_').map(one).collect();
    text.map(|text| text.to_uppercase())
}

/// Figures of a report that [`super::per_instruction`] made: of one instruction, with those in front of it.
fn figures(result: &SnippetResult, events: &[String]) -> Option<Figures> {
    let value = |event: &str| metric(result, event).map(|metric| metric.value.median);
    let ports = events.iter().map(|event| value(event)).collect::<Option<_>>()?;
    Some(Figures { cycles: value("cycles")?, ports, uops: value("uops-retired") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::{Numbered, Report};
    use crate::job::form::blocked::PAIRS;
    use crate::ports::BLOCKING;
    use pmu_model::uarch::PortLoads;
    use protocol::record::{Aggregates, Metric, Record};

    /// Forms, and the sets of ports of their micro-operations, as bits.
    const FORMS: [(&str, &[u16]); 5] = [
        ("nop", &[]),
        ("shl r64, imm8", &[0x41]),
        ("imul r64, r64", &[0x02]),
        ("mov r32, imm32", &[0x63]),
        ("bextr r64, r64, r64", &[0x41, 0x02]),
    ];

    /// What a machine with these forms counts of one instruction in a row of `row`, with those in front of it.
    fn measured(of: usize, row: u32, behind: Option<(u32, usize)>, events: Option<bool>) -> Item {
        const TIMES: u32 = 64;
        let (mut loads, mut counted, mut cycles) = (PortLoads::default(), [0.0; 8], 0);
        let (mut uops, mix) = (0.0, [behind.map(|(count, form)| (form, count)), Some((of, row))]);
        for (form, count) in (0..TIMES).flat_map(|_| mix.into_iter().flatten()) {
            for _ in 0..count {
                for &set in FORMS[form].1 {
                    counted[loads.uop(set)] += 1.0;
                    uops += 1.0;
                }
                cycles += loads.instruction(6);
            }
        }
        let each = f64::from(TIMES * row);
        let ports = (0..8).zip(counted).filter_map(|(port, count)| {
            let event = format!("uops_dispatched_port.port_{port}");
            events.map(|counts| (event, if counts { count } else { 0.0 }))
        });
        let others = [("cycles", f64::from(cycles)), ("uops-retired", uops)];
        let all = others.map(|(event, count)| (event.to_string(), count)).into_iter().chain(ports);
        let metric = |(event, count): (String, f64)| Metric {
            event,
            value: Aggregates { median: count / each, ..Aggregates::default() },
            deterministic: true,
            series: Default::default(),
            counting: None,
            energy: None,
            retired: None,
        };
        let behind = behind.map(|(count, form)| (count, FORMS[form].0.to_string()));
        let kind = Kind::Ports { copies: 8, row, behind };
        let case = Case { form: FORMS[of].0.to_string(), kind, breaking: Vec::new() };
        let mut result: SnippetResult = serde_json::from_str(
            r#"{"item":0,"name":"","verdict":"none","per":1,"runs":1,"metrics":[],"tsc":[0,1]}"#,
        )
        .unwrap();
        result.metrics = all.map(metric).collect();
        (case, result)
    }

    type Item = (Case, SnippetResult);

    /// What is found in a report of all of them but those that are left out.
    fn told(events: Option<bool>, left: &[&str]) -> Vec<(String, Option<String>)> {
        let mut items = Vec::new();
        for of in 0..FORMS.len() {
            items.push(measured(of, 1, None, events));
        }
        for before in 1..4 {
            for of in 0..FORMS.len() {
                items.push(measured(of, 1, Some((BLOCKING, before)), events));
            }
            // Of two that keep ports busy the later one is in front, or the earlier one.
            for other in 1..before {
                let (of, front) = if before == 3 { (before, other) } else { (other, before) };
                items.extend(
                    PAIRS.map(|(count, row)| measured(of, row, Some((count, front)), events)),
                );
            }
        }
        let kept = items.into_iter().filter(|(case, _)| !left.contains(&case.form.as_str()));
        let record = |(case, result): Item| {
            Record::Result(SnippetResult { name: case.to_string(), ..result })
        };
        let records = (0..).zip(kept.map(record)).map(|(seq, record)| Numbered { seq, record });
        let report = Report { records: records.collect(), ..Report::default() };
        let rows = super::super::rows(&report).into_iter();
        rows.map(|row| (row.form, row.ports.map(|found| found.text()))).collect()
    }

    #[test]
    fn d2_ports_of_a_report_are_told_by_its_events_or_else_by_its_cycles() {
        let by_events = ["none", "1*p06", "1*p1", "1*p0156", "1*p06+1*p1"];
        let by_cycles = [
            "none",
            "1*B (B: 2 ports as of shl r64, imm8)",
            "1*A (A: 1 port as of imul r64, r64)",
            "1*C (C: 4 ports as of mov r32, imm32, A and B within)",
            "1*A+1*B (A: 1 port as of imul r64, r64; B: 2 ports as of shl r64, imm8)",
        ];
        let expected = |texts: [&str; 5]| -> Vec<_> {
            let pairs = FORMS.iter().zip(texts);
            pairs.map(|((form, _), text)| (form.to_string(), Some(text.to_string()))).collect()
        };
        assert_eq!(told(Some(true), &[]), expected(by_events));
        assert_eq!(told(None, &[]), expected(by_cycles));
        // Events of ports that count nothing tell nothing.
        assert_eq!(told(Some(false), &[]), expected(by_cycles));
        let without = told(None, &["nop"]);
        let why = format!("not told: {NO_NOTHING}");
        assert_eq!(without.len(), 4);
        assert!(without.iter().all(|(_, text)| text.as_ref() == Some(&why)), "{without:?}");
    }

    #[test]
    fn d2_events_name_their_ports() {
        for (event, ports) in [
            ("uops_dispatched_port.port_0", Some("0")),
            ("uops_dispatched.port_2_3_10", Some("23A")),
            ("uops_dispatched.port_5_11", Some("5B")),
            ("uops_issued.any", None),
            ("cycles", None),
        ] {
            assert_eq!(port_of(event).as_deref(), ports, "{event}");
        }
    }
}

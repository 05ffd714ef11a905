//! Whether a set of events fits a processor: in how many passes, and on which counters.

use super::encodings::{control_of, msr_of, with_generic};
use super::{EventsError, wildcards};
use events::assign::{Counter, assign};
use events::encode::Counters;
use events::parse::parse_list;
use events::passes::{Effort, plan};
use events::processor::Processor;
use events::set::EventSet;
use events::tables::Core;
use serde::Serialize;

/// An event in its pass.
#[derive(Clone, Debug, Serialize)]
pub struct PlanRow {
    /// The pass, from 1.
    pub pass: usize,
    /// The event as written.
    pub text: String,
    /// Its name in the table.
    pub name: String,
    /// The counter: `0`, or `fixed 0`. With a large increment on AMD, `0 and 1`.
    pub counter: String,
    /// What its control register takes.
    pub control: String,
    /// The extra MSR and its value.
    pub msr: String,
}

/// What came of a set.
#[derive(Clone, Debug)]
pub struct Planned {
    /// All events that can be counted, by pass.
    pub rows: Vec<PlanRow>,
    /// How many passes.
    pub passes: usize,
    /// Whether fewer would certainly not do.
    pub fewest: bool,
    /// Why it is not one pass.
    pub conflict: Option<String>,
    /// Events that cannot be counted there, and why.
    pub refused: Vec<String>,
}

impl Planned {
    /// The outcome in a sentence or two.
    #[must_use]
    pub fn summary(&self) -> Vec<String> {
        let events = match self.rows.len() {
            1 => "1 event fits".to_string(),
            count => format!("{count} events fit"),
        };
        let mut lines = match (self.passes, self.fewest) {
            (0, _) => vec!["nothing can be counted".to_string()],
            (1, _) => vec![format!("{events} into one pass: they are counted at the same time")],
            (passes, true) => vec![format!("{events} into {passes} passes, and no fewer")],
            (passes, false) => {
                vec![format!("{events} into {passes} passes; whether fewer would do is not known")]
            }
        };
        lines.extend(self.conflict.iter().map(|conflict| format!("not one pass: {conflict}")));
        lines.extend(self.refused.iter().map(|refused| format!("refused: {refused}")));
        lines
    }
}

/// Plans the list on the processor that the table describes, hyper-threading off. `counters`: it
/// has this many general-purpose counters instead, the lowest ones.
///
/// # Errors
/// The text is not a list of events, or names different cores.
pub fn planned(core: &Core<'_>, text: &str, counters: Option<u8>) -> Result<Planned, EventsError> {
    let text = wildcards::expand(core, text)?;
    let items = parse_list(&text).map_err(|error| EventsError::List { text, error })?;
    let mut processor = Processor::described_by(core);
    if let Some(count) = counters {
        processor.gp_counters &= 1_u64.checked_shl(count.into()).map_or(u64::MAX, |bit| bit - 1);
    }
    let (set, refused) = EventSet::from_list(&items, &processor, Some(core))?;
    let refused = refused.into_iter().map(with_generic);
    let mut refused: Vec<String> = refused.map(|error| error.to_string()).collect();
    let plan = plan(&set, Effort::default()).expect("there are no correlates that could conflict");
    refused.extend(plan.refused.iter().map(ToString::to_string));
    let mut rows = Vec::new();
    for (pass, of_pass) in plan.passes.iter().enumerate() {
        // In the order of the list, whatever order the planner found them in.
        let mut places: Vec<_> = of_pass.requests.iter().zip(&of_pass.assignment.places).collect();
        places.sort_by_key(|(number, _)| **number);
        for (number, place) in places {
            let request = &set.requests[*number];
            let choice = &request.choices[place.choice];
            let merge = matches!(choice.counters, Counters::General { merge: true, .. });
            rows.push(PlanRow {
                pass: pass + 1,
                text: request.text.clone(),
                name: request.name.clone(),
                counter: match place.counter {
                    Counter::General(index) if merge => format!("{index} and {}", index + 1),
                    Counter::General(index) => index.to_string(),
                    Counter::Fixed(index) => format!("fixed {index}"),
                    Counter::Metric(index) => format!("PERF_METRICS {index}"),
                },
                control: control_of(choice, core.vendor()),
                msr: msr_of(choice),
            });
        }
    }
    let several = plan.passes.len() > 1;
    let conflict = several.then(|| assign(&set.requests).err()).flatten();
    Ok(Planned {
        rows,
        passes: plan.passes.len(),
        fewest: plan.is_optimal(),
        conflict: conflict.map(|conflict| conflict.to_string()),
        refused,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Block;

    fn on(table: &str, text: &str, counters: Option<u8>) -> Planned {
        let block = Block::embedded();
        let core = block.tables().named(table).unwrap();
        planned(&core, text, counters).unwrap_or_else(|error| panic!("{error}"))
    }

    fn places(planned: &Planned) -> Vec<(usize, &str, &str)> {
        planned.rows.iter().map(|r| (r.pass, r.text.as_str(), r.counter.as_str())).collect()
    }

    #[test]
    fn n2_a_set_is_planned_without_a_machine() {
        let one = on("skylakex", "cycles,instructions,r20c4,{l2_rqsts.miss,r02c4}:u", None);
        assert_eq!((one.passes, one.fewest, one.rows.len()), (1, true, 5));
        assert_eq!(places(&one)[0], (1, "cycles", "fixed 1"));
        assert!(one.conflict.is_none() && one.refused.is_empty());
        assert!(one.summary()[0].contains("5 events fit into one pass"), "{:?}", one.summary());
        // With hyper-threading on there are four counters.
        let text = "l2_rqsts.miss,r20c4,r02c4,uops_issued.any,uops_retired.macro_fused";
        assert_eq!(on("skylakex", text, None).passes, 1);
        let two = on("skylakex", text, Some(4));
        assert_eq!((two.passes, two.fewest), (2, true));
        let conflict = two.conflict.as_deref().unwrap();
        assert!(conflict.contains("all of them need one of 4: counter 0"), "{conflict}");
        assert!(two.rows.iter().all(|row| ["0", "1", "2", "3"].contains(&row.counter.as_str())));
    }

    #[test]
    fn m1_what_cannot_be_counted_is_told_and_the_rest_planned() {
        let planned = on("zen2", "nosuch,ex_ret_instr,fp_ret_sse_avx_ops.all", None);
        assert_eq!(planned.refused.len(), 1);
        assert!(planned.refused[0].contains("there is no event \"nosuch\" on zen2"));
        assert_eq!(planned.rows.len(), 2);
        let flops = planned.rows.iter().find(|row| row.name.starts_with("fp_ret")).unwrap();
        assert!(flops.counter.contains(" and "), "{flops:?}");
        let none = on("zen2", "nosuch", None);
        assert_eq!(none.summary()[0], "nothing can be counted");
        // A group that no pass has room for.
        let group = on("skylakex", "{r01c0:u,r01c0:k},cycles", None);
        assert!(group.refused[0].contains("counter 1") && group.passes == 1, "{group:?}");
    }

    #[test]
    fn c7_what_is_no_list_says_where() {
        let block = Block::embedded();
        let core = block.tables().named("skylakex").unwrap();
        for (text, part) in [
            ("a,,b", "byte 2: an event is missing"),
            ("zen4::a,skx::b", "make two lists"),
            ("x*", "fits \"x*\""),
        ] {
            let error = planned(&core, text, None).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}

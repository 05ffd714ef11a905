//! Bounds of `only`: of which instructions a snippet's events are counted, or a sample's events estimated.

use super::{LimitError, MAX_QUALIFIED_OPCODES, name, range};
use crate::job::Snippet;
use crate::job::exact::{AddressRange, Filter};
use crate::job::sampling::{Keep, Sampling};

/// Checks it where it can be.
pub(crate) fn check(snippet: &Snippet) -> Result<(), LimitError> {
    let only = &snippet.setup.only;
    if only.is_empty() {
        return Ok(());
    }
    if snippet.events.is_empty() {
        return Err(LimitError::Only(
            "it says of which instructions events are counted, and there are no events",
        ));
    }
    check_filter(only)
}

/// The same of samples, each of which is judged.
pub(crate) fn check_sampling(sampling: &Sampling) -> Result<(), LimitError> {
    let only = &sampling.only;
    if only.is_empty() {
        return Ok(());
    }
    let refused = |why| Err(LimitError::Only(why));
    if !sampling.precise || sampling.events.is_empty() {
        return refused(
            "it needs samples of the instructions themselves: give events, and precise = true",
        );
    }
    if sampling.keep != Keep::Samples {
        return refused("it judges each sample by itself: give keep = \"samples\"");
    }
    let mut tasks = sampling.workload.tasks.iter();
    if only.instructions.is_some() && tasks.any(|task| task.program.is_some()) {
        return refused(
            "instructions is counted from the start of a body, and a function has none",
        );
    }
    check_filter(only)
}

fn check_filter(only: &Filter) -> Result<(), LimitError> {
    if only.bits.is_some() {
        return Err(LimitError::Only(
            "counters do not tell 64-bit from 32-bit code; exact = { bits = … } does",
        ));
    }
    let opcodes = only.opcodes.len() as u64;
    range("the number of opcodes of only", opcodes, 0, MAX_QUALIFIED_OPCODES as u64)?;
    only.opcodes.iter().try_for_each(|opcode| name(opcode))?;
    if only.instructions.is_some_and(|range| range.base.is_some()) {
        return Err(LimitError::Only(
            "instructions is counted from a register; it must be counted from the start of the body",
        ));
    }
    let is_empty = |range: AddressRange| range.from >= range.to;
    match [only.instructions, only.data].into_iter().flatten().any(is_empty) {
        true => Err(LimitError::Only("a range is empty: its end must be greater than its start")),
        false => Ok(()),
    }
}

/// Checks that it is not there, where it cannot be.
pub(crate) fn check_none(snippet: &Snippet) -> Result<(), LimitError> {
    match snippet.setup.only.is_empty() {
        true => Ok(()),
        false => Err(LimitError::Only(
            "it is for [[sample]], and for [[snippet]] without exact and history; exact has filters of its own",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::tests::snippet;
    use alloc::string::ToString;
    use alloc::vec;

    #[test]
    fn t8_what_qualifiers_cannot_be_is_refused() {
        let mut one = snippet("x", &[0x90]);
        assert_eq!(check(&one), Ok(()));
        one.setup.only.opcodes = vec!["imul".into(); 16];
        let refused = |one: &Snippet| check(one).unwrap_err().to_string();
        assert!(refused(&one).contains("no events"));
        one.events = vec!["instructions".into()];
        assert_eq!(check(&one), Ok(()));
        assert!(check_none(&one).is_err());
        one.setup.only.opcodes.push("add".into());
        assert!(refused(&one).contains("16"), "{}", refused(&one));
        one.setup.only.opcodes.clear();
        one.setup.only.instructions = "r14:0..8".parse().ok();
        assert!(refused(&one).contains("start of the body"));
        one.setup.only.instructions = None;
        one.setup.only.data = Some(AddressRange { base: None, from: 8, to: 8 });
        assert!(refused(&one).contains("empty"));
    }

    #[test]
    fn t8_samples_that_cannot_be_judged_are_refused() {
        use crate::job::sampling::{Rate, SampledEvent};
        let mut one = crate::job::limits::tests::edges::sampling();
        assert_eq!(check_sampling(&one), Ok(()));
        one.only.opcodes = vec!["imul".into()];
        let refused = |one: &Sampling| check_sampling(one).unwrap_err().to_string();
        one.precise = true;
        assert!(refused(&one).contains("give events, and precise = true"));
        one.events = vec![SampledEvent { event: "instructions".into(), rate: Rate::Period(7) }];
        assert!(refused(&one).contains("keep = \"samples\""));
        one.keep = Keep::Samples;
        assert_eq!(check_sampling(&one), Ok(()));
        one.precise = false;
        assert!(refused(&one).contains("precise = true"));
        one.precise = true;
        one.only.instructions = "r14:0..8".parse().ok();
        assert!(refused(&one).contains("start of the body"));
        one.only.instructions = "0..8".parse().ok();
        one.workload.tasks[0].program = Some(0);
        assert!(refused(&one).contains("a function has none"));
    }
}

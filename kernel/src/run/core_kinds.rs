//! Items and the kinds of core of a hybrid package: which processors an item means by a kind, and one run for each kind of an item
//! that means all processors. What different kinds count is different things, so each kind has a result of its own.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use protocol::core_kind::CoreKind;
use protocol::job::affinity::Affinity;
use protocol::job::count::Bind;
use protocol::job::workload::{Task, Workload};
use protocol::job::{Item, Processors};

/// Each processor in use by its number, in their order, and the kind of its core, if it tells. Numbers have gaps where a
/// processor did not start.
pub type Kinds = [(u16, Option<CoreKind>)];

/// An item, or what of it one kind of core does.
#[derive(Debug)]
pub struct Part<'j, 'a> {
    /// Index of the item in the job.
    pub index: u32,
    /// The item.
    pub item: &'j Item<'a>,
    /// The kind of core that this part is for, of an item that several run.
    pub core: Option<CoreKind>,
    /// Why it cannot be run.
    pub refused: Option<String>,
    /// Another part of the item comes after it.
    pub more: bool,
}

/// All items of a job, in order, after [`find`].
pub fn parts<'j, 'a>(
    items: &'j [Item<'a>],
    kinds: &'j Kinds,
) -> impl Iterator<Item = Part<'j, 'a>> {
    (0..).zip(items).flat_map(|(index, item)| {
        let mut each = Vec::from([None]);
        if let Item::Processors(Processors { cpu: None, core: None, .. }) = item {
            let there = existing(kinds);
            if there.len() > 1 {
                each = there.into_iter().map(Some).collect();
            }
        }
        let (last, refused) = (each.len() - 1, refusal(item, kinds));
        let part = move |(place, core)| Part {
            index,
            item,
            core,
            refused: refused.clone(),
            more: place < last,
        };
        each.into_iter().enumerate().map(part)
    })
}

/// Why an item that still names a kind of core cannot be run.
fn refusal(item: &Item, kinds: &Kinds) -> Option<String> {
    let workload = |workload: &Workload| {
        if let Some(why) = workload.tasks.iter().find_map(|task| of_several_kinds(task, kinds)) {
            return Some(why);
        }
        let mut named = workload.tasks.iter().filter(|task| task.core.is_some());
        named.find_map(|task| {
            let why = match task.parent {
                Some(_) => {
                    "it runs on its parent's processor, so core belongs to the parent".to_string()
                }
                None => processor(task.core?, task.cpu.unwrap_or(0), kinds).err()?,
            };
            Some(format!("task `{}`: {why}", task.name))
        })
    };
    match item {
        Item::Processors(one) => processor(one.core?, one.cpu.unwrap_or(0), kinds).err(),
        Item::Tasks(tasks) => workload(&tasks.workload),
        Item::Sample(sampling) => workload(&sampling.workload),
        Item::Count(count) => workload(&count.workload).or_else(|| {
            count.all_sets().into_iter().find_map(|set| match *set.bind {
                Bind::Core(core, number) => processor(core, number, kinds).err(),
                _ => None,
            })
        }),
        _ => None,
    }
}

/// The kinds that there are.
fn existing(kinds: &Kinds) -> Vec<CoreKind> {
    let mut each: Vec<CoreKind> = kinds.iter().filter_map(|(_, kind)| *kind).collect();
    each.sort_unstable();
    each.dedup();
    each
}

/// Puts processors in the place of kinds, where there are such.
pub fn find(items: &mut [Item], kinds: &Kinds) {
    for item in items {
        match item {
            Item::Processors(one) => {
                if let (Some(core), Some(cpu)) = (one.core, one.cpu)
                    && let Ok(number) = processor(core, cpu, kinds)
                {
                    (one.core, one.cpu) = (None, Some(number));
                }
            }
            Item::Tasks(tasks) => in_workload(&mut tasks.workload, kinds),
            Item::Sample(sampling) => in_workload(&mut sampling.workload, kinds),
            Item::Count(count) => {
                in_workload(&mut count.workload, kinds);
                let sets = count.sets.iter_mut().map(|set| &mut set.bind);
                for bind in core::iter::once(&mut count.bind).chain(sets) {
                    if let Bind::Core(core, number) = *bind
                        && let Ok(found) = processor(core, number, kinds)
                    {
                        *bind = Bind::Processor(found);
                    }
                }
            }
            _ => {}
        }
    }
}

fn in_workload(workload: &mut Workload, kinds: &Kinds) {
    for task in &mut workload.tasks {
        if task.cpus == Some(Affinity::Any) {
            task.cpus = Some(Affinity::These(alike(kinds)));
        }
    }
    for task in workload.tasks.iter_mut().filter(|task| task.parent.is_none()) {
        if let Some(core) = task.core
            && let Ok(number) = processor(core, task.cpu.unwrap_or(0), kinds)
        {
            (task.core, task.cpu) = (None, Some(number));
        }
    }
}

/// The processors whose core is of the kind of the first one's.
fn alike(kinds: &Kinds) -> Vec<u16> {
    let first = kinds.first().map(|(_, kind)| kind);
    let all = kinds.iter().filter(|(_, kind)| Some(kind) == first);
    all.map(|(number, _)| *number).collect()
}

/// Why a task cannot move between the processors that it names: what different kinds of core count is different things.
fn of_several_kinds(task: &Task, kinds: &Kinds) -> Option<String> {
    let Some(Affinity::These(cpus)) = &task.cpus else { return None };
    let kind = |cpu: u16| kinds.iter().find(|(number, _)| *number == cpu).map(|(_, kind)| *kind);
    let Some(&cpu) = cpus.first() else {
        return Some(format!("task `{}`: it is not known which processors are in use", task.name));
    };
    let first = kind(cpu)??;
    let mut others = cpus.iter().filter_map(|&cpu| Some((cpu, kind(cpu)?)));
    let (other, its) = others.find(|(_, kind)| *kind != Some(first))?;
    let is = its.map_or("of none that is told".to_string(), |kind| kind.to_string());
    Some(format!(
        "task `{}`: cpus names cores of different kinds, which count different things: processor {cpu} is {first}, {other} is {is}",
        task.name
    ))
}

/// The processor of number `number` among those of a kind.
fn processor(core: CoreKind, number: u16, kinds: &Kinds) -> Result<u16, String> {
    let of = |core: CoreKind| {
        let all = kinds.iter().filter(|(_, kind)| *kind == Some(core));
        all.map(|(number, _)| *number).collect::<Vec<u16>>()
    };
    let own = of(core);
    if let Some(found) = own.get(usize::from(number)) {
        return Ok(*found);
    }
    let each = existing(kinds).into_iter().map(|core| {
        let numbers: Vec<String> = of(core).iter().map(ToString::to_string).collect();
        let s = if numbers.len() == 1 { "" } else { "s" };
        format!("{core} (processor{s} {})", numbers.join(", "))
    });
    let each: Vec<String> = each.collect();
    Err(match (own.len(), each.is_empty()) {
        (_, true) => {
            format!("core = \"{core}\", but this processor does not distinguish kinds of core")
        }
        (0, false) => {
            format!("core = \"{core}\", but none is in use; there are: {}", each.join(", "))
        }
        (count, false) => format!(
            "core = \"{core}\" with cpu = {number}, but there are {count} of them, numbered from 0; there are: {}",
            each.join(", ")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snippet::measure::tests::nop;
    use CoreKind::{Efficient, LowPower, Performance};

    const HYBRID: [(u16, Option<CoreKind>); 4] = [
        (0, Some(Performance)),
        (1, Some(Performance)),
        (2, Some(Efficient)),
        (3, Some(Efficient)),
    ];

    fn task() -> Task<'static> {
        Task {
            name: "t".into(),
            init: [][..].into(),
            body: [0x90][..].into(),
            turns: 1,
            loop_counter: protocol::job::LoopCounter::R15,
            extended_state: false,
            ring: protocol::job::workload::Ring::Kernel,
            parent: None,
            cpu: None,
            core: None,
            cpus: None,
            outlives: false,
            program: None,
            bits: protocol::bits::Bits::SixtyFour,
        }
    }

    fn on(core: Option<CoreKind>, cpu: Option<u16>) -> Item<'static> {
        Item::Processors(Processors {
            snippet: nop("x"),
            cpu,
            core,
            interrupt_every: None,
            contention: None,
        })
    }

    type Seen = (Option<u16>, Option<CoreKind>, Option<CoreKind>, bool);

    /// The processor and the kind that the item then names, the kind of the part, and whether another one comes.
    fn seen(item: Item, kinds: &Kinds) -> Vec<Seen> {
        let mut items = [item];
        find(&mut items, kinds);
        let all = parts(&items, kinds).map(|part| {
            assert_eq!((part.index, part.refused), (0, None));
            let Item::Processors(one) = part.item else { panic!("{:?}", part.item) };
            (one.cpu, one.core, part.core, part.more)
        });
        all.collect()
    }

    #[test]
    fn x13_an_item_for_all_processors_is_one_for_each_kind() {
        let each = [(None, None, Some(Performance), true), (None, None, Some(Efficient), false)];
        assert_eq!(seen(on(None, None), &HYBRID), each);
        let plain = [(None, None, None, false)];
        assert_eq!(seen(on(None, None), &[(0, Some(Performance)), (1, Some(Performance))]), plain);
        assert_eq!(seen(on(None, None), &[(0, None), (1, None)]), plain);
    }

    #[test]
    fn x13_a_kind_means_its_processors_and_a_number_one_of_them() {
        let whole = seen(on(Some(Efficient), None), &HYBRID);
        assert_eq!(whole, [(None, Some(Efficient), None, false)]);
        assert_eq!(seen(on(Some(Efficient), Some(1)), &HYBRID), [(Some(3), None, None, false)]);
        assert_eq!(seen(on(None, Some(1)), &HYBRID), [(Some(1), None, None, false)]);
    }

    #[test]
    fn x13_tasks_and_sets_find_their_processors() {
        let mut count = protocol::job::Count {
            bind: Bind::Core(Efficient, 1),
            ..protocol::job::Count::default()
        };
        count.workload.tasks = vec![
            Task { core: Some(Efficient), ..task() },
            Task { core: Some(Performance), cpu: Some(1), ..task() },
            task(),
        ];
        let mut items = [Item::Count(count)];
        find(&mut items, &HYBRID);
        let [part] = &parts(&items, &HYBRID).collect::<Vec<_>>()[..] else { panic!() };
        let Item::Count(found) = part.item else { panic!("{part:?}") };
        assert_eq!(found.bind, Bind::Processor(3));
        let cpus: Vec<Option<u16>> = found.workload.tasks.iter().map(|task| task.cpu).collect();
        assert_eq!(cpus, [Some(2), Some(1), None]);
    }

    #[test]
    fn i8_x13_a_task_moves_between_cores_of_one_kind() {
        let item = |cpus| {
            let mut count = protocol::job::Count::default();
            count.workload.tasks = vec![Task { cpus: Some(cpus), ..task() }];
            Item::Count(count)
        };
        let found = |cpus, kinds: &Kinds| {
            let mut items = [item(cpus)];
            find(&mut items, kinds);
            let refused = parts(&items, kinds).next().unwrap().refused;
            let Item::Count(count) = &items[0] else { panic!("{items:?}") };
            (count.workload.cpus_of(0), refused)
        };
        assert_eq!(found(Affinity::Any, &HYBRID), (vec![0, 1], None));
        // The second one did not start.
        assert_eq!(found(Affinity::Any, &[0, 2, 3].map(|n| (n, None))), (vec![0, 2, 3], None));
        let gaps = [(0, Some(Performance)), (2, Some(Efficient)), (5, Some(Performance))];
        assert_eq!(found(Affinity::Any, &gaps), (vec![0, 5], None));
        assert!(found(Affinity::These(vec![0, 2]), &gaps).1.is_some());
        assert_eq!(found(Affinity::These(vec![5, 0]), &gaps), (vec![5, 0], None));
        let unknown = "task `t`: it is not known which processors are in use";
        assert_eq!(found(Affinity::Any, &[]), (vec![], Some(unknown.to_string())));
        assert_eq!(found(Affinity::These(vec![3, 2]), &HYBRID), (vec![3, 2], None));
        // One that is not there is refused where it is missed.
        assert_eq!(found(Affinity::These(vec![3, 9]), &HYBRID), (vec![3, 9], None));
        let (_, refused) = found(Affinity::These(vec![1, 2]), &HYBRID);
        let expected = "task `t`: cpus names cores of different kinds, which count different things: \
                        processor 1 is performance, 2 is efficient";
        assert_eq!(refused.as_deref(), Some(expected));
    }

    #[test]
    fn x13_a_kind_that_is_not_there_is_refused_with_those_that_are() {
        let there = "there are: performance (processors 0, 1), efficient (processors 2, 3)";
        for (core, cpu, kinds, expected) in [
            (
                LowPower,
                None,
                &HYBRID[..],
                format!("core = \"low-power\", but none is in use; {there}"),
            ),
            (
                Efficient,
                Some(2),
                &HYBRID,
                format!(
                    "core = \"efficient\" with cpu = 2, but there are 2 of them, numbered from 0; {there}"
                ),
            ),
            (
                Efficient,
                None,
                &[(0, None), (1, None)],
                "core = \"efficient\", but this processor does not distinguish kinds of core"
                    .to_string(),
            ),
        ] {
            let mut items = [on(Some(core), cpu)];
            find(&mut items, kinds);
            let [part] = &parts(&items, kinds).collect::<Vec<_>>()[..] else { panic!() };
            assert_eq!(part.refused, Some(expected));
        }
    }
}

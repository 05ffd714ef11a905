use super::*;
use pmu_model::uarch::PortLoads;
use std::collections::HashSet;

/// A machine with a port map, whose scheduler is the emulated PMU's. A form is the sets of ports of its micro-operations.
struct Machine {
    forms: Vec<Vec<u16>>,
    ports: usize,
    /// Instructions in a cycle; 0: any number.
    issue: u8,
    has_events: bool,
}

impl Machine {
    fn measure(&self, mix: &Mix) -> Option<Figures> {
        const TIMES: u32 = 64;
        let mut loads = PortLoads::default();
        let (mut ports, mut cycles, mut uops) = (vec![0.0; self.ports], 0, 0);
        for _ in 0..TIMES {
            for &(form, count) in mix {
                for _ in 0..count {
                    for &set in &self.forms[form] {
                        ports[loads.uop(set)] += 1.0;
                        uops += 1;
                    }
                    cycles += loads.instruction(self.issue);
                }
            }
        }
        let each = |sum: f64| sum / f64::from(TIMES);
        Some(Figures {
            cycles: each(cycles.into()),
            ports: if self.has_events { ports.into_iter().map(each).collect() } else { Vec::new() },
            uops: Some(each(uops.into())),
        })
    }

    /// The map's own usage of a form.
    fn given(&self, form: usize) -> Usage {
        let mut usage: Vec<(u32, u32)> = Vec::new();
        for &set in &self.forms[form] {
            match usage.iter_mut().find(|(_, known)| *known == u32::from(set)) {
                Some((count, _)) => *count += 1,
                None => usage.push((1, set.into())),
            }
        }
        usage.sort_by_key(|(_, ports)| (ports.count_ones(), *ports));
        Usage(usage)
    }
}

/// A generator of numbers, the same in each run: a linear congruential one.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// A machine of eight ports: form 0 takes none, the next ones have one micro-operation on a set of their own, the rest up to four on these sets.
fn random(seed: u64, has_events: bool) -> (Machine, Vec<usize>) {
    let mut random = Random(seed);
    let mut sets: Vec<u16> = Vec::new();
    while sets.len() < 7 {
        let size = 1 + random.below(4) as u32;
        let set = random.below(256) as u16;
        if set.count_ones() == size && !sets.contains(&set) {
            sets.push(set);
        }
    }
    let mut forms = vec![Vec::new()];
    forms.extend(sets.iter().map(|set| vec![*set]));
    let candidates = (1..forms.len()).collect();
    for _ in 0..20 {
        let count = 1 + random.below(4);
        forms.push((0..count).map(|_| sets[random.below(sets.len() as u64) as usize]).collect());
    }
    (Machine { forms, ports: 8, issue: 0, has_events }, candidates)
}

fn sorted(usage: &Usage) -> Usage {
    let mut usage = usage.clone();
    usage.0.sort_by_key(|(_, ports)| (ports.count_ones(), *ports));
    usage
}

#[test]
fn d2_ports_of_50_random_maps_are_found() {
    for seed in 0..60 {
        let (machine, candidates) = random(seed, true);
        let found = by_events(machine.forms.len(), &candidates, |mix| machine.measure(mix));
        for (form, found) in found.iter().enumerate() {
            let found = found.as_ref().map(sorted);
            assert_eq!(found, Ok(machine.given(form)), "map {seed}, {:x?}", machine.forms[form]);
        }
    }
}

#[test]
fn d2_without_events_what_is_told_of_50_random_maps_is_right() {
    let (mut told, mut all) = (0, 0);
    for seed in 0..60 {
        let (machine, candidates) = random(seed, false);
        let found = by_throughput(machine.forms.len(), &candidates, 0, |mix| machine.measure(mix));
        let really: Vec<u16> =
            found.sets.iter().map(|set| machine.forms[set.forms[0]][0]).collect();
        let names: HashSet<&str> = found.sets.iter().map(|set| set.name.as_str()).collect();
        assert_eq!((found.sets.len(), names.len()), (7, 7), "map {seed}: each set has a name");
        for (index, set) in found.sets.iter().enumerate() {
            assert_eq!(set.ports, really[index].count_ones());
            for &form in &set.forms {
                assert_eq!(machine.forms[form], [really[index]]);
            }
            let within = |other: &usize| really[*other] & !really[index] == 0 && *other != index;
            assert_eq!(set.contains, (0..7).filter(within).collect::<Vec<_>>(), "map {seed}");
        }
        for (form, usage) in found.forms.iter().enumerate() {
            all += 1;
            let Ok(usage) = usage else { continue };
            told += 1;
            let named = usage.iter().map(|(count, set)| (*count, u32::from(really[*set])));
            assert_eq!(sorted(&Usage(named.collect())), machine.given(form), "map {seed}");
        }
    }
    // What is on two sets that share ports is not told.
    println!("{told} of {all}");
    assert!(told * 2 > all, "{told} of {all}");
}

/// Skylake's sets, and forms that a map cannot be told of.
fn skylake(issue: u8) -> Machine {
    let forms: Vec<Vec<u16>> = vec![
        vec![],
        vec![0x63],
        vec![0x02],
        vec![0x0c],
        vec![0x0c, 0x63],
        // Nothing else has ports 4 and 7.
        vec![0x8c, 0x10],
        // No instruction has port 0 alone.
        vec![0x01, 0x01],
    ];
    Machine { forms, ports: 8, issue, has_events: true }
}

#[test]
fn d2_what_cannot_be_told_says_why() {
    let machine = skylake(0);
    let found = by_events(7, &[1, 2, 3], |mix| machine.measure(mix));
    assert_eq!(found[4], Ok(Usage(vec![(1, 0x0c), (1, 0x63)])));
    assert_eq!(found[5], Err(Untold::Remainder { found: 0, all: 2 }));
    let text = found[6].clone().unwrap_err().to_string();
    assert_eq!(
        text,
        "alone it takes 2.00 cycles of its busiest port, but the ports found explain 0.50"
    );
    let missing = by_events(7, &[1, 2, 3], |mix| machine.measure(mix).filter(|_| mix.len() == 1));
    assert!(matches!(missing[4], Err(Untold::NotMeasured(_))));
    assert_eq!(missing[1], Ok(Usage(vec![(1, 0x63)])), "one micro-operation needs no other");
}

/// Ports 0 and 1, and 0 and 6, without port 0 alone: a micro-operation of it would count in both.
#[test]
fn d2_a_micro_operation_that_two_sets_share_is_not_told_twice() {
    let forms =
        vec![vec![], vec![0x03], vec![0x41], vec![0x63], vec![0x01, 0x63, 0x63], vec![0x03, 0x41]];
    let machine = Machine { forms, ports: 8, issue: 0, has_events: true };
    let found = by_events(6, &[1, 2, 3], |mix| machine.measure(mix));
    assert_eq!(found[4], Err(Untold::Overlap));
    assert_eq!(found[5], Ok(Usage(vec![(1, 0x03), (1, 0x41)])), "both blocked together");
    let found = by_events(6, &[1, 2, 3], |mix| machine.measure(mix).filter(|_| mix.len() < 3));
    assert_eq!(found[5], Err(Untold::Overlap), "nothing tells them apart");
    let told = by_throughput(6, &[1, 2, 3], 0, |mix| machine.measure(mix));
    assert_eq!((&told.forms[4], &told.forms[5]), (&Err(Untold::Overlap), &Err(Untold::Overlap)));
}

#[test]
fn d2_a_front_end_that_is_slower_than_the_ports_is_not_taken_for_them() {
    let machine = Machine { has_events: false, ..skylake(4) };
    let told = by_throughput(7, &[1, 2, 3], 0, |mix| machine.measure(mix));
    let sets: Vec<_> = told.sets.iter().map(|set| (set.ports, set.forms[0])).collect();
    assert_eq!(sets, [(1, 2), (2, 3)], "four ports are as fast as the front end");
    assert!(matches!(told.forms[1], Err(Untold::Remainder { found: 0, all: 1 })));
    assert_eq!(told.forms[0], Ok(Vec::new()));
    let wide = Machine { has_events: false, ..skylake(6) };
    let told = by_throughput(7, &[1, 2, 3], 0, |mix| wide.measure(mix));
    let last = told.sets.last().map(|set| (set.ports, set.contains.clone()));
    assert_eq!(last, Some((4, vec![0])));
    assert_eq!(told.forms[4], Ok(vec![(1, 1), (1, 2)]));
    assert!(matches!(told.forms[6], Err(Untold::Slower { .. })));
}

#[test]
fn d2_without_figures_it_says_so() {
    let told = by_throughput(2, &[0], 1, |_| None);
    assert!(matches!(told.forms[0], Err(Untold::NoMethod(_))));
    let cycles = |_: &Mix| Some(Figures { cycles: 1.0, ..Figures::default() });
    let told = by_throughput(2, &[0], 1, cycles);
    assert_eq!(told.forms[0], Err(Untold::NoMethod("no event counts micro-operations")));
    // As on the emulated PMU without a map.
    let cycles = |_: &Mix| Some(Figures { cycles: 1.0, uops: Some(1.0), ..Figures::default() });
    let told = by_throughput(2, &[0], 1, cycles);
    let text = told.forms[0].clone().unwrap_err().to_string();
    assert_eq!(text, "no instruction is slower than the front end, so no port is visible");
}

#[test]
fn d2_found_ports_are_written_as_uops_info_writes_them() {
    let names: Vec<String> = ["0", "1", "23A", "49", "5"].map(String::from).into();
    let found = Found::by_events(Ok(Usage(vec![(1, 4), (2, 0b10011)])), &names);
    assert_eq!(found.text(), "2*p015+1*p23A");
    assert_eq!(Found::by_events(Ok(Usage::default()), &names).text(), "none");
    let untold = Found::by_events(Err(Untold::TooMany { all: 9 }), &names);
    assert_eq!(
        untold.text(),
        "not told: its 9 micro-operations are too many for 16 blocking instructions"
    );
    let machine = Machine { has_events: false, ..skylake(6) };
    let told = by_throughput(7, &[1, 2, 3], 0, |mix| machine.measure(mix));
    let forms = ["nop", "add", "imul", "load", "add m", "store", "odd"];
    let found = Found::by_throughput(told.forms[4].clone(), &told.sets, &forms);
    assert_eq!(found.text(), "1*B+1*C (B: 2 ports as of load; C: 4 ports as of add, A within)");
}

#[test]
fn d2_the_bottleneck_is_the_busiest_set_of_ports() {
    for (usage, cycles) in [
        (vec![(1, 0b11)], 0.5),
        (vec![(1, 0b01), (1, 0b11)], 1.0),
        (vec![(3, 0b01), (1, 0b11)], 3.0),
        (vec![(2, 0b011), (2, 0b110)], 4.0 / 3.0),
        (vec![], 0.0),
    ] {
        assert_eq!(bottleneck(&Usage(usage)), cycles);
    }
}

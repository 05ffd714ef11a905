use super::*;

/// Two packages of cores with two threads each, and processors that do not answer.
struct Modelled {
    count: u32,
    deaf: Vec<usize>,
    asked: usize,
    leaves_out: bool,
}

impl Modelled {
    fn new(count: u32) -> Self {
        Self { count, deaf: Vec::new(), asked: 0, leaves_out: false }
    }

    fn place(&self, number: u32) -> CorePlace {
        let package = number / self.count.div_ceil(2);
        CorePlace { number, apic_id: number * 2, core: number / 2, package }
    }

    /// Ticks of one way.
    fn way(&self, from: usize, to: usize) -> u64 {
        let [one, other] = [from, to].map(|at| self.place(at as u32));
        match (one.core == other.core, one.package == other.package) {
            (true, _) => 10,
            (_, true) => 50,
            _ => 200,
        }
    }

    fn answers(&mut self, to: usize) -> Result<(), String> {
        self.asked += 1;
        if self.deaf.contains(&to) {
            Err(format!("processor {to} does not answer"))
        } else {
            Ok(())
        }
    }
}

impl Cores for Modelled {
    fn processors(&self) -> Vec<CorePlace> {
        (0..self.count).map(|number| self.place(number)).collect()
    }

    fn hz(&self) -> u64 {
        1_000_000_000
    }

    fn in_turn(&self) -> bool {
        false
    }

    fn rounds(&self) -> u32 {
        100
    }

    fn bounce(&mut self, by: LineAccess, from: usize, to: usize) -> Result<Vec<u64>, String> {
        self.answers(from)?;
        self.answers(to)?;
        let dearer = if by == LineAccess::Plain { 0 } else { 5 };
        let once = (self.way(from, to) + dearer) * 200;
        // Two of eleven samples are disturbed.
        Ok((0..11).map(|sample| if sample < 2 { once * 50 } else { once }).collect())
    }

    fn contend(&mut self, by: LineAccess, processors: usize) -> Result<ContentionPoint, String> {
        self.answers(processors - 1)?;
        let (changes, all) = (1000, processors as u64 * 1000);
        let tries = if by == LineAccess::Cmpxchg { all * processors as u64 } else { all };
        let ticks = all * 20 * processors as u64;
        Ok(ContentionPoint { processors: processors as u32, changes, ticks, tries })
    }

    fn ways(&self) -> (Vec<(Waiting, Option<u32>)>, bool) {
        (vec![(Waiting::Runs, None), (Waiting::Mwait, Some(0x20))], self.leaves_out)
    }

    fn wake(&mut self, (_, hint): (Waiting, Option<u32>), to: usize) -> Result<Vec<u64>, String> {
        self.answers(to)?;
        Ok(vec![1000 + u64::from(hint.unwrap_or(0)); 5])
    }
}

#[test]
fn d3_the_matrix_is_complete_and_has_what_lies_between() {
    let mut machine = Modelled::new(8);
    let facts = measure(&mut machine);
    assert_eq!(facts.matrices.iter().map(|matrix| matrix.by).collect::<Vec<_>>(), LineAccess::ALL);
    for matrix in &facts.matrices {
        let dearer = if matrix.by == LineAccess::Plain { 0 } else { 50 };
        assert_eq!((matrix.rounds, matrix.samples), (100, 11));
        for (from, row) in matrix.tenths.iter().enumerate() {
            for (to, cell) in row.iter().enumerate() {
                let tenths = machine.way(from, to) * 10 + dearer;
                // What disturbed two samples is not in the median, and neither in what nine of ten do not exceed by rank.
                let expected = (from != to).then_some([tenths, tenths, tenths * 50]);
                assert_eq!(*cell, expected, "{from} to {to}");
            }
        }
    }
    assert_eq!(facts.reasons, [""; 0]);
    let points = &facts.contention[0].points;
    let numbers: Vec<u32> = points.iter().map(|point| point.processors).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 6, 8]);
    assert_eq!(
        points.iter().map(ContentionPoint::tenths).collect::<Vec<_>>(),
        [200, 400, 600, 800, 1200, 1600]
    );
    assert_eq!(facts.wakes.len(), 2 * 7);
    assert_eq!(facts.wakes[7].hint, Some(0x20));
    assert_eq!((facts.wakes[7].processor, facts.wakes[7].ticks.median), (1, 1032));
}

#[test]
fn d3_who_does_not_answer_is_named_and_the_others_are_measured() {
    let mut machine = Modelled::new(3);
    machine.deaf = vec![2];
    let facts = measure(&mut machine);
    let first = &facts.matrices[0].tenths;
    assert!(first[0][1].is_some() && first[1][0].is_some());
    assert!(first[0][2].is_none() && first[2][0].is_none());
    assert_eq!(facts.reasons[0], "processor 2 does not answer");
    // After some of them nobody waits any more: each may take a second.
    assert_eq!(facts.reasons.len(), PATIENCE + 1);
    assert!(facts.reasons[PATIENCE].contains("were given up"), "{:?}", facts.reasons);
    assert!(machine.asked < 20, "{}", machine.asked);
}

#[test]
fn d3_one_processor_has_nobody_beside_it_and_too_many_are_told() {
    let facts = measure(&mut Modelled::new(1));
    assert!(facts.matrices.is_empty() && facts.reasons[0].contains("one processor"));
    let facts = measure(&mut Modelled::new(70));
    assert_eq!((facts.processors.len(), facts.matrices[0].tenths.len()), (MOST, MOST));
    assert!(facts.reasons[0].contains("of 70 processors the first 64"), "{:?}", facts.reasons);
    // What goes over the line is within a line's bounds.
    let text = serde_json::to_string(&facts).unwrap();
    assert!(text.len() < protocol::stream::MAX_LINE_BYTES / 2, "{}", text.len());
}

/// A Core 2's leaf 5, 0x22220, and one that tells C1 and C6 with sub-states.
#[test]
fn d3_a_tsc_that_is_not_invariant_is_not_stopped_by_deep_states() {
    assert_eq!(hints(0x2_2220, true), (vec![0, 0x10, 0x20, 0x30], false));
    assert_eq!(hints(0x2_2220, false), (vec![0], true));
    assert_eq!(hints(0x2000_0020, false), (vec![0], true));
    for is_invariant in [true, false] {
        assert_eq!(hints(0, is_invariant), (vec![0], false), "it tells none");
        assert_eq!(hints(0x20, is_invariant), (vec![0], false), "C1 alone");
    }
    let facts = measure(&mut Modelled { leaves_out: true, ..Modelled::new(2) });
    assert_eq!((&facts.reasons[..], facts.wakes.len()), (&[STOPS.to_string()][..], 2));
}

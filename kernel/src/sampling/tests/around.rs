//! What is read around the workload that is sampled.

use super::*;
use crate::sampling::Around;

/// Runs of the task before each begin and each end.
#[derive(Default)]
struct Seen {
    begins: Vec<usize>,
    ends: Vec<usize>,
}

impl Around<Host> for Seen {
    fn begin(&mut self, host: &mut Host) {
        assert!(host.block.is_none(), "no interrupt comes yet");
        self.begins.push(host.vectors.len());
    }

    fn end(&mut self, host: &mut Host) {
        assert!(host.block.is_none(), "no interrupt comes any more");
        self.ends.push(host.vectors.len());
    }
}

#[test]
fn s3_s4_what_is_read_of_a_sample_is_of_its_run_and_not_of_the_one_that_finds_periods() {
    let rate = SampledEvent { rate: Rate::PerSecond(1_000_000), ..event(RETIRED, 1) };
    for (sampled, runs_before) in [(event(RETIRED, 100), 0), (rate, 1)] {
        for (model, mut host) in hosts() {
            let mut seen = Seen::default();
            let item = item(core::slice::from_ref(&sampled), 1000);
            let result = measure(&mut host, 0, &item, &mut seen, &mut |_| ());
            assert!(result.is_ok(), "{model:?}: {result:?}");
            let both = (&seen.begins[..], &seen.ends[..]);
            assert_eq!(both, (&[runs_before][..], &[runs_before + 1][..]), "{model:?}");
        }
    }
    // It ends although there is no result, and does not begin where nothing runs.
    for (forgets, event, times) in
        [(true, event(RETIRED, 100), 1), (false, event("no-such-event", 100), 0)]
    {
        let mut host = Host { forgets, ..Host::new(Model::Skylake) };
        let mut seen = Seen::default();
        let result = measure(&mut host, 0, &item(&[event], 100), &mut seen, &mut |_| ());
        assert!(result.is_err(), "{result:?}");
        assert_eq!([seen.begins.len(), seen.ends.len()], [times; 2]);
    }
}

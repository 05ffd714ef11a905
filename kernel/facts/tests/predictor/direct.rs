//! Blind recovery of the table of direct jumps.

use super::{Modelled, numbers};
use facts::pipeline::{direct, instruction_cache};
use pmu_model::uarch::Parameters;
use pmu_model::uarch::parameters::{CacheShape, TlbShape};
use pmu_model::uarch::replacement::Policy;
use protocol::record::{CodeCacheFact, DirectFact, FrontEndFact};

fn fact(parameters: &Parameters, code: &CodeCacheFact) -> DirectFact {
    let fact = direct(&mut Modelled::new(parameters), code, &FrontEndFact::default());
    assert_eq!(fact.entries.is_none(), fact.reason.is_some(), "{parameters}: {fact:?}");
    fact
}

#[test]
fn d1_blind_recovery_of_200_random_tables_of_direct_jumps() {
    let mut draw = numbers(3);
    let mut told = 0;
    for _ in 0..200 {
        let ways = 1 + draw(16) as u32;
        let sets = 1 << draw(u64::from((8192 / ways).ilog2()) + 1);
        let entries = sets * ways;
        let parameters = Parameters {
            direct: Some(TlbShape { entries, ways }),
            direct_cycles: 1 + draw(20) as u32,
            ..Parameters::DEFAULT
        };
        // As large an instruction cache as shows it.
        let stride = (entries * 8).clamp(1 << 10, 64 << 10);
        let (ways, set_stride) = (Some(4), Some(stride));
        let code = CodeCacheFact { miss_tenths: 90, ways, set_stride, ..CodeCacheFact::default() };
        let fact = fact(&parameters, &code);
        // No loop is shorter.
        let expected = Some(entries).filter(|entries| *entries >= 8);
        assert_eq!(fact.entries, expected, "{parameters}: {fact:?}");
        let costs = fact.loops.iter().flat_map(|one| &one.steps);
        let cycles = u64::from(parameters.direct_cycles) * 10;
        // A loop may not use all sets alike: of some of its jumps only some are missed.
        // Of the first jump the cost is that of a loop of one, which is never missed.
        let most = |jumps: u64| cycles + cycles / jumps + 1;
        assert!(
            costs.clone().all(|[jumps, before, after]| after - before <= most(*jumps)),
            "{fact:?}"
        );
        // A loop of twice as many misses all of them.
        let enough = |jumps: u64| jumps >= 2 * u64::from(entries);
        let far = fact.loops.iter().flat_map(|one| &one.evidence);
        let mut far = far.filter(|[jumps, _]| enough(*jumps));
        let whole = 10 + cycles..=10 + most(u64::from(entries));
        assert!(far.all(|[_, each]| whole.contains(each)), "{parameters}: {fact:?}");
        assert!(fact.loops.iter().all(|one| one.doubtful == 0), "{parameters}: {fact:?}");
        told += u32::from(fact.entries.is_some());
    }
    println!("entries told of 200: {told}");
}

#[test]
fn d1_no_table_of_direct_jumps_is_told_where_none_shows() {
    let none = fact(&Parameters::DEFAULT, &CodeCacheFact::default());
    assert!(none.reason.is_some_and(|why| why.contains("no loop costs more")));
    assert!(none.loops.iter().all(|one| one.steps.is_empty() && one.evidence.len() > 10));
    // A clock that differs from try to try.
    let direct_cycles = 8;
    let direct = Some(TlbShape { entries: 512, ways: 4 });
    let parameters = Parameters { direct, direct_cycles, ..Parameters::DEFAULT };
    let mut noisy = Modelled { noise: 40_000, ..Modelled::new(&parameters) };
    let unsure =
        facts::pipeline::direct(&mut noisy, &CodeCacheFact::default(), &FrontEndFact::default());
    let is_unsure = unsure.loops.iter().any(|one| one.doubtful > 0);
    assert!(unsure.entries.is_none_or(|entries| entries == 512 || is_unsure), "{unsure:?}");
    // A step of the instruction cache is none of the table, which is larger.
    let code = CacheShape { bytes: 16 << 10, ways: 4, policy: Policy::Lru, cycles: 20 };
    let large = Some(TlbShape { entries: 4096, ways: 4 });
    let parameters = Parameters { code: Some(code), direct: large, ..Parameters::DEFAULT };
    let cache = instruction_cache(&mut Modelled::new(&parameters));
    assert_eq!(cache.bytes(), Some(16 << 10), "{cache:?}");
    let hidden = fact(&parameters, &cache);
    assert_eq!(hidden.entries, None, "{hidden:?}");
    // Where the cache is not determined, its steps are at as many bytes, and those of the table at as many jumps.
    let unknown = CodeCacheFact { miss_tenths: 200, ..CodeCacheFact::default() };
    let hidden = fact(&Parameters { direct: None, ..parameters }, &unknown);
    assert!(hidden.reason.is_some_and(|why| why.contains("bytes")), "{:?}", hidden.loops);
    for (entries, ways) in [(512, 4), (768, 3), (320, 5)] {
        let parameters = Parameters { direct: Some(TlbShape { entries, ways }), ..parameters };
        let fact = fact(&parameters, &unknown);
        assert_eq!(fact.entries, Some(entries), "{fact:?}");
        // The table is used up first, and nothing is determined of the cache.
        let cache = instruction_cache(&mut Modelled::new(&parameters));
        assert_eq!(cache.bytes(), None, "{cache:?}");
        assert!(cache.reason.is_some(), "{cache:?}");
    }
    // Alone it is no instruction cache either, whose lines are longer.
    let parameters = Parameters { code: None, direct: large, ..parameters };
    let alone = instruction_cache(&mut Modelled::new(&parameters));
    assert_eq!(alone.bytes(), None, "{alone:?}");
    assert!(alone.reason.is_some_and(|why| why.contains("table of direct jumps")));
    // With a larger one it shows.
    let code = Some(CacheShape { bytes: 128 << 10, ways: 8, ..code });
    let parameters = Parameters { code, ..parameters };
    let cache = instruction_cache(&mut Modelled::new(&parameters));
    assert_eq!(fact(&parameters, &cache).entries, Some(4096), "{cache:?}");
}

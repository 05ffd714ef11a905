//! How much memory the state takes, as a hypervisor core has to place it.

use pmu_model::uarch::{Core, Llc};
use pmu_model::{Delta, Pmu};

#[test]
fn state_fits_a_small_core() {
    // Exact figures, so that growth is noticed; all for one logical processor.
    // With what planted faults keep.
    assert_eq!(size_of::<Pmu>(), 2488, "registers");
    // With a place for caches by parameters, where they are built in.
    let shaped = if cfg!(feature = "hierarchy") { 8 } else { 0 };
    assert_eq!(size_of::<Core>(), 25232 + shaped, "predictor, first-level cache, TLBs");
    assert_eq!(size_of::<Llc>(), 262_144, "last-level cache, placed by the caller");
    assert_eq!(size_of::<Delta>(), 464, "a report");
    const { assert!(size_of::<Pmu>() + size_of::<Core>() < 256 * 1024) };
}

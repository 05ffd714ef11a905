//! The figures of fact sheets that a job can expect something of.

use protocol::record::{LineAccess, Moving, PrefetchFacts, Prefetched, TransitionCost};

/// Levels of caches and TLBs that there may be.
const LEVELS: std::ops::RangeInclusive<u32> = 1..=4;

/// All.
pub(super) fn all() -> Vec<String> {
    let own = ["line", "memory cycles", "line crossing cycles", "page crossing cycles"];
    let mut whole: Vec<String> = own.map(String::from).to_vec();
    for level in LEVELS {
        whole.extend(["bytes", "ways", "cycles"].map(|what| format!("L{level} {what}")));
        for page in [4, 2048] {
            let name = format!("L{level} TLB of {page} KiB pages");
            let all = ["entries", "ways", "walk cycles"];
            whole.extend(all.map(|what| format!("{name} {what}")));
        }
    }
    whole.push("prefetched pairs".to_string());
    for stride in PrefetchFacts::STRIDES {
        whole
            .extend([true, false].into_iter().flat_map(|first| Prefetched::figures(stride, first)));
    }
    let core = ["misprediction cycles", "return stack entries", "targets entries", "targets ways"];
    whole.extend(["bytes", "ways", "line", "miss cycles"].map(|what| format!("L1 code {what}")));
    whole.extend(core.map(String::from));
    let cases = [
        "8 of 8",
        "4 of 8",
        "4 of 8 at 4",
        "1 of 8 at 5",
        "8 of 4",
        "8 of 8 at 4",
        "8 of 8 across lines",
    ];
    whole.extend(cases.map(|case| format!("forward {case} cycles")));
    let hazards = ["denormal result", "SSE after AVX", "self-modified code", "split lock"];
    whole.extend(hazards.map(|name| format!("{name} cycles")));
    whole.extend(["4K aliasing cycles", "store buffer entries", "issue width"].map(String::from));
    whole.extend(["retirement width", "direct jumps entries"].map(String::from));
    let front = ["uop cache entries", "loop buffer entries", "decode width"];
    whole.extend(front.map(String::from));
    let window = [
        "reorder buffer",
        "registers in flight",
        "vector registers in flight",
        "load queue",
        "scheduler",
    ];
    whole.extend(window.map(|name| format!("{name} entries")));
    whole.extend(names_of_bandwidth());
    whole.extend(names_of_cores());
    whole.extend(names_of_noise());
    whole
}

/// How fast data are moved, by one processor and by all.
fn names_of_bandwidth() -> impl Iterator<Item = String> {
    let places = LEVELS.map(|level| format!("L{level}")).chain(["memory".to_string()]);
    let ways = |place| Moving::ALL.map(|by: Moving| format!("{place} {}", by.name()));
    let whom = |name: String| [format!("{name} bytes per"), format!("{name} by all bytes per")];
    let units = |name: String| ["cycle", "tick"].map(|unit| format!("{name} {unit}"));
    places.flat_map(ways).flat_map(whom).flat_map(units)
}

/// Figures of what lies between processors. Of MWAIT the states of sleep that leaf 5 can tell.
fn names_of_cores() -> impl Iterator<Item = String> {
    let by = LineAccess::ALL.map(LineAccess::name).into_iter();
    let lines = by.flat_map(|by| {
        let of =
            ["nearest", "middle", "farthest"].map(|which| format!("{which} cores by {by} ticks"));
        of.into_iter().chain([format!("contended {by} ticks")])
    });
    let hints = (0..7).map(|depth| format!("wake by mwait {:#x} ticks", depth << 4));
    let others = ["interrupt", "hlt"].map(|way| format!("wake by {way} ticks"));
    lines.chain(others).chain(hints)
}

/// Figures of stolen time, the timer and transitions.
fn names_of_noise() -> impl Iterator<Item = String> {
    let own = ["gaps", "stolen ticks", "longest gap ticks", "smis", "timer late ticks"];
    let costs = TransitionCost::NAMES.map(|name| format!("{name} ticks"));
    own.map(String::from).into_iter().chain(costs)
}

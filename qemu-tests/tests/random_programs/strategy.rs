//! How random programs are drawn.

use super::access::{self, FORMS};
use super::fragment::*;
use super::plan::{CounterPlan, EventPlan, PmuPlan};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// A program and what is counted over it.
pub fn program() -> impl Strategy<Value = (Code, PmuPlan)> {
    (code(), pmu()).prop_map(|(code, mut plan)| {
        if code.timer.is_some() {
            plan.for_timer();
        }
        if code.calls_by_alias() {
            plan.follow();
        }
        (code, plan)
    })
}

fn code() -> BoxedStrategy<Code> {
    let functions = vec(vec(anywhere(), 1..6), 1..5);
    let data = vec((0u8..6, prop::bool::weighted(0.7)), super::assemble::DATA_PAGES);
    let offset = prop_oneof![0u16..4096, 3600u16..4096];
    let timer = prop::option::weighted(0.1, 100u32..3000);
    (vec(kernel(), 1..14), functions, data, offset, 0u16..499, any::<u64>(), timer)
        .prop_map(|(main, functions, data, offset, frames, seed, timer)| Code {
            timer,
            main,
            functions,
            data,
            offset,
            frames,
            seed,
        })
        .boxed()
}

fn place() -> BoxedStrategy<Place> {
    let spot = prop_oneof![
        3 => (0u16..4096).prop_map(Spot::At),
        2 => (0u8..64, 1u8..32).prop_map(|(line, bytes)| Spot::LineEnd(line, bytes)),
        2 => (1u8..32).prop_map(Spot::PageEnd),
    ];
    let form = prop_oneof![
        Just(Addressing::Base),
        Just(Addressing::Absolute),
        (0u8..4).prop_map(Addressing::Indexed),
        Just(Addressing::Large),
    ];
    (0u8..16, spot, form).prop_map(|(page, spot, form)| Place { page, spot, form }).boxed()
}

fn test() -> BoxedStrategy<Test> {
    prop_oneof![
        (0u8..8).prop_map(Test::Counter),
        (place(), 0u8..32).prop_map(|(place, bit)| Test::Memory(place, bit)),
        Just(Test::Flags),
    ]
    .boxed()
}

fn strings() -> BoxedStrategy<Strings> {
    let kind = prop_oneof![
        3 => Just(StringKind::Movs),
        2 => Just(StringKind::Stos),
        1 => Just(StringKind::Lods),
        1 => any::<bool>().prop_map(StringKind::Scas),
        1 => any::<bool>().prop_map(StringKind::Cmps),
        1 => Just(StringKind::Outs),
    ];
    let parts = (kind, 0u8..4, prop::bool::weighted(0.8), prop::bool::weighted(0.3));
    (parts, place(), place(), prop_oneof![0u8..4, 0u8..200])
        .prop_map(|((kind, size, repeated, backward), source, destination, count)| Strings {
            kind,
            size,
            repeated,
            backward,
            source,
            destination,
            count,
        })
        .boxed()
}

/// What has no parts of its own and can stand in any ring.
fn simple() -> BoxedStrategy<Fragment> {
    let call = prop_oneof![
        Just(CallKind::Direct),
        Just(CallKind::Register),
        Just(CallKind::Memory),
        Just(CallKind::Alias),
    ];
    prop_oneof![
        3 => vec(any::<u8>(), 1..8).prop_map(Fragment::Plain),
        12 => (0..FORMS.len() as u8, place()).prop_map(|(form, place)| Fragment::Access(form, place)),
        1 => (0..access::SAVES, place()).prop_map(|(kind, place)| Fragment::Save(kind, place)),
        5 => strings().prop_map(Fragment::Strings),
        3 => (0..CONDITIONS, test(), 0u8..4)
            .prop_map(|(condition, test, count)| Fragment::Nowhere(condition, test, count)),
        3 => (0u8..8, place()).prop_map(|(kind, place)| Fragment::Stack(kind, place)),
        5 => (call, any::<u8>()).prop_map(|(kind, number)| Fragment::Call(kind, number)),
        1 => (2u8..40).prop_map(Fragment::Deep),
        1 => Just(Fragment::Service),
        1 => Just(Fragment::Breakpoint),
        1 => Just(Fragment::Undefined),
        1 => Just(Fragment::Division),
        1 => (0u8..4).prop_map(Fragment::Protection),
        1 => place().prop_map(|place| Fragment::Forget(Forget::Line(place))),
        2 => change(),
        1 => (0u8..2).prop_map(Fragment::Counter),
        1 => Just(Fragment::Cpuid),
    ]
    .boxed()
}

fn change() -> BoxedStrategy<Fragment> {
    let change = prop_oneof![any::<u8>().prop_map(Change::Immediate), Just(Change::Jump)];
    (change, any::<bool>()).prop_map(|(change, alias)| Fragment::Change(change, alias)).boxed()
}

fn nested(inner: BoxedStrategy<Fragment>) -> BoxedStrategy<Fragment> {
    let kind = prop_oneof![Just(LoopKind::DecJnz), Just(LoopKind::Loop), Just(LoopKind::Jrcxz)];
    prop_oneof![
        3 => (0u8..16, test(), vec(inner.clone(), 0..4))
            .prop_map(|(condition, test, body)| Fragment::Skip(condition, test, body)),
        3 => (kind, 1u8..40, vec(inner.clone(), 0..4))
            .prop_map(|(kind, count, body)| Fragment::Loop(kind, count, body)),
        1 => (any::<bool>(), vec(vec(inner, 0..3), 4..5))
            .prop_map(|(four, cases)| Fragment::Table(four, cases)),
    ]
    .boxed()
}

/// What can stand in any ring.
fn anywhere() -> BoxedStrategy<Fragment> {
    let inner = prop_oneof![3 => simple(), 1 => nested(simple())].boxed();
    prop_oneof![2 => simple(), 2 => nested(inner)].boxed()
}

/// What stands in ring 0.
fn kernel() -> BoxedStrategy<Fragment> {
    let masked = vec(simple(), 0..4).prop_map(Fragment::Masked);
    let user = (any::<bool>(), vec(user(), 1..6));
    prop_oneof![
        20 => anywhere(),
        6 => user.prop_map(|(call, body)| Fragment::User(call, body)),
        1 => (vec(any::<u8>(), 1..8), 1u8..8).prop_map(|(list, count)| Fragment::Compatibility(list, count)),
        2 => any::<bool>().prop_map(Fragment::Ipi),
        1 => masked,
        1 => strings().prop_map(Fragment::Cut),
        1 => (0u16..20_000).prop_map(Fragment::Halt),
        2 => (0u8..16).prop_map(Fragment::Unmap),
        1 => (0u8..16, 0u8..16).prop_map(|(one, other)| Fragment::Swap(one, other)),
        1 => (0u8..4).prop_map(Fragment::SwapCode),
        1 => (0u8..16).prop_map(|page| Fragment::Forget(Forget::Page(page))),
        1 => Just(Fragment::Forget(Forget::All)),
        1 => Just(Fragment::Forget(Forget::Caches)),
        1 => (back(), any::<bool>()).prop_map(|(back, absent)| Fragment::SameOffset(back, absent)),
        1 => Just(Fragment::Port),
        1 => Just(Fragment::Shadow),
        1 => vec(uncounted(), 0..4).prop_map(Fragment::Uncounted),
    ]
    .boxed()
}

/// What may be done while nothing is counted, and what else is to be seen of it.
fn uncounted() -> BoxedStrategy<Fragment> {
    prop_oneof![
        3 => anywhere(),
        1 => (0u8..16, 0u8..16).prop_map(|(one, other)| Fragment::Forget(Forget::Swapped(one, other))),
    ]
    .boxed()
}

fn back() -> BoxedStrategy<Back> {
    prop_oneof![Just(Back::Near), Just(Back::Interrupt), Just(Back::Far)].boxed()
}

fn user() -> BoxedStrategy<Fragment> {
    prop_oneof![8 => anywhere(), 1 => Just(Fragment::SystemCall)].boxed()
}

/// Whether branches are recorded, and which are not: often none.
fn records() -> impl Strategy<Value = Option<u16>> {
    let call_stack = prop::bool::weighted(0.1).prop_map(|is_on| u16::from(is_on) << 9);
    let filter = prop_oneof![Just(0u16), (0u16..1 << 9, call_stack).prop_map(|(a, b)| a | b)];
    prop::option::weighted(0.3, filter)
}

fn pmu() -> BoxedStrategy<PmuPlan> {
    let rings = prop_oneof![Just(1u8), Just(2), Just(3), Just(3)];
    let period = prop_oneof![
        4 => Just(None),
        1 => (1u32..50).prop_map(Some),
        1 => (20u32..1500).prop_map(Some),
    ];
    let threshold = (prop::bool::weighted(0.4), 1u8..4, any::<bool>(), any::<bool>());
    let counter = (any::<Index>(), rings, threshold, period).prop_map(
        |(event, rings, (has_threshold, cmask, invert, edge), period)| CounterPlan {
            event: EventPlan::Drawn(event),
            rings,
            cmask: if has_threshold { cmask } else { 0 },
            invert,
            edge,
            period,
        },
    );
    let fixed = prop::option::weighted(0.3, (1u8..4, prop::option::weighted(0.3, 100u32..2000)));
    let flags = (any::<bool>(), prop::bool::weighted(0.2), records());
    // Most thresholds are stepped, so a program that has one has little to compare.
    let has_thresholds = prop::bool::weighted(0.2);
    (vec(counter, 1..7), fixed, flags, has_thresholds)
        .prop_map(|(mut counters, fixed, (nmi, freeze, records), has_thresholds)| {
            if !has_thresholds {
                counters.iter_mut().for_each(|counter| counter.cmask = 0);
            }
            PmuPlan { counters, fixed, nmi, freeze, records, timed: false }
        })
        .boxed()
}

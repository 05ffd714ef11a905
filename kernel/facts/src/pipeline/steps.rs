//! Steps of what the parts of a loop cost, over the loop's length.

/// How many loops, the two at a step apart, cost as if they were on its other side, by more than what of that `may_vary` with their length.
pub(super) fn wrong(
    evidence: &[[u64; 2]],
    (from, to): (usize, usize),
    middle: u64,
    may_vary: impl Fn(u64) -> u64,
) -> u32 {
    let is_wrong = |(at, [length, each]): &(usize, &[u64; 2])| match *at {
        at if at < from => *each > middle + may_vary(*length),
        at if at > to => *each + may_vary(*length) < middle,
        _ => false,
    };
    evidence.iter().enumerate().filter(is_wrong).count() as u32
}

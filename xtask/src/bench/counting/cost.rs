//! What a stretch of a machine's work cost its host.

use crate::bench::Figure;
use std::time::Duration;

/// Seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Processor time of QEMU: what else the host does changes little of it.
    pub cpu: f64,
    /// Time that passed.
    pub wall: f64,
}

impl Cost {
    /// Of two durations.
    pub fn new(cpu: Duration, wall: Duration) -> Self {
        Self { cpu: cpu.as_secs_f64(), wall: wall.as_secs_f64() }
    }

    fn each(self, other: Self, of: impl Fn(f64, f64) -> f64) -> Self {
        Self { cpu: of(self.cpu, other.cpu), wall: of(self.wall, other.wall) }
    }

    /// So much less.
    pub fn minus(self, other: Self) -> Self {
        self.each(other, |own, other| own - other)
    }

    /// So many times as much.
    pub fn times(self, factor: f64) -> Self {
        Self { cpu: self.cpu * factor, wall: self.wall * factor }
    }

    /// Two figures: how many times the other it is.
    pub fn to(self, other: Self, name: &str) -> [Figure; 2] {
        let ratio = self.each(other, |own, other| own / other);
        [
            Figure::count(format!("{name}: processor time"), ratio.cpu, "ratio"),
            Figure::count(format!("{name}: wall time"), ratio.wall, "ratio"),
        ]
    }

    /// Two figures: the seconds.
    pub fn seconds(self, name: &str) -> [Figure; 2] {
        [
            Figure::count(format!("{name}: processor time"), self.cpu, "s"),
            Figure::count(format!("{name}: wall time"), self.wall, "s"),
        ]
    }
}

/// The least of several rounds: a busy host only ever adds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Least(Option<Cost>);

impl Least {
    /// Adds the cost of one more run.
    pub fn take(&mut self, cost: Cost) {
        self.0 = Some(self.0.map_or(cost, |least| least.each(cost, f64::min)));
    }

    /// The least.
    ///
    /// # Panics
    /// If there was none.
    pub fn get(self) -> Cost {
        self.0.expect("there was a round")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_each_kind_of_time_counts() {
        let mut least = Least::default();
        least.take(Cost { cpu: 3.0, wall: 4.0 });
        least.take(Cost { cpu: 2.0, wall: 9.0 });
        assert_eq!(least.get(), Cost { cpu: 2.0, wall: 4.0 });
        let plain = Cost { cpu: 0.5, wall: 2.0 };
        let figures = least.get().minus(Cost { cpu: 1.0, wall: 1.0 }).to(plain, "x");
        assert_eq!(figures.map(|figure| figure.value), [2.0, 1.5]);
    }
}

//! What the names of a formula stand for.

use crate::metrics::table::{Definition, uncore};

/// What a name of a formula means in addition to an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constant {
    /// This.
    Number(f64),
    /// For how long was counted, in milliseconds.
    Milliseconds,
    /// The same in seconds.
    Seconds,
    /// How many ticks the TSC has in a second.
    TscHz,
    /// How many ticks the TSC had while it was counted.
    TscTicks,
    /// How many units of the uncore the events were counted in.
    Units,
}

impl Constant {
    /// What perfmon's word means in a metric. One thread is measured while all others are halted, so a core has one
    /// thread, and the machine one processor.
    ///
    /// `SYSTEM_TSC_FREQ` means two things: in the top-down method's metrics, which divide by it or by it and by the
    /// time, the ticks of the TSC meanwhile; in the others, which take it for a frequency, its ticks in a second.
    #[must_use]
    pub fn of(word: &str, metric: &Definition) -> Option<Self> {
        Some(match word {
            "HYPERTHREADING_ON" => Self::Number(0.0),
            "THREADS_PER_CORE"
            | "SOCKET_COUNT"
            | "system.sockets[0].cpus.count * system.socket_count" => Self::Number(1.0),
            "DURATIONTIMEINMILLISECONDS" => Self::Milliseconds,
            "DURATIONTIMEINSECONDS" => Self::Seconds,
            "SYSTEM_TSC_FREQ" if metric.category == "TMA" => Self::TscTicks,
            "SYSTEM_TSC_FREQ" => Self::TscHz,
            // Perfmon divides what all caching agents have counted by their number, or by that of the cores that have one each.
            "CHAS_PER_SOCKET" | "CORES_PER_SOCKET"
                if metric.events.values().any(|event| uncore::is(event)) =>
            {
                Self::Units
            }
            number => Self::Number(number.parse().ok()?),
        })
    }

    /// Whether it is of the time.
    #[must_use]
    pub fn is_time(self) -> bool {
        !matches!(self, Self::Number(_) | Self::Units)
    }
}

/// What a name of a formula stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning {
    /// The count of this event, as the machine is requested it.
    Event(String),
    /// The count of this event of the uncore, as the machine is requested it.
    Uncore(String),
    /// The mean retire latency of this event's records, as the machine is requested it.
    Latency(String),
    /// Joules of this part of the machine.
    Energy(String),
    /// The ticks of the TSC.
    Tsc,
    /// Something else.
    Constant(Constant),
}

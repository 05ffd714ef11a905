//! Events: EVENTINJ and EXITINTINFO, AMD APM vol. 2, 15.20 and 15.7.2.

const VALID: u64 = 1 << 31;
const HAS_ERROR: u64 = 1 << 11;
/// Above are interrupts of devices.
const LAST_EXCEPTION: u8 = 31;
const NMI_VECTOR: u8 = 2;

/// An event, its type in bits 10:8.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// An interrupt of a device.
    Interrupt {
        /// Its vector.
        vector: u8,
    },
    /// A non-maskable interrupt.
    Nmi,
    /// An exception.
    Exception {
        /// Its vector.
        vector: u8,
        /// Its error code, if it has one.
        error: Option<u32>,
    },
    /// INT n, INT3 or INTO.
    SoftwareInterrupt {
        /// Its vector.
        vector: u8,
    },
}

/// The field requests an event that there is not.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Illegal;

impl Event {
    /// The vector that it is delivered through.
    #[must_use]
    pub fn vector(self) -> u8 {
        match self {
            Self::Nmi => NMI_VECTOR,
            Self::Interrupt { vector }
            | Self::Exception { vector, .. }
            | Self::SoftwareInterrupt { vector } => vector,
        }
    }

    /// What EXITINTINFO says.
    #[must_use]
    pub fn decode(info: u64) -> Option<Self> {
        let vector = info as u8;
        match (info & VALID != 0, info >> 8 & 7) {
            (false, _) => None,
            (_, 0) => Some(Self::Interrupt { vector }),
            (_, 2) => Some(Self::Nmi),
            // QEMU calls an interrupt that it delivered itself an exception.
            (_, 3) if vector > LAST_EXCEPTION => Some(Self::Interrupt { vector }),
            (_, 4) => Some(Self::SoftwareInterrupt { vector }),
            _ => Some(Self::Exception { vector, error: error_of(info) }),
        }
    }

    /// What EVENTINJ requests; `None` if for nothing.
    ///
    /// # Errors
    /// A type that is reserved, or an exception that is none (15.20).
    pub fn injected(info: u64) -> Result<Option<Self>, Illegal> {
        let vector = info as u8;
        match (info & VALID != 0, info >> 8 & 7) {
            (false, _) => Ok(None),
            (_, 0) => Ok(Some(Self::Interrupt { vector })),
            (_, 2) => Ok(Some(Self::Nmi)),
            (_, 3) if vector == NMI_VECTOR || vector > LAST_EXCEPTION => Err(Illegal),
            (_, 3) => Ok(Some(Self::Exception { vector, error: error_of(info) })),
            (_, 4) => Ok(Some(Self::SoftwareInterrupt { vector })),
            _ => Err(Illegal),
        }
    }

    /// As a field has it.
    #[must_use]
    pub fn encode(self) -> u64 {
        match self {
            Self::Interrupt { vector } => VALID | u64::from(vector),
            Self::Nmi => VALID | 2 << 8 | u64::from(NMI_VECTOR),
            Self::Exception { vector, error: None } => VALID | 3 << 8 | u64::from(vector),
            Self::Exception { vector, error: Some(code) } => {
                u64::from(code) << 32 | VALID | HAS_ERROR | 3 << 8 | u64::from(vector)
            }
            Self::SoftwareInterrupt { vector } => VALID | 4 << 8 | u64::from(vector),
        }
    }
}

fn error_of(info: u64) -> Option<u32> {
    (info & HAS_ERROR != 0).then_some((info >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_event() -> impl Strategy<Value = Event> {
        prop_oneof![
            (32u8..).prop_map(|vector| Event::Interrupt { vector }),
            Just(Event::Nmi),
            (0u8..=31, any::<Option<u32>>())
                .prop_filter("not the NMI's", |&(vector, _)| vector != NMI_VECTOR)
                .prop_map(|(vector, error)| Event::Exception { vector, error }),
            any::<u8>().prop_map(|vector| Event::SoftwareInterrupt { vector }),
        ]
    }

    #[test]
    fn what_there_is_not_is_refused_and_what_is_not_valid_is_nothing() {
        for wrong in [1, 5, 6, 7] {
            assert_eq!(Event::injected(VALID | wrong << 8 | 13), Err(Illegal), "type {wrong}");
        }
        for vector in [2, 32, 255] {
            assert_eq!(Event::injected(VALID | 3 << 8 | vector), Err(Illegal), "{vector}");
        }
        assert_eq!(Event::injected(0x7fff_ffff), Ok(None));
        assert_eq!(Event::decode(0x7fff_ffff), None);
    }

    proptest! {
        #[test]
        fn an_event_is_told_as_it_was_asked_for(event in any_event()) {
            prop_assert_eq!(Event::injected(event.encode()), Ok(Some(event)));
            prop_assert_eq!(Event::decode(event.encode()), Some(event));
        }
    }
}

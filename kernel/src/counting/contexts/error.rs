//! Why a binding's counts cannot be had.

use crate::counting::owner::OwnerError;
use crate::counting::{CountingError, SetError};
use thiserror::Error;

/// Why a binding's counts cannot be had.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ContextError {
    /// Somebody else holds the counters, or holds them now.
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// The counting itself.
    #[error(transparent)]
    Counting(#[from] CountingError),
    /// Something came into each try of a snapshot.
    #[error("there is no consistent snapshot: system management interrupts come too fast")]
    Unsettled,
}

impl From<SetError> for ContextError {
    fn from(error: SetError) -> Self {
        Self::Counting(error.into())
    }
}

//! The plans.

//! A guest that is a hypervisor itself: nested virtualization. AMD APM vol. 2, chapter 15.
//!
//! The guest's VMRUN makes the hypervisor run the nested guest directly, with a block in which what the guest intercepts
//! ([`Control`]) and what the hypervisor does are merged ([`intercepts`], [`permissions`]). At an exit it decides whose it is
//! ([`Control::wants`]), and tells the guest of its own ([`exit`]). Interrupts that wait may end a nested guest as well
//! ([`pending`]). What VMRUN refuses is in [`checks`]; whose registers they are, in [`State`]; how the nested guest's addresses
//! are translated, in [`paging`].

pub mod checks;
mod control;
pub mod exit;
pub mod intercepts;
pub mod paging;
pub mod pending;
pub mod permissions;
mod state;

pub use control::Control;
pub use state::State;

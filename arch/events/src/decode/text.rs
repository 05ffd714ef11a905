//! The words for registers, in the syntax of the parser.

use crate::cpu::Vendor;
use crate::event::{Event, Way};
use crate::msr::{self, MsrValue};
use crate::register::{EventSelect, FixedControl};
use alloc::format;
use alloc::string::{String, ToString};

/// Which modes, if not both.
fn modes(user: bool, kernel: bool) -> &'static str {
    match (user, kernel) {
        (true, true) => "",
        (true, false) => ":u",
        (false, true) => ":k",
        (false, false) => ":u=0:k=0",
    }
}

/// A name, and what `select` has that `base` has not.
pub(super) fn with_settings(name: &str, base: &EventSelect, select: &EventSelect) -> String {
    let mut text = name.to_string();
    for (was, is, word) in [
        (base.edge, select.edge, "e"),
        (base.invert, select.invert, "i"),
        (base.any_thread, select.any_thread, "any"),
        (base.equal, select.equal, "eq"),
        (base.pin_control, select.pin_control, "pc"),
        (base.in_tx, select.in_tx, "intx"),
        (base.in_tx_checkpointed, select.in_tx_checkpointed, "intxcp"),
    ] {
        if was != is {
            text.push_str(&format!(":{word}={}", u8::from(is)));
        }
    }
    if base.cmask != select.cmask {
        text.push_str(&format!(":c={}", select.cmask));
    }
    text.push_str(modes(select.user, select.kernel));
    text
}

/// An event of a table. `other`: another value in its MSR.
pub(super) fn event(event: &Event<'_>, select: &EventSelect, other: Option<&MsrValue>) -> String {
    let base = EventSelect {
        cmask: event.cmask,
        invert: event.invert,
        edge: event.edge,
        any_thread: event.any_thread,
        ..EventSelect::default()
    };
    let mut name = event.name.to_string();
    if let Some(held) = other {
        name.push_str(&format!(":{}={:#x}", term(held.address), held.value));
    }
    with_settings(&name, &base, select)
}

/// The term that puts a value into this MSR.
fn term(address: u32) -> &'static str {
    match address {
        msr::LOAD_LATENCY => "ldlat",
        msr::FRONTEND => "frontend",
        _ => "config1",
    }
}

/// A fixed counter's event.
pub(super) fn fixed(name: &str, any_thread: bool, control: FixedControl) -> String {
    let base = EventSelect { any_thread, ..EventSelect::default() };
    let select = EventSelect {
        any_thread: control.any_thread,
        user: control.user,
        kernel: control.kernel,
        ..EventSelect::default()
    };
    with_settings(name, &base, &select)
}

/// The code itself, as perf writes it. `events`: those of the table with the same code. If the
/// table knows that it looks at an MSR, that one's value too.
pub(super) fn raw(
    select: &EventSelect,
    msrs: &[MsrValue],
    vendor: Vendor,
    events: Option<&[Event<'_>]>,
) -> String {
    let bare = EventSelect {
        event: select.event,
        umask: select.umask,
        umask2: select.umask2,
        edge: select.edge,
        any_thread: select.any_thread,
        invert: select.invert,
        cmask: select.cmask,
        equal: select.equal,
        in_tx: select.in_tx,
        in_tx_checkpointed: select.in_tx_checkpointed,
        ..EventSelect::default()
    };
    let mut name = format!("r{:x}", bare.to_bits(vendor));
    let code = Way { event: select.event, umask: select.wide_umask(), msr: None };
    let usual = msr::usual(&code)
        .filter(|msr| vendor == Vendor::Intel && (events.is_none() || msr::is_offcore(*msr)));
    let looks_at = |address: u32| {
        usual == Some(address)
            || events.is_some_and(|events| {
                events
                    .iter()
                    .flat_map(|event| event.way_slots)
                    .any(|way| super::has_code(&way, select) && way.msr == Some(address))
            })
    };
    if let Some(held) = msrs.iter().find(|held| looks_at(held.address)) {
        let term = match held.address {
            msr::OFFCORE_RSP_0 => "offcore_rsp_0",
            msr::OFFCORE_RSP_1 => "offcore_rsp_1",
            other => term(other),
        };
        name.push_str(&format!(":{term}={:#x}", held.value));
    }
    with_settings(&name, &bare, select)
}

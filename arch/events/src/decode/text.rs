//! The words for registers, in the syntax of the parser.

use crate::cpu::Vendor;
use crate::event::{Event, Way};
use crate::msr::{self, MsrValue};
use crate::register::{EventSelect, FixedControl};
use crate::tables::Core;
use alloc::format;
use alloc::string::{String, ToString};

/// Which modes, if not both. Neither cannot be requested; then the text is for both.
fn modes(user: bool, kernel: bool) -> &'static str {
    match (user, kernel) {
        (true, false) => ":u",
        (false, true) => ":k",
        _ => "",
    }
}

/// The register that a text for `select` gets: without what belongs to sampling, to virtual machines
/// or to nobody, and counting.
pub(super) fn said(select: &EventSelect) -> EventSelect {
    let neither = !select.user && !select.kernel;
    EventSelect {
        user: select.user || neither,
        kernel: select.kernel || neither,
        interrupt: false,
        enable: true,
        adaptive_record: false,
        log_in_branches: false,
        rdpmc_user_disable: false,
        guest_only: false,
        host_only: false,
        ..*select
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

/// The code itself, as perf writes it. If the table knows that it looks at an MSR, that one's value
/// too. `None`: it looks at one, and what that holds is not known.
pub(super) fn raw(
    select: &EventSelect,
    msrs: &[MsrValue],
    vendor: Vendor,
    core: Option<&Core<'_>>,
) -> Option<String> {
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
        .filter(|msr| vendor == Vendor::Intel && (core.is_none() || msr::is_offcore(*msr)));
    let of_table = core.and_then(|core| {
        let looking = |way: &Way| super::has_code(way, select) && way.msr.is_some();
        core.with_code(select.event).find_map(|event| event.ways().iter().copied().find(looking))
    });
    // Events with the same code look at the same MSR.
    let looks_at = |address: u32| {
        usual == Some(address) || of_table.is_some_and(|way| way.msr == Some(address))
    };
    let held = msrs.iter().find(|held| looks_at(held.address));
    if held.is_none() && (usual.is_some() || of_table.is_some()) {
        return None;
    }
    if let Some(held) = held {
        let term = match held.address {
            msr::OFFCORE_RSP_0 => "offcore_rsp_0",
            msr::OFFCORE_RSP_1 => "offcore_rsp_1",
            other => term(other),
        };
        name.push_str(&format!(":{term}={:#x}", held.value));
    }
    Some(with_settings(&name, &bare, select))
}

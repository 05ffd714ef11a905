//! The hypervisor's calls.

use crate::arrival::{self, Element};
use crate::bound::Bound;
use crate::cells::{ALARM, OPEN, RETURNED, SPENT};
use crate::facts::OFFSET;
use crate::limit::Limits;
use crate::opened::{BEGUN, Opened};
use crate::plan;
use crate::resolve::{self, Where};
use crate::running::{calling, is_back, runs};
use crate::state::{page, state, translate_anew};
use crate::tally::{self, QUALIFIED, QUALIFIED_INSTRUCTIONS};
use crate::vcpu::Vcpu;
use core::ffi::c_void;
use plugin_channel::{ANSWER, Command, Mailbox, Mode, Parts, Place, QUESTION, SLOTS, VERSION};
use pmu_model::uarch::Parameters;
use pmu_model::uarch::front_end::FrontEndShape;
use pmu_model::{OCCURRENCES, Qualifiers};
use std::sync::atomic::{AtomicU64, Ordering};
use step::Behind;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// A vCPU executes a call: the place of the NOP in QEMU's memory, and the command.
pub extern "C" fn called(index: u32, data: *mut c_void) {
    // SAFETY: it was requested with such a pair, which stays.
    let (host, command) = unsafe { *data.cast::<(u64, Command)>() };
    let page = page(host);
    // SAFETY: the page after that of the call is the guest's RAM as well, unless a guest that is not a hypervisor executes
    // such a NOP at the very end of its RAM, which QEMU does not give back either; nobody writes it while this vCPU, whose
    // page it is, is here.
    let mailbox = unsafe { &mut *((page + PAGE) as *mut Mailbox) };
    if command == Command::Who {
        return who(page, mailbox);
    }
    let is_known = state().translator().modes.contains_key(&page);
    let Some(vcpu) = calling(index).filter(|_| is_known) else { return };
    match command {
        Command::Who => {}
        Command::Region => region(page, vcpu, mailbox),
        Command::Mode => mode(page, mailbox),
        Command::Enter => enter(page, vcpu, mailbox),
        Command::Exit => exit(vcpu, mailbox),
    }
}

/// vCPUs of the machine, as QEMU tells when it loads the plugin.
pub static PROCESSORS: AtomicU64 = AtomicU64::new(1);

fn who(page: u64, mailbox: &mut Mailbox) {
    if mailbox.question != QUESTION {
        return;
    }
    state().translator().modes.entry(page).or_default();
    mailbox.answer = ANSWER;
    mailbox.version = VERSION;
    mailbox.stops = state().stops().into();
    mailbox.processors = PROCESSORS.load(Ordering::Relaxed);
}

fn region(page: u64, vcpu: &mut Vcpu, mailbox: &Mailbox) {
    let parameters = Parameters::of_words(&mailbox.parameters);
    if parameters.is_some() || vcpu.core.is_shaped() {
        vcpu.core.shape(parameters.as_ref());
        state().shape(parameters.is_some());
        state().translator().code_line =
            parameters.filter(|all| all.code.is_some()).map(|all| all.line.into());
        state().translator().window = parameters.is_some_and(|all| all.window.rob > 0);
        state().translator().direct = parameters.is_some_and(|all| all.direct.is_some());
        state().translator().front = parameters.is_some_and(|all| all.front != FrontEndShape::NONE);
        state().translator().ports = parameters.and_then(|all| all.ports);
        translate_anew();
    }
    let &Mailbox { region_start, region_end, own, apic_id, .. } = mailbox;
    state().stopper(vcpu.index).apic_id.store(apic_id as u8, Ordering::Relaxed);
    if !(region_start..region_end).contains(&own) {
        return;
    }
    let start = page.wrapping_sub(own - region_start);
    let host = (start, start.wrapping_add(region_end - region_start));
    // What lies there may have been translated with code next to it.
    if state().translator().regions.insert(region_start, host) != Some(host) {
        translate_anew();
    }
}

fn mode(page: u64, mailbox: &Mailbox) {
    let translator = &mut *state().translator();
    let asked = plan::complete(Mode::from_bits_truncate(mailbox.mode));
    translator.modes.insert(page, asked);
    let all = translator.modes.values().fold(Mode::empty(), |all, one| all | *one);
    let mut changes = core::mem::replace(&mut translator.mode, all) != all;
    if asked.contains(Mode::QUALIFIED) {
        let wanted = Qualifiers::of_words(mailbox.qualifiers);
        translator.qualifiers.insert(page, wanted);
        changes |= core::mem::replace(&mut translator.qualifier, wanted) != wanted;
    } else {
        translator.qualifiers.remove(&page);
    }
    if changes {
        state().next_mode();
        translate_anew();
    }
}

/// Code is translated for what one page has counted by itself: that of whoever is in its guest.
fn qualify(page: u64, vcpu: &mut Vcpu) {
    let translator = &mut *state().translator();
    let Some(wanted) = translator.qualifiers.get(&page).copied() else { return };
    vcpu.qualifiers = wanted;
    if core::mem::replace(&mut translator.qualifier, wanted) != wanted {
        state().next_mode();
        translate_anew();
    }
}

fn enter(page: u64, vcpu: &mut Vcpu, mailbox: &mut Mailbox) {
    qualify(page, vcpu);
    vcpu.clear(&state().cells());
    runs(vcpu);
    let stopper = state().stopper(vcpu.index);
    vcpu.set_parts(Parts::from_bits_truncate(mailbox.parts));
    vcpu.memory.enter(vcpu.parts.contains(Parts::RESUMES));
    if core::mem::replace(&mut vcpu.modes, state().modes()) != state().modes() {
        vcpu.memory.forget_translations();
    }
    vcpu.recorder.enter(mailbox.record_kinds);
    vcpu.fault_handler = Some(mailbox.fault_handler).filter(|handler| *handler != 0);
    vcpu.limits = Limits::new(&mailbox.limits);
    let most = state().most();
    mailbox.lead = vcpu.limits.lead(most);
    stopper.others.store(vcpu.limits.has_others(), Ordering::Relaxed);
    stopper.armed.store(!vcpu.limits.is_empty() && state().stops(), Ordering::Relaxed);
    if !vcpu.limits.is_empty() {
        // The first block looks for itself.
        let slack = vcpu.limits.slack(&vcpu.sums, &Bound::default(), most);
        if slack.is_none() {
            // The lead that the hypervisor knows was that of other events, or blocks have become longer since: it is to step.
            state().stop(vcpu.index);
        }
        *vcpu.word(SPENT) = slack.map_or(0, |slack| ALARM - slack.min(ALARM));
    }
}

fn exit(vcpu: &mut Vcpu, mailbox: &mut Mailbox) {
    is_back();
    let stopper = state().stopper(vcpu.index);
    stopper.armed.store(false, Ordering::Relaxed);
    stopper.others.store(false, Ordering::Relaxed);
    let failed = mailbox.place == Place::Instruction as u64;
    let at = (mailbox.rip & OFFSET) as u16;
    let opened = vcpu.opened();
    let (open, count) = (*vcpu.word(OPEN), mailbox.rcx);
    let element = |opened| arrival::element(opened, open, vcpu.noted_count, count);
    let is_undone = open == BEGUN && opened.is_some_and(|opened| element(opened) != Element::Done);
    mailbox.string_open = match opened {
        Some(Opened::Repeat { ip, passes, .. }) if !failed && !is_undone && *ip == at => {
            u64::from(*passes && vcpu.string_passes()) << 1 | 1
        }
        _ => 0,
    };
    let &mut Mailbox { rip, rflags, rcx, .. } = mailbox;
    vcpu.behind = Some(Behind { rip, rflags, rcx });
    if let Some(opened) = opened {
        let to = if failed { Where::Failed } else { Where::Left };
        match arrival::decides(open) {
            true => arrival::left(vcpu, opened, failed, at, mailbox),
            false if arrival::is_fault(vcpu, opened, rip, rcx, &mailbox.stack) => {}
            false => resolve::next(vcpu, opened, to(rip)),
        }
    } else if failed {
        vcpu.memory.drop_pending();
    }
    vcpu.behind = None;
    vcpu.collect();
    mailbox.counts = [0; SLOTS];
    mailbox.counts[..OCCURRENCES].copy_from_slice(&vcpu.sums.0[..OCCURRENCES]);
    mailbox.string_starts = vcpu.sums.0[tally::STRING_STARTS];
    mailbox.string_ends = vcpu.string_ends;
    mailbox.instructions = vcpu.sums.0[tally::INSTRUCTIONS].wrapping_add(vcpu.string_ends);
    mailbox.qualified[..OCCURRENCES].copy_from_slice(&vcpu.sums.0[QUALIFIED..][..OCCURRENCES]);
    mailbox.qualified_instructions = vcpu.sums.0[QUALIFIED_INSTRUCTIONS];
    mailbox.lead = vcpu.limits.lead(state().most());
    mailbox.returned = *vcpu.word(RETURNED);
    mailbox.stopped = stopper.stopped.swap(0, Ordering::Relaxed);
    vcpu.recorder.exit(&mut mailbox.records);
    vcpu.set_parts(Parts::empty());
    vcpu.reset();
}

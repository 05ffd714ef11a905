//! The processors that an operating system could start.

use alloc::vec;
use alloc::vec::Vec;
use uefi::boot::{self, ScopedProtocol};
use uefi::proto::pi::mp::MpServices;

/// The ids of their local APICs, that of the one that runs this first.
pub fn apic_ids() -> Vec<u64> {
    // Firmware without the protocol is not asked further.
    services().and_then(|services| ids(&services).ok()).unwrap_or_else(|| vec![0])
}

fn services() -> Option<ScopedProtocol<MpServices>> {
    let handle = boot::get_handle_for_protocol::<MpServices>().ok()?;
    boot::open_protocol_exclusive::<MpServices>(handle).ok()
}

fn ids(services: &MpServices) -> uefi::Result<Vec<u64>> {
    let mut ids = vec![];
    for number in 0..services.get_number_of_processors()?.total {
        let processor = services.get_processor_info(number)?;
        if processor.is_bsp() {
            ids.insert(0, processor.processor_id);
        } else if processor.is_enabled() {
            ids.push(processor.processor_id);
        }
    }
    Ok(ids)
}

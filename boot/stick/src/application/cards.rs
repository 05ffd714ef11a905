//! The machine's network cards, with an address for each.

use super::time::Deadline;
use alloc::vec::Vec;
use core::time::Duration;
use thiserror::Error;
use uefi::boot::{self, OpenProtocolAttributes, OpenProtocolParams, ScopedProtocol, SearchType};
use uefi::proto::ProtocolPointer;
use uefi::proto::network::ip4config2::Ip4Config2;
use uefi::proto::network::snp::SimpleNetwork;
use uefi::{Handle, Status};
use uefi_raw::protocol::network::ip4_config2::Ip4Config2Policy;

/// How long a DHCP server may take: four requests are sent within 60 seconds (RFC 2131, 4.1), the first three within 15.
const PATIENCE: Duration = Duration::from_secs(30);

/// A card that the firmware has its IPv4 driver for.
#[derive(Clone, Copy)]
pub struct Card {
    /// The firmware's handle.
    pub handle: Handle,
    /// Its hardware address.
    pub mac: [u8; 6],
}

/// Why a card cannot be used.
#[derive(Debug, Error)]
pub enum CardError {
    /// Its cable is not plugged in.
    #[error("no cable")]
    NoMedia,
    /// No DHCP server has answered.
    #[error("no address by DHCP within {} s", PATIENCE.as_secs())]
    NoAddress,
    /// The firmware's error.
    #[error("no address: {0}")]
    Firmware(#[from] uefi::Error),
}

/// Opens a protocol that the firmware's drivers use at the same time.
pub fn open<P: ProtocolPointer + ?Sized>(handle: Handle) -> uefi::Result<ScopedProtocol<P>> {
    let params = OpenProtocolParams { handle, agent: boot::image_handle(), controller: None };
    // SAFETY: the cards stay as long as this program runs, and so do their drivers.
    unsafe { boot::open_protocol(params, OpenProtocolAttributes::GetProtocol) }
}

/// All of them.
pub fn all() -> Vec<Card> {
    let found = find();
    if !found.is_empty() {
        return found;
    }
    // Firmware that was told what to boot from leaves the other devices without their drivers.
    if let Ok(handles) = boot::locate_handle_buffer(SearchType::AllHandles) {
        for handle in handles.iter() {
            let _ = boot::connect_controller(*handle, &[], None, true);
        }
    }
    find()
}

fn find() -> Vec<Card> {
    let handles = boot::find_handles::<Ip4Config2>().unwrap_or_default();
    let card = |handle| {
        let network = open::<SimpleNetwork>(handle).ok()?;
        let mac = network.mode().current_address.0.first_chunk::<6>().copied()?;
        Some(Card { handle, mac })
    };
    handles.into_iter().filter_map(card).collect()
}

impl Card {
    /// Makes sure that it has an address: its own, or by DHCP.
    pub fn up(&self) -> Result<(), CardError> {
        if let Ok(network) = open::<SimpleNetwork>(self.handle) {
            let mode = network.mode();
            if bool::from(mode.media_present_supported) && !bool::from(mode.media_present) {
                return Err(CardError::NoMedia);
            }
        }
        let mut settings = Ip4Config2::new(self.handle)?;
        if has_address(&mut settings) {
            return Ok(());
        }
        // Firmware requests an address when the policy changes; a network boot has left it at DHCP, and its address went with it.
        settings.set_policy(Ip4Config2Policy::STATIC)?;
        settings.set_policy(Ip4Config2Policy::DHCP)?;
        let deadline = Deadline::after(PATIENCE)?;
        while !deadline.is_over() {
            if has_address(&mut settings) {
                return Ok(());
            }
            boot::stall(Duration::from_millis(100));
        }
        Err(CardError::NoAddress)
    }
}

fn has_address(settings: &mut Ip4Config2) -> bool {
    let info = settings.get_interface_info();
    info.is_ok_and(|info| info.station_addr.0 != [0; 4])
}

impl From<Status> for CardError {
    fn from(status: Status) -> Self {
        Self::Firmware(status.into())
    }
}

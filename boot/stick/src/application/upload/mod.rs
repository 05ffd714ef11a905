//! Sending a report to a server, by the firmware's own network stack.

mod child;
mod http;
mod tftp;

use super::cards::{self, CardError};
use super::note::Note;
use super::volume;
use alloc::format;
use alloc::string::String;
use stick::names::{self, Kind, Name};
use stick::upload::{Scheme, Target};
use thiserror::Error;
use uefi::{Status, println};

/// Why a report was not sent.
#[derive(Debug, Error)]
pub enum UploadError {
    /// None that the firmware has its network stack for.
    #[error("the firmware has no network stack for any card (its setup may have to turn it on)")]
    NoCard,
    /// The card's.
    #[error("{0}")]
    Card(#[from] CardError),
    /// The firmware has the network, but not this protocol.
    #[error("the firmware has no {0}")]
    NoDriver(&'static str),
    /// The firmware's, and what it was about.
    #[error("{0}: {1}")]
    Firmware(&'static str, Status),
    /// It took too long.
    #[error("{0}: no response within {1} s")]
    Late(&'static str, u64),
    /// The server has answered, and does not take it.
    #[error("the server responds {0}")]
    Refused(String),
}

/// Sends a report; returns its URL. The first card by which that works is taken.
pub fn send(
    target: &Target,
    note: &Note,
    kind: Kind,
    report: &[u8],
) -> Result<String, UploadError> {
    let mut result = Err(UploadError::NoCard);
    for card in cards::all() {
        let mac = card.mac.map(|byte| format!("{byte:02x}")).join(":");
        let name = Name { kind, date: volume::date(), number: note.sent.wrapping_add(1) };
        let name = names::on_server(name, card.mac);
        let url = target.url(&name);
        println!("barecount: sending {} bytes to {url} by the card {mac}", report.len());
        let sent = card.up().map_err(UploadError::from).and_then(|()| match target.scheme {
            Scheme::Http => http::put(card.handle, target, &url, report),
            Scheme::Tftp => tftp::write(card.handle, target, &name, report),
        });
        match sent {
            Ok(()) => return Ok(url),
            Err(error) => {
                println!("barecount: card {mac}: {error}");
                result = Err(error);
            }
        }
    }
    result
}

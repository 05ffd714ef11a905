//! A report as one HTML file that needs nothing else: no network, no second file, no script for its text and tables.
//!
//! [`model`] is what a page shows, in plain data; xtask fills it from reports. [`render`] makes the markup, whose every text is
//! escaped by maud. `assets/` has the style and a script of a few kilobytes, which sorts, filters, reads out plots and zooms
//! flame graphs. The page's policy names the script's digest, so that no other script runs, whatever a name holds.
#![warn(missing_docs)]

mod axis;
mod changes;
mod code;
pub mod decimals;
mod figures;
mod flame;
mod heat;
mod item;
mod machine;
mod matrix;
pub mod model;
mod page;
mod plot;
mod spread;
mod table;

pub use page::render;

use model::Tone;

impl Tone {
    /// Its class in the style.
    fn class(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Good => "good",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }

    /// A sign for those who do not see its colour.
    fn sign(self) -> &'static str {
        match self {
            Self::Plain => "•",
            Self::Good => "✓",
            Self::Warn => "!",
            Self::Bad => "✗",
        }
    }
}

/// A coordinate with at most `decimals` decimals, and without trailing zeros: pages have thousands.
fn short(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let text = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_string() } else { text.to_string() }
}

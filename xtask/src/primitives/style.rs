//! Colours, all in one place.

use anstyle::{AnsiColor, Style};

const fn color(color: AnsiColor) -> Style {
    Style::new().fg_color(Some(anstyle::Color::Ansi(color)))
}

/// Failures.
pub const ERROR: Style = color(AnsiColor::Red).bold();
/// Things to know.
pub const WARNING: Style = color(AnsiColor::Yellow).bold();
/// What went well.
pub const GOOD: Style = color(AnsiColor::Green);
/// What is only context.
pub const FAINT: Style = Style::new().dimmed();
/// Headings.
pub const STRONG: Style = Style::new().bold();

/// `text` in `style`.
#[must_use]
pub fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

//! Flame graphs: nested lists whose widths are shares of what is around them, the outermost frame on top.
//!
//! A list needs no script to be drawn and reads well aloud; the script zooms.

use crate::axis::number;
use crate::model::{Flame, Frame};
use crate::short;
use maud::{Markup, html};

/// Frames of one parent below this share of all are drawn as one: nobody could see or hit them.
const LEAST: f64 = 0.0015;

/// The graph.
pub fn render(flame: &Flame) -> Markup {
    let all: u64 = flame.frames.iter().map(|frame| frame.count).sum();
    html! {
        figure.flame {
            figcaption { (flame.title) }
            p.hint hidden { "Choose a frame to enlarge it; Escape shows all again." }
            ul { (frames(&flame.frames, all, all, &flame.unit)) }
        }
    }
}

fn frames(frames: &[Frame], parent: u64, all: u64, unit: &str) -> Markup {
    let mut sorted: Vec<&Frame> = frames.iter().filter(|frame| frame.count > 0).collect();
    sorted.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    let seen = sorted.iter().take_while(|frame| frame.count as f64 >= LEAST * all as f64).count();
    let (shown, hidden) = sorted.split_at(seen);
    let rest: u64 = hidden.iter().map(|frame| frame.count).sum();
    html! {
        @for frame in shown {
            li style=(width(frame.count, parent)) {
                span.f style=(format!("--h:{}", hue(&frame.name))) title=(title(&frame.name, frame.count, all, unit)) {
                    (frame.name) small { " " (number(frame.count as f64)) }
                }
                @if !frame.inner.is_empty() { ul { (self::frames(&frame.inner, frame.count, all, unit)) } }
            }
        }
        @if rest > 0 {
            @let name = format!("{} more", hidden.len());
            li style=(width(rest, parent)) { span.f.rest title=(title(&name, rest, all, unit)) { (name) small { " " (number(rest as f64)) } } }
        }
    }
}

fn width(count: u64, parent: u64) -> String {
    format!("width:{}%", short(100.0 * count as f64 / parent.max(1) as f64, 3))
}

fn title(name: &str, count: u64, all: u64, unit: &str) -> String {
    let share = short(100.0 * count as f64 / all.max(1) as f64, 1);
    format!("{name}: {} {unit}, {share} %", number(count as f64))
}

/// The same for the same name, among the warm colours: FNV-1a, which spreads names that differ in a letter.
fn hue(name: &str) -> u32 {
    let hash = name
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    10 + (hash >> 8) % 50
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x5_widths_are_shares_of_the_frame_around_and_the_smallest_are_one() {
        let frame = |name: &str, count, inner| Frame { name: name.into(), count, inner };
        let small = (0..3).map(|_| frame("tiny", 1, vec![])).collect::<Vec<_>>();
        let inner = vec![frame("a", 1000, small), frame("<b>", 3000, vec![])];
        let flame = Flame {
            title: "t".into(),
            unit: "samples".into(),
            frames: vec![frame("all", 4000, inner)],
        };
        let text = render(&flame).into_string();
        for part in [
            "width:100%",
            "width:25%",
            "width:75%",
            "3 more",
            "width:0.3%",
            "&lt;b&gt;: 3000 samples, 75 %",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.find("&lt;b&gt;") < text.find(">a<"), "the widest comes first: {text}");
        assert!(!text.contains("tiny"));
    }
}

//! What a document in Markdown links to, and what can be linked to in it.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::BTreeSet;

/// The targets of all links and pictures that are files: no addresses of the network, and no paths of Rust, as documents have that are a
/// crate's documentation too.
pub(super) fn links(text: &str) -> Vec<String> {
    let target = |event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url),
        _ => None,
    };
    let is_address =
        |link: &str| link.contains("::") || link.contains("://") || link.starts_with("mailto:");
    let links = Parser::new_ext(text, Options::ENABLE_TABLES).filter_map(target);
    links.filter(|link| !is_address(link)).map(|link| link.to_string()).collect()
}

/// The anchors of all headings, as mdBook and GitHub make them: lower case, blanks as hyphens, without other signs; a
/// second heading of the same text has `-1` after it.
pub(super) fn anchors(text: &str) -> BTreeSet<String> {
    let (mut all, mut heading) = (BTreeSet::new(), None::<String>);
    for event in Parser::new(text) {
        match (event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), heading) => *heading = Some(String::new()),
            (Event::Text(text) | Event::Code(text), Some(heading)) => heading.push_str(&text),
            (Event::End(TagEnd::Heading(_)), heading) => {
                let anchor = anchor(&heading.take().unwrap_or_default());
                let numbered = (1..).map(|number| format!("{anchor}-{number}"));
                let mut names = std::iter::once(anchor.clone()).chain(numbered);
                let free = names.find(|name| !all.contains(name));
                all.extend(free);
            }
            _ => {}
        }
    }
    all
}

fn anchor(heading: &str) -> String {
    let kept = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c => c.is_alphanumeric().then(|| c.to_ascii_lowercase()),
    };
    heading.trim().chars().filter_map(kept).collect()
}

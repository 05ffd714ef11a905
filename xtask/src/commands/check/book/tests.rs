use super::*;

fn documents(all: &[(&str, &str)]) -> Documents {
    all.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_string())).collect()
}

fn dead(all: &[(&str, &str)]) -> Vec<String> {
    let documents = documents(all);
    let exists = |path: &Path| documents.contains_key(path) || path == Path::new("docs/a.png");
    dead_links(&documents, &exists)
}

#[test]
fn a_link_leads_to_a_file_and_a_heading() {
    let page = "# One thing, `two` things!\n\n# Twice\n\n# Twice\n";
    let good = "[a](guide/page.md) [b](guide/page.md#one-thing-two-things) ![c](a.png)\n\
        [d](#here) [e](https://example.org/no.md) [f](guide/page.md#twice-1) [g](crate::Type)\n\n# Here\n";
    assert_eq!(dead(&[("docs/x.md", good), ("docs/guide/page.md", page)]), [""; 0]);
    for (link, why) in [
        ("guide/other.md", "leads to no file"),
        ("guide/page.md#three", "leads to no heading"),
        ("#nowhere", "leads to no heading"),
        ("guide/page.md#twice-2", "leads to no heading"),
        ("../../outside.md", "leads to no file"),
        ("../README.md", "points outside the book"),
    ] {
        let text = format!("| a |\n| --- |\n| [b]({link}) |\n");
        let all = [("docs/x.md", &*text), ("docs/guide/page.md", page), ("README.md", "")];
        assert_eq!(dead(&all), [format!("docs/x.md: `{link}` {why}")]);
    }
    // In a block it is an example.
    assert_eq!(dead(&[("README.md", "```\n[a](b.md)\n```\n")]), [""; 0]);
}

#[test]
fn the_summary_names_every_page_once() {
    let missing = |summary: &str| {
        let page = ("docs/guide/page.md", "");
        unlisted(&documents(&[("docs/SUMMARY.md", summary), page, ("README.md", "")]))
    };
    assert_eq!(missing("- [Page](guide/page.md)\n"), [""; 0]);
    assert_eq!(missing("# Summary\n"), ["docs/SUMMARY.md: docs/guide/page.md is missing"]);
    let twice = "- [Page](guide/page.md)\n- [Page](./guide/page.md)\n";
    assert_eq!(missing(twice), ["docs/SUMMARY.md: `./guide/page.md` is listed twice"]);
    assert_eq!(unlisted(&documents(&[])), ["there is no docs/SUMMARY.md"]);
}

//! Reports as one HTML file, in a browser: what a reader sees, does and hears of them.

mod hostile;
mod pictures;
mod reader;

use qemu_tests::browser::Browser;
use qemu_tests::{Called, skip, tree, xtask, xtask_in};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use xtask::commands::test::has;
use xtask::setup::{Need, axe};

/// Widths of a telephone, a window and a large screen.
const WIDTHS: [u32; 3] = [400, 1200, 2400];

/// Two tasks on each of two processors, and a snippet on both.
const TWO_PROCESSORS: &str = r#"name = "two processors"

[[count]]
name = "two tasks, two processors"
events = ["instructions:u", "branches:u"]

[[count.task]]
name = "first"
asm = "imul rax, rax; mov rdx, [r14]"
turns = 2_000
ring = 3

[[count.task]]
name = "second"
asm = "add rax, 1; jmp 2f; 2: nop"
turns = 3_000
ring = 3
cpu = 1

[[processors]]
name = "adds"
asm = "add rax, rbx"
events = ["instructions"]
"#;

/// A job of so many snippets.
fn many(count: usize) -> String {
    let mut job = format!("name = \"{count} snippets\"\n");
    for number in 0..count {
        let code = ["add rax, rbx", "imul rax, rax", "mov rcx, [r14]", "xor esi, esi"][number % 4];
        // Writing to a String does not fail.
        let _ = write!(job, "[[snippet]]\nname = \"snippet {number}: {code}\"\nasm = \"{code}\"\n");
    }
    job
}

fn job(name: &str) -> String {
    let file = tree().root().join("xtask/jobs").join(name);
    fs::read_to_string(file).expect("a job of ours")
}

/// Runs a job and returns the page that comes of it.
fn page(folder: &Path, name: &str, job: &str) -> PathBuf {
    let name = name.trim_end_matches(".toml");
    let [file, out] = ["toml", "html"].map(|ending| format!("{name}.{ending}"));
    fs::write(folder.join(&file), job).unwrap();
    let line = ["run", &file, "--format", "html", "--out", &out];
    let called = xtask(folder, &[&line[..], &["--timeout", "300"]].concat());
    assert_eq!(called.code, 0, "{name}: {called:#?}");
    folder.join(out)
}

/// Calls the host tool with baselines in a folder of their own.
fn call(folder: &Path, arguments: &[&str]) -> Called {
    let baselines = folder.join("baselines");
    xtask_in(folder, arguments, &[("BARECOUNT_BASELINES", baselines.as_os_str())])
}

/// A comparison of which one figure got worse, one better, and one is the same.
fn comparison(folder: &Path) -> PathBuf {
    for (name, counts) in
        [("old", ["add rax, 1", "nop; nop", "nop"]), ("new", ["add rax, 1; nop", "nop", "nop"])]
    {
        let snippet = |(name, code): (&str, &str)| {
            format!("[[snippet]]\nname = \"{name}\"\nasm = \"{code}\"\n")
        };
        let job: String =
            ["grows", "shrinks", "stays"].into_iter().zip(counts).map(snippet).collect();
        fs::write(folder.join("compared.toml"), job).unwrap();
        let called = call(folder, &["run", "compared.toml", "--save-baseline", name]);
        assert_eq!(called.code, 0, "{called:#?}");
    }
    let called =
        call(folder, &["compare", "old", "new", "--format", "html", "--out", "compared.html"]);
    assert_eq!(called.code, 1, "something got worse: {called:#?}");
    // A run that is compared as it ends has the same on its page.
    let called = call(
        folder,
        &["run", "compared.toml", "--baseline", "old", "--format", "html", "--out", "run.html"],
    );
    assert_eq!(called.code, 1, "{called:#?}");
    let [page, own] =
        ["compared.html", "run.html"].map(|name| fs::read_to_string(folder.join(name)).unwrap());
    assert_eq!(changes(&own), changes(&page));
    folder.join("compared.html")
}

/// The part of a page that says what changed.
fn changes(page: &str) -> &str {
    let from = page.find("id=\"changes\"").expect("what changed");
    let rest = &page[from..];
    &rest[..rest.find("</section>").expect("its end")]
}

/// Looks at a page in both themes and every width: nothing is complained of, nothing but tables scrolls sideways.
fn looks_right(browser: &mut Browser, page: &Path) {
    for dark in [false, true] {
        browser.open(page, WIDTHS[1], dark);
        for width in WIDTHS {
            browser.resize(width);
            let over = browser.evaluate("document.documentElement.scrollWidth - innerWidth");
            assert_eq!(over, 0, "{} is wider than {width} pixels", page.display());
            pictures::keep(browser, page, &format!("{width}{}", if dark { "-dark" } else { "" }));
        }
        everybody_can_read(browser, page);
    }
    assert_eq!(browser.complaints(), Vec::<String>::new(), "{}", page.display());
}

/// axe-core finds nothing, with all items open.
fn everybody_can_read(browser: &mut Browser, page: &Path) {
    let Some(script) = axe::script() else {
        eprintln!("skipped: axe-core is not here: npm is missing");
        return;
    };
    browser.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))");
    browser.evaluate(&format!("{};0", fs::read_to_string(script).unwrap()));
    let found = browser.evaluate(
        "axe.run(document, { resultTypes: ['violations'] }).then((all) => all.violations.map((one) => \
         one.id + ': ' + one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(' ')).join('\\n'))",
    );
    assert_eq!(found, "", "{}", page.display());
}

#[test]
fn x5_the_html_of_the_tour_of_samples_of_two_processors_and_of_a_comparison_is_shown_right() {
    if !has(Need::Chromium) {
        skip!("there is no Chromium");
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let tour = folder.join("tour.html");
    let called =
        xtask(folder, &["run", "--format", "html", "--out", "tour.html", "--timeout", "300"]);
    assert_eq!(called.code, 0, "{called:#?}");
    let mut browser = Browser::start();
    let jobs = [
        ("sampling.toml", "figure.flame"),
        ("history.toml", "figure.plot"),
        ("conformance.toml", ".family a"),
    ];
    let mut pages = vec![(tour, "table.code"), (comparison(folder), "td.delta.bad")];
    pages.push((page(folder, "two", TWO_PROCESSORS), "td.bar"));
    for (name, shows) in jobs {
        pages.push((page(folder, name, &job(name)), shows));
    }
    for (page, shows) in pages {
        looks_right(&mut browser, &page);
        let shown = browser.evaluate(&format!("document.querySelectorAll('{shows}').length"));
        assert!(shown.as_u64() > Some(0), "{} has no {shows}", page.display());
    }
}

/// Each line of the guide's block writes the page that it names.
#[test]
fn x5_the_guides_commands_write_what_they_name() {
    let guide = fs::read_to_string(tree().root().join("docs/guide/html.md")).unwrap();
    let block = guide.split("```").nth(1).expect("a block");
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let job = "[[snippet]]\nname = \"a\"\nasm = \"add rax, rbx\"\n";
    fs::write(folder.join("job.toml"), job).unwrap();
    for name in ["old.json", "new.json"] {
        let called = xtask(folder, &["run", "job.toml", "--format", "json", "--out", name]);
        assert_eq!(called.code, 0, "{called:#?}");
    }
    let mut written = Vec::new();
    for line in block.lines().filter(|line| line.starts_with("cargo xtask ")) {
        let words: Vec<&str> =
            line.split(" #").next().unwrap_or(line).split_whitespace().skip(2).collect();
        let called = xtask(folder, &words);
        assert_eq!(called.code, 0, "{line}: {called:#?}");
        let out = words.last().expect("a file").to_string();
        assert!(folder.join(&out).is_file(), "{line}");
        written.push(out);
    }
    assert_eq!(written, ["tour.html", "report.json", "report.html", "both.html", "changes.html"]);
    let both = fs::read_to_string(folder.join("both.html")).unwrap();
    assert!(both.contains(">old<") && both.contains(">new<"), "{both}");
    // Nothing that is no report becomes a page, and none is overwritten.
    fs::write(folder.join("text.txt"), "text").unwrap();
    xtask(folder, &["report", "text.txt"]).fails_with(2, &["text.txt is not a report"]);
    xtask(folder, &["report", "old.json", "--out", "old.json"]).fails_with(2, &["would overwrite"]);
    xtask(folder, &["report", "gone.json"]).fails_with(2, &["cannot read gone.json"]);
}

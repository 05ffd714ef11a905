//! Names that would be markup or scripts.

use super::looks_right;
use qemu_tests::browser::Browser;
use qemu_tests::{skip, xtask};
use serde_json::Value;
use std::fs;
use xtask::commands::test::has;
use xtask::setup::Need;

const JOB: &str = r#"name = "</title><script>alert(1)</script>"

[[snippet]]
name = "<script>alert(1)</script>"
asm = "nop"

[[snippet]]
name = "\" onmouseover=alert(2) '><img src=x onerror=alert(3)>"
asm = "nop"

[[run]]
name = "emoji"
[[run.task]]
name = "PLACE"
asm = "nop"
turns = 100
"#;

#[test]
fn x5_a_name_that_is_a_script_and_a_task_of_200_emoji_do_no_harm() {
    if !has(Need::Chromium) {
        skip!("there is no Chromium");
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("evil.toml"), JOB).unwrap();
    let called = xtask(folder, &["run", "evil.toml", "--format", "json", "--out", "evil.json"]);
    assert_eq!(called.code, 0, "{called:#?}");
    // More than a job may have: the report may come from anybody.
    let emoji = "\u{1f600}".repeat(200);
    let text = fs::read_to_string(folder.join("evil.json")).unwrap().replace("PLACE", &emoji);
    fs::write(folder.join("evil.json"), text).unwrap();
    let called = xtask(folder, &["report", "evil.json"]);
    assert_eq!(called.code, 0, "{called:#?}");
    let mut browser = Browser::start();
    let page = folder.join("evil.html");
    looks_right(&mut browser, &page);
    let scripts = browser.evaluate("document.scripts.length");
    let pictures = browser.evaluate("document.images.length");
    assert_eq!((scripts, pictures), (Value::from(1), Value::from(0)));
    let text = browser.evaluate("document.body.innerText");
    let text = text.as_str().unwrap();
    assert!(text.contains("<script>alert(1)</script>") && text.contains(&emoji), "{text}");
    // Even if a name became a script, the page's policy would not let it run.
    browser.evaluate(
        "const evil = document.createElement('script'); evil.textContent = 'document.title = \"harm\"'; document.body.append(evil)",
    );
    assert_ne!(browser.evaluate("document.title"), "harm");
    assert!(browser.complaints().iter().any(|one| one.contains("Content Security Policy")));
}

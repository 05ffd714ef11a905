//! Pages as pictures for those who look at them, and as they are printed.

use super::{many, page};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use qemu_tests::browser::Browser;
use qemu_tests::skip;
use std::path::Path;
use xtask::commands::test::has;
use xtask::setup::Need;

/// Pixels of a page in a picture, from its top on.
const HEIGHT: u32 = 1600;
/// CSS pixels of A4 paper's width: 96 in 25.4 mm.
const PAPER: u32 = 794;

/// Keeps a picture of a page where the variable `BARECOUNT_SCREENS` names a folder: for the documents.
pub fn keep(browser: &mut Browser, page: &Path, view: &str) {
    if let Some(folder) = std::env::var_os("BARECOUNT_SCREENS") {
        let name = page.file_stem().expect("a name").to_string_lossy();
        let png = BASE64_STANDARD.decode(browser.picture(HEIGHT)).expect("base64");
        let path = Path::new(&folder).join(format!("{name}-{view}.png"));
        std::fs::write(path, png).expect("the picture can be written");
    }
}

#[test]
fn x5_a_page_is_printed_with_everything_open_and_light() {
    if !has(Need::Chromium) {
        skip!("there is no Chromium");
    }
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), "printed", &many(60));
    let mut browser = Browser::start();
    browser.open(&page, PAPER, true);
    let open = "[...document.querySelectorAll('details')].filter((one) => one.open).length";
    let before = browser.evaluate(open);
    browser
        .evaluate(&format!("addEventListener('beforeprint', () => (window.printed = {open})); 0"));
    let pdf = BASE64_STANDARD.decode(browser.print()).expect("base64");
    assert!(pdf.starts_with(b"%PDF-"));
    let all = browser.evaluate("document.querySelectorAll('details').length");
    assert_eq!(browser.evaluate("window.printed"), all, "what is closed is not printed");
    assert_ne!(before, all, "nothing was closed");
    assert_eq!(browser.evaluate(open), before, "it is closed again");

    browser.on_paper(true);
    keep(&mut browser, &page, "paper");
    let color = "getComputedStyle(document.documentElement).getPropertyValue('--bg').trim()";
    assert_eq!(browser.evaluate(color), "#fff", "dark paper");
    let tools =
        "[...document.querySelectorAll('nav, .tools')].filter((one) => one.offsetParent).length";
    assert_eq!(browser.evaluate(tools), 0, "what only a screen needs is printed");
    let over = browser.evaluate("document.documentElement.scrollWidth - innerWidth");
    assert_eq!(over, 0, "it is wider than the paper");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

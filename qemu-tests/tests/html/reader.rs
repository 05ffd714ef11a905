//! What a reader does with a page: sorts, filters, follows links, reads values off plots, by pointer, by keys, without scripts.

use super::{everybody_can_read, job, many, page};
use qemu_tests::browser::Browser;
use qemu_tests::skip;
use std::fs;
use xtask::commands::test::has;
use xtask::setup::Need;

/// Rows of the table of figures that are shown.
const SHOWN: &str = "document.querySelectorAll('table.figures tbody tr:not([hidden])').length";

fn type_filter(browser: &mut Browser, text: &str) {
    browser.evaluate(&format!(
        "(() => {{ const field = document.querySelector('#figures input[type=search]'); field.value = '{text}'; \
         field.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()"
    ));
}

#[test]
fn x5_a_thousand_items_are_small_and_sort_and_filter_at_once() {
    if !has(Need::Chromium) {
        skip!("there is no Chromium");
    }
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), "many", &many(1000));
    let bytes = fs::metadata(&page).unwrap().len();
    assert!(bytes < 1_500_000, "{bytes} bytes");
    let mut browser = Browser::start();
    browser.open(&page, 1200, false);
    assert_eq!(browser.evaluate(SHOWN), 1000);
    type_filter(&mut browser, "imul 77");
    // 77, 177 and so on are odd places, as are those of imul: 277, 377, 77x with x in 1, 3, 5, 7, 9, of which a fourth.
    let expected =
        (0..1000).filter(|number| number % 4 == 1 && number.to_string().contains("77")).count();
    assert_eq!(browser.evaluate(SHOWN), expected);
    let said = browser.evaluate("document.querySelector('#figures output').textContent");
    assert_eq!(said, format!("{expected} of 1000 rows"));
    type_filter(&mut browser, "");
    assert_eq!(browser.evaluate(SHOWN), 1000);
    let sort = "document.querySelector('table.figures thead th button').click(); \
                [...document.querySelectorAll('table.figures tbody tr')].slice(0, 3).map((row) => row.cells[0].textContent).join()";
    assert_eq!(browser.evaluate(sort), "0,1,2");
    assert_eq!(browser.evaluate(sort), "999,998,997");
    assert_eq!(
        browser.evaluate("document.querySelector('table.figures th').getAttribute('aria-sort')"),
        "descending"
    );
    // A link leads to its item, and opens it.
    browser.evaluate("document.querySelector('a[href=\"#i500\"]').click()");
    browser.evaluate("new Promise((done) => setTimeout(done, 50))");
    assert_eq!(browser.evaluate("document.getElementById('i500').open"), true);
    let ready =
        browser.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd");
    eprintln!("1,000 items: {bytes} bytes; ready after {ready} ms");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn x5_plots_and_flame_graphs_are_read_by_pointer_and_by_keys() {
    if !has(Need::Chromium) {
        skip!("there is no Chromium");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut browser = Browser::start();
    browser.open(&page(folder.path(), "history", &job("history.toml")), 1200, false);
    let press = |key: &str| {
        format!(
            "(() => {{ const plot = document.querySelector('.pl'); plot.focus(); plot.dispatchEvent(new KeyboardEvent('keydown', \
             {{ key: '{key}', bubbles: true }})); return plot.getAttribute('aria-valuetext'); }})()"
        )
    };
    let first = browser.evaluate(&press("Home"));
    assert_eq!(first, "cycles from the snippet's beginning on 1 · instructions 1 · branches 0");
    let second = browser.evaluate(&press("ArrowRight"));
    assert_eq!(second, "cycles from the snippet's beginning on 2 · instructions 1 · branches 1");
    let shown = browser.evaluate("document.querySelector('.pl .tip').hidden");
    assert_eq!(shown, false);
    let pointed = browser.evaluate(
        "(() => { const plot = document.querySelector('.pl'), box = plot.getBoundingClientRect(); \
         plot.dispatchEvent(new PointerEvent('pointermove', { clientX: box.right - 1, clientY: box.top + 5 })); \
         return plot.querySelector('.tip').textContent; })()",
    );
    assert!(
        pointed.as_str().unwrap().starts_with("cycles from the snippet's beginning on 13 "),
        "{pointed}"
    );
    browser.open(&page(folder.path(), "sampling", &job("sampling.toml")), 1200, false);
    let zoom = browser.evaluate(
        "(() => { const frame = [...document.querySelectorAll('figure.flame .f')].find((one) => one.textContent.startsWith('multiply and miss:hash')); \
         const before = frame.offsetWidth; frame.focus(); \
         frame.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true })); const after = frame.offsetWidth; \
         frame.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true })); \
         return [before * 2 < after, frame.offsetWidth === before, frame.getAttribute('role')].join(); })()",
    );
    assert_eq!(zoom, "true,true,button");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn x5_without_scripts_text_and_tables_are_all_there() {
    if !has(Need::Chromium) {
        skip!("there is no Chromium");
    }
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), "sampling", &job("sampling.toml"));
    let mut browser = Browser::start();
    browser.scripts(false);
    browser.open(&page, 1200, false);
    assert_eq!(
        browser.evaluate("document.documentElement.className"),
        "",
        "the script did not run"
    );
    let text = browser.evaluate("document.body.innerText");
    let text = text.as_str().unwrap();
    for part in [
        "How far to trust these figures",
        "Counts of an emulated PMU",
        "What became of the overflows",
        "imul rax, rax",
        "143 645",
    ] {
        assert!(text.replace('\u{202f}', " ").contains(part), "{part}: {text}");
    }
    // No control is there that would do nothing.
    assert_eq!(browser.evaluate("document.querySelectorAll('input, select, button').length"), 0);
    browser.scripts(true);
    everybody_can_read(&mut browser, &page);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

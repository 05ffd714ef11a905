//! Builds the guide with mdBook's own library: `guide-builder BOOK OUT`. It prints what mdBook warns of; the caller takes any
//! line as a failure, because mdBook goes on where a file that a page includes is missing.

use anyhow::{Context, ensure};
use mdbook_driver::MDBook;
use std::path::PathBuf;
use tracing_subscriber::filter::LevelFilter;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [book, out] = &arguments[..] else { anyhow::bail!("usage: guide-builder BOOK OUT") };
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::WARN)
        .without_time()
        .with_writer(std::io::stderr)
        .init();
    let mut guide = MDBook::load(book).with_context(|| format!("{}", book.display()))?;
    guide.config.build.build_dir = out.canonicalize().unwrap_or_else(|_| out.clone());
    let pages = guide
        .iter()
        .filter(|item| matches!(item, mdbook_driver::book::BookItem::Chapter(_)))
        .count();
    guide.build()?;
    ensure!(out.join("index.html").is_file(), "{}: no index.html", out.display());
    println!("{pages} pages");
    Ok(())
}

//! The project's own figures.
//!
//! Wall times on shared machines are noise, so every boot time is given together with that of a kernel that only
//! says hello, booted by the same loader in turn with ours. Everything else is counted.

mod answer;
mod boots;
mod counting;
mod pmu;
mod report;
mod snippets;
mod switches;

pub use report::{Figure, render};
pub use snippets::job_text;

use crate::Result;
use crate::build::Tree;
use crate::cli::{BenchPart, Boot};
use clap::ValueEnum;

/// Measures everything, or the parts in `only`; where `brief`, counting's jobs are small.
///
/// # Errors
/// Something does not build or boot.
pub fn measure(tree: &Tree, boots: u32, only: &[BenchPart], brief: bool) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for part in BenchPart::value_variants() {
        if only.is_empty() || only.contains(part) {
            figures.extend(measure_part(tree, (boots, brief), *part)?);
        }
    }
    Ok(figures)
}

fn measure_part(tree: &Tree, (count, brief): (u32, bool), part: BenchPart) -> Result<Vec<Figure>> {
    match part {
        BenchPart::Sizes => sizes(tree),
        BenchPart::Answer => answer::measure(tree, count),
        BenchPart::Boots => {
            let hello = tree.build_guest("hello")?;
            tree.build_uefi_pmu()?;
            let ways = [Boot::Direct, Boot::Bios, Boot::Uefi].into_iter();
            let figures = ways.map(|way| boots::measure(tree, &hello, way, count));
            Ok(figures.collect::<Result<Vec<_>>>()?.concat())
        }
        BenchPart::Snippets => snippets::measure(tree),
        BenchPart::Pmu => pmu::measure(tree),
        BenchPart::Counting => counting::measure(tree, brief),
        BenchPart::Linux => counting::measure_linux(tree),
        BenchPart::Switches => switches::measure(tree),
    }
}

fn sizes(tree: &Tree) -> Result<Vec<Figure>> {
    let folder = boots::scratch()?;
    let staged = boots::one_snippet()?;
    crate::commands::run::stage(tree, &staged.bytes, Boot::Bios, folder.path())?;
    let size = |path: &std::path::Path| {
        path.metadata().map(|data| data.len()).map_err(crate::Failure::file("read", path))
    };
    Ok(vec![
        Figure::count("size of the kernel", size(&tree.kernel())? as f64, "bytes"),
        Figure::count("size of the direct loader", size(&tree.direct())? as f64, "bytes"),
        Figure::count("size of an image", size(&folder.path().join("disk.img"))? as f64, "bytes"),
    ])
}

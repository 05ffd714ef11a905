//! The project's own figures.
//!
//! Wall times on shared machines are noise, so every boot time stands beside that of a kernel that only
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
use crate::cli::Boot;

/// Measures everything.
///
/// # Errors
/// Something does not build or boot.
pub fn measure(tree: &Tree, boots: u32) -> Result<Vec<Figure>> {
    let hello = tree.build_guest("hello")?;
    tree.build_uefi_pmu()?;
    let mut figures = sizes(tree)?;
    figures.push(answer::measure(tree, boots)?);
    for boot in [Boot::Direct, Boot::Bios, Boot::Uefi] {
        figures.extend(boots::measure(tree, &hello, boot, boots)?);
    }
    figures.extend(snippets::measure(tree)?);
    figures.extend(pmu::measure(tree)?);
    figures.extend(counting::measure(tree)?);
    figures.extend(switches::measure(tree)?);
    Ok(figures)
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

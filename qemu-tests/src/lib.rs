//! What the tests in `tests/` share: the built project, a run in QEMU, a call of the host tool.
#![warn(missing_docs)]

pub mod browser;
mod identity;
pub mod lab;
pub mod monitor;
pub mod old_qemu;
mod program;
mod pty;
mod run;
pub mod servers;
pub mod stick;
pub mod stock_linux;

pub use identity::is_model;
pub use program::{Called, Started, timed_xtask, xtask, xtask_in};
pub use pty::pseudo_terminal;
pub use run::{Guest, Ran, direct};

use pmu_model::Model;
use std::sync::OnceLock;
use xtask::build::Tree;
use xtask::cli::{Boot, Counting};
use xtask::commands::run::prepare;
use xtask::setup::Toolchain;

/// The project, built. `cargo xtask test` builds it before the tests start and says so; a test that is run
/// by itself builds it here.
///
/// # Panics
/// If it does not build.
#[must_use]
pub fn tree() -> &'static Tree {
    static TREE: OnceLock<Tree> = OnceLock::new();
    TREE.get_or_init(|| {
        if std::env::var_os("BARECOUNT_PREPARED").is_some() {
            let tree = Toolchain::find().and_then(Tree::new);
            return tree.unwrap_or_else(|error| panic!("{error}"));
        }
        let tree = prepare(&[Boot::Direct, Boot::Bios, Boot::Uefi])
            .unwrap_or_else(|failure| panic!("{failure}"));
        tree.build_faulty_pmu().unwrap_or_else(|error| panic!("{error}"));
        tree.build_plugin().unwrap_or_else(|error| panic!("{error}"));
        tree
    })
}

/// Both ways in which an emulated PMU counts; one of them where the environment names it.
///
/// # Panics
/// If the environment names another one.
#[must_use]
pub fn both_ways() -> Vec<Counting> {
    match Counting::from_environment().unwrap_or_else(|wrong| panic!("{wrong}")) {
        Counting::Auto => vec![Counting::Plugin, Counting::Stepping],
        one => vec![one],
    }
}

/// The models on which tests of every model count by stepping, too: a version of PMU without a status register, one with all
/// that counts by model, architectural PEBS, and AMD's first and last.
pub const STEPPED: [Model; 5] =
    [Model::Core2, Model::Skylake, Model::CougarCove, Model::K10, Model::Zen4];

/// [`both_ways`] on some models, the plugin alone on the others: stepping takes far longer. The soak tests have the others.
///
/// # Panics
/// As [`both_ways`].
#[must_use]
pub fn ways_on(model: Model) -> Vec<Counting> {
    let mut ways = both_ways();
    if !STEPPED.contains(&model) {
        ways.truncate(1);
    }
    ways
}

/// Ends a test that cannot run here, with the reason.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)*) => {{
        eprintln!("skipped: {}", format!($($reason)*));
        return;
    }};
}

//! Hybrid parts: performance and efficient cores have different events, and mixing them is refused.

use crate::aliases;
use crate::cpu::{CORE_TYPE_ATOM, CORE_TYPE_CORE};
use crate::request::{Item, Request};
use crate::tables::{Core, fold};
use alloc::string::{String, ToString};
use thiserror::Error;

/// Requests of one list that mean different cores.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "{first} is meant for {first_cores} and {second} for {second_cores}: the events of different \
     cores cannot be counted by one; make two lists"
)]
#[allow(missing_docs, reason = "the fields are named in the message")]
pub struct MixedCores {
    pub first: String,
    pub first_cores: String,
    pub second: String,
    pub second_cores: String,
    /// Where the second one starts in the list.
    pub at: usize,
}

/// Makes sure that all requests which name their cores name the same ones.
///
/// # Errors
/// [`MixedCores`] with the first two that do not.
pub fn check_list(items: &[Item]) -> Result<(), MixedCores> {
    let mut first: Option<(&Request, &str)> = None;
    for request in items.iter().flat_map(|item| &item.requests) {
        let Some(pmu) = request.pmu.as_ref().filter(|pmu| !is_any(&pmu.name)) else {
            continue;
        };
        match first {
            Some((other, cores)) if !aliases::same(cores, &pmu.name) => {
                return Err(MixedCores {
                    first: other.text.clone(),
                    first_cores: cores.to_string(),
                    second: request.text.clone(),
                    second_cores: pmu.name.clone(),
                    at: request.at,
                });
            }
            _ => first = Some((request, &pmu.name)),
        }
    }
    Ok(())
}

/// `cpu` is whatever core the request runs on.
fn is_any(pmu: &str) -> bool {
    fold::same(pmu, "cpu")
}

/// Whether a request that names these cores may be counted on this one.
pub(crate) fn fits(pmu: &str, core: Option<&Core<'_>>) -> bool {
    if is_any(pmu) {
        return true;
    }
    let Some(core) = core else {
        return false;
    };
    let core_type = match () {
        () if fold::same(pmu, "cpu_core") => CORE_TYPE_CORE,
        () if fold::same(pmu, "cpu_atom") => CORE_TYPE_ATOM,
        () => {
            let role = |role: &str| !role.is_empty() && fold::same(pmu, role);
            return aliases::same(pmu, core.name()) || core.processors().any(|p| role(p.role));
        }
    };
    core.processors().any(|processor| processor.core_type == Some(core_type))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse_list;

    #[test]
    fn i11_lists_that_mix_cores_are_refused() {
        let check = |text| check_list(&parse_list(text).unwrap());
        assert_eq!(check("cycles,cpu_core/event=0xc0/,cpu/event=1/,cpu-core/event=2/"), Ok(()));
        // Other names of the same cores.
        assert_eq!(check("skx::a,skylakex::b"), Ok(()));
        assert_eq!(check("alderlake::a,gracemont::b"), Ok(()));
        let error = check("cpu_core/event=0xc0/,{cycles,gracemont::inst_retired.any}").unwrap_err();
        assert_eq!(error.at, 29);
        let text = error.to_string();
        assert!(text.contains("cpu_core/event=0xc0/ is meant for cpu_core"), "{text}");
        assert!(text.contains("gracemont::inst_retired.any for gracemont"), "{text}");
    }

    #[cfg(feature = "pack")]
    #[test]
    fn i11_a_kind_of_core_fits_the_tables_of_its_processors() {
        use crate::test_support::core;
        let fit = |pmu, table: &str| fits(pmu, Some(&core(table)));
        for (pmu, big, small) in [
            ("cpu", true, true),
            ("cpu_core", true, false),
            ("cpu_atom", false, true),
            ("goldencove", true, false),
            ("gracemont", false, true),
        ] {
            assert_eq!((fit(pmu, "goldencove"), fit(pmu, "gracemont")), (big, small), "{pmu}");
        }
        assert!(fits("cpu", None) && !fits("cpu_core", None));
    }
}

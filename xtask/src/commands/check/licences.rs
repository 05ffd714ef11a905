//! Whether every dependency's licence is one of those that `deny.toml` allows.

use crate::process::stdout_of;
use crate::setup::toolchain::cargo;
use serde::Deserialize;
use spdx::{Expression, LicenseReq};
use std::path::Path;
use std::process::Command;

#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
}

/// Looks at every package that cargo knows of here.
pub(super) fn check(root: &Path) -> Result<(), String> {
    let file = root.join("deny.toml");
    let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let deny: Deny = toml::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut command = Command::new(cargo());
    command.current_dir(root).args(["metadata", "--format-version", "1", "--locked"]);
    let json = stdout_of(&mut command).ok_or("cargo metadata failed")?;
    let metadata: Metadata = serde_json::from_str(&json).map_err(|e| e.to_string())?;
    let refused: Vec<String> = metadata
        .packages
        .iter()
        .filter(|package| !allowed(package.license.as_deref(), &deny.licenses.allow))
        .map(|p| format!("{} {}: {}", p.name, p.version, p.license.as_deref().unwrap_or("none")))
        .collect();
    if refused.is_empty() { Ok(()) } else { Err(refused.join("\n")) }
}

/// Whether the expression can be met with the allowed licences. `MIT/Apache-2.0` is how crates wrote `OR`
/// once; a licence with an exception is allowed where the licence is.
fn allowed(license: Option<&str>, allow: &[String]) -> bool {
    let Some(text) = license else { return false };
    let Ok(expression) = Expression::parse(&text.replace('/', " OR ")) else { return false };
    let is_allowed = |required: &LicenseReq| {
        required.license.id().is_some_and(|id| allow.iter().any(|name| name == id.name))
    };
    expression.evaluate(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::allowed;

    #[test]
    fn expressions_are_met_or_not() {
        let allow = ["MIT".to_string(), "Zlib".to_string()];
        for good in ["MIT", "GPL-3.0-only OR MIT", "MIT/Apache-2.0", "MIT AND Zlib"] {
            assert!(allowed(Some(good), &allow), "{good}");
        }
        for bad in [Some("GPL-3.0-only"), Some("MIT AND GPL-2.0-only"), Some("nonsense"), None] {
            assert!(!allowed(bad, &allow), "{bad:?}");
        }
    }
}

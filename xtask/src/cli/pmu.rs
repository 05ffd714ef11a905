//! `--pmu`: the values are the emulated PMU's own list of models.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use pmu_model::Model;
use std::fmt;
use std::str::FromStr;

/// Which PMU the guest is to have.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Pmu {
    /// The best that can be had.
    #[default]
    Auto,
    /// The host's own, through KVM.
    Host,
    /// No PMU.
    None,
    /// An emulated one.
    Model(Model),
}

/// Every model that has a PMU; the one without is [`Pmu::None`].
pub fn models() -> impl Iterator<Item = Model> {
    Model::ALL.into_iter().filter(|model| *model != Model::None)
}

impl Pmu {
    /// The parser for clap, which knows every value and tells them in help texts and errors.
    pub fn parser() -> impl TypedValueParser<Value = Self> {
        let words = [
            (
                "auto",
                "the host's if KVM offers guests one, else an emulated Skylake, if that can be had",
            ),
            ("host", "the host's, through KVM"),
            ("none", "no PMU"),
        ];
        let words = words.map(|(name, help)| PossibleValue::new(name).help(help));
        let models = models().map(|model| {
            let spec = model.spec();
            let brand = spec.identity.as_ref().map_or("", |identity| identity.brand);
            PossibleValue::new(spec.name).help(format!("emulated: {brand}"))
        });
        let values: Vec<PossibleValue> = words.into_iter().chain(models).collect();
        PossibleValuesParser::new(values).try_map(|name| name.parse::<Self>())
    }
}

impl fmt::Display for Pmu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Host => "host",
            Self::None => "none",
            Self::Model(model) => model.spec().name,
        })
    }
}

impl FromStr for Pmu {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "host" => Ok(Self::Host),
            "none" => Ok(Self::None),
            name => Model::by_name(name)
                .map(Self::Model)
                .ok_or_else(|| format!("`{name}` is no PMU that can be emulated")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back() {
        let values = [Pmu::Auto, Pmu::Host, Pmu::None].into_iter();
        for value in values.chain(models().map(Pmu::Model)) {
            assert_eq!(value.to_string().parse(), Ok(value));
        }
        assert!("z80".parse::<Pmu>().unwrap_err().contains("`z80`"));
        assert_eq!(models().count(), Model::ALL.len() - 1);
    }
}

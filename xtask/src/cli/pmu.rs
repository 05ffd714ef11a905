//! `--pmu`: the values are the emulated PMU's own list of models, and recordings of processors.

use crate::recording::{PREFIX, Recorded};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use pmu_model::mixture::MixtureError;
use pmu_model::uarch::Parameters;
use pmu_model::{Mixture, Model};
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

/// The guest's PMU.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Pmu {
    /// The best available one.
    #[default]
    Auto,
    /// The host's own, through KVM.
    Host,
    /// No PMU.
    None,
    /// An emulated one.
    Emulated(Emulated),
}

/// An emulated PMU.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Emulated {
    /// That of a model.
    Model(Model),
    /// Those of several models, each on some of the processors.
    Mixed(Mixture),
    /// That of a model, with parameters of caches, TLBs and predictor, which live as long as the program.
    Shaped(Model, &'static Parameters),
    /// That of a recorded processor, which lives as long as the program.
    Recorded(&'static Recorded),
}

impl Emulated {
    /// The model whose behaviour it has.
    #[must_use]
    pub fn model(self) -> Model {
        match self {
            Self::Model(model) | Self::Shaped(model, _) => model,
            Self::Mixed(mixture) => mixture.first(),
            Self::Recorded(recorded) => recorded.nearest,
        }
    }

    /// The recorded processor, if it is one.
    #[must_use]
    pub fn recorded(self) -> Option<&'static Recorded> {
        match self {
            Self::Model(_) | Self::Mixed(_) | Self::Shaped(..) => None,
            Self::Recorded(recorded) => Some(recorded),
        }
    }

    /// In words: `skylake`, or the processor, its file and the model.
    #[must_use]
    pub fn what(self) -> String {
        match self {
            Self::Model(model) => model.spec().name.to_string(),
            Self::Mixed(mixture) => mixture.to_string(),
            Self::Shaped(model, parameters) => format!("{},{parameters}", model.spec().name),
            Self::Recorded(recorded) => recorded.what(),
        }
    }
}

/// Every model that has a PMU; the one without is [`Pmu::None`].
pub fn models() -> impl Iterator<Item = Model> {
    Model::ALL.into_iter().filter(|model| *model != Model::None)
}

/// The values that are not emulated PMUs.
const WORDS: [(&str, Pmu, &str); 3] = [
    (
        "auto",
        Pmu::Auto,
        "the host's if KVM offers it to guests, else an emulated Skylake if that is available",
    ),
    ("host", Pmu::Host, "the host's, through KVM"),
    ("none", Pmu::None, "no PMU"),
];

impl Pmu {
    /// The models of the processors, if they are several.
    #[must_use]
    pub fn mixture(self) -> Option<Mixture> {
        match self {
            Self::Emulated(Emulated::Mixed(mixture)) => Some(mixture),
            _ => None,
        }
    }

    /// The parameters of caches, TLBs and predictor, if some are given.
    #[must_use]
    pub fn parameters(self) -> Option<&'static Parameters> {
        match self {
            Self::Emulated(Emulated::Shaped(_, parameters)) => Some(parameters),
            _ => None,
        }
    }

    /// The parser for clap, which shows every value in help texts and errors.
    pub fn parser() -> impl TypedValueParser<Value = Self> {
        let words = WORDS.map(|(name, _, help)| PossibleValue::new(name).help(help));
        let help = "emulated: models of several kinds of core, each with its number of processors: goldencove:2+gracemont:4";
        let mixed = PossibleValue::new("MODEL+MODEL").help(help);
        let help = "emulated: a model with these parameters of caches, TLBs and predictor, which determine the latency of loads: skylake,l1d=24k/6,l2=1m/16,dtlb=64/4";
        let shaped = PossibleValue::new("MODEL,KEY=VALUE").help(help);
        let values = words.into_iter().chain(emulated_values()).chain([mixed, shaped]).collect();
        Parser(values).map(|emulated| match emulated {
            Named::Word(pmu) => pmu,
            Named::Emulated(emulated) => Self::Emulated(emulated),
        })
    }

    /// The parser for an emulated PMU and nothing else.
    pub fn emulated_parser() -> impl TypedValueParser<Value = Emulated> {
        Parser(emulated_values().collect()).try_map(|named| match named {
            Named::Emulated(Emulated::Mixed(_)) => Err("only `run` takes several models"),
            Named::Emulated(Emulated::Shaped(..)) => Err("only `run` takes parameters of caches"),
            Named::Emulated(emulated) => Ok(emulated),
            Named::Word(_) => Err("it is not an emulated PMU"),
        })
    }
}

fn emulated_values() -> impl Iterator<Item = PossibleValue> {
    let models = models().map(|model| {
        let spec = model.spec();
        let brand = spec.identity.as_ref().map_or("", |identity| identity.brand);
        let value = PossibleValue::new(spec.name).help(format!("emulated: {brand}"));
        match model.alias() {
            "" => value,
            alias => value.alias(alias),
        }
    });
    let help = "emulated: the processor of a CPUID dump (cpuid -r, InstLatx64) or of a report, as far as possible";
    models.chain([PossibleValue::new("dump:FILE").help(help)])
}

/// What a value names.
#[derive(Clone, Copy)]
enum Named {
    Word(Pmu),
    Emulated(Emulated),
}

fn mixed(text: &str) -> Result<Named, MixtureError<'_>> {
    let mixture = Mixture::parse(text)?;
    Ok(Named::Emulated(match mixture.is_mixed() {
        true => Emulated::Mixed(mixture),
        false => return Err(MixtureError::Alone(mixture.first())),
    }))
}

/// A model, and the parameters after the first comma.
fn shaped(name: &str, parameters: &str) -> Result<Named, String> {
    let model = Model::by_name(name).filter(|model| *model != Model::None);
    let model = model.ok_or_else(|| format!("there is no model \"{name}\""))?;
    let parameters = Parameters::parse(parameters).map_err(|wrong| wrong.to_string())?;
    Ok(Named::Emulated(Emulated::Shaped(model, Box::leak(Box::new(parameters)))))
}

/// One of the values, or `dump:` and a file, or several models.
#[derive(Clone)]
struct Parser(Vec<PossibleValue>);

impl TypedValueParser for Parser {
    type Value = Named;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Named, clap::Error> {
        let Some(file) = value.to_str().and_then(|text| text.strip_prefix(PREFIX)) else {
            if let Some((name, rest)) = value.to_str().and_then(|text| text.split_once(',')) {
                return shaped(name, rest).map_err(|wrong| {
                    let text = format!("--pmu {name},{rest}: {wrong}\n");
                    clap::Error::raw(ErrorKind::ValueValidation, text).with_cmd(command)
                });
            }
            if let Some(text) = value.to_str().filter(|text| text.contains(['+', ':'])) {
                return mixed(text).map_err(|wrong| {
                    let text = format!("--pmu {text}: {wrong}\n");
                    clap::Error::raw(ErrorKind::ValueValidation, text).with_cmd(command)
                });
            }
            let known = PossibleValuesParser::new(self.0.clone());
            let name = known.parse_ref(command, argument, value)?;
            let word = WORDS.into_iter().find(|(word, _, _)| *word == name);
            return Ok(match (word, Model::by_name(&name)) {
                (Some((_, pmu, _)), _) => Named::Word(pmu),
                (None, Some(model)) => Named::Emulated(Emulated::Model(model)),
                (None, None) => unreachable!("the values are words and models"),
            });
        };
        match Recorded::read(Path::new(file)) {
            Ok(recorded) => Ok(Named::Emulated(Emulated::Recorded(Box::leak(Box::new(recorded))))),
            Err(wrong) => {
                let text = format!("--pmu {}: {wrong}\n", value.display());
                Err(clap::Error::raw(ErrorKind::ValueValidation, text).with_cmd(command))
            }
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().cloned()))
    }
}

impl fmt::Display for Pmu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Host => f.write_str("host"),
            Self::None => f.write_str("none"),
            Self::Emulated(Emulated::Model(model)) => f.write_str(model.spec().name),
            Self::Emulated(Emulated::Mixed(mixture)) => mixture.fmt(f),
            Self::Emulated(Emulated::Shaped(model, parameters)) => {
                write!(f, "{},{parameters}", model.spec().name)
            }
            Self::Emulated(Emulated::Recorded(recorded)) => {
                write!(f, "{PREFIX}{}", recorded.file.display())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Pmu, String> {
        let parser = Pmu::parser();
        let parsed = parser.parse_ref(&clap::Command::new("x"), None, OsStr::new(text));
        parsed.map_err(|error| error.to_string())
    }

    #[test]
    fn every_name_leads_back() {
        let values = [Pmu::Auto, Pmu::Host, Pmu::None].into_iter();
        let models = models().map(|model| Pmu::Emulated(Emulated::Model(model)));
        for value in values.chain(models) {
            assert_eq!(parse(&value.to_string()), Ok(value));
        }
        let panther = parse("pantherlake").unwrap();
        assert_eq!(
            (panther, panther.to_string()),
            (parse("cougarcove").unwrap(), "cougarcove".into())
        );
        assert!(parse("z80").unwrap_err().contains("z80"));
        assert_eq!(super::models().count(), Model::ALL.len() - 1);
    }

    #[test]
    fn x13_models_of_several_kinds_lead_back_and_others_are_refused() {
        for text in ["goldencove+gracemont", "gracemont:3+goldencove:1"] {
            let parsed = parse(text).unwrap();
            assert_eq!(parsed.to_string(), text);
            assert!(parsed.mixture().is_some());
        }
        for (text, reason) in [
            (
                "goldencove+zen4",
                "--pmu goldencove+zen4: goldencove and zen4 are of different makers",
            ),
            (
                "skylake:2",
                "--pmu skylake:2: skylake alone is on all processors; --cpus says how many",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        let command = clap::Command::new("x");
        let alone = Pmu::emulated_parser();
        let mixed = alone.parse_ref(&command, None, OsStr::new("goldencove+gracemont"));
        assert!(mixed.unwrap_err().to_string().contains("only `run` takes several models"));
    }

    #[test]
    fn d1_parameters_lead_back_and_wrong_ones_are_refused() {
        let parsed = parse("skylake,l1d=24k/6,dtlb=16/4").unwrap();
        assert_eq!(parse(&parsed.to_string()), Ok(parsed));
        let parameters = parsed.parameters().unwrap();
        assert_eq!(parameters.caches[0].unwrap().ways, 6);
        for (text, reason) in [
            ("z80,l1d=24k/6", "there is no model \"z80\""),
            ("none,l1d=24k/6", "there is no model \"none\""),
            ("skylake,l1d=24k/5", "must be a power of two"),
            ("skylake,port=3", "the keys are l1d, l2"),
            ("skylake,ports=3", "ports are CLASS:UOPS"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(
                error.contains(&format!("--pmu {text}: ")) && error.contains(reason),
                "{error}"
            );
        }
        let command = clap::Command::new("x");
        let alone = Pmu::emulated_parser();
        let shaped = alone.parse_ref(&command, None, OsStr::new("skylake,l1d=24k/6"));
        assert!(shaped.unwrap_err().to_string().contains("only `run` takes"));
    }

    #[test]
    fn x10_a_dump_that_is_none_is_refused_with_its_reason() {
        let error = parse("dump:/nowhere/cpu.txt").unwrap_err();
        assert!(
            error.contains("--pmu dump:/nowhere/cpu.txt: cannot read /nowhere/cpu.txt"),
            "{error}"
        );
        let emulated = Pmu::emulated_parser();
        let word = emulated.parse_ref(&clap::Command::new("x"), None, OsStr::new("none"));
        assert!(word.is_err());
    }
}

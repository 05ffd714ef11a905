//! Processors of several models in one machine: the kinds of core of a hybrid package.

use crate::model::{Identity, Model};
use core::fmt;

/// Kinds of core that one package can have.
pub const MAX_KINDS: usize = 4;

/// Which model each processor of a machine has: `goldencove:2+gracemont:4`, `goldencove+gracemont`, `skylake`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mixture {
    kinds: [(Model, Option<u16>); MAX_KINDS],
    count: usize,
}

/// Why there is no such machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MixtureError<'a> {
    /// There is no model of that name.
    Unknown(&'a str),
    /// A number of processors that is none.
    Number(&'a str),
    /// More kinds than a package can have.
    Kinds,
    /// A model is named twice.
    Twice(Model),
    /// One model with a number, where several are meant.
    Alone(Model),
    /// Two models are not cores of one package.
    Apart(Model, Model),
}

impl fmt::Display for MixtureError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "there is no model \"{name}\""),
            Self::Number(text) => {
                write!(
                    f,
                    "\"{text}\" is not a number of processors; write 1 to 65535 after a colon"
                )
            }
            Self::Kinds => write!(f, "a package has at most {MAX_KINDS} kinds of core"),
            Self::Twice(model) => {
                let name = model.spec().name;
                write!(f, "{name} is named twice; {name}:N is how many of it there are")
            }
            Self::Alone(model) => {
                let name = model.spec().name;
                write!(f, "{name} alone is on all processors; --cpus says how many there are")
            }
            Self::Apart(one, other) => {
                let (one, other) = (one.spec(), other.spec());
                let maker = |identity: &Option<Identity>| identity.as_ref().map(|seen| seen.vendor);
                write!(f, "{} and {} ", one.name, other.name)?;
                match (maker(&one.identity), maker(&other.identity)) {
                    (Some(a), Some(b)) if a != b => {
                        write!(f, "are of different makers, {} and {}", a.name(), b.name())?;
                    }
                    _ => write!(f, "are never cores of one package")?,
                }
                write!(f, "; those that are: goldencove and gracemont")
            }
        }
    }
}

impl Mixture {
    /// All processors are of one model.
    #[must_use]
    pub const fn of_one(model: Model) -> Self {
        Self { kinds: [(model, None); MAX_KINDS], count: 1 }
    }

    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, MixtureError<'_>> {
        let mut mixture = Self { count: 0, ..Self::of_one(Model::None) };
        for part in text.split('+') {
            let (name, number) = match part.split_once(':') {
                None => (part, None),
                Some((name, number)) => match number.parse::<u16>() {
                    Ok(1..) => (name, number.parse().ok()),
                    _ => return Err(MixtureError::Number(number)),
                },
            };
            let model = Model::by_name(name).ok_or(MixtureError::Unknown(name))?;
            for (other, _) in mixture.kinds() {
                if other == model {
                    return Err(MixtureError::Twice(model));
                }
                if !belong_together(other, model) {
                    return Err(MixtureError::Apart(other, model));
                }
            }
            *mixture.kinds.get_mut(mixture.count).ok_or(MixtureError::Kinds)? = (model, number);
            mixture.count += 1;
        }
        Ok(mixture)
    }

    /// The models, each with how many processors have it, if that was said.
    pub fn kinds(&self) -> impl Iterator<Item = (Model, Option<u16>)> + '_ {
        self.kinds.iter().take(self.count).copied()
    }

    /// The model of the first processor.
    #[must_use]
    pub const fn first(&self) -> Model {
        self.kinds[0].0
    }

    /// Whether there are several models.
    #[must_use]
    pub const fn is_mixed(&self) -> bool {
        self.count > 1
    }

    /// The model of processor number `processor`. A model without a number has one, and the last model has those that are left as
    /// well.
    #[must_use]
    pub fn of(&self, processor: usize) -> Model {
        let mut end = 0;
        let mut kinds = self.kinds();
        let own = kinds.find(|(_, number)| {
            end += usize::from(number.unwrap_or(1));
            processor < end
        });
        own.map_or(self.kinds[self.count - 1].0, |(model, _)| model)
    }

    /// Processors that it takes, at least.
    #[must_use]
    pub fn least(&self) -> u32 {
        self.kinds().map(|(_, number)| u32::from(number.unwrap_or(1))).sum()
    }

    /// Processors that there can be at most: without limit where nothing is said of the last model.
    #[must_use]
    pub fn most(&self) -> Option<u32> {
        self.kinds[self.count - 1].1.map(|_| self.least())
    }
}

/// Whether two models are cores of one package: they have one signature.
fn belong_together(one: Model, other: Model) -> bool {
    let signature = |model: Model| model.spec().identity.as_ref().map(|one| one.signature);
    signature(one).is_some() && signature(one) == signature(other)
}

impl fmt::Display for Mixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (model, number)) in self.kinds().enumerate() {
            f.write_str(if place == 0 { "" } else { "+" })?;
            f.write_str(model.spec().name)?;
            if let Some(number) = number {
                write!(f, ":{number}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;
    use std::vec::Vec;

    fn models(text: &str, processors: usize) -> Vec<&'static str> {
        let mixture = Mixture::parse(text).unwrap();
        assert_eq!(mixture.to_string(), text);
        (0..processors).map(|processor| mixture.of(processor).spec().name).collect()
    }

    #[test]
    fn x13_each_processor_has_its_model() {
        let (p, e) = ("goldencove", "gracemont");
        assert_eq!(models("skylake", 2), ["skylake"; 2]);
        assert_eq!(models("goldencove+gracemont", 4), [p, e, e, e]);
        assert_eq!(models("goldencove:2+gracemont", 4), [p, p, e, e]);
        assert_eq!(models("gracemont:1+goldencove:2", 3), [e, p, p]);
        let mixture = Mixture::parse("goldencove:2+gracemont:3").unwrap();
        assert_eq!((mixture.least(), mixture.most()), (5, Some(5)));
        let open = Mixture::parse("goldencove:2+gracemont").unwrap();
        assert_eq!((open.least(), open.most()), (3, None));
    }

    #[test]
    fn x13_a_mixture_that_no_package_has_is_refused_by_name() {
        for (text, reason) in [
            (
                "goldencove+zen4",
                "goldencove and zen4 are of different makers, GenuineIntel and AuthenticAMD",
            ),
            ("skylake+core2", "skylake and core2 are never cores of one package"),
            ("none+goldencove", "none and goldencove are never cores of one package"),
            ("goldencove+goldencove", "goldencove is named twice"),
            ("goldencove:0+gracemont", "\"0\" is not a number of processors"),
            ("goldencove:x", "\"x\" is not a number of processors"),
            ("goldencove+", "there is no model \"\""),
            ("goldencove+z80", "there is no model \"z80\""),
        ] {
            let error = Mixture::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(reason), "{text}: {error}");
        }
    }
}

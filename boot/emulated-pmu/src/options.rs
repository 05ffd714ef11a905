//! The command line: words `key=value`, separated by white space. Unknown words are left to others.

use handover::{MAX_PROCESSORS, Refusal};
use pmu_model::Mixture;
use pmu_model::uarch::Parameters;

/// What the command line requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Options {
    /// `pmu=NAME`, `pmu=NAME:2+NAME:4`: the models to present.
    pub models: Mixture,
    /// `shift=N`: QEMU's icount shift, to be checked against the machine.
    pub shift: Option<u8>,
    /// `strings=all|decoded`: which repeated string instructions are made to count once, where no plugin counts them.
    pub strings: Strings,
    /// `cpus=N`: how many processors it is to be on; the direct loader loads a copy for each.
    pub cpus: usize,
    /// `counting=auto|plugin|stepping`: who counts what cannot be told from QEMU's clock.
    pub counting: Counting,
    /// `modes=kept|exact`: when code is translated for less than it was; see [`crate::translator::Modes`].
    pub modes: Keeping,
    /// `statistics=N`: a line of exits and what they cost at each Nth exit; 0, and nothing is counted.
    pub statistics: u64,
    /// `qualifiers=on|off`: whether there are registers of qualifiers, which no processor has.
    pub qualifiers: bool,
    /// `x2apic=on|off`: whether the local APIC has x2APIC mode, which QEMU's has not where its clock counts instructions. For one
    /// processor: what others are sent by the mode's registers would not be seen.
    pub x2apic: bool,
    /// `clock=guest|machine`: whose time the guest's clocks show.
    pub clock: Clock,
    /// `uarch=l1d=24k/6,…`: the parameters of caches, TLBs and predictor, by which loads take time; see
    /// [`pmu_model::uarch::parameters`]. The plugin alone has such caches, so it must be there.
    pub parameters: Option<Parameters>,
    /// `fault=NAME`: what the PMU does wrong. Refused by a hypervisor that was built without faults.
    #[cfg(feature = "faults")]
    pub fault: Option<pmu_model::Mutation>,
}

/// Whose time the guest's clocks show.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Clock {
    /// The guest's own: they stand still while the hypervisor works. For operating systems, which drop events and complain
    /// where an interrupt takes too long. On several processors that a kernel brings in itself they cannot, and it is the
    /// machine's.
    #[default]
    Guest,
    /// The machine's: what runs into a time limit does so however slow its counting is.
    Machine,
}

/// Which repeated string instructions are looked for in the guest's code. The others count once for each iteration.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Strings {
    /// Whatever bytes could be one: certain.
    #[default]
    All,
    /// What decoding finds, where the code of compilers is taken for granted: certain enough, and faster.
    Decoded,
}

/// When the plugin has code translated for less than it was.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Keeping {
    /// When what is no longer needed has not been for long: each change throws all translated code away.
    #[default]
    Kept,
    /// At once. Slow; what is counted in a mode does not depend on what was counted before, which tests want.
    Exact,
}

/// Who counts what cannot be told from QEMU's clock.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Counting {
    /// The plugin in QEMU's translator if there is one, or else the hypervisor.
    #[default]
    Auto,
    /// The plugin. Without it there is no PMU.
    Plugin,
    /// The hypervisor, by stepping the guest, even if there is a plugin.
    Stepping,
}

/// Reads the options. Without a `pmu=` there is nothing to start.
///
/// # Errors
/// An unknown model, a shift that is not a number, or an unknown value of another key.
pub fn parse(line: &str) -> Result<Option<Options>, Refusal> {
    let value = |key: &str| {
        line.split_ascii_whitespace()
            .rev()
            .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    };
    let Some(name) = value("pmu") else { return Ok(None) };
    if name == "none" {
        return Ok(None);
    }
    let models = Mixture::parse(name).map_err(|_| Refusal::Options)?;
    let shift = match value("shift") {
        None => None,
        Some(text) => Some(text.parse().map_err(|_| Refusal::Options)?),
    };
    let strings = match value("strings") {
        None | Some("all") => Strings::All,
        Some("decoded") => Strings::Decoded,
        Some(_) => return Err(Refusal::Options),
    };
    let cpus = match value("cpus").map(str::parse) {
        None => 1,
        Some(Ok(count @ 1..=MAX_PROCESSORS)) => count,
        Some(_) => return Err(Refusal::Options),
    };
    let counting = match value("counting") {
        None | Some("auto") => Counting::Auto,
        Some("plugin") => Counting::Plugin,
        Some("stepping") => Counting::Stepping,
        Some(_) => return Err(Refusal::Options),
    };
    let modes = match value("modes") {
        None | Some("kept") => Keeping::Kept,
        Some("exact") => Keeping::Exact,
        Some(_) => return Err(Refusal::Options),
    };
    let parameters = match value("uarch") {
        None => None,
        Some(_) if counting == Counting::Stepping => return Err(Refusal::Options),
        Some(text) => Some(Parameters::parse(text).map_err(|_| Refusal::Options)?),
    };
    let counting = if parameters.is_some() { Counting::Plugin } else { counting };
    let clock = match value("clock") {
        None | Some("guest") => Clock::Guest,
        Some("machine") => Clock::Machine,
        Some(_) => return Err(Refusal::Options),
    };
    let qualifiers = match value("qualifiers") {
        None | Some("on") => true,
        Some("off") => false,
        Some(_) => return Err(Refusal::Options),
    };
    let x2apic = match value("x2apic") {
        None | Some("off") => false,
        Some("on") if cpus == 1 => true,
        Some(_) => return Err(Refusal::Options),
    };
    let statistics = match value("statistics") {
        None => 0,
        Some(text) => text.parse().map_err(|_| Refusal::Options)?,
    };
    #[cfg(feature = "faults")]
    let fault = match value("fault") {
        None => None,
        Some(name) => Some(pmu_model::Mutation::by_name(name).ok_or(Refusal::Options)?),
    };
    #[cfg(not(feature = "faults"))]
    if value("fault").is_some() {
        return Err(Refusal::Options);
    }
    Ok(Some(Options {
        models,
        shift,
        strings,
        cpus,
        counting,
        modes,
        statistics,
        qualifiers,
        x2apic,
        clock,
        parameters,
        #[cfg(feature = "faults")]
        fault,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmu_model::Model;
    use proptest::prelude::*;

    #[test]
    fn a_model_and_a_shift_among_other_words() {
        let seen = parse("quiet pmu=skylake  shift=4 root=/dev/sda").unwrap().unwrap();
        assert_eq!(
            (seen.models.first(), seen.models.is_mixed(), seen.shift),
            (Model::Skylake, false, Some(4))
        );
        assert_eq!(parse("pmu=zen4").unwrap().unwrap().shift, None);
        assert_eq!(parse("pmu=zen4 pmu=none"), Ok(None), "the last word counts");
        assert_eq!(parse("quiet"), Ok(None));
        assert_eq!(parse("pmu=z80"), Err(Refusal::Options));
        assert_eq!(parse("pmu=zen4 shift=x"), Err(Refusal::Options));
        let strings = |text| parse(text).unwrap().unwrap().strings;
        assert_eq!(strings("pmu=zen4 strings=decoded"), Strings::Decoded);
        assert_eq!(strings("pmu=zen4 strings=all"), strings("pmu=zen4"));
        assert_eq!(parse("pmu=zen4 strings=some"), Err(Refusal::Options));
        assert_eq!(parse("pmu=zen4 cpus=4").unwrap().unwrap().cpus, 4);
        assert_eq!(parse("pmu=zen4").unwrap().unwrap().cpus, 1);
        let clock = |text| parse(text).unwrap().unwrap().clock;
        assert_eq!(clock("pmu=zen4"), Clock::Guest);
        assert_eq!(clock("pmu=zen4 clock=guest"), Clock::Guest);
        assert_eq!(clock("pmu=zen4 clock=machine"), Clock::Machine);
        let counting = |text| parse(text).unwrap().unwrap().counting;
        assert_eq!(counting("pmu=zen4"), Counting::Auto);
        assert_eq!(counting("pmu=zen4 counting=auto"), Counting::Auto);
        assert_eq!(counting("pmu=zen4 counting=plugin"), Counting::Plugin);
        assert_eq!(counting("pmu=zen4 counting=stepping"), Counting::Stepping);
        let qualifiers = |text| parse(text).unwrap().unwrap().qualifiers;
        assert!(qualifiers("pmu=zen4") && !qualifiers("pmu=zen4 qualifiers=off"));
        let x2apic = |text| parse(text).unwrap().unwrap().x2apic;
        assert!(
            x2apic("pmu=zen4 x2apic=on") && !x2apic("pmu=zen4") && !x2apic("pmu=zen4 x2apic=off")
        );
        let modes = |text| parse(text).unwrap().unwrap().modes;
        assert_eq!(modes("pmu=zen4 modes=exact"), Keeping::Exact);
        assert_eq!([modes("pmu=zen4 modes=kept"), modes("pmu=zen4")], [Keeping::Kept; 2]);
        assert_eq!(parse("pmu=zen4").unwrap().unwrap().statistics, 0);
        assert_eq!(parse("pmu=zen4 statistics=4096").unwrap().unwrap().statistics, 4096);
        for wrong in [
            "strings=user",
            "statistics=all",
            "counting=both",
            "modes=all",
            "clock=mine",
            "qualifiers=some",
            "x2apic=yes",
            "x2apic=on cpus=2",
            "cpus=0",
            "cpus=23",
            "cpus=x",
        ] {
            assert_eq!(parse(&format!("pmu=zen4 {wrong}")), Err(Refusal::Options), "{wrong}");
        }
    }

    #[test]
    fn d1_parameters_take_the_plugin() {
        let options = parse("pmu=skylake uarch=l1d=24k/6,dtlb=16/4").unwrap().unwrap();
        let parameters = options.parameters.unwrap();
        assert_eq!((parameters.caches[0].unwrap().bytes, parameters.dtlb.entries), (24 << 10, 16));
        assert_eq!(options.counting, Counting::Plugin);
        assert_eq!(parse("pmu=skylake").unwrap().unwrap().parameters, None);
        for wrong in ["uarch=", "uarch=l1d=24k/5", "uarch=l1d=24k/6 counting=stepping"] {
            assert_eq!(parse(&format!("pmu=skylake {wrong}")), Err(Refusal::Options), "{wrong}");
        }
    }

    #[test]
    fn x13_models_of_several_kinds_of_core() {
        let seen = parse("pmu=goldencove:2+gracemont cpus=4").unwrap().unwrap().models;
        let models = [0, 1, 2, 3].map(|processor| seen.of(processor));
        let (p, e) = (Model::GoldenCove, Model::Gracemont);
        assert_eq!(models, [p, p, e, e]);
        assert_eq!(parse("pmu=goldencove+zen4"), Err(Refusal::Options));
    }

    #[test]
    #[cfg(not(feature = "faults"))]
    fn a_fault_takes_a_hypervisor_that_has_some() {
        assert_eq!(parse("pmu=zen4 fault=freeze-ignored"), Err(Refusal::Options));
    }

    #[test]
    #[cfg(feature = "faults")]
    fn a_fault_is_one_of_the_model() {
        let fault = |text| parse(text).map(|options| options.and_then(|options| options.fault));
        let ignored = pmu_model::Mutation::FreezeIgnored;
        assert_eq!(fault("pmu=zen4 fault=freeze-ignored"), Ok(Some(ignored)));
        assert_eq!(fault("pmu=zen4"), Ok(None));
        assert_eq!(fault("pmu=zen4 fault=none"), Err(Refusal::Options));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,80}") {
            let _ = parse(&text);
        }

        /// Words of its own keys with values that are some, nearly some or none: it reads them all before it answers.
        #[test]
        fn no_values_make_it_panic(
            name in "(skylake|zen4|goldencove)(:[0-9]{0,4})?(\\+(gracemont|zen4)(:[0-9]{0,4})?)?",
            text in "( shift=[0-9]{1,3}| cpus=[0-9]{1,2}| statistics=([0-9]{1,4}|[0-9]{19,21})| (strings|counting|clock|modes)=.{0,4}\
                | strings=(all|decoded)| counting=(auto|plugin|stepping)| clock=(guest|machine)| modes=(kept|exact)| (qualifiers|x2apic)=(on|off|.)\
                | uarch=(l1d|rob|dtlb|ports|uops|transfer)=[0-9a-z/:@]{0,20}| fault=[a-z-]{0,12}){0,3}",
        ) {
            let known = parse(&format!("pmu={name}"));
            match parse(&format!("pmu={name}{text}")) {
                Ok(read) => {
                    prop_assert_eq!(read.map(|one| one.models), known.unwrap().map(|one| one.models));
                    prop_assert!(read.is_none_or(|one| (1..=MAX_PROCESSORS).contains(&one.cpus)));
                }
                Err(refusal) => prop_assert_eq!(refusal, Refusal::Options),
            }
        }
    }
}

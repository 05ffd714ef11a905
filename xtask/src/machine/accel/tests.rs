use super::*;

fn no(text: &str) -> Result<(), String> {
    Err(text.to_string())
}

fn hosts_of_all_kinds() -> [Host; 3] {
    [
        Host { kvm: Ok(()), vpmu: Ok(()) },
        Host { kvm: Ok(()), vpmu: no("enable_pmu=N") },
        Host { kvm: no("no device"), vpmu: no("x") },
    ]
}

fn machine(words: &str) -> Machine {
    use clap::Parser;
    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        machine: Machine,
    }
    Only::try_parse_from(["x"].into_iter().chain(words.split_whitespace())).unwrap().machine
}

#[test]
fn every_choice_and_its_line() {
    let [full, without, bare] = hosts_of_all_kinds();
    let withheld = "the host's KVM offers no PMU to guests: enable_pmu=N";
    let direct = "--boot direct and uefi can";
    for (words, host, expected) in [
        ("", &full, vec!["the host's (KVM offers one to guests)"]),
        ("--accel kvm", &full, vec!["the host's (KVM offers"]),
        ("--pmu host", &full, vec!["the host's (as asked)"]),
        ("--pmu none", &full, vec!["none, under KVM (as asked)"]),
        ("--pmu none --accel tcg", &full, vec!["none, under TCG (as asked)"]),
        ("--pmu zen4", &full, vec!["emulated zen4 (as asked)"]),
        ("--accel tcg", &full, vec!["emulated skylake (TCG, as requested"]),
        ("", &without, vec!["emulated skylake (", withheld]),
        ("--accel kvm", &without, vec!["none, under KVM (", withheld]),
        ("--pmu none", &without, vec!["none, under TCG (as asked)"]),
        ("--boot uefi", &without, vec!["emulated skylake (", withheld]),
        ("--boot bios", &without, vec!["none, under TCG (", withheld, direct]),
        ("--boot bios --accel tcg", &full, vec!["none, under TCG (TCG, as requested", direct]),
        ("--icount off", &without, vec!["none, under TCG (", "--icount off"]),
        ("--cpu qemu64", &without, vec!["none, under TCG (", "--cpu names a processor"]),
        ("--cpu max --pmu k10 --icount 3", &bare, vec!["emulated k10 (as asked)"]),
        ("", &bare, vec!["emulated skylake (no device)"]),
    ] {
        let line = choose(&machine(words), host).unwrap().line();
        for part in expected {
            assert!(line.starts_with("pmu: ") && line.contains(part), "`{words}`: {line}");
        }
    }
}

#[test]
fn every_contradiction_is_an_error() {
    let [full, without, bare] = hosts_of_all_kinds();
    for (words, host, code, part) in [
        ("--pmu skylake --accel kvm", &full, 2, "--pmu skylake is not possible here"),
        ("--pmu skylake --boot bios", &full, 2, "--boot direct"),
        ("--pmu zen2 --icount off", &full, 2, "--icount off"),
        ("--pmu host --accel tcg", &full, 2, "only KVM passes"),
        (
            "--pmu host",
            &without,
            77,
            "--pmu host: the host's KVM offers no PMU to guests: enable_pmu=N",
        ),
        ("--pmu host", &bare, 77, "--pmu host: no device"),
        ("--accel kvm", &bare, 77, "no device"),
    ] {
        let error = choose(&machine(words), host).unwrap_err();
        assert_eq!(error.exit_code(), code, "{words}");
        assert!(error.to_string().contains(part), "`{words}`: {error}");
    }
}

//! When a set is bound and released: `at-us`, `at-marker`, `until-us`, `until-marker` and `wait`.

use protocol::job::count::{Schedule, When};
use toml::Spanned;

/// The keys of a set, as written.
#[derive(Clone, Debug)]
pub struct Moments {
    pub at: [Option<Spanned<u64>>; 2],
    pub until: [Option<Spanned<u64>>; 2],
    pub wait: bool,
}

/// The schedule that the keys say.
///
/// # Errors
/// What is wrong, with its place in the file.
pub fn schedule(keys: &Moments) -> Result<Schedule, (std::ops::Range<usize>, String)> {
    Ok(Schedule {
        at: moment("at", &keys.at)?,
        until: moment("until", &keys.until)?,
        wait: keys.wait,
    })
}

fn moment(
    which: &str,
    [us, marker]: &[Option<Spanned<u64>>; 2],
) -> Result<Option<When>, (std::ops::Range<usize>, String)> {
    match (us, marker) {
        (Some(_), Some(marker)) => {
            let message =
                format!("{which}-us and {which}-marker are both given; a set has one of them");
            Err((marker.span(), message))
        }
        (Some(us), None) => Ok(Some(When::Microseconds(*us.get_ref()))),
        (None, Some(marker)) => {
            let number = u32::try_from(*marker.get_ref()).map_err(|_| {
                let number = marker.get_ref();
                let message = format!("{which}-marker is {number}; EAX holds 0 to {}", u32::MAX);
                (marker.span(), message)
            })?;
            Ok(Some(When::Marker(number)))
        }
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use crate::job::file::parse;
    use crate::job::{Purpose, pack};
    use protocol::job::Item;
    use protocol::job::count::{Schedule, When};

    const JOB: &str = r#"
[[count]]
name = "who"
tick-ns = 20_000
[[count.set]]
events = ["cycles"]
bind = { task = "first" }
at-us = 70
until-marker = 3
wait = true
[[count.set]]
events = ["cycles"]
until-us = 90
[[count.set]]
events = ["cycles"]
at-marker = 4294967295
[[count.task]]
name = "first"
asm = "mov eax, 3; int 0x86"
"#;

    #[test]
    fn i6_c10_moments_of_sets_are_as_it_is_written() {
        let packed = pack(&parse(JOB, "job.toml").unwrap(), Purpose::Qemu).unwrap();
        let [Item::Count(count)] = &packed.job.items[..] else { panic!("{:?}", packed.job.items) };
        let schedules: Vec<Schedule> = count.sets.iter().map(|set| set.schedule).collect();
        let (time, marker) = (When::Microseconds, When::Marker);
        let expected = [
            Schedule { at: Some(time(70)), until: Some(marker(3)), wait: true },
            Schedule { at: None, until: Some(time(90)), wait: false },
            Schedule { at: Some(marker(u32::MAX)), until: None, wait: false },
        ];
        assert_eq!(schedules, expected);
        assert_eq!(&*count.workload.tasks[0].body, [0xb8, 3, 0, 0, 0, 0xcd, 0x86]);
        // A figure of a binding can be expected, and of no other thing behind an event.
        let expect = |figure: &str| {
            let text = JOB.replace("tick-ns", &format!("expect = {{ \"{figure}\" = 3 }}\ntick-ns"));
            pack(&parse(&text, "job.toml").unwrap(), Purpose::Qemu).map(|_| ())
        };
        expect("set 1: cycles, binding 2").unwrap();
        assert!(expect("set 1: cycles, bindings 2").is_err());
    }

    #[test]
    fn i6_c10_moments_that_cannot_be_are_said_with_line_and_column() {
        for (from, to, parts) in [
            (
                "at-us = 70",
                "at-us = 70\nat-marker = 1",
                &["job.toml:9:13: count `who`", "at-us and at-marker are both given"][..],
            ),
            (
                "until-us = 90",
                "until-marker = 5\nuntil-us = 90",
                &["job.toml:13:16: count `who`", "until-us and until-marker are both given"],
            ),
            (
                "at-marker = 4294967295",
                "at-marker = 4294967296",
                &["job.toml:16:13:", "at-marker is 4294967296; EAX holds 0 to 4294967295"],
            ),
            ("at-us = 70", "at-us = -1", &["line 8, column 9", "-1"]),
            ("wait = true", "waits = true", &["line 10", "unknown field `waits`"]),
            ("until-us = 90", "until-us = 0", &["job.toml:2:1:", "at-us or until-us is 0"]),
            (
                "tick-ns = 20_000",
                "tick-ns = 0",
                &["job.toml:2:1:", "at-us or until-us", "tick-ns is 0"],
            ),
            (
                "at-us = 70",
                "at-marker = 3",
                &["job.toml:2:1:", "is released at the tick or marker"],
            ),
            ("name = \"who\"", "interval-ns = 20_000", &["job.toml:2:1:", "interval-ns"]),
            (
                "until-us = 90",
                "bind = \"all-cpus\"",
                &["job.toml:2:1:", "set `set 2` needs the counters of several processors"],
            ),
            ("name = \"who\"", "at-us = 5", &["line 3", "unknown field `at-us`"]),
        ] {
            let text = JOB.replacen(from, to, 1);
            assert_ne!(text, JOB, "{from}");
            let error = match parse(&text, "job.toml") {
                Ok(file) => pack(&file, Purpose::Qemu).unwrap_err().to_string(),
                Err(error) => error.to_string(),
            };
            for part in parts {
                assert!(error.contains(part), "{to}: {part}: {error}");
            }
        }
    }
}

//! Snippets that do not end.

use super::*;
use qemu_tests::direct;

#[test]
fn x1_a_loop_without_end_is_ended_by_an_nmi_and_the_same_boot_goes_on() {
    for model in MODELS {
        let ran = on(
            model,
            r#"
            [defaults]
            unroll = 10
            runs = 3
            events = ["instructions"]
            machine = { time-limit = 20 }
            [[snippet]]
            name = "control before"
            asm = "nop; nop; nop"
            [[snippet]]
            name = "endless"
            init = "mov ebx, 77"
            asm = "nop; 2: jmp 2b"
            [[snippet]]
            name = "endless with interrupts off and no stack"
            asm = "cli; xor esp, esp; 2: jmp 2b"
            events = []
            [[snippet]]
            name = "endless init"
            init = "2: pause; jmp 2b"
            asm = "nop"
            [[snippet]]
            name = "control behind"
            asm = "nop; nop; nop"
            "#,
        );
        ran.ends_with(1);
        assert_eq!(ran.report.machine().unwrap().watchdog.as_deref(), Some("counter NMI"));
        for name in ["control before", "control behind"] {
            let control = result(&ran, name);
            assert_eq!(exactly(control, "instructions"), 3.0, "{model:?}");
            assert_eq!(exactly(control, "tsc"), 3.0, "{model:?}");
            assert_eq!((control.unwatched, &control.restored[..]), (0, &[][..]));
        }
        let errors = ran.errors();
        assert_eq!(errors.len(), 3, "{errors:?}");
        let parts: Vec<_> = errors
            .iter()
            .map(|error| {
                assert_eq!(error.code, ErrorCode::TimeLimit);
                assert!(error.text.contains("20 ms"), "{}", error.text);
                error.fault.as_ref().unwrap().part.as_str()
            })
            .collect();
        assert_eq!(parts, ["body", "body", "init"]);
        let fault = errors[0].fault.as_ref().unwrap();
        assert_eq!((fault.offset, fault.registers.rbx.0), (Some(1), 77));
    }
}

#[test]
fn x1_a_time_limit_that_nothing_can_keep_is_not_available() {
    let ran = direct(
        "[[snippet]]\nname = \"limited\"\nmachine = { time-limit = 20 }\nasm = \"nop\"\n[[snippet]]\nasm = \"nop\"\n",
    );
    ran.ends_with(0);
    let reason = "there is no PMU";
    assert_eq!(ran.report.machine().unwrap().watchdog_absent.as_deref(), Some(reason));
    let [limited, other] = ran.results()[..] else { panic!("two results") };
    let [control] = &limited.controls[..] else { panic!("{:?}", limited.controls) };
    assert_eq!((control.option.as_str(), control.applied), ("time-limit=20", false));
    assert!(control.note.ends_with(reason), "{}", control.note);
    assert!(other.controls.is_empty());
}

#[test]
fn x1_an_item_whose_events_take_every_counter_says_that_nothing_watches_it() {
    let ran = on(
        Model::Zen2,
        r#"
        [defaults]
        machine = { time-limit = 5000 }
        [[snippet]]
        name = "all six"
        asm = "nop"
        unroll = 10
        events = ["{r00c0,r00c0,r00c0,r00c0,r00c0,r00c0}"]
        [[snippet]]
        name = "five"
        asm = "nop"
        unroll = 10
        events = ["{r00c0,r00c0,r00c0,r00c0,r00c0}"]
        "#,
    );
    ran.ends_with(0);
    assert_eq!((result(&ran, "all six").unwatched, result(&ran, "five").unwatched), (1, 0));
}

//! Profiles of several tasks.

use super::*;
use protocol::record::{Schedule, TaskEnd, TaskResult, Ticks};

#[test]
fn i8_tasks_have_their_own_labels_rows_and_table() {
    let range = |start, end| [Hex(start), Hex(end)];
    let place = |at| CodePlace {
        body: range(at, at + 6),
        init: range(at, at),
        function: range(at, at + 13),
        program: None,
    };
    let row = |address, task, count| AddressCount {
        address: Hex(address),
        event: 0,
        task,
        ring: 3,
        count,
        bytes: String::new(),
        bits: 64,
        cpu: 0,
    };
    let task = |name: &str, end| TaskResult {
        name: name.into(),
        entry: Hex(0),
        end,
        turns: 5,
        switches: 2,
        time: 77,
        value: Hex(0),
        memory_crc32: Hex(0),
        fault: None,
        user_instructions: None,
        child_user_instructions: None,
        added_to: None,
        outlived: None,
        moves: None,
        shares: Vec::new(),
        cpu: 0,
        bits: 64,
        ended_bits: None,
    };
    let tasks = vec![task("one", TaskEnd::Exit), task("two", TaskEnd::Limit)];
    let result = SampleResult {
        tasks: vec!["one".into(), "two".into()],
        code: vec![place(0x1000), place(0x2000)],
        // The last one names a task whose code does not lie there.
        addresses: vec![row(0x1001, 0, 5), row(0x2001, 1, 3), row(0x2001, 0, 1)],
        schedule: Some(Schedule { tasks, switches: 4, ticks: Ticks::default() }),
        ..result()
    };
    let codes = ["first", "second"]
        .map(|label| TaskCode { body: BODY.to_vec(), labels: vec![(1, label.into())] });
    let resolver = Resolver::new(&[(4, codes.to_vec())], None);
    let report = report(vec![Record::Sample(result)]);
    let profiles = Profile::of(&report, &resolver);
    let symbols = profiles[0].symbols(0);
    let seen: Vec<_> =
        symbols.iter().map(|one| (&*one.task, one.ring, &*one.symbol, one.count)).collect();
    assert_eq!(
        seen,
        [("one", 3, "one:first", 5), ("two", 3, "two:second", 3), ("one", 3, "0x2001", 1)]
    );
    assert!(folded::write(&profiles).contains(";cycles;two;two:second;0x2001 imul rax, rax 3\n"));
    let context = Context { sampled: vec![(4, codes.to_vec())], ..Context::default() };
    let text = render(&report, &context, Format::Table);
    let text = anstream::adapter::strip_str(&text).to_string();
    // Columns are as wide as they must be.
    let text: Vec<&str> = text.split_whitespace().collect();
    let text = text.join(" ");
    for part in ["two ended at its limit 5 2 77", "one:first one 3 5 55.6 %", "two:second two 3 3"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

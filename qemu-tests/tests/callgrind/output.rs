//! Callgrind's file: "Callgrind Format Specification" of Valgrind's manual, without its compressions.

use std::collections::BTreeMap;

/// Costs of calls, with all that is called on the way, by the called function's name.
pub type Costs = BTreeMap<String, u64>;

/// What `caller` called. Each function is called from one place, once.
pub fn calls(text: &str, caller: &str) -> Costs {
    let mut costs = Costs::new();
    let (mut is_caller, mut called, mut is_cost) = (false, None, false);
    for line in text.lines() {
        if let Some(function) = line.strip_prefix("fn=") {
            is_caller = function == caller;
        } else if let Some(function) = line.strip_prefix("cfn=") {
            called = Some(function.to_string());
        } else if let Some(count) = line.strip_prefix("calls=") {
            let count = count.split(' ').next();
            assert!(!is_caller || count == Some("1"), "{called:?}: {line}");
            is_cost = true;
        } else if std::mem::take(&mut is_cost) && is_caller {
            // The position, then the cost of the calls.
            let cost = line.split(' ').nth(1).and_then(|cost| cost.parse().ok());
            let function = called.take().expect("a call has a name");
            let cost = cost.unwrap_or_else(|| panic!("{function}: {line}"));
            assert_eq!(costs.insert(function, cost), None, "called twice: {line}");
        }
    }
    costs
}

#[test]
fn costs_of_calls_are_read() {
    let text = "fn=other\n1 7\ncfn=a\ncalls=3 0\n1 99\nfn=me\n0 5\ncfi=x.rs\ncfn=a\ncalls=1 0 \n0 17\ncfn=b\ncalls=1 0\n0 4\n\
                fn=last\n0 1\n";
    let expected = [("a".to_string(), 17), ("b".to_string(), 4)];
    assert_eq!(calls(text, "me"), Costs::from(expected));
    assert_eq!(calls(text, "last"), Costs::new());
}

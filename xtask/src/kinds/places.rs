//! Function, file and line of addresses in compiled code, put into a report.

use super::shown_mut;
use crate::collect::Report;
use crate::program::places::Names;
use protocol::record::Record;

/// Names what `report` says of places in compiled code. Returns what is to be said if it cannot.
pub fn name(report: &mut Report) -> Option<String> {
    name_with(&mut Names::default(), report)
}

fn name_with(names: &mut Names, report: &mut Report) -> Option<String> {
    report.records.iter_mut().for_each(|numbered| record(names, &mut numbered.record));
    let missing = names.missing();
    let keys: Vec<String> = missing.iter().map(|key| format!("{key:016x}")).collect();
    (!keys.is_empty()).then(|| {
        format!(
            "addresses in compiled code have no names: the linked file of {} is not in the build folder; `image` or `run` of \
             the same job and files puts it there",
            keys.join(", ")
        )
    })
}

fn record(names: &mut Names, record: &mut Record) {
    match record {
        Record::Error(error) => {
            let named = error.fault.as_mut().and_then(|fault| names.fault(fault));
            error.text.extend(named);
        }
        record => {
            if let Some(result) = shown_mut(record) {
                result.name_places(names);
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! What a bring-up found, on a terminal.

use crate::bring_up::tables;
use crate::collect::Report;
use crate::primitives::style::{FAINT, STRONG, paint};
use crate::primitives::table::{Width, empty, fit};
use std::fmt::Write;

/// Each table of it, and of the long ones how long they are. Empty without a bring-up.
pub(super) fn sections(report: &Report, width: Width) -> String {
    let mut out = String::new();
    for one in tables(report) {
        // Writing to a String does not fail, here and below.
        if one.long {
            let text = format!(
                "{}: {} values, which the other formats of the report list",
                one.title,
                one.rows.len()
            );
            let _ = writeln!(out, "{}", paint(FAINT, &text));
            continue;
        }
        let mut table = empty();
        table.set_header(one.heads.iter().map(|(head, _)| *head));
        for row in one.rows {
            table.add_row(row);
        }
        let _ = writeln!(out, "{}\n{}", paint(STRONG, &one.title), fit(table, width));
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::bring_up::tests::report;
    use crate::cli::Format;
    use crate::context::Context;
    use crate::render::render;

    #[test]
    fn x10_a_bring_up_is_told_on_a_terminal_and_its_measures_in_csv() {
        let text = render(&report(), &Context::default(), Format::Table);
        for part in
            ["skid.interrupt", "IA32_PERFEVTSEL0", "FACP", "2 values, which the other formats"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        let text = render(&report(), &Context::default(), Format::Csv);
        assert!(
            text.contains("0,bring-up,skid.interrupt (instructions),14,12,,31,64,1,"),
            "{text}"
        );
        assert!(
            text.contains("0,bring-up,\"skew.tsc (TSC ticks), processor 1\",-3,-4,,2,8,1,"),
            "{text}"
        );
    }
}

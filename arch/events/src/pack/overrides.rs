//! Corrections of the tables, kept apart from them in `data/overrides.csv`.

use super::sheet::{Sheet, line_number};
use super::{PackError, StaleOverride};

/// One correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Files of the tables that it is for.
    pub tables: Vec<String>,
    /// Name of the event; with `*` at its end, all that start so.
    pub name: String,
    /// Column.
    pub field: String,
    /// What the table says.
    pub from: String,
    /// What is meant.
    pub to: String,
    /// Why.
    pub reason: String,
}

/// Whether `pattern`, a name or the beginning of some with `*` after it, means `name`.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

pub(super) fn read(file: &str, text: &str) -> Result<Vec<Override>, PackError> {
    let columns = ["tables", "name", "field", "from", "to", "reason"];
    let sheet = Sheet::read(file, text, &columns)?;
    (0..sheet.lines.len())
        .map(|line| {
            if sheet.field(line, "reason").is_empty() {
                return Err(sheet.wrong(line, "reason", "a correction needs a reason"));
            }
            let field = |column| sheet.field(line, column).to_string();
            Ok(Override {
                tables: sheet.field(line, "tables").split('|').map(ToString::to_string).collect(),
                name: field("name"),
                field: field("field"),
                from: field("from"),
                to: field("to"),
                reason: field("reason"),
            })
        })
        .collect()
}

/// Applies all of them. Each must find, in each of its tables, at least one event, and at every
/// event the value that it was written for: new source data does not slip under an old correction.
pub(super) fn apply(
    overrides: &[Override],
    file: &str,
    sheets: &mut [Sheet],
) -> Result<(), PackError> {
    for (index, correction) in overrides.iter().enumerate() {
        let (file, line) = (file.to_string(), line_number(index));
        for table in &correction.tables {
            let Some(sheet) = sheets.iter_mut().find(|sheet| sheet.file == *table) else {
                let table = table.clone();
                return Err(PackError::NoTable { file, line, table });
            };
            if !sheet.has_column(&correction.field) {
                let column = correction.field.clone();
                return Err(PackError::NoColumn { file, column });
            }
            let events: Vec<usize> = (0..sheet.lines.len())
                .filter(|row| matches(&correction.name, sheet.field(*row, "name")))
                .collect();
            if events.is_empty() {
                let (table, name) = (table.clone(), correction.name.clone());
                return Err(PackError::NoEvent { file, line, table, name });
            }
            for row in events {
                let found = sheet.field(row, &correction.field);
                if found != correction.from {
                    return Err(PackError::StaleOverride(Box::new(StaleOverride {
                        file,
                        line,
                        table: table.clone(),
                        name: sheet.field(row, "name").to_string(),
                        field: correction.field.clone(),
                        found: found.to_string(),
                        expected: correction.from.clone(),
                    })));
                }
                sheet.set(row, &correction.field, &correction.to);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "name,cmask\nA.X,0\nA.Y,0\nB,0\n";

    fn correct(line: &str) -> Result<Vec<String>, PackError> {
        let text = format!("tables,name,field,from,to,reason\n{line}\n");
        let overrides = read("o.csv", &text)?;
        let mut sheets = vec![Sheet::read("t.csv", TABLE, &["name", "cmask"])?];
        apply(&overrides, "o.csv", &mut sheets)?;
        Ok((0..3).map(|row| sheets[0].field(row, "cmask").to_string()).collect())
    }

    #[test]
    fn a_correction_changes_what_it_names_and_nothing_else() {
        assert_eq!(correct("t.csv,A.X,cmask,0,1,because").unwrap(), ["1", "0", "0"]);
        assert_eq!(correct("t.csv,A.*,cmask,0,1,because").unwrap(), ["1", "1", "0"]);
    }

    #[test]
    fn a_correction_that_no_longer_fits_is_refused() {
        for (line, part) in [
            ("t.csv,C,cmask,0,1,because", "has no event \"C\""),
            ("t.csv,B,cmask,7,1,because", "cmask is \"0\", not \"7\""),
            ("t.csv,B,inv,0,1,because", "no column \"inv\""),
            ("u.csv,B,cmask,0,1,because", "no table \"u.csv\""),
            ("t.csv,B,cmask,0,1,", "needs a reason"),
        ] {
            let error = correct(line).unwrap_err().to_string();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}

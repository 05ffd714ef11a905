//! The words of a formula.

use super::Operation;

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    Number(f64),
    Name(String),
    Operator(Operation),
    Open,
    Close,
    Comma,
    If,
    Else,
}

/// What perfmon's metrics begin with where a threshold has their names in full, with dots and `(%)`.
const METRIC: &str = "metric_";

/// The word at the beginning of `text`, which does not begin with a blank, and its length in bytes.
pub(super) fn word(text: &str) -> Option<(Word, usize)> {
    // Longer ones first.
    const SIGNS: [(&str, Word); 20] = [
        // So written in some tables.
        ("> =", Word::Operator(Operation::GreaterOrEqual)),
        ("< =", Word::Operator(Operation::LessOrEqual)),
        (">=", Word::Operator(Operation::GreaterOrEqual)),
        ("<=", Word::Operator(Operation::LessOrEqual)),
        ("==", Word::Operator(Operation::Equal)),
        ("!=", Word::Operator(Operation::NotEqual)),
        ("&&", Word::Operator(Operation::And)),
        ("||", Word::Operator(Operation::Or)),
        ("#NA", Word::Number(f64::NAN)),
        ("&", Word::Operator(Operation::And)),
        ("|", Word::Operator(Operation::Or)),
        (">", Word::Operator(Operation::Greater)),
        ("<", Word::Operator(Operation::Less)),
        ("+", Word::Operator(Operation::Add)),
        ("-", Word::Operator(Operation::Subtract)),
        ("*", Word::Operator(Operation::Multiply)),
        ("/", Word::Operator(Operation::Divide)),
        ("(", Word::Open),
        (")", Word::Close),
        (",", Word::Comma),
    ];
    // Powers and whole quotients are in no table, and not what two signs in a row would be taken for.
    if text.starts_with("**") || text.starts_with("//") {
        return None;
    }
    if let Some((sign, word)) = SIGNS.iter().find(|(sign, _)| text.starts_with(sign)) {
        return Some((word.clone(), sign.len()));
    }
    let first = text.chars().next()?;
    if first.is_ascii_digit() || first == '.' {
        return number(text);
    }
    (first.is_ascii_alphabetic() || first == '_').then(|| name(text))
}

/// Digits, a point, digits, and an exponent.
fn number(text: &str) -> Option<(Word, usize)> {
    let digits = |from: usize| {
        let rest = text.as_bytes().get(from..).unwrap_or_default();
        from + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut end = digits(0);
    if text[end..].starts_with('.') {
        end = digits(end + 1);
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let behind = digits(end + 1 + sign);
        if behind > end + 1 + sign {
            end = behind;
        }
    }
    let value = text[..end].parse().ok()?;
    // `4x` is not a number and no name.
    let joined = text[end..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    (!joined).then_some((Word::Number(value), end))
}

fn name(text: &str) -> (Word, usize) {
    let of_metric = text.starts_with(METRIC);
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || of_metric && c == '.';
    let mut end = text.find(|c| !part(c)).unwrap_or(text.len());
    if of_metric && text[end..].starts_with("(%)") {
        end += 3;
    }
    let word = match &text[..end] {
        "if" => Word::If,
        "else" => Word::Else,
        "and" => Word::Operator(Operation::And),
        "or" => Word::Operator(Operation::Or),
        name => Word::Name(name.to_string()),
    };
    // The first of the units that count, of which a table means any: `a[0]`.
    let index = if matches!(word, Word::Name(_)) && text[end..].starts_with("[0]") { 3 } else { 0 };
    (word, end + index)
}

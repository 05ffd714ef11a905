//! From a formula's text to its parts.

use super::lex::{Word, word};
use super::{Expression, Operation};
use thiserror::Error;

/// How deep parentheses, signs and choices may lie within each other; perfmon's lie 20 deep.
const MAX_DEPTH: usize = 100;
/// Parts that a formula may have; perfmon's greatest has some 2,000.
const MAX_WORDS: usize = 20_000;

/// Why a text is not a formula.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
#[error("byte {at}: {what}")]
pub struct FormulaError {
    /// Where, in bytes from the beginning.
    pub at: usize,
    /// What is there, or missing.
    pub what: String,
}

/// The parts, and the names that they mean by number.
pub(super) fn parse(text: &str) -> Result<(Expression, Vec<String>), FormulaError> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(blanks) = text[at..].find(|c: char| !c.is_whitespace()) {
        at += blanks;
        let Some((word, length)) = word(&text[at..]) else {
            let sign: String = text[at..].chars().take(1).collect();
            return Err(FormulaError { at, what: format!("{sign:?} is not understood") });
        };
        if words.len() == MAX_WORDS {
            return Err(FormulaError {
                at,
                what: format!("there are more than {MAX_WORDS} words"),
            });
        }
        words.push((at, word));
        at += length;
    }
    let mut parser =
        Parser { words: &words, next: 0, end: text.len(), names: Vec::new(), depth: 0 };
    let root = parser.choice()?;
    match parser.peek() {
        None => Ok((root, parser.names)),
        Some(_) => Err(parser.wrong("an operator or the end")),
    }
}

struct Parser<'a> {
    words: &'a [(usize, Word)],
    next: usize,
    end: usize,
    names: Vec<String>,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Word> {
        self.words.get(self.next).map(|(_, word)| word)
    }

    fn wrong(&self, wanted: &str) -> FormulaError {
        let at = self.words.get(self.next).map_or(self.end, |(at, _)| *at);
        let what = if at == self.end { "it ends; " } else { "" };
        FormulaError { at, what: format!("{what}{wanted} is expected") }
    }

    /// Takes the operator if it is next and among `meant`.
    fn operator(&mut self, meant: &[Operation]) -> Option<Operation> {
        match self.peek() {
            Some(Word::Operator(operation)) if meant.contains(operation) => {
                let operation = *operation;
                self.next += 1;
                Some(operation)
            }
            _ => None,
        }
    }

    fn expect(&mut self, word: &Word, wanted: &str) -> Result<(), FormulaError> {
        if self.peek() == Some(word) {
            self.next += 1;
            return Ok(());
        }
        Err(self.wrong(wanted))
    }

    fn deeper<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, FormulaError>,
    ) -> Result<T, FormulaError> {
        if self.depth == MAX_DEPTH {
            let what = format!("it is nested more than {MAX_DEPTH} deep");
            return Err(FormulaError { what, ..self.wrong("") });
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn choice(&mut self) -> Result<Expression, FormulaError> {
        self.deeper(|parser| {
            let value = parser.either()?;
            if parser.peek() != Some(&Word::If) {
                return Ok(value);
            }
            parser.next += 1;
            let condition = parser.either()?;
            parser.expect(&Word::Else, "`else`")?;
            let other = parser.choice()?;
            Ok(Expression::Choice(Box::new([condition, value, other])))
        })
    }

    fn either(&mut self) -> Result<Expression, FormulaError> {
        self.chain(&[Operation::Or], Self::both)
    }

    fn both(&mut self) -> Result<Expression, FormulaError> {
        self.chain(&[Operation::And], Self::comparison)
    }

    fn comparison(&mut self) -> Result<Expression, FormulaError> {
        const COMPARE: [Operation; 6] = [
            Operation::Less,
            Operation::LessOrEqual,
            Operation::Greater,
            Operation::GreaterOrEqual,
            Operation::Equal,
            Operation::NotEqual,
        ];
        let left = self.sum()?;
        let Some(operation) = self.operator(&COMPARE) else { return Ok(left) };
        let right = self.sum()?;
        if matches!(self.peek(), Some(Word::Operator(next)) if COMPARE.contains(next)) {
            return Err(self.wrong("something other than a third value to compare"));
        }
        Ok(Expression::Chain(Box::new(left), vec![(operation, right)]))
    }

    fn sum(&mut self) -> Result<Expression, FormulaError> {
        self.chain(&[Operation::Add, Operation::Subtract], Self::product)
    }

    fn product(&mut self) -> Result<Expression, FormulaError> {
        self.chain(&[Operation::Multiply, Operation::Divide], Self::signed)
    }

    /// Operands with operators of one rank between them, from left to right.
    fn chain(
        &mut self,
        operators: &[Operation],
        operand: fn(&mut Self) -> Result<Expression, FormulaError>,
    ) -> Result<Expression, FormulaError> {
        let first = operand(self)?;
        let mut links = Vec::new();
        while let Some(operation) = self.operator(operators) {
            links.push((operation, operand(self)?));
        }
        match links.is_empty() {
            true => Ok(first),
            false => Ok(Expression::Chain(Box::new(first), links)),
        }
    }

    fn signed(&mut self) -> Result<Expression, FormulaError> {
        match self.operator(&[Operation::Add, Operation::Subtract]) {
            Some(Operation::Subtract) => {
                let of = self.deeper(Self::signed)?;
                Ok(Expression::Negative(Box::new(of)))
            }
            Some(_) => self.deeper(Self::signed),
            None => self.operand(),
        }
    }

    fn operand(&mut self) -> Result<Expression, FormulaError> {
        match self.peek().cloned() {
            Some(Word::Number(number)) => {
                self.next += 1;
                Ok(Expression::Number(number))
            }
            Some(Word::Open) => {
                self.next += 1;
                let inner = self.choice()?;
                self.expect(&Word::Close, "`)`")?;
                Ok(inner)
            }
            Some(Word::Name(name)) => {
                self.next += 1;
                match (name.as_str(), self.peek()) {
                    ("max" | "min", Some(Word::Open)) => self.extreme(name == "max"),
                    _ => Ok(Expression::Name(self.number_of(name))),
                }
            }
            _ => Err(self.wrong("a number, a name or `(`")),
        }
    }

    fn extreme(&mut self, greatest: bool) -> Result<Expression, FormulaError> {
        self.next += 1;
        let mut all = vec![self.choice()?];
        while self.peek() == Some(&Word::Comma) {
            self.next += 1;
            all.push(self.choice()?);
        }
        self.expect(&Word::Close, "`,` or `)`")?;
        Ok(Expression::Extreme(greatest, all))
    }

    fn number_of(&mut self, name: String) -> usize {
        let known = self.names.iter().position(|one| *one == name);
        known.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }
}

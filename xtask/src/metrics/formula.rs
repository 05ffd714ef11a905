//! Formulas of metrics: Python's expressions as far as perfmon's tables use them.
//!
//! Names are looked up once, so that a formula can be evaluated for every run. Values are what Python's floats come
//! to, to the last bit; `&` and `|` join comparisons as perfmon means them, where Python would take them as operations
//! on bits.

mod lex;
mod parse;
#[cfg(test)]
mod tests;

pub use parse::FormulaError;

use thiserror::Error;

/// An operation on two values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    And,
    Or,
}

/// A formula or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    Number(f64),
    /// The name with this number.
    Name(usize),
    Negative(Box<Expression>),
    /// A first operand, and what follows it from left to right.
    Chain(Box<Expression>, Vec<(Operation, Expression)>),
    /// Condition, value if it holds, value if it does not.
    Choice(Box<[Expression; 3]>),
    /// The greatest (`true`) or the least of one or more.
    Extreme(bool, Vec<Expression>),
}

/// A formula.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    root: Expression,
    names: Vec<String>,
}

/// Why a formula has no value.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum NoValue {
    /// A divisor is 0.
    #[error("division by zero: {} is 0", sum(.0))]
    DivisionByZero(Vec<String>),
    /// A name has no value.
    #[error("there is no value of {0}")]
    Missing(String),
}

fn sum(names: &[String]) -> String {
    match names {
        [] => "a constant".to_string(),
        [one] => one.clone(),
        several => format!("the value computed from {}", several.join(", ")),
    }
}

impl Formula {
    /// Reads a formula.
    ///
    /// # Errors
    /// What is not understood, and at which byte.
    pub fn parse(text: &str) -> Result<Self, FormulaError> {
        parse::parse(text).map(|(root, names)| Self { root, names })
    }

    /// The names in it, in the order in which they first occur.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Its value; `values` belong to the names, in their order.
    ///
    /// # Errors
    /// A divisor that is 0, or a name without a value.
    pub fn value(&self, values: &[Option<f64>]) -> Result<f64, NoValue> {
        self.of(&self.root, values)
    }

    /// The names whose values it takes where those that `known` knows have theirs: of a choice that is decided, only one
    /// side is looked at.
    #[must_use]
    pub fn needed(&self, known: impl Fn(&str) -> Option<f64>) -> Vec<&str> {
        let values: Vec<Option<f64>> = self.names.iter().map(|name| known(name)).collect();
        let mut is_needed = vec![false; self.names.len()];
        self.need(&self.root, &values, &mut is_needed);
        let both = self.names.iter().zip(is_needed);
        both.filter(|(_, is)| *is).map(|(name, _)| name.as_str()).collect()
    }

    fn need(&self, part: &Expression, values: &[Option<f64>], needed: &mut [bool]) {
        match part {
            Expression::Number(_) => {}
            Expression::Name(number) => needed[*number] = true,
            Expression::Negative(of) => self.need(of, values, needed),
            Expression::Chain(first, links) => {
                self.need(first, values, needed);
                links.iter().for_each(|(_, one)| self.need(one, values, needed));
            }
            Expression::Choice(three) => match self.of(&three[0], values) {
                Ok(decided) => {
                    self.need(&three[if decided == 0.0 { 2 } else { 1 }], values, needed);
                }
                Err(_) => three.iter().for_each(|one| self.need(one, values, needed)),
            },
            Expression::Extreme(_, all) => {
                all.iter().for_each(|one| self.need(one, values, needed));
            }
        }
    }

    fn of(&self, part: &Expression, values: &[Option<f64>]) -> Result<f64, NoValue> {
        match part {
            Expression::Number(number) => Ok(*number),
            Expression::Name(number) => values.get(*number).copied().flatten().ok_or_else(|| {
                NoValue::Missing(self.names.get(*number).cloned().unwrap_or_default())
            }),
            Expression::Negative(of) => Ok(-self.of(of, values)?),
            Expression::Chain(first, links) => {
                let mut value = self.of(first, values)?;
                for (operation, right) in links {
                    value = self.apply(value, *operation, right, values)?;
                }
                Ok(value)
            }
            Expression::Choice(three) => {
                let holds = self.of(&three[0], values)? != 0.0;
                self.of(&three[if holds { 1 } else { 2 }], values)
            }
            Expression::Extreme(greatest, all) => {
                let mut found: Option<f64> = None;
                for one in all {
                    let value = self.of(one, values)?;
                    // Of equals the first, as Python takes them: that decides between 0 and -0.
                    let better = found.is_none_or(|so_far| match greatest {
                        true => value > so_far,
                        false => value < so_far,
                    });
                    if better {
                        found = Some(value);
                    }
                }
                Ok(found.unwrap_or(f64::NAN))
            }
        }
    }

    fn apply(
        &self,
        a: f64,
        operation: Operation,
        right: &Expression,
        values: &[Option<f64>],
    ) -> Result<f64, NoValue> {
        let truth = |is: bool| Ok(f64::from(u8::from(is)));
        // The right side of a condition that is decided is not looked at.
        match (operation, a != 0.0) {
            (Operation::And, false) => return truth(false),
            (Operation::Or, true) => return truth(true),
            _ => {}
        }
        let b = self.of(right, values)?;
        match operation {
            Operation::Add => Ok(a + b),
            Operation::Subtract => Ok(a - b),
            Operation::Multiply => Ok(a * b),
            Operation::Divide if b == 0.0 => Err(self.by_zero(right, values)),
            Operation::Divide => Ok(a / b),
            Operation::Less => truth(a < b),
            Operation::LessOrEqual => truth(a <= b),
            Operation::Greater => truth(a > b),
            Operation::GreaterOrEqual => truth(a >= b),
            Operation::Equal => truth(a == b),
            Operation::NotEqual => truth(a != b),
            Operation::And | Operation::Or => truth(b != 0.0),
        }
    }

    fn by_zero(&self, divisor: &Expression, values: &[Option<f64>]) -> NoValue {
        let mut needed = vec![false; self.names.len()];
        self.need(divisor, values, &mut needed);
        let both = self.names.iter().zip(needed);
        NoValue::DivisionByZero(both.filter(|(_, is)| *is).map(|(name, _)| name.clone()).collect())
    }
}

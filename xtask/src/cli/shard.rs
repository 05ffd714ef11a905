//! One of several equal parts of a list.

use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt;
use std::str::FromStr;

/// One part of several, as in `3/16`: the fourth of 16, numbered from 0.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct Shard {
    /// Which, from 0.
    pub index: u32,
    /// How many parts there are.
    pub count: u32,
}

impl Default for Shard {
    /// The whole.
    fn default() -> Self {
        Self { index: 0, count: 1 }
    }
}

impl Shard {
    /// Whether an index of the list belongs to the part.
    #[must_use]
    pub fn has(self, place: usize) -> bool {
        place % self.count as usize == self.index as usize
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').map(|(index, count)| (index.parse(), count.parse()));
        match parts {
            Some((Ok(index), Ok(count))) if index < count => Ok(Self { index, count }),
            Some((Ok(_), Ok(_))) => {
                Err("the first number must be less than the second".to_string())
            }
            _ => Err("it must be two numbers, such as 0/8".to_string()),
        }
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map_err(|error| format!("`{text}` is not a part: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::Shard;

    #[test]
    fn a_shard_is_one_of_its_number() {
        let shard: Shard = "2/8".parse().unwrap();
        assert_eq!((shard.index, shard.count, shard.to_string().as_str()), (2, 8, "2/8"));
        for bad in ["8/8", "1/0", "0/0", "1", "a/2", "-1/2", ""] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
    }

    #[test]
    fn all_parts_together_have_each_place_once() {
        for count in 1..20 {
            for place in 0..100 {
                let has = (0..count).filter(|&index| Shard { index, count }.has(place));
                assert_eq!(has.count(), 1);
            }
        }
        assert!((0..100).all(|place| Shard::default().has(place)));
    }
}

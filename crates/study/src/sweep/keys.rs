//! What is swept: keys of the experiment, and their values.

use std::str::FromStr;

use super::error::SweepError;

/// A key of the experiment and the values that it takes, each written as after `--set key=`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweptKey {
    /// The key, as `workload.outstanding`.
    pub key: String,
    /// Its values.
    pub values: Vec<String>,
}

impl FromStr for SweptKey {
    type Err = SweepError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (key, values) = text.split_once('=').ok_or_else(|| SweepError::Over {
            text: text.to_owned(),
            reason: "write key=a,b,c, as workload.outstanding=1,4,16",
        })?;
        let values: Vec<String> =
            separate(values).into_iter().map(|value| value.trim().to_owned()).collect();
        if key.trim().is_empty() || values.iter().any(String::is_empty) {
            return Err(SweepError::Over {
                text: text.to_owned(),
                reason: "a key or a value is empty",
            });
        }
        Ok(Self { key: key.trim().to_owned(), values })
    }
}

/// Splits at commas that stand in no brackets and no quotes.
fn separate(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0_u32, None);
    for (at, letter) in text.char_indices() {
        match (letter, quote) {
            (letter, Some(open)) if letter == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(letter),
            ('[' | '{', None) => depth += 1,
            (']' | '}', None) => depth = depth.saturating_sub(1),
            (',', None) if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

impl SweptKey {
    /// The override that gives the key its value of this number.
    pub(super) fn override_text(&self, number: usize) -> String {
        format!("{}={}", self.key, self.values[number])
    }
}

/// The numbers of the values of each key in the configuration of this number: the last key changes first.
pub(super) fn combination(keys: &[SweptKey], mut number: usize) -> Vec<usize> {
    let mut of_keys: Vec<usize> = keys
        .iter()
        .rev()
        .map(|key| {
            let value = number % key.values.len();
            number /= key.values.len();
            value
        })
        .collect();
    of_keys.reverse();
    of_keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_values_split_outside_brackets_and_quotes() {
        let values = |text: &str| text.parse::<SweptKey>().unwrap().values;
        assert_eq!(values("workload.outstanding=1, 4,16"), ["1", "4", "16"]);
        assert_eq!(
            values("a={ b = 1, c = [2, 3] },{ b = 4 }"),
            ["{ b = 1, c = [2, 3] }", "{ b = 4 }"]
        );
        assert_eq!(values("drive=\"a,b\",c"), ["\"a,b\"", "c"]);
        for wrong in ["workload.outstanding", "=1", "a=", "a=1,,2"] {
            assert!(wrong.parse::<SweptKey>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn key_combinations_complete_last_changes_first() {
        let keys: Vec<SweptKey> = ["a=1,2", "b=1,2,3"].map(|text| text.parse().unwrap()).to_vec();
        let all: Vec<Vec<usize>> = (0..6).map(|number| combination(&keys, number)).collect();
        assert_eq!(all[..4], [vec![0, 0], vec![0, 1], vec![0, 2], vec![1, 0]]);
        assert_eq!(all[5], [1, 2]);
    }
}

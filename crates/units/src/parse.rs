//! Reading `"64KiB"` and `"0.3ms"`: a number, then a unit, and never a bare number.

use thiserror::Error;

/// Reason why a text is not a quantity. Every variant carries the text and what would have been right.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum ParseQuantityError {
    /// The text is a number without a unit.
    #[error("`{text}` has no unit: write one of {allowed}, as in `{text}{example}`")]
    MissingUnit {
        text: String,
        /// Units that are understood here.
        allowed: &'static str,
        /// The unit used in the example.
        example: &'static str,
    },
    /// The unit is not one that is understood here.
    #[error("`{text}` has the unknown unit `{unit}`: write one of {allowed}")]
    UnknownUnit {
        text: String,
        /// The unit found in it.
        unit: String,
        /// Units that are understood here.
        allowed: &'static str,
    },
    /// The part before the unit is not a decimal number.
    #[error("`{text}` does not begin with a decimal number: write for example `1{example}`")]
    NotANumber {
        text: String,
        /// The unit used in the example.
        example: &'static str,
    },
    /// The quantity is finer or larger than the type can hold.
    #[error("`{text}` does not fit: it must be a whole number of {smallest} below 2^64")]
    OutOfRange {
        text: String,
        /// Unit of the type's integer.
        smallest: &'static str,
    },
}

/// A family of units that all count one integer: name and size in the smallest.
pub(crate) struct Units {
    pub table: &'static [(&'static str, u64)],
    pub allowed: &'static str,
    pub smallest: &'static str,
    pub example: &'static str,
}

/// Parses `text` into a whole number of the smallest unit, exactly: no float is involved.
pub(crate) fn parse_quantity(text: &str, units: &Units) -> Result<u64, ParseQuantityError> {
    let trimmed = text.trim();
    let split = trimmed
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(trimmed.len());
    let (number, unit) = (trimmed[..split].replace('_', ""), trimmed[split..].trim());
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if (whole.is_empty() && fraction.is_empty()) || !digits_only(whole) || !digits_only(fraction) {
        return Err(not_a_number(text, units));
    }
    if unit.is_empty() {
        return Err(ParseQuantityError::MissingUnit {
            text: trimmed.into(),
            allowed: units.allowed,
            example: units.example,
        });
    }
    let Some(&(_, size)) = units.table.iter().find(|(name, _)| *name == unit) else {
        return Err(ParseQuantityError::UnknownUnit {
            text: text.into(),
            unit: unit.into(),
            allowed: units.allowed,
        });
    };
    exact_product(whole, fraction, size)
        .ok_or(ParseQuantityError::OutOfRange { text: text.into(), smallest: units.smallest })
}

fn not_a_number(text: &str, units: &Units) -> ParseQuantityError {
    ParseQuantityError::NotANumber { text: text.into(), example: units.example }
}

fn digits_only(part: &str) -> bool {
    part.bytes().all(|b| b.is_ascii_digit())
}

/// `whole.fraction * size` when that is a whole number below 2^64.
fn exact_product(whole: &str, fraction: &str, size: u64) -> Option<u64> {
    let fraction = fraction.trim_end_matches('0');
    let scale = 10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let digits: u128 = format!("0{whole}{fraction}").parse().ok()?;
    let product = digits.checked_mul(u128::from(size))?;
    if product % scale != 0 {
        return None;
    }
    u64::try_from(product / scale).ok()
}

/// Prints `value` exactly, in the unit that makes the shortest text with at most three decimals;
/// of equally short ones in the larger unit.
pub(crate) fn format_quantity(value: u64, table: &[(&str, u64)]) -> String {
    table
        .iter()
        .filter(|(_, size)| value >= *size || *size == 1)
        .filter_map(|&(name, size)| Some((in_unit(value, name, size)?, size)))
        .min_by_key(|(text, size)| (text.len(), std::cmp::Reverse(*size)))
        .map_or_else(|| value.to_string(), |(text, _)| text)
}

/// None when three decimals do not suffice.
fn in_unit(value: u64, name: &str, size: u64) -> Option<String> {
    let thousandths = u128::from(value % size) * 1000;
    if thousandths % u128::from(size) != 0 {
        return None;
    }
    let (whole, decimals) = (value / size, thousandths / u128::from(size));
    if decimals == 0 {
        return Some(format!("{whole}{name}"));
    }
    let decimals = format!("{decimals:03}");
    Some(format!("{whole}.{}{name}", decimals.trim_end_matches('0')))
}

/// Gives a quantity its text form for serde and the JSON Schema: a string with a unit.
macro_rules! quantity_text {
    ($type:ident, $pattern:literal, $what:literal, $example:literal) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(out, "{} as a text with its unit, as in \"{}\"", $what, $example)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Text)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": $pattern, "description": $what })
            }
        }
    };
}
pub(crate) use quantity_text;

//! JSON in which no field of an object is there twice.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A document whose objects have each field once: of two values one would be taken, and nobody knows which
/// was meant.
pub(super) struct Document(pub Value);

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Values).map(Self)
    }
}

struct Values;

impl<'de> Visitor<'de> for Values {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Document(value)) = from.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(field) = from.next_key::<String>()? {
            if fields.contains_key(&field) {
                return Err(A::Error::custom(format!("the field `{field}` is there twice")));
            }
            let Document(value) = from.next_value()?;
            fields.insert(field, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_as_it_is() {
        let text = r#"{"a":[1,-2,1.5,true,null,"x",{"b":{},"c":[]}],"b":18446744073709551615}"#;
        let Document(value) = serde_json::from_str(text).unwrap();
        assert_eq!(value, serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn a_field_that_is_there_twice_is_named_wherever_it_is() {
        for (text, says) in [
            (r#"{"kind":"scan","kind":"scrub"}"#, "`kind`"),
            (r#"{"kind":"scan","kind":"scan"}"#, "`kind`"),
            (r#"{"skip":[{"blocks":1},{"blocks":1,"first_block":2,"blocks":1}]}"#, "`blocks`"),
            // As it is spelled in another way.
            (r#"{"repeat":true,"rep\u0065at":true}"#, "`repeat`"),
        ] {
            let error = serde_json::from_str::<Document>(text).err().unwrap().to_string();
            let says = format!("the field {says} is there twice");
            assert!(error.starts_with(&says), "{text}: {error}");
        }
    }

    #[test]
    fn a_document_that_is_nested_too_deeply_is_refused() {
        let text = "[".repeat(100_000);
        let error = serde_json::from_str::<Document>(&text).err().unwrap().to_string();
        assert!(error.contains("recursion limit"), "{error}");
    }
}

//! The names of the fields that a type reads from JSON, so that a misspelt key can be reported.

use serde::Deserializer;
use serde::de::value::Error;
use serde::de::{DeserializeOwned, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// Returns the fields of a struct that derives `Deserialize` without `flatten`.
pub(crate) fn fields<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut found = Asked(&[]);
    // It always fails, after it has requested its fields.
    let _ = T::deserialize(&mut found);
    found.0
}

/// A deserializer that only records the requested fields.
struct Asked(&'static [&'static str]);

impl<'de> Deserializer<'de> for &mut Asked {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Error> {
        self.0 = fields;
        Err(Error::custom("only the field names are needed"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        Err(Error::custom("not a struct"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Sizes {
        width: usize,
        #[serde(rename = "n_layer", default)]
        layers: usize,
    }

    #[test]
    fn fields_have_the_names_of_the_file() {
        assert_eq!(fields::<Sizes>(), ["width", "n_layer"]);
        assert_eq!(fields::<u32>(), [""; 0]);
        let read: Sizes = serde_json::from_str("{\"width\": 3, \"n_layer\": 2}").unwrap();
        assert_eq!(read, Sizes { width: 3, layers: 2 });
    }
}

//! Files in requests: base64 bytes, and an optional name that is returned with the response.

use crate::audio::{Sound, wav};
use crate::data::Image;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;

/// Decoded contents of a file that a request carries as base64.
#[derive(Clone, Debug, PartialEq)]
pub struct Attachment<T> {
    /// Decoded contents of the file.
    pub data: T,
    /// The caller's name for the file. It is returned with the response and never opened as a path.
    pub file: Option<String>,
    /// Index of the image within the file, from 0; `None` if the file holds one item.
    pub index: Option<usize>,
}

impl<T> From<T> for Attachment<T> {
    fn from(data: T) -> Attachment<T> {
        Attachment { data, file: None, index: None }
    }
}

/// A type that can be decoded from the bytes of a file.
pub trait FromBytes: Sized {
    /// Accepted file formats, as error messages and JSON schemas name them ("a WAV file").
    const FORMATS: &'static str;
    /// Decodes the bytes of a file.
    fn from_bytes(bytes: &[u8]) -> Result<Self, String>;
}

impl FromBytes for Sound {
    const FORMATS: &'static str = "a WAV file";

    fn from_bytes(bytes: &[u8]) -> Result<Sound, String> {
        wav::parse(bytes)
    }
}

impl FromBytes for Image {
    const FORMATS: &'static str = "a PNG or JPEG file";

    fn from_bytes(bytes: &[u8]) -> Result<Image, String> {
        Image::decode(bytes)
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Data(String),
    Named(Named),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    data: String,
    #[serde(default)]
    file: Option<String>,
}

impl<'de, T: FromBytes> Deserialize<'de> for Attachment<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Attachment<T>, D::Error> {
        use serde::de::Error;
        let (data, file) = match Written::deserialize(from) {
            Ok(Written::Data(data)) => (data, None),
            Ok(Written::Named(Named { data, file })) => (data, file),
            Err(_) => {
                return Err(D::Error::custom(format!(
                    "need {} as base64, or {{data, file}}",
                    T::FORMATS
                )));
            }
        };
        let bytes = STANDARD
            .decode(data.trim())
            .map_err(|e| D::Error::custom(format!("need {} as base64: {e}", T::FORMATS)))?;
        let data = T::from_bytes(&bytes).map_err(D::Error::custom)?;
        Ok(Attachment { data, file, index: None })
    }
}

impl<T: FromBytes> JsonSchema for Attachment<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Attachment".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let bytes = json_schema!({
            "type": "string",
            "contentEncoding": "base64",
            "description": format!("{} as base64", T::FORMATS),
        });
        json_schema!({
            "anyOf": [bytes.clone(), {
                "type": "object",
                "properties": {
                    "data": bytes,
                    "file": { "type": "string", "description": "returned with the response" },
                },
                "required": ["data"],
                "additionalProperties": false,
            }]
        })
    }
}

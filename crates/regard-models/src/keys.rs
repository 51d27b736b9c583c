//! The keys of a `config.json`, read one by one, each with its default and within its bounds.

use crate::text::activation;
use crate::{sizes, values};
use regard_attention::ops::Activation;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::cell::RefCell;

/// The keys of one configuration.
pub(crate) struct Keys<'a> {
    json: &'a Value,
    read: RefCell<Vec<&'static str>>,
}

impl<'a> Keys<'a> {
    pub fn new(json: &'a Value) -> Keys<'a> {
        Keys { json, read: RefCell::default() }
    }

    /// Returns the names of all keys that are read, so that a misspelt one can be reported.
    ///
    /// # Panics
    /// If the defaults are refused.
    pub fn names<T>(read: impl FnOnce(&Keys) -> Result<T, String>) -> Vec<&'static str> {
        let empty = json!({});
        let keys = Keys::new(&empty);
        read(&keys).map(|_| ()).expect("defaults are a configuration");
        keys.read.into_inner()
    }

    /// Reads any value.
    pub fn get<T: DeserializeOwned>(&self, name: &'static str, default: T) -> Result<T, String> {
        self.read.borrow_mut().push(name);
        match self.json.get(name) {
            None => Ok(default),
            Some(value) => values::read_at(name, value),
        }
    }

    /// Reads a size of at least 1 and within the limits of [`sizes`], and returns it with its name.
    pub fn size(
        &self,
        name: &'static str,
        default: usize,
    ) -> Result<(&'static str, usize), String> {
        let size = (name, self.get(name, default)?);
        sizes::check(&[size]).map(|()| size)
    }

    /// Reads a dropout probability.
    pub fn share(&self, name: &'static str, default: f32) -> Result<f32, String> {
        let share = self.get(name, default)?;
        sizes::check_shares(&[(name, share)]).map(|()| share)
    }

    /// Reads the name of an activation function.
    pub fn activation(&self, name: &'static str, default: &str) -> Result<Activation, String> {
        activation(name, &self.get(name, default.to_string())?)
    }

    /// Reads the id of a token below `words`; `null` gives `None`.
    pub fn token(
        &self,
        name: &'static str,
        default: Option<u32>,
        words: usize,
    ) -> Result<Option<u32>, String> {
        let token = self.get(name, default)?;
        sizes::check_ids(token.map(|id| (name, id)).as_slice(), words).map(|()| token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_value_or_its_default_within_bounds() {
        let json = json!({ "width": 3, "drop": 1.5, "act": "relu", "pad": null, "deep": "many" });
        let keys = Keys::new(&json);
        assert_eq!(keys.size("width", 8), Ok(("width", 3)));
        assert_eq!(keys.size("height", 8), Ok(("height", 8)));
        assert_eq!(keys.activation("act", "gelu"), Ok(Activation::Relu));
        assert_eq!(keys.token("pad", Some(0), 5), Ok(None));
        assert!(keys.token("eos", Some(5), 5).unwrap_err().contains("eos"));
        assert!(keys.share("drop", 0.0).unwrap_err().contains("drop: got 1.5"));
        let error = keys.size("deep", 1).unwrap_err();
        assert_eq!(error, "deep: got \"many\", need a whole number, 0 or more");
    }

    #[test]
    fn names_are_those_that_are_read() {
        let read = |keys: &Keys| Ok((keys.size("a", 1)?, keys.get("b", true)?));
        assert_eq!(Keys::names(read), ["a", "b"]);
    }
}

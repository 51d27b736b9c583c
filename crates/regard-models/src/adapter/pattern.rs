//! Names of layers in `adapter_config.json`: lists of ends of names, or regular expressions.

use regex::bytes::{Regex, RegexBuilder};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Most bytes of an expression, and of its compiled form.
const LONGEST: usize = 4096;
const LARGEST: usize = 1 << 16;
/// Name that stands for all linear layers of a model but its heads.
const ALL: &str = "all-linear";

/// A name of layers, or a regular expression for names.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    text: String,
    /// `None` for a plain name, which is compared as it is: files may have one for each layer.
    regex: Option<Regex>,
}

impl Pattern {
    fn new(key: &str, text: &str, whole: &str) -> Result<Pattern, String> {
        if text.len() > LONGEST {
            return Err(format!("{key}: a name of {} bytes, need at most {LONGEST}", text.len()));
        }
        // Names are ASCII; classes of Unicode would take a thousand times the memory.
        let mut builder = RegexBuilder::new(whole);
        builder.unicode(false).size_limit(LARGEST).dfa_size_limit(LARGEST);
        let regex = builder.build().map_err(|_| {
            let text = crate::sizes::short(text, 80);
            format!("{key}: {text:?} is not a regular expression that can be read")
        })?;
        Ok(Pattern { text: text.to_string(), regex: Some(regex) })
    }

    /// Matches names that the expression matches as a whole.
    fn of_whole(key: &str, text: &str) -> Result<Pattern, String> {
        Pattern::new(key, text, &format!("^(?:{text})$"))
    }

    /// Matches names that the expression matches as a whole or after a dot.
    pub fn of_end(key: &str, text: &str) -> Result<Pattern, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        match text.chars().all(is_plain) && text.len() <= LONGEST {
            true => Ok(Pattern { text: text.to_string(), regex: None }),
            false => Pattern::new(key, text, &format!(r"^(?:.*\.)?(?:{text})$")),
        }
    }

    /// Finds the first number after what the expression matches.
    pub fn before_number(key: &str, text: &str) -> Result<Pattern, String> {
        Pattern::new(key, text, &format!(r"^(?:.*?\.)?(?:{text})\.(?P<number>[0-9]+)\."))
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is a regular expression, which takes memory.
    pub fn is_expression(&self) -> bool {
        self.regex.is_some()
    }

    pub fn matches(&self, name: &str) -> bool {
        match &self.regex {
            Some(regex) => regex.is_match(name.as_bytes()),
            None => {
                let before = name.strip_suffix(&self.text);
                before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
            }
        }
    }

    /// Number of a layer in its name.
    pub fn number_in(&self, name: &str) -> Option<usize> {
        let found = self.regex.as_ref()?.captures(name.as_bytes())?.name("number")?;
        std::str::from_utf8(found.as_bytes()).ok()?.parse().ok()
    }
}

/// Layers that an adapter updates, as `target_modules` names them.
#[derive(Clone, Debug)]
pub enum Targets {
    /// All linear layers of a model but its heads.
    All,
    /// Layers with these names, or whose names end in one of them after a dot.
    Named(BTreeSet<String>),
    /// Layers whose whole names match a regular expression.
    #[doc(hidden)]
    Matching(Expression),
}

/// A regular expression for whole names.
#[derive(Clone, Debug)]
pub struct Expression(Pattern);

impl Targets {
    pub(super) fn read(key: &str, value: &Value) -> Result<Targets, String> {
        match value {
            Value::String(all) if all.eq_ignore_ascii_case(ALL) => Ok(Targets::All),
            Value::String(text) => Ok(Targets::Matching(Expression(Pattern::of_whole(key, text)?))),
            Value::Array(list) => {
                let name = |name: &Value| match name.as_str() {
                    Some(name) => Ok(name.to_string()),
                    None => Err(format!("{key}: got {name}, need names of layers")),
                };
                Ok(Targets::Named(list.iter().map(name).collect::<Result<_, _>>()?))
            }
            other => {
                let other = crate::sizes::short(&other.to_string(), 80);
                Err(format!("{key}: got {other}, need a list of names, or a regular expression"))
            }
        }
    }

    /// Layers with these names or ends of names; `all-linear` stands for all.
    pub fn named(names: &[String]) -> Targets {
        match names.iter().any(|name| name.eq_ignore_ascii_case(ALL)) {
            true => Targets::All,
            false => Targets::Named(names.iter().map(|name| name.trim().to_string()).collect()),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Targets::All => true,
            Targets::Named(names) => names.contains(name) || self.has_end_of(name),
            Targets::Matching(Expression(pattern)) => pattern.matches(name),
        }
    }

    /// Whether a name ends in one of the list's, and is not itself in the list.
    pub(super) fn has_end_of(&self, name: &str) -> bool {
        let Targets::Named(names) = self else { return false };
        let mut ends = name.match_indices('.').map(|(at, _)| &name[at + 1..]);
        !names.contains(name) && ends.any(|end| names.contains(end))
    }

    /// Names of the list that are those of no layer.
    pub(super) fn unmatched(&self, layers: &[String]) -> Vec<&str> {
        let Targets::Named(names) = self else { return vec![] };
        let is_of = |layer: &String, name: &str| {
            let before = layer.strip_suffix(name);
            before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
        };
        let names = names.iter().map(String::as_str);
        names.filter(|name| !layers.iter().any(|layer| is_of(layer, name))).collect()
    }

    pub(super) fn to_json(&self) -> Value {
        match self {
            Targets::All => json!(ALL),
            Targets::Named(names) => json!(names),
            Targets::Matching(Expression(pattern)) => json!(pattern.text()),
        }
    }
}

//! Strings from a server that become part of a path. Each is validated once, on arrival, and then
//! has its own type.

/// Maximum length in characters; a hexadecimal SHA-256 has 64.
const LONGEST: usize = 128;

/// Commit of a model: letters and digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit(String);

/// Etag of a file: the name of its contents in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Etag(String);

/// Path of a file in a repository, with slashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName(String);

/// Checksum that an etag holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    /// SHA-256: files in large file storage (LFS).
    Sha256,
    /// SHA-1 of a git blob: all other files.
    GitSha1,
    /// Not a checksum: the contents cannot be verified.
    Unknown,
}

impl Commit {
    pub fn new(text: &str) -> Result<Commit, String> {
        match is_word(text, "") {
            true => Ok(Commit(text.to_string())),
            false => Err(format!(
                "its commit is {}, need 1 to {LONGEST} letters and digits",
                quoted(text)
            )),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Etag {
    /// Parses a header: `"word"`, `W/"word"` or the word itself.
    pub fn new(header: &str) -> Result<Etag, String> {
        let text = header.trim();
        let text = text.strip_prefix("W/").unwrap_or(text);
        let text = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text);
        match is_word(text, "_-") {
            true => Ok(Etag(text.to_string())),
            false => Err(format!(
                "the etag is {}, need 1 to {LONGEST} letters, digits, - and _ (it becomes the \
                 name of a file). Nothing was written",
                quoted(header)
            )),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn sum(&self) -> Sum {
        match (self.0.len(), self.0.chars().all(|c| c.is_ascii_hexdigit())) {
            (64, true) => Sum::Sha256,
            (40, true) => Sum::GitSha1,
            _ => Sum::Unknown,
        }
    }
}

impl FileName {
    pub fn new(text: &str) -> Result<FileName, String> {
        let fine = |part: &str| is_word(part, "_-.") && !part.starts_with('.');
        match text.split('/').all(fine) {
            true => Ok(FileName(text.to_string())),
            false => {
                Err(format!("got the file name {}, need letters, digits, . - and _", quoted(text)))
            }
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_word(text: &str, more: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
    (1..=LONGEST).contains(&text.len()) && text.chars().all(plain)
}

/// Quotes a server's text for printing: escaped and truncated.
pub fn quoted(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_is_one_plain_word() {
        for header in ["\"abc\"", "W/\"abc\"", "abc", " \"abc\" "] {
            assert_eq!(Etag::new(header).unwrap().as_str(), "abc", "{header}");
        }
        for header in
            ["", "\"\"", "/etc/passwd", "\"../x\"", "a/b", "..", "a.part", "a b", "é", "a\0"]
        {
            assert!(Etag::new(header).is_err(), "{header:?}");
        }
        assert!(Etag::new(&"a".repeat(129)).is_err());
        assert_eq!(Etag::new(&"a".repeat(64)).unwrap().sum(), Sum::Sha256);
        assert_eq!(Etag::new(&"0".repeat(40)).unwrap().sum(), Sum::GitSha1);
        assert_eq!(Etag::new(&"g".repeat(40)).unwrap().sum(), Sum::Unknown);
    }

    #[test]
    fn names_stay_inside_their_folder() {
        for name in ["config.json", "1_Pooling/config.json", "model-00001-of-2.safetensors"] {
            assert!(FileName::new(name).is_ok(), "{name}");
        }
        for name in ["", "/x", "../x", "a/../b", "a//b", ".hidden", "a\\b", "a?b", "a#b", "a%2e"] {
            assert!(FileName::new(name).is_err(), "{name}");
        }
        assert!(Commit::new("../x").is_err() && Commit::new("").is_err());
        assert!(Commit::new("main1").is_ok());
    }
}

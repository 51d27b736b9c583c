//! Word pairs with human similarity scores, to evaluate word vectors.

use std::path::Path;

use regard_models::Result;

use super::stream::Lines;

/// Two words and their similarity according to people.
#[derive(Clone, Debug, PartialEq)]
pub struct WordPair {
    /// The two words.
    pub words: [String; 2],
    /// Mean score, on the scale of the data set.
    pub score: f64,
}

/// Reads lines of `word word score`, separated by tabs or spaces.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<WordPair>> {
    let mut lines = Lines::open(path)?;
    let mut pairs = Vec::new();
    while let Some(line) = lines.next().transpose()? {
        let columns: Vec<&str> = line.split_whitespace().collect();
        match columns.as_slice() {
            [] => {}
            &[first, second, score] => match score.parse::<f64>() {
                Ok(score) if score.is_finite() => {
                    pairs.push(WordPair { words: [first.to_owned(), second.to_owned()], score });
                }
                _ => return Err(lines.error(format!("{score:?} is not a score"))),
            },
            more => return Err(lines.error(format!("has {} columns, not 3", more.len()))),
        }
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::super::scratch::with_file;
    use super::*;

    #[test]
    fn words_and_scores() {
        let pairs =
            with_file("pairs", b"tiger\tcat\t7.35\r\n\nold new 1.58\n", |p| read(p)).unwrap();
        assert_eq!(pairs.len(), 2);
        assert_eq!((pairs[0].words.join(" "), pairs[1].score), ("tiger cat".into(), 1.58));
        for (text, message) in [
            ("a b 1\na b\n", "line 2: has 2 columns, not 3"),
            ("a b c\n", "line 1: \"c\" is not a score"),
            ("a b nan\n", "line 1: \"nan\" is not a score"),
        ] {
            let error = with_file("bad", text.as_bytes(), |p| read(p)).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}

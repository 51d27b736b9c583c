//! Character ids of words, for models that process words character by character.
//!
//! A tokenizer whose tokens are words may have an alphabet: the key `letters` of
//! `tokenizer_config.json`, a string of characters. Every token then also has the ids of the
//! characters as written, upper or lower case, whether the word is in the vocabulary or not.

use std::collections::HashMap;

/// The key of `tokenizer_config.json`.
pub(super) const KEY: &str = "letters";

/// Ids of an unknown character, of the start and of the end of a word. 0 is padding, so that an
/// embedding table can have a row for it.
const UNKNOWN: u32 = 1;
const BEGINS: u32 = 2;
const ENDS: u32 = 3;
/// Id of the first character of the alphabet.
const FIRST: u32 = 4;

/// Longest word in characters; of a longer one the middle is left out.
const LONGEST: usize = 40;

/// Least frequency of a character; rarer ones are left out, so that the embedding of the unknown
/// character is trained.
const LEAST: u64 = 2;

/// Characters with their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alphabet {
    numbers: HashMap<char, u32>,
    size: usize,
}

impl Alphabet {
    /// Makes an alphabet of the characters of a string, in its order.
    pub fn new(letters: &str) -> Alphabet {
        let mut numbers = HashMap::new();
        for (letter, number) in letters.chars().zip(FIRST..) {
            numbers.entry(letter).or_insert(number);
        }
        Alphabet { numbers, size: FIRST as usize + letters.chars().count() }
    }

    /// Returns the largest id plus one: the number of rows of a character embedding table.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the ids of a word's characters, with a start and an end.
    pub fn spell(&self, word: &str) -> Vec<u32> {
        let number = |letter: char| self.numbers.get(&letter).copied().unwrap_or(UNKNOWN);
        let mut spelled = vec![BEGINS];
        spelled.extend(word.chars().map(number));
        if spelled.len() > LONGEST + 1 {
            spelled.drain(1 + LONGEST / 2..spelled.len() - LONGEST / 2);
        }
        spelled.push(ENDS);
        spelled
    }
}

/// Frequencies of characters.
#[derive(Default)]
pub(super) struct Letters(HashMap<char, u64>);

impl Letters {
    pub fn count(&mut self, text: &str) {
        for letter in text.chars().filter(|letter| !letter.is_whitespace()) {
            *self.0.entry(letter).or_default() += 1;
        }
    }

    /// Returns the string of an alphabet, the most frequent characters first.
    pub fn alphabet(self) -> String {
        let often = self.0.into_iter().filter(|(_, count)| *count >= LEAST);
        let mut often: Vec<(char, u64)> = often.collect();
        often.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        often.into_iter().map(|(letter, _)| letter).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_spelled_with_their_ends() {
        let alphabet = Alphabet::new("abA");
        assert_eq!((alphabet.size(), alphabet.spell("aAbé")), (7, vec![2, 4, 6, 5, 1, 3]));
        assert_eq!(alphabet.spell(""), [2, 3]);
    }

    #[test]
    fn the_middle_of_a_long_word_is_left_out() {
        let alphabet = Alphabet::new("abc");
        let word = format!("{}{}{}", "a".repeat(20), "b".repeat(1000), "c".repeat(20));
        let spelled = alphabet.spell(&word);
        assert_eq!(spelled, alphabet.spell(&format!("{}{}", "a".repeat(20), "c".repeat(20))));
        assert_eq!(spelled.len(), LONGEST + 2);
        assert_eq!(alphabet.spell(&"b".repeat(41)).len(), LONGEST + 2);
    }

    #[test]
    fn rare_letters_are_left_out_of_an_alphabet() {
        let mut letters = Letters::default();
        letters.count("abba x");
        letters.count("bA");
        assert_eq!(letters.alphabet(), "ba");
    }
}

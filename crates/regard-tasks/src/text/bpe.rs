//! Training of byte-pair encoding (Sennrich et al. 2016): repeatedly, the most frequent pair of
//! neighbours becomes one piece.
//!
//! The trainer of the tokenizers library keeps a pair in its queue more than once, and which
//! copy comes first follows the order of a randomly seeded hash map. Here the queue is ordered
//! by (count, pair) alone.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use regard_models::{Error, Result};
use serde_json::{Map, Value, json};

use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use super::special::NAMES;
use super::train::VocabularyKind;
use super::wordpiece;

type Pair = (u32, u32);

/// Id of a character that is too rare for the vocabulary; it never becomes a part of a piece.
const RARE: u32 = u32::MAX;

struct Learner {
    /// Prefix of a piece that continues a word; it is removed when pieces are joined.
    within: &'static str,
    /// Text of each piece, by id.
    pieces: Vec<String>,
    ids: HashMap<String, u32>,
    /// Each word as pieces, with its count.
    words: Vec<(Vec<u32>, i64)>,
    counts: HashMap<Pair, i64>,
    /// Words in which a pair may occur; a word may have lost it since.
    places: HashMap<Pair, BTreeSet<usize>>,
    queue: BinaryHeap<(i64, Reverse<Pair>)>,
}

/// Trains a model of at most `size` pieces from words and their counts.
pub fn learn(
    counts: &[(String, u64)],
    kind: VocabularyKind,
    size: usize,
    min_frequency: u64,
) -> Result<Value> {
    let mut learner = Learner::new(counts, kind, size, min_frequency)?;
    let mut ranks: HashMap<Pair, usize> = HashMap::new();
    let mut merges = Vec::new();
    while learner.pieces.len() < size {
        let Some(pair) = learner.next(min_frequency.max(1) as i64) else { break };
        // Different merges may give the same piece, so a pair may come back after it was merged.
        // Encoding uses its first rank.
        if ranks.insert(pair, merges.len()).is_none() {
            let [left, right] = [pair.0, pair.1].map(|id| learner.pieces[id as usize].clone());
            merges.push(json!([left, right]));
        }
        learner.merge(pair);
    }
    let vocabulary: Map<_, _> =
        learner.pieces.into_iter().enumerate().map(|(id, piece)| (piece, json!(id))).collect();
    // WordPiece keeps no merges: a word is split into the longest pieces that match.
    if kind == VocabularyKind::WordPiece {
        return Ok(wordpiece::model(&vocabulary, "[UNK]"));
    }
    Ok(json!({
        "type": "BPE", "dropout": null, "unk_token": NAMES[3], "continuing_subword_prefix": null,
        "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": false,
        "ignore_merges": false, "vocab": vocabulary, "merges": merges,
    }))
}

/// Characters of a word as pieces.
fn letters<'a>(word: &'a str, within: &'a str) -> impl Iterator<Item = String> + 'a {
    word.char_indices().map(move |(at, c)| {
        let within = if at > 0 { within } else { "" };
        format!("{within}{c}")
    })
}

impl Learner {
    fn new(
        counts: &[(String, u64)],
        kind: VocabularyKind,
        size: usize,
        min_frequency: u64,
    ) -> Result<Learner> {
        let within = if kind == VocabularyKind::WordPiece { wordpiece::WITHIN } else { "" };
        let mut alphabet: BTreeMap<String, u64> = BTreeMap::new();
        for (word, count) in counts {
            for letter in letters(word, within) {
                *alphabet.entry(letter).or_default() += count;
            }
        }
        if kind == VocabularyKind::ByteLevel {
            // All 256 bytes, so that nothing is unknown.
            alphabet = ByteLevel::alphabet().iter().map(|c| (c.to_string(), u64::MAX)).collect();
        }
        let kept = alphabet.into_iter().filter(|(_, count)| *count >= min_frequency);
        let special = kind.special();
        let names = special.iter().map(|(_, name)| name.to_string());
        let pieces: Vec<String> = names.chain(kept.map(|(letter, _)| letter)).collect();
        if pieces.len() > size {
            return Err(Error::invalid(format!(
                "size of the vocabulary: got {size}, need at least {}: the text has {} characters \
                 that occur {min_frequency} times or more. Set a larger size or a larger \
                 min_frequency",
                pieces.len(),
                pieces.len() - special.len(),
            )));
        }
        let ids: HashMap<String, u32> = pieces.iter().cloned().zip(0..).collect();
        let id = |letter: String| ids.get(&letter).copied().unwrap_or(RARE);
        let words = counts
            .iter()
            .map(|(word, n)| (letters(word, within).map(id).collect(), *n as i64))
            .collect();
        let (counts, places, queue) = (HashMap::new(), HashMap::new(), BinaryHeap::new());
        let mut learner = Learner { within, pieces, ids, words, counts, places, queue };
        for word in 0..learner.words.len() {
            learner.note(word, 1);
        }
        learner.queue = learner.counts.iter().map(|(pair, n)| (*n, Reverse(*pair))).collect();
        Ok(learner)
    }

    /// Adds the pairs of a word to the counts (`sign` 1) or subtracts them (−1).
    fn note(&mut self, word: usize, sign: i64) {
        let (pieces, count) = &self.words[word];
        for pair in pieces.windows(2).filter(|pair| !pair.contains(&RARE)) {
            let pair = (pair[0], pair[1]);
            *self.counts.entry(pair).or_default() += sign * count;
            if sign > 0 {
                self.places.entry(pair).or_default().insert(word);
            }
        }
    }

    /// Returns the most frequent pair; of equal ones, the one with lower ids.
    fn next(&mut self, at_least: i64) -> Option<Pair> {
        while let Some((count, Reverse(pair))) = self.queue.pop() {
            let now = self.counts.get(&pair).copied().unwrap_or(0);
            if now == count {
                return (count >= at_least).then_some(pair);
            }
            // Counts in the queue may be stale. A pair whose count grew was queued again then.
            if 0 < now && now < count {
                self.queue.push((now, Reverse(pair)));
            }
        }
        None
    }

    fn merge(&mut self, pair: Pair) {
        let [left, right] = [pair.0, pair.1].map(|id| self.pieces[id as usize].as_str());
        let piece = [left, right.strip_prefix(self.within).unwrap_or(right)].concat();
        let id = *self.ids.entry(piece.clone()).or_insert_with(|| {
            self.pieces.push(piece);
            self.pieces.len() as u32 - 1
        });
        let mut grown = BTreeSet::new();
        for word in self.places.remove(&pair).unwrap_or_default() {
            self.note(word, -1);
            let pieces = &mut self.words[word].0;
            let (mut from, mut to) = (0, 0);
            while from < pieces.len() {
                let here = pieces[from] == pair.0 && pieces.get(from + 1) == Some(&pair.1);
                pieces[to] = if here { id } else { pieces[from] };
                from += 1 + usize::from(here);
                to += 1;
            }
            pieces.truncate(to);
            grown.extend(pieces.windows(2).filter(|p| p.contains(&id)).map(|p| (p[0], p[1])));
            self.note(word, 1);
        }
        for pair in grown {
            if let Some(&count) = self.counts.get(&pair) {
                self.queue.push((count, Reverse(pair)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: count all pairs, merge the first most frequent one, repeat.
    fn slowly(counts: &[(String, u64)], size: usize, min_frequency: i64) -> Vec<String> {
        let Learner { mut pieces, mut words, .. } =
            Learner::new(counts, VocabularyKind::Bpe, size, min_frequency as u64).unwrap();
        let mut merges: Vec<String> = Vec::new();
        while pieces.len() < size {
            let mut pairs: BTreeMap<Pair, i64> = BTreeMap::new();
            for (word, count) in &words {
                for pair in word.windows(2).filter(|pair| !pair.contains(&RARE)) {
                    *pairs.entry((pair[0], pair[1])).or_default() += count;
                }
            }
            let best = pairs.iter().max_by_key(|(pair, count)| (**count, Reverse(**pair)));
            let Some((&pair, _)) = best.filter(|(_, count)| **count >= min_frequency) else {
                break;
            };
            let [left, right] = [pair.0, pair.1].map(|id| pieces[id as usize].clone());
            let merge = format!("{left} {right}");
            if !merges.contains(&merge) {
                merges.push(merge);
            }
            let piece = left + &right;
            let id = pieces.iter().position(|p| *p == piece).unwrap_or_else(|| {
                pieces.push(piece);
                pieces.len() - 1
            }) as u32;
            for (word, _) in &mut words {
                let mut i = 0;
                while i + 1 < word.len() {
                    if (word[i], word[i + 1]) == pair {
                        word.splice(i..i + 2, [id]);
                    }
                    i += 1;
                }
            }
        }
        merges
    }

    #[test]
    fn as_by_definition() {
        // Few letters and many repeats, so that counts are equal, pairs overlap (`aaa`), and the
        // same piece comes about in two ways.
        let draw = regard_attention::Stream::new(5, 0, 0);
        for (case, size, min_frequency) in [(0, 60, 1), (1, 60, 1), (2, 200, 1), (3, 200, 3)] {
            let word = |i: u64| -> String {
                let at = (case * 100 + i) * 20;
                let length = 1 + draw.bits(at) as u64 % 12;
                (1..=length).map(|k| ['a', 'b', 'c', '▁'][draw.bits(at + k) as usize % 4]).collect()
            };
            let mut counts: Vec<(String, u64)> = (0..60).map(|i| (word(i), 1 + i % 3)).collect();
            counts.push(("z".into(), 1));
            let model = learn(&counts, VocabularyKind::Bpe, size, min_frequency).unwrap();
            let text = |side: &Value| side.as_str().unwrap().to_owned();
            let merges = model["merges"].as_array().unwrap().iter();
            let merges: Vec<_> = merges.map(|m| text(&m[0]) + " " + &text(&m[1])).collect();
            assert_eq!(merges, slowly(&counts, size, min_frequency as i64), "case {case}");
            assert!(merges.len() > 30);
            assert_eq!(model["vocab"].get("z").is_none(), min_frequency > 1);
        }
    }
}

//! Sentence pairs for next-sentence prediction: consecutive halves, and halves of two documents.

use regard_attention::Stream;

/// Random stream of the draws in this file.
const DRAW: u64 = 0x7061_6972_735f_3031;

/// A part of a document: its tokens and the word of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Half {
    /// Token ids.
    pub ids: Vec<u32>,
    /// Word index of each token.
    pub words: Vec<u32>,
}

/// Two halves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentPair {
    /// First half.
    pub first: Half,
    /// Second half.
    pub second: Half,
    /// Whether the second half directly follows the first; otherwise it is from another document.
    pub follows: bool,
}

impl Half {
    fn extend(&mut self, other: &Half) {
        let next = self.words.last().map_or(0, |last| last + 1);
        self.ids.extend(&other.ids);
        self.words.extend(other.words.iter().map(|word| next + word));
    }

    fn cut(&mut self, most: usize) {
        self.ids.truncate(most);
        self.words.truncate(most);
    }
}

/// Makes pairs of at most `room` tokens from documents, which are lists of sentences. Consecutive
/// sentences are collected until they fill the room and split at a random sentence; for half of the
/// pairs the second half is taken from another document. Unused sentences begin the next pair.
pub fn pairs(documents: &[Vec<Half>], room: usize, seed: u64) -> Vec<SegmentPair> {
    let mut all = vec![];
    let mut draws = 0u64;
    let stream = Stream::new(seed, 0, DRAW);
    let mut draw = |below: usize| {
        draws += 1;
        ((f64::from(stream.uniform(draws)) * below as f64) as usize).min(below.saturating_sub(1))
    };
    for (number, document) in documents.iter().enumerate() {
        let mut at = 0;
        while at < document.len() {
            let (mut tokens, mut end) = (0, at);
            while end < document.len() && (tokens < room || end < at + 2) {
                tokens += document[end].ids.len();
                end += 1;
            }
            if end - at < 2 {
                break;
            }
            let cut = at + 1 + draw(end - at - 1);
            let mut first = gathered(&document[at..cut]);
            let others = documents.len() > 1;
            let follows = !others || draw(2) == 0;
            let (mut second, next) = match follows {
                true => (gathered(&document[cut..end]), end),
                false => {
                    let other = (number + 1 + draw(documents.len() - 1)) % documents.len();
                    let other = &documents[other];
                    let from = draw(other.len().max(1));
                    (enough(&other[from.min(other.len())..], room), cut)
                }
            };
            if !first.ids.is_empty() && !second.ids.is_empty() {
                fit(&mut first, &mut second, room);
                all.push(SegmentPair { first, second, follows });
            }
            at = next;
        }
    }
    all
}

fn gathered(sentences: &[Half]) -> Half {
    let mut half = Half::default();
    sentences.iter().for_each(|sentence| half.extend(sentence));
    half
}

/// Collects sentences until there are at least `tokens` tokens.
fn enough(sentences: &[Half], tokens: usize) -> Half {
    let mut half = Half::default();
    for sentence in sentences {
        if half.ids.len() >= tokens {
            break;
        }
        half.extend(sentence);
    }
    half
}

/// Truncates the longer half until both fit into `room`.
fn fit(first: &mut Half, second: &mut Half, room: usize) {
    let (a, b) = (first.ids.len(), second.ids.len());
    if a + b <= room {
        return;
    }
    let short = a.min(b).min(room / 2);
    match a > b {
        true => {
            second.cut(short.max(room.saturating_sub(a)));
            first.cut(room - second.ids.len());
        }
        false => {
            first.cut(short.max(room.saturating_sub(b)));
            second.cut(room - first.ids.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Documents whose token ids encode their origin: `1000·document + position`.
    fn documents() -> Vec<Vec<Half>> {
        let sentence = |document: u32, at: u32, length: u32| Half {
            ids: (0..length).map(|i| 1000 * document + at + i).collect(),
            words: (0..length).map(|i| i / 2).collect(),
        };
        let document = |document: u32| {
            let mut at = 0;
            let one = |i: u32| {
                let length = 3 + (i * 7 + document) % 9;
                at += length;
                sentence(document, at - length, length)
            };
            (0..30).map(one).collect()
        };
        (1..9).map(document).collect()
    }

    #[test]
    fn halves_follow_each_other_or_are_from_elsewhere() {
        let all = pairs(&documents(), 40, 3);
        let follows = all.iter().filter(|pair| pair.follows).count();
        assert!(all.len() > 50 && follows * 3 > all.len() && follows * 3 < 2 * all.len());
        for SegmentPair { first, second, follows } in &all {
            assert!(first.ids.len() + second.ids.len() <= 40);
            assert!(!first.ids.is_empty() && !second.ids.is_empty());
            assert_eq!(first.ids.len(), first.words.len());
            let same = first.ids[0] / 1000 == second.ids[0] / 1000;
            assert_eq!(same, *follows);
            for half in [first, second] {
                assert!(half.ids.windows(2).all(|two| two[0] + 1 == two[1]), "in order, no gaps");
                assert!(half.words.windows(2).all(|two| two[1] == two[0] || two[1] == two[0] + 1));
            }
        }
        assert_eq!(all, pairs(&documents(), 40, 3));
        assert_ne!(all, pairs(&documents(), 40, 4));
    }

    #[test]
    fn small_and_odd_documents() {
        assert!(pairs(&[], 40, 0).is_empty());
        assert!(pairs(&[vec![]], 40, 0).is_empty());
        let one = vec![documents()[0][..1].to_vec()];
        assert!(pairs(&one, 40, 0).is_empty(), "one sentence has no second half");
        let alone = vec![documents()[0].clone()];
        assert!(pairs(&alone, 40, 0).iter().all(|pair| pair.follows), "there is no other document");
        assert!(
            pairs(&documents(), 2, 0).iter().all(|p| p.first.ids.len() + p.second.ids.len() <= 2)
        );
    }
}

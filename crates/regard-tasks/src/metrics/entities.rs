//! Named entity metrics: precision, recall and F1 of whole entities, as the script conlleval of
//! CoNLL-2000 counts them and as seqeval 1.2.2 does.
//!
//! A word has a tag: `O` is outside, and `B-PER`, `I-PER`, `E-PER`, `S-PER` are the beginning, the
//! inside, the end and the single word of an entity of the type `PER`. An entity is found if its
//! type, its first and its last word are right.

use std::collections::BTreeMap;

use regard_models::{Error, Result};

use super::classification::PrecisionRecall;

/// Scheme by which tags are decoded to entities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// As conlleval: every sequence of tags is accepted, in IOB1, IOB2, IOE or IOBES, well formed
    /// or not.
    #[default]
    Lenient,
    /// Strict `B I I`: an entity must start with `B`, and `E` and `S` are errors.
    Iob2,
    /// Strict `B I E` or `S`: an entity must start and end so.
    Iobes,
}

/// An entity in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntitySpan {
    /// Type, such as `PER`; `_` for a tag without one.
    pub kind: String,
    /// Index of its first word.
    pub first: usize,
    /// Index of its last word (inclusive).
    pub last: usize,
}

/// A tag split into its letter and type.
#[derive(Clone, Copy, PartialEq)]
struct Tag<'a> {
    letter: char,
    kind: &'a str,
}

const OUTSIDE: Tag<'static> = Tag { letter: 'O', kind: "_" };

impl Scheme {
    /// Decodes the tags of a sentence's words to entities.
    pub fn entities<T: AsRef<str>>(self, tags: &[T]) -> Result<Vec<EntitySpan>> {
        let tags: Vec<Tag> =
            tags.iter().map(|tag| self.tag(tag.as_ref())).collect::<Result<_>>()?;
        Ok(match self {
            Scheme::Lenient => lenient(&tags),
            Scheme::Iob2 | Scheme::Iobes => self.strict(&tags),
        })
    }

    fn tag(self, tag: &str) -> Result<Tag<'_>> {
        let mut letters = tag.chars();
        let letter = letters.next().ok_or_else(|| Error::invalid("a tag is empty"))?;
        let rest = letters.as_str();
        let (allowed, kind) = match self {
            // seqeval takes what comes after the first hyphen, here and below.
            Scheme::Lenient => ("", rest.split_once('-').map_or(rest, |(_, kind)| kind)),
            Scheme::Iob2 => ("IOB", rest.trim_matches('-')),
            Scheme::Iobes => ("IOBES", rest.trim_matches('-')),
        };
        if !allowed.is_empty() && !allowed.contains(letter) {
            let message =
                format!("the tag {tag:?} does not start with one of the letters {allowed}");
            return Err(Error::invalid(message));
        }
        Ok(Tag { letter, kind: if kind.is_empty() { "_" } else { kind } })
    }

    fn strict(self, tags: &[Tag]) -> Vec<EntitySpan> {
        let mut entities = Vec::new();
        let mut first = 0;
        while first < tags.len() {
            let tag = tags[first];
            let goes_on = |next: &&Tag| next.letter == 'I' && next.kind == tag.kind;
            let inside = tags[first + 1..].iter().take_while(goes_on).count();
            let end = tags.get(first + 1 + inside);
            let length = match (self, tag.letter) {
                (_, 'S') => 1,
                (Scheme::Iobes, 'B') => match end {
                    Some(end) if end.letter == 'E' && end.kind == tag.kind => inside + 2,
                    _ => 0,
                },
                (_, 'B') => inside + 1,
                _ => 0,
            };
            if length > 0 {
                let (kind, last) = (tag.kind.to_owned(), first + length - 1);
                entities.push(EntitySpan { kind, first, last });
            }
            first += length.max(1);
        }
        entities
    }
}

/// conlleval's rules. A letter that is none of `OBIES` counts as inside, except for the full stop,
/// which old files use for `O`.
fn lenient(tags: &[Tag]) -> Vec<EntitySpan> {
    let is_outside = |letter: char| letter == 'O' || letter == '.';
    let mut entities = Vec::new();
    let (mut first, mut before) = (0, OUTSIDE);
    for (i, &tag) in tags.iter().chain([&OUTSIDE]).enumerate() {
        let changes = before.kind != tag.kind;
        let ends =
            matches!((before.letter, tag.letter), ('E' | 'S', _) | ('B' | 'I', 'B' | 'S' | 'O'))
                || changes && !is_outside(before.letter);
        let starts =
            matches!((before.letter, tag.letter), (_, 'B' | 'S') | ('E' | 'S' | 'O', 'E' | 'I'))
                || changes && !is_outside(tag.letter);
        if ends {
            entities.push(EntitySpan { kind: before.kind.to_owned(), first, last: i - 1 });
        }
        if starts {
            first = i;
        }
        before = tag;
    }
    entities
}

/// Counts of correct, predicted and gold entities, by type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entities {
    scheme: Scheme,
    counts: BTreeMap<String, [u64; 3]>,
}

impl Entities {
    /// Creates empty counts.
    pub fn new(scheme: Scheme) -> Entities {
        Entities { scheme, counts: BTreeMap::new() }
    }

    /// Adds a sentence: predicted and gold tags of its words.
    pub fn add<S: AsRef<str>, R: AsRef<str>>(&mut self, said: &[S], right: &[R]) -> Result<()> {
        if said.len() != right.len() {
            let (said, right) = (said.len(), right.len());
            return Err(Error::invalid(format!("got {said} tags, need {right}, one per word")));
        }
        let (said, right) = (self.scheme.entities(said)?, self.scheme.entities(right)?);
        for entity in &said {
            // No two entities end at the same word, and they are in the order of their ends.
            let same_end = right.binary_search_by_key(&entity.last, |other| other.last);
            let found = same_end.is_ok_and(|i| right[i] == *entity);
            let counts = self.counts.entry(entity.kind.clone()).or_default();
            counts[0] += u64::from(found);
            counts[1] += 1;
        }
        for entity in right {
            self.counts.entry(entity.kind).or_default()[2] += 1;
        }
        Ok(())
    }

    /// Adds the counts of another part of the corpus.
    ///
    /// # Panics
    /// If it was counted by another scheme.
    pub fn merge(&mut self, other: &Entities) {
        assert_eq!(self.scheme, other.scheme, "entities of two schemes");
        for (kind, counts) in &other.counts {
            let mine = self.counts.entry(kind.clone()).or_default();
            mine.iter_mut().zip(counts).for_each(|(mine, other)| *mine += other);
        }
    }

    /// Returns every type that was predicted or is in the gold tags, sorted by name, with its
    /// metrics and its number of gold entities.
    pub fn by_kind(&self) -> impl Iterator<Item = (&str, PrecisionRecall, u64)> {
        self.counts.iter().map(|(kind, &[found, said, right])| {
            (kind.as_str(), PrecisionRecall::of(found, said, right), right)
        })
    }

    /// Computes the metrics of all entities together (micro average): the usual entity F1.
    pub fn micro(&self) -> PrecisionRecall {
        let sum = |i: usize| self.counts.values().map(|counts| counts[i]).sum();
        PrecisionRecall::of(sum(0), sum(1), sum(2))
    }

    /// Computes the unweighted mean over types (macro average).
    pub fn macro_mean(&self) -> PrecisionRecall {
        let all: Vec<_> = self.by_kind().map(|(_, scores, _)| scores).collect();
        PrecisionRecall::mean(&all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(scheme: Scheme, tags: &str) -> String {
        let tags: Vec<&str> = tags.split(' ').collect();
        let entities = scheme.entities(&tags).unwrap();
        let text = |e: &EntitySpan| format!("{}:{}-{}", e.kind, e.first, e.last);
        entities.iter().map(text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn tags_become_entities() {
        let sentence = "B-PER I-PER O B-LOC";
        for scheme in [Scheme::Lenient, Scheme::Iob2] {
            assert_eq!(found(scheme, sentence), "PER:0-1 LOC:3-3");
        }
        assert_eq!(
            found(Scheme::Lenient, "I-A I-A B-A I-B S-B E-B"),
            "A:0-1 A:2-2 B:3-3 B:4-4 B:5-5"
        );
        assert_eq!(found(Scheme::Iob2, "I-A B-A I-B I-A B-A B-A"), "A:1-1 A:4-4 A:5-5");
        assert_eq!(
            found(Scheme::Iobes, "B-A I-A E-A S-A B-A I-A E-B B-A E-A E-A"),
            "A:0-2 A:3-3 A:7-8"
        );
        assert_eq!(found(Scheme::Iobes, sentence), "");
        assert_eq!(found(Scheme::Lenient, "B I O S"), "_:0-1 _:3-3");
    }

    #[test]
    fn what_is_wrong_is_an_error() {
        let mut entities = Entities::new(Scheme::Iob2);
        assert!(entities.add(&["O"], &["O", "O"]).unwrap_err().to_string().contains("1 tags"));
        assert!(entities.add(&["E-A"], &["O"]).unwrap_err().to_string().contains("\"E-A\""));
        assert!(entities.add(&[""], &["O"]).unwrap_err().to_string().contains("empty"));
        assert_eq!(entities, Entities::new(Scheme::Iob2));
    }

    #[test]
    fn parts_make_the_whole() {
        let (said, right) = (["B-A", "I-A", "B-B"], ["B-A", "O", "B-B"]);
        let mut whole = Entities::new(Scheme::Lenient);
        whole.add(&said, &right).unwrap();
        let mut part = whole.clone();
        part.merge(&whole);
        whole.add(&said, &right).unwrap();
        assert_eq!(part, whole);
        assert_eq!((whole.micro().f1, whole.macro_mean().f1), (0.5, 0.5));
        assert_eq!(whole.by_kind().map(|(kind, s, n)| (kind, s.f1, n)).last(), Some(("B", 1.0, 2)));
        assert_eq!(Entities::default().micro(), PrecisionRecall::default());
    }
}

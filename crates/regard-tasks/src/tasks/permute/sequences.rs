//! Sequences made from documents and pairs.

use super::choose::Draws;
use crate::generate::filling::Passage;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Configuration of sequences of two parts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Parts {
    /// Fraction of second parts that are replaced by a random one, 0 to 1; 0.5 by default.
    pub random: f64,
    /// Fraction of sequences with only one of the two parts, either equally often; 0 by default.
    pub alone: f64,
}

impl Default for Parts {
    fn default() -> Parts {
        Parts { random: 0.5, alone: 0.0 }
    }
}

impl Parts {
    /// Checks that the fractions are in range.
    pub fn check(&self) -> Result<(), String> {
        for (name, share) in [("random", self.random), ("alone", self.alone)] {
            if !(0.0..=1.0).contains(&share) {
                return Err(format!("parts.{name}: got {share}, need 0 to 1"));
            }
        }
        Ok(())
    }
}

/// Input of the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    /// Token ids.
    pub ids: Vec<u32>,
    /// Segment of each token: 0 or 1 for the parts, 2 for CLS.
    pub types: Vec<u32>,
    /// Preceding tokens of the document used as memory; empty for none.
    pub memory: Vec<u32>,
    /// Ranges of text tokens, without special tokens.
    pub(super) open: Vec<Range<usize>>,
}

/// Format of sequences.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    /// Maximum number of tokens of a sequence.
    pub context: usize,
    /// Number of tokens of the memory.
    pub memory: usize,
    /// Settings of two parts with the ids of SEP and CLS; `None` for running text.
    pub parts: Option<(Parts, [u32; 2])>,
}

/// Examples to draw sequences from.
pub(super) struct Sequences {
    form: Form,
    text: Text,
}

enum Text {
    /// Documents, and the pieces they are cut into: document index and piece index.
    Documents(Vec<Vec<u32>>, Vec<(usize, usize)>),
    /// First parts with their second parts.
    Pairs(Vec<[Vec<u32>; 2]>),
}

impl Sequence {
    /// Joins parts with their special tokens.
    fn new(parts: &[&[u32]], form: &Form) -> Sequence {
        let mut sequence = Sequence::default();
        for (part, kind) in parts.iter().zip(0..) {
            let first = sequence.ids.len();
            sequence.ids.extend_from_slice(part);
            sequence.open.push(first..sequence.ids.len());
            sequence.ids.extend(form.parts.map(|(_, [sep, _])| sep));
            sequence.types.resize(sequence.ids.len(), kind);
        }
        if let Some((_, [_, cls])) = form.parts {
            sequence.ids.push(cls);
            sequence.types.push(2);
        }
        sequence
    }

    /// Converts to a passage whose last part may have a masked span.
    fn passage(self) -> Passage {
        let open = self.open.last().cloned().unwrap_or_default();
        Passage { ids: self.ids, types: self.types, open }
    }
}

impl Form {
    /// Returns the number of text tokens that fit into a sequence of `parts` parts.
    fn room(&self, parts: usize) -> usize {
        match self.parts {
            Some(_) => self.context.saturating_sub(parts + 1),
            None => self.context,
        }
    }
}

impl Sequences {
    /// Creates examples from documents. Documents of a single token have no context and are left
    /// out.
    pub fn documents(documents: Vec<Vec<u32>>, form: Form) -> Sequences {
        let room = form.room(2);
        let pieces = documents.iter().enumerate().filter(|(_, ids)| ids.len() > 1);
        let pieces = pieces
            .flat_map(|(number, ids)| (0..(ids.len() / room).max(1)).map(move |at| (number, at)))
            .collect();
        Sequences { form, text: Text::Documents(documents, pieces) }
    }

    /// Creates examples from pairs. Pairs that are too long or have an empty part are left out.
    pub fn pairs(mut pairs: Vec<[Vec<u32>; 2]>, form: Form) -> Sequences {
        pairs.retain(|[first, second]| {
            let fits = first.len() + second.len() <= form.room(2);
            fits && !first.is_empty() && !second.is_empty()
        });
        Sequences { form, text: Text::Pairs(pairs) }
    }

    /// Returns the maximum number of tokens of each example.
    pub fn lengths(&self) -> Vec<usize> {
        let around = self.form.context - self.form.room(2);
        match &self.text {
            Text::Documents(documents, pieces) => {
                let length = |(number, _): &(usize, usize)| documents[*number].len() + around;
                pieces.iter().map(|piece| length(piece).min(self.form.context)).collect()
            }
            Text::Pairs(pairs) => {
                pairs.iter().map(|[first, second]| first.len() + second.len() + around).collect()
            }
        }
    }

    /// Returns the number of examples.
    pub fn len(&self) -> usize {
        match &self.text {
            Text::Documents(_, pieces) => pieces.len(),
            Text::Pairs(pairs) => pairs.len(),
        }
    }

    /// Draws an example as a sequence: its cut positions and second part are random.
    pub fn draw(&self, number: usize, draws: &mut Draws) -> Sequence {
        match &self.text {
            Text::Documents(documents, pieces) => {
                let (document, at) = pieces[number];
                self.piece(documents, document, at, draws)
            }
            Text::Pairs(pairs) => self.pair(pairs, number, draws),
        }
    }

    fn piece(
        &self,
        documents: &[Vec<u32>],
        number: usize,
        at: usize,
        draws: &mut Draws,
    ) -> Sequence {
        let (ids, room) = (&documents[number], self.form.room(2));
        // A piece begins at a random position in its section of the document, so that cut positions
        // vary.
        let (pieces, last) = ((ids.len() / room).max(1), ids.len().saturating_sub(room));
        let start = ((at as f64 + draws.share()) * (last + 1) as f64) as usize / pieces;
        let text = &ids[start..(start + room).min(ids.len())];
        let mut sequence = match self.form.parts {
            None => Sequence::new(&[text], &self.form),
            Some((parts, _)) => {
                let (first, second) = text.split_at(1 + draws.below(text.len() - 1));
                let elsewhere = self.elsewhere(documents, number, second.len(), draws);
                self.joined(parts, [first, second], elsewhere, draws)
            }
        };
        if self.form.memory > 0 && start >= self.form.memory {
            sequence.memory = ids[start - self.form.memory..start].to_vec();
        }
        sequence
    }

    /// Draws up to `tokens` tokens of another document, if there is one.
    fn elsewhere<'a>(
        &self,
        documents: &'a [Vec<u32>],
        number: usize,
        tokens: usize,
        draws: &mut Draws,
    ) -> &'a [u32] {
        let other = (number + 1 + draws.below(documents.len() - 1)) % documents.len();
        let other = &documents[other];
        let start = draws.below(other.len().saturating_sub(tokens) + 1);
        &other[start..other.len().min(start + tokens)]
    }

    fn pair(&self, pairs: &[[Vec<u32>; 2]], number: usize, draws: &mut Draws) -> Sequence {
        let [first, second] = &pairs[number];
        let parts = self.form.parts.map(|(parts, _)| parts).unwrap_or_default();
        let other = (number + 1 + draws.below(pairs.len() - 1)) % pairs.len();
        // A random second part must not make the example longer than [`Sequences::lengths`] states.
        let elsewhere = &pairs[other][1];
        let elsewhere = &elsewhere[..elsewhere.len().min(second.len())];
        self.joined(parts, [first, second], elsewhere, draws)
    }

    /// Joins both parts, only one of them, or the first part and a random second part.
    fn joined(
        &self,
        parts: Parts,
        [first, second]: [&[u32]; 2],
        elsewhere: &[u32],
        draws: &mut Draws,
    ) -> Sequence {
        let [alone, which, random] = [(); 3].map(|()| draws.share());
        if alone < parts.alone {
            let one = if which < 0.5 { first } else { second };
            return Sequence::new(&[one], &self.form);
        }
        let other = random < parts.random && !elsewhere.is_empty();
        Sequence::new(&[first, if other { elsewhere } else { second }], &self.form)
    }

    /// Returns passages for infilling: pieces of documents, or second parts after their first
    /// parts.
    pub fn passages(&self) -> Vec<Passage> {
        match &self.text {
            Text::Documents(documents, _) => Passage::running(documents, self.form.room(1))
                .into_iter()
                .map(|piece| Sequence::new(&[&piece.ids], &self.form).passage())
                .collect(),
            Text::Pairs(pairs) => {
                let both = |[first, second]: &[Vec<u32>; 2]| {
                    Sequence::new(&[first, second], &self.form).passage()
                };
                pairs.iter().map(both).collect()
            }
        }
    }

    /// Returns second parts as passages without their first parts; empty for documents.
    pub fn passages_alone(&self) -> Vec<Passage> {
        let Text::Pairs(pairs) = &self.text else { return vec![] };
        let alone = |[_, second]: &[Vec<u32>; 2]| Sequence::new(&[second], &self.form).passage();
        pairs.iter().map(alone).collect()
    }
}

//! From documents and pairs to sequences.

use super::choose::Draws;
use crate::generate::filling::Passage;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How sequences of two parts are made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Parts {
    /// The share of second parts that are from elsewhere.
    pub random: f64,
    /// The share of sequences of which only one part is given, either as often.
    pub alone: f64,
}

impl Default for Parts {
    fn default() -> Parts {
        Parts { random: 0.5, alone: 0.0 }
    }
}

impl Parts {
    /// Whether the shares can be.
    pub fn check(&self) -> Result<(), String> {
        for (name, share) in [("random", self.random), ("alone", self.alone)] {
            if !(0.0..=1.0).contains(&share) {
                return Err(format!("parts.{name}: got {share}, need 0 to 1"));
            }
        }
        Ok(())
    }
}

/// What a model reads at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    /// Token numbers.
    pub ids: Vec<u32>,
    /// The part that each token is of: 0, 1, and 2 for CLS.
    pub types: Vec<u32>,
    /// The tokens that come before it in its document, if a memory of them is asked for.
    pub memory: Vec<u32>,
    /// The runs of tokens that are text.
    pub(super) open: Vec<Range<usize>>,
}

/// How sequences are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    /// Tokens of a sequence at most.
    pub context: usize,
    /// Tokens of a memory.
    pub memory: usize,
    /// Two parts and their SEP and CLS, or running text as it is.
    pub parts: Option<(Parts, [u32; 2])>,
}

/// Examples to draw sequences from.
pub(super) struct Sequences {
    form: Form,
    text: Text,
}

enum Text {
    /// Documents, and the pieces that they are cut into: document and number.
    Documents(Vec<Vec<u32>>, Vec<(usize, usize)>),
    /// First parts with their second parts.
    Pairs(Vec<[Vec<u32>; 2]>),
}

impl Sequence {
    /// Parts with what stands around them.
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

    /// With a span to be hidden in its last part.
    fn passage(self) -> Passage {
        let open = self.open.last().cloned().unwrap_or_default();
        Passage { ids: self.ids, types: self.types, open }
    }
}

impl Form {
    /// Tokens of text in a sequence of so many parts.
    fn room(&self, parts: usize) -> usize {
        match self.parts {
            Some(_) => self.context.saturating_sub(parts + 1),
            None => self.context,
        }
    }
}

impl Sequences {
    /// Of documents. One of a single token has nothing to be told from.
    pub fn documents(documents: Vec<Vec<u32>>, form: Form) -> Sequences {
        let room = form.room(2);
        let pieces = documents.iter().enumerate().filter(|(_, ids)| ids.len() > 1);
        let pieces = pieces
            .flat_map(|(number, ids)| (0..(ids.len() / room).max(1)).map(move |at| (number, at)))
            .collect();
        Sequences { form, text: Text::Documents(documents, pieces) }
    }

    /// Of pairs. Those that are too long, or of which a part is empty, are left out.
    pub fn pairs(mut pairs: Vec<[Vec<u32>; 2]>, form: Form) -> Sequences {
        pairs.retain(|[first, second]| {
            let fits = first.len() + second.len() <= form.room(2);
            fits && !first.is_empty() && !second.is_empty()
        });
        Sequences { form, text: Text::Pairs(pairs) }
    }

    /// The most tokens that each example may have.
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

    /// How many examples there are.
    pub fn len(&self) -> usize {
        match &self.text {
            Text::Documents(_, pieces) => pieces.len(),
            Text::Pairs(pairs) => pairs.len(),
        }
    }

    /// An example as a sequence: where it is cut and what it stands beside are drawn.
    pub fn draw(&self, number: usize, draws: &mut Draws) -> Sequence {
        match &self.text {
            Text::Documents(documents, pieces) => self.piece(documents, pieces[number], draws),
            Text::Pairs(pairs) => self.pair(pairs, number, draws),
        }
    }

    fn piece(
        &self,
        documents: &[Vec<u32>],
        (number, at): (usize, usize),
        draws: &mut Draws,
    ) -> Sequence {
        let (ids, room) = (&documents[number], self.form.room(2));
        // A piece begins somewhere in its share of the document, so that a text is cut everywhere
        // in time.
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

    /// So many tokens, or what there is, of another document if there is one.
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
        // A second part from elsewhere must not be longer than what the example promised.
        let elsewhere = &pairs[other][1];
        let elsewhere = &elsewhere[..elsewhere.len().min(second.len())];
        self.joined(parts, [first, second], elsewhere, draws)
    }

    /// Two parts, one of them, or the first one with another second one.
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

    /// Passages to fill gaps in: pieces of documents, or second parts beside their first ones.
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

    /// Second parts as passages by themselves; none of documents.
    pub fn passages_alone(&self) -> Vec<Passage> {
        let Text::Pairs(pairs) = &self.text else { return vec![] };
        let alone = |[_, second]: &[Vec<u32>; 2]| Sequence::new(&[second], &self.form).passage();
        pairs.iter().map(alone).collect()
    }
}

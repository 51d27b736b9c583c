//! A step on slices.

use super::{Locality, Luong};
use crate::recurrent::{Beside, PlannedStep, Step};
use burn::module::Param;
use regard_attention::layers::Linear;
use regard_attention::ops::Activation;
use regard_attention::plan::{Floats, PlannedLinear, RowQuery, RowScore, copied};

pub(super) struct Planned {
    /// From states to queries, unless they are the states.
    query: Option<PlannedLinear>,
    /// `v` of the additive score.
    v: Option<Floats>,
    /// Whether the additive score has projected keys.
    keys: bool,
    locality: Locality,
    /// Two layers that predict the centre.
    centre: Option<[PlannedLinear; 2]>,
    combine: PlannedLinear,
    /// `h̃` of the previous step, if it is fed back.
    fed: Option<Floats>,
    width: usize,
    /// Queries, two layers of the centre's prediction, and context beside state.
    room: [Floats; 4],
}

impl Planned {
    /// `None` if the model attends neither globally by softmax nor within a window of Luong's.
    pub fn new(model: &Luong) -> Option<Planned> {
        if !model.looking.is_plain() {
            return None;
        }
        // hᵀ·W·s is the dot product of hᵀ·W and s.
        let general = model.general.as_ref().map(|w| {
            let [_, h, memory] = w.dims();
            let weight = Param::from_tensor(w.val().reshape([h, memory]));
            PlannedLinear::new(&Linear::new(weight, None, Activation::Identity))
        });
        let v = model.v.as_ref().map(|v| {
            let mut floats = Floats::new();
            copied(v.val(), &mut floats);
            floats
        });
        let centre = model.centre.as_ref().zip(model.centre_v.as_ref());
        Some(Planned {
            query: general.or_else(|| model.query.as_ref().map(PlannedLinear::new)),
            v,
            keys: model.key.is_some(),
            locality: model.config.locality,
            centre: centre.map(|(inner, outer)| [inner, outer].map(PlannedLinear::new)),
            combine: PlannedLinear::new(&model.combine),
            fed: model.config.input_feeding.then(Floats::new),
            width: model.config.shape.hidden_size,
            room: Default::default(),
        })
    }

    /// Attends from the states of the last layer.
    fn attend(&mut self, step: &mut Step) {
        let Step { sentences, rows, context, number, .. } = step;
        let [q, inner, share, _] = &mut self.room;
        let state = rows.last();
        let q = match &self.query {
            Some(query) => {
                query.forward(state, q);
                &q[..]
            }
            None => state,
        };
        let score = match &self.v {
            Some(v) => RowScore::Additive { v, covered: None },
            None => RowScore::Dot,
        };
        if let Some([first, second]) = &self.centre {
            first.forward(state, inner);
            second.forward(inner, share);
        }
        let (locality, share, number) = (self.locality, &*share, *number);
        sentences.attend(
            q,
            score,
            |row, query| {
                let last = query.keys.end.saturating_sub(1) as f32;
                match locality {
                    Locality::Global => query,
                    Locality::LocalM { width } => within((number as f32).min(last), width, query),
                    Locality::LocalP { width } => {
                        let centre = last / (1.0 + (-share[row]).exp());
                        let gaussian = Some([centre, width as f32 / 2.0]);
                        RowQuery { gaussian, ..within(centre, width, query) }
                    }
                }
            },
            context,
            None,
        );
    }
}

/// Restricts a query to keys at most `width` away from a centre.
fn within(centre: f32, width: usize, query: RowQuery<'_>) -> RowQuery<'_> {
    let (centre, width) = (f64::from(centre), width as f64);
    let end = ((centre + width).floor() as usize).saturating_add(1).min(query.keys.end);
    let start = ((centre - width).ceil().max(0.0) as usize).min(end);
    RowQuery { keys: start..end, ..query }
}

impl PlannedStep for Planned {
    fn has_keys(&self) -> bool {
        self.keys
    }

    fn advance(&mut self, step: &mut Step) {
        if let Some(fed) = self.fed.as_mut().filter(|_| step.number == 0) {
            fed.set_len(step.sentences.rows() * self.width);
            fed.fill(0.0);
        }
        match &self.fed {
            Some(fed) => step.advance_cells(Beside::Floats(fed)),
            None => step.advance_cells(Beside::Nothing),
        }
        self.attend(step);
        let (rows, [.., both]) = (step.sentences.rows(), &mut self.room);
        both.join(rows, &[&step.context, step.rows.last()]);
        self.combine.forward(both, &mut step.state);
        if let Some(fed) = &mut self.fed {
            fed.copy_from(&step.state);
        }
    }

    fn reorder(&mut self, parents: &[usize]) {
        // Before the first step, nothing is fed.
        if let Some(fed) = self.fed.as_mut().filter(|fed| !fed.is_empty()) {
            fed.select(self.width, parents);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_wider_than_the_text_is_all_of_it() {
        for (width, want) in [(1, 2..5), (7, 0..7), (1 << 53, 0..7), (usize::MAX, 0..7)] {
            let query =
                RowQuery { q: &[], k: &[], v: &[], keys: 0..7, coverage: None, gaussian: None };
            assert_eq!(within(3.0, width, query).keys, want, "{width}");
        }
    }
}

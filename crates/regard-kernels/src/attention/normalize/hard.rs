//! Hard attention: a single key. A choice in the forward; one of three gradient estimators in the
//! backward.
//!
//! The notes' "hard coding" averages keys; this follows Xu et al. 2015: the context is the value of
//! one key.

use super::*;
use crate::attention::formula::gumbel_noise;
use crate::attention::tile::each_cell;
use crate::rng::Stream;
use crate::scratch::Scratch;
use crate::view::bail;

pub(super) const STRAIGHT_THROUGH: Row<dyn Normalizer> = Row {
    about: Variant {
        name: "hard",
        params: &[],
        settings: &[],
        formula: "1 for the largest score (ties: the lowest index); gradient of the scores by softmax",
        paper: "Bengio et al. 2013, arXiv:1308.3432",
    },
    new: |_| Ok(Arc::new(Hard(Estimator::StraightThrough))),
    trials: DEFAULTS,
};
pub(super) const GUMBEL: Row<dyn Normalizer> = Row {
    about: Variant {
        name: "gumbel",
        params: &[],
        settings: &[Setting::Number("temperature", 1.0), Setting::Seed],
        formula: "hard on (s + g)/temperature with Gumbel noise g",
        paper: "Jang et al. 2017, arXiv:1611.01144",
    },
    new: |settings| {
        let (temperature, noise) = (settings.of("temperature"), settings.stream());
        let hard = Hard(Estimator::Gumbel { temperature, noise });
        hard.check()?;
        Ok(Arc::new(hard))
    },
    trials: &[&[("temperature", 0.7)]],
};
pub(super) const REINFORCE: Row<dyn Normalizer> = Row {
    about: Variant {
        name: "reinforce",
        params: &[],
        settings: &[Setting::Seed],
        formula: "one key j ~ softmax(s); gradient through log_prob only",
        paper: "Xu et al. 2015, arXiv:1502.03044; Williams 1992",
    },
    new: |settings| Ok(Arc::new(Hard(Estimator::Reinforce { noise: settings.stream() }))),
    trials: DEFAULTS,
};

/// Gradient estimator of a hard choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Estimator {
    /// Straight-through: the values' gradient is that of the choice, the scores' that of a softmax.
    StraightThrough,
    /// Straight-through on scores with Gumbel noise, divided by a temperature.
    Gumbel {
        /// Temperature, above 0; lower values are closer to a hard choice.
        temperature: f32,
        /// Random stream of the noise.
        noise: Stream,
    },
    /// The choice is sampled from the softmax; scores learn through its log-probability.
    Reinforce {
        /// Random stream of the sample.
        noise: Stream,
    },
}

/// Hard attention: one key gets weight 1; a query without keys gets none, index −1 and
/// log-probability 0.
#[derive(Clone, Copy, Debug)]
pub struct Hard(pub Estimator);

impl Hard {
    fn noise(&self) -> Option<Stream> {
        match self.0 {
            Estimator::StraightThrough => None,
            Estimator::Gumbel { noise, .. } | Estimator::Reinforce { noise } => Some(noise),
        }
    }

    /// The Gumbel noise of a cell, a function of its index in `[B, H, T, S]` alone.
    fn draw(noise: Stream, at: &At, query: usize, key: usize) -> f32 {
        let d = at.grid.dims;
        let row = (at.b * d.h + at.h) * d.t + query;
        noise.gumbel(row as u64 * d.s as u64 + key as u64)
    }

    /// Replaces scores by those of the surrogate softmax of the backward.
    fn surrogate(&self, at: &At, tile: &mut Tile) {
        if let Estimator::Gumbel { temperature, noise } = self.0 {
            each_cell(at, tile, |s, i, j| {
                *s = (*s + Hard::draw(noise, at, i, j)) / temperature;
            });
        }
    }

    /// Sets the cells of the chosen keys to 1 and the others to 0.
    fn one_hot(at: &At, tile: &mut Tile, pick: &[i32]) {
        tile.data.fill(0.0);
        each_cell(at, tile, |cell, i, j| {
            *cell = f32::from(u8::from(pick[i - at.i0] == j as i32));
        });
    }
}

impl Normalizer for Hard {
    fn formula(&self) -> Option<Normalized> {
        let noisy = match self.noise() {
            Some(noise) => scores() + gumbel_noise(noise),
            None => scores(),
        };
        let chosen = noisy.clone().chosen();
        // The surrogate softmax of the backward.
        let p = softmax::formula(match self.0 {
            Estimator::Gumbel { temperature, .. } => noisy / number(f64::from(temperature)),
            Estimator::StraightThrough | Estimator::Reinforce { .. } => scores(),
        });
        let log_prob = Some((chosen.clone() * p.clone()).total().ln());
        let weights = match self.0 {
            Estimator::Reinforce { .. } => chosen,
            _ => chosen - p.clone().detach() + p,
        };
        Some(Normalized { weights, log_prob })
    }
    fn check(&self) -> Result<(), Error> {
        match self.0 {
            Estimator::Gumbel { temperature, .. }
                if !(temperature > 0.0 && temperature.is_finite()) =>
            {
                bail!("temperature: got {temperature}, need a number above 0")
            }
            _ => Ok(()),
        }
    }
    fn block(&self, at: &At, tile: &mut Tile, state: &mut NormalizerState) {
        let cells = tile.keys * tile.lanes;
        state.best.resize(tile.lanes, (f32::NEG_INFINITY, 0.0));
        state.pick.resize(tile.lanes, -1);
        // The choice, by scores with noise; `best` holds the best of earlier blocks.
        let mut noisy = Scratch::new(cells);
        noisy.copy_from_slice(&tile.data[..cells]);
        let mut noisy = Tile { data: &mut noisy, ..*tile };
        if let Some(noise) = self.noise() {
            each_cell(at, &mut noisy, |s, i, j| {
                *s += Hard::draw(noise, at, i, j);
            });
        }
        let mut choice = vec![None; tile.lanes];
        for row in 0..tile.keys {
            for (lane, choice) in choice.iter_mut().enumerate().take(tile.queries) {
                let score = noisy.data[row * tile.lanes + lane];
                let best = state.best[lane].0;
                // NaN wins over everything, so that it is not hidden.
                if score > best || (score.is_nan() && !best.is_nan()) {
                    state.best[lane].0 = score;
                    *choice = Some(row);
                }
            }
        }
        // The statistics of the softmax, for the backward and the log-probability.
        self.surrogate(at, tile);
        for (lane, row) in choice.iter().enumerate() {
            if let Some(row) = row {
                state.best[lane].1 = tile.data[row * tile.lanes + lane];
            }
        }
        softmax::block(tile, state);
        state.rescale.fill(1.0);
        tile.data[..cells].fill(0.0);
        for (lane, row) in choice.into_iter().enumerate() {
            if let Some(row) = row {
                state.rescale[lane] = 0.0;
                state.pick[lane] = at.keys.key(row, lane).map_or(-1, |key| key as i32);
                let unknown = state.best[lane].0.is_nan();
                tile.data[row * tile.lanes + lane] = if unknown { f32::NAN } else { 1.0 };
            }
        }
    }
    fn finish(&self, state: &mut NormalizerState) {
        softmax::finish(state);
    }
    fn chooses(&self) -> bool {
        true
    }
    fn weights(&self, at: &At, tile: &mut Tile, stats: Stats) {
        Hard::one_hot(at, tile, stats.pick);
    }
    fn delta(&self) -> Delta {
        match self.0 {
            Estimator::Reinforce { .. } => Delta::LogProb,
            _ => Delta::FromSlopes,
        }
    }
    fn slopes(&self, at: &At, tile: &mut Tile, stats: Stats) {
        self.surrogate(at, tile);
        softmax::weights(tile, stats);
    }
    fn gradient(&self, at: &At, s: &mut Tile, dp: &mut Tile, stats: Stats, delta: &[f32]) {
        self.surrogate(at, s);
        match self.0 {
            Estimator::StraightThrough => softmax::gradient(s, dp, stats, delta),
            Estimator::Gumbel { temperature, .. } => {
                softmax::gradient(s, dp, stats, delta);
                dp.data.iter_mut().for_each(|ds| *ds /= temperature);
            }
            Estimator::Reinforce { .. } => {
                // log_prob = s_pick − log Σ e^s, so ds = dlog_prob · (1[pick] − p)
                softmax::weights(s, stats);
                let cells = s.data.iter().zip(dp.data.iter_mut()).take(s.keys * s.lanes);
                for (at, (p, ds)) in cells.enumerate() {
                    *ds = -p * delta[at % s.lanes];
                }
                each_cell(at, dp, |ds, i, j| {
                    let lane = i - at.i0;
                    if stats.pick[lane] == j as i32 {
                        *ds += delta[lane];
                    }
                });
            }
        }
        Hard::one_hot(at, s, stats.pick);
    }
}

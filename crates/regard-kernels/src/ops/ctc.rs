//! Connectionist temporal classification (Graves et al. 2006): the loss of a label sequence without
//! an alignment of labels to rows.
//!
//! `loss = −ln Σ_π Π_t softmax(x_t)_{π_t}`, over all paths `π` of one class per row that collapse
//! to the labels, when repetitions are merged and blanks removed.
//!
//! With the labels `l`, blanks around each, `s = 0 … 2L`, and `y_t = log softmax(x_t)`:
//!
//! ```text
//! α_t(s) = y_t(s) + ln( e^{α_{t−1}(s)} + e^{α_{t−1}(s−1)} + e^{α_{t−1}(s−2)} )
//! β_t(s) = ln( e^{β_{t+1}(s) + y_{t+1}(s)} + e^{… (s+1)} + e^{… (s+2)} )
//! ```
//!
//! where the step over two is only from a label to a different one. Log-probabilities of long
//! sequences are large and leave few digits after the point: in single precision, posteriors of
//! 4,000 rows were off by 2e-5 even with the maximum of each row subtracted. So `α` and `β` are in
//! double precision; only inputs and outputs are in single.

use super::Parts;
use crate::pool::parallel;
use crate::view::{Error, bail};

const NEVER: f64 = f64::NEG_INFINITY;

/// Options of the CTC loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ctc {
    /// Index of the blank class.
    pub blank: usize,
    /// Whether a sequence with fewer rows than its labels need has a loss of 0 instead of infinity.
    /// Its gradient is 0 either way.
    pub zero_infinity: bool,
}

/// Logits and target labels of a batch, sequences concatenated without padding.
///
/// # Shapes
/// `logits: [N, V]` with `N` the sum of `rows: [B]`; `letters`: the labels of all sequences, as
/// many as the sum of `counts: [B]`.
#[derive(Clone, Copy)]
pub struct CtcBatch<'a> {
    /// Unnormalised scores, row-major.
    pub logits: &'a [f32],
    /// `V`, the number of classes.
    pub classes: usize,
    /// Number of logit rows of each sequence.
    pub rows: &'a [usize],
    /// Target labels of all sequences, in sequence.
    pub letters: &'a [i64],
    /// Number of labels of each sequence.
    pub counts: &'a [usize],
}

/// Values saved by the forward for the backward.
#[derive(Clone, Debug, Default)]
pub struct SavedCtc {
    /// Log-sum-exp of each row, `[N]`.
    sums: Vec<f64>,
    /// `α` of each sequence, `[T, 2L + 1]`.
    alphas: Vec<f64>,
    /// Whether each sequence has a path.
    possible: Vec<bool>,
}

/// Offsets of a sequence in all arrays.
#[derive(Clone, Copy)]
struct Place {
    rows: usize,
    first_row: usize,
    letters: usize,
    first_letter: usize,
    first_alpha: usize,
}

impl Place {
    /// `2L + 1`
    fn states(&self) -> usize {
        2 * self.letters + 1
    }
}

/// One sequence with its logits and labels.
struct Sequence<'a> {
    x: &'a [f32],
    sums: &'a [f64],
    letters: &'a [i64],
    classes: usize,
    blank: usize,
}

impl Ctc {
    /// Computes the loss of each sequence, `losses: [B]`, and returns the values saved for the
    /// backward.
    ///
    /// # Errors
    /// If shapes do not match, or if a label is the blank or not a class.
    pub fn forward(&self, spoken: CtcBatch, losses: &mut [f32]) -> Result<SavedCtc, Error> {
        let places = self.check(spoken)?;
        if losses.len() != places.len() {
            bail!("ctc: {} sequences, but room for {} losses", places.len(), losses.len());
        }
        let alphas = places.last().map_or(0, |p| p.first_alpha + p.rows * p.states());
        let rows = spoken.rows.iter().sum();
        let mut saved = SavedCtc {
            sums: vec![0.0; rows],
            alphas: vec![NEVER; alphas],
            possible: vec![false; places.len()],
        };
        let (sums, alphas) = (Parts::new(&mut saved.sums), Parts::new(&mut saved.alphas));
        let (out, possible) = (Parts::new(losses), Parts::new(&mut saved.possible));
        parallel(places.len(), &|b| {
            let place = places[b];
            // SAFETY: each sequence is one task's.
            let (sums, alphas, out, possible) = unsafe {
                (
                    sums.part(place.first_row, place.rows),
                    alphas.part(place.first_alpha, place.rows * place.states()),
                    &mut out.part(b, 1)[0],
                    &mut possible.part(b, 1)[0],
                )
            };
            let x = &spoken.logits[place.first_row * spoken.classes..];
            for (sum, x) in sums.iter_mut().zip(x.chunks_exact(spoken.classes)) {
                *sum = log_sum(x.iter().map(|x| f64::from(*x)));
            }
            let loss = self.sequence(spoken, place, sums).forward(alphas);
            *possible = loss.is_finite();
            *out = if loss == f64::INFINITY && self.zero_infinity { 0.0 } else { loss as f32 };
        });
        Ok(saved)
    }

    /// Computes `dlogits[t, v] = dloss · (softmax(x_t)_v − Σ_{s: l(s) = v} γ_t(s))`, where `γ_t(s)`
    /// is the posterior probability of state `s` in row `t`.
    ///
    /// # Shapes
    /// `dlosses: [B]`, `dlogits: [N, V]`
    pub fn backward(
        &self,
        spoken: CtcBatch,
        saved: &SavedCtc,
        dlosses: &[f32],
        dlogits: &mut [f32],
    ) -> Result<(), Error> {
        let places = self.check(spoken)?;
        if dlosses.len() != places.len() || dlogits.len() != spoken.logits.len() {
            let (losses, out) = (dlosses.len(), dlogits.len());
            bail!("ctc: {} sequences, {losses} gradients, room for {out}", places.len());
        }
        let out = Parts::new(dlogits);
        parallel(places.len(), &|b| {
            let (place, classes) = (places[b], spoken.classes);
            // SAFETY: each sequence is one task's.
            let dx = unsafe { out.part(place.first_row * classes, place.rows * classes) };
            if !saved.possible[b] {
                dx.fill(0.0);
                return;
            }
            let sums = &saved.sums[place.first_row..][..place.rows];
            let alphas = &saved.alphas[place.first_alpha..][..place.rows * place.states()];
            self.sequence(spoken, place, sums).backward(alphas, dlosses[b], dx);
        });
        Ok(())
    }

    fn sequence<'a>(&self, spoken: CtcBatch<'a>, place: Place, sums: &'a [f64]) -> Sequence<'a> {
        let classes = spoken.classes;
        Sequence {
            x: &spoken.logits[place.first_row * classes..][..place.rows * classes],
            sums,
            letters: &spoken.letters[place.first_letter..][..place.letters],
            classes,
            blank: self.blank,
        }
    }

    fn check(&self, spoken: CtcBatch) -> Result<Vec<Place>, Error> {
        let CtcBatch { logits, classes, rows, letters, counts } = spoken;
        let (all_rows, all_letters) = (rows.iter().sum::<usize>(), counts.iter().sum::<usize>());
        if rows.len() != counts.len() {
            bail!("ctc: rows of {} sequences, labels of {}", rows.len(), counts.len());
        }
        if logits.len() != all_rows * classes {
            bail!("ctc: {} logits, need {all_rows} rows of {classes}", logits.len());
        }
        if letters.len() != all_letters {
            bail!("ctc: {} labels, the sequences have {all_letters}", letters.len());
        }
        if self.blank >= classes {
            bail!("ctc: the blank is {}, but there are {classes} classes", self.blank);
        }
        let wrong = |l: &i64| !(0..classes as i64).contains(l) || *l == self.blank as i64;
        if let Some(at) = letters.iter().position(wrong) {
            let letter = letters[at];
            bail!("ctc: label {at} is {letter}, need one of {classes} classes but the blank");
        }
        let mut next = Place { rows: 0, first_row: 0, letters: 0, first_letter: 0, first_alpha: 0 };
        let place = |(rows, letters): (&usize, &usize)| {
            let place = Place { rows: *rows, letters: *letters, ..next };
            next.first_row += rows;
            next.first_letter += letters;
            next.first_alpha += rows * place.states();
            place
        };
        Ok(rows.iter().zip(counts).map(place).collect())
    }
}

/// `ln Σ e^x`; −∞ for an empty iterator.
fn log_sum(x: impl Iterator<Item = f64> + Clone) -> f64 {
    let top = x.clone().fold(NEVER, f64::max);
    match top.is_finite() {
        true => top + x.map(|x| (x - top).exp()).sum::<f64>().ln(),
        // All are −∞, or one is +∞ or NaN, which the sum propagates.
        false => x.sum::<f64>(),
    }
}

impl Sequence<'_> {
    fn states(&self) -> usize {
        2 * self.letters.len() + 1
    }

    /// The class of a state: blanks at even states.
    fn class(&self, s: usize) -> usize {
        if s.is_multiple_of(2) { self.blank } else { self.letters[s / 2] as usize }
    }

    /// Whether a path may go from `s` to `s + 2`.
    fn skips(&self, s: usize) -> bool {
        s % 2 == 1 && s + 2 < self.states() && self.letters[s / 2] != self.letters[s / 2 + 1]
    }

    fn log_share(&self, t: usize, s: usize) -> f64 {
        f64::from(self.x[t * self.classes + self.class(s)]) - self.sums[t]
    }

    /// Fills `α` and returns the loss.
    fn forward(&self, alphas: &mut [f64]) -> f64 {
        let (states, rows) = (self.states(), self.sums.len());
        if rows == 0 {
            // No row gives the empty label sequence, with certainty.
            return if self.letters.is_empty() { 0.0 } else { f64::INFINITY };
        }
        for t in 0..rows {
            let (before, now) = alphas.split_at_mut(t * states);
            let (before, now) = (&before[t.saturating_sub(1) * states..], &mut now[..states]);
            for (s, now) in now.iter_mut().enumerate() {
                let came = match t {
                    0 if s < 2 => 0.0,
                    0 => NEVER,
                    _ => {
                        let back = |n: usize| if s < n { NEVER } else { before[s - n] };
                        let jumped = if s >= 2 && self.skips(s - 2) { back(2) } else { NEVER };
                        log_sum([back(0), back(1), jumped].into_iter())
                    }
                };
                *now = came + self.log_share(t, s);
            }
        }
        let last = &alphas[(rows - 1) * states..];
        -log_sum(last[states.saturating_sub(2)..].iter().copied())
    }

    /// Computes `β` from the last row to the first, and the gradient of each row on the way.
    fn backward(&self, alphas: &[f64], dloss: f32, dx: &mut [f32]) {
        let (states, rows) = (self.states(), self.sums.len());
        let mut beta = vec![NEVER; states];
        beta[states.saturating_sub(2)..].fill(0.0);
        let mut after = vec![NEVER; states];
        for t in (0..rows).rev() {
            if t + 1 < rows {
                for (s, after) in after.iter_mut().enumerate() {
                    *after = beta[s] + self.log_share(t + 1, s);
                }
                for (s, beta) in beta.iter_mut().enumerate() {
                    let on = |n: usize| after.get(s + n).copied().unwrap_or(NEVER);
                    let jumped = if self.skips(s) { on(2) } else { NEVER };
                    *beta = log_sum([on(0), on(1), jumped].into_iter());
                }
            }
            let alpha = &alphas[t * states..][..states];
            let all = log_sum(alpha.iter().zip(&beta).map(|(a, b)| a + b));
            let dx = &mut dx[t * self.classes..][..self.classes];
            let x = &self.x[t * self.classes..][..self.classes];
            // loss = −ln Σ_s e^{α_t(s) + β_t(s)}, with α_t(s) = … + x_t(l(s)) − lse(x_t)
            for (dx, x) in dx.iter_mut().zip(x) {
                *dx = dloss * (f64::from(*x) - self.sums[t]).exp() as f32;
            }
            for (s, (alpha, beta)) in alpha.iter().zip(&beta).enumerate() {
                dx[self.class(s)] -= dloss * (alpha + beta - all).exp() as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{close, numeric, random, wide};

    /// By enumerating all paths.
    fn reference(x: &[f64], classes: usize, letters: &[i64], blank: usize) -> f64 {
        let rows = x.len() / classes;
        let mut total = 0.0;
        for path in 0..classes.pow(rows as u32) {
            let at = |t: usize| path / classes.pow(t as u32) % classes;
            let mut said: Vec<i64> = vec![];
            let mut share = 1.0;
            for t in 0..rows {
                let row = &x[t * classes..(t + 1) * classes];
                share *= row[at(t)].exp() / row.iter().map(|x| x.exp()).sum::<f64>();
                if at(t) != blank && (t == 0 || at(t) != at(t - 1)) {
                    said.push(at(t) as i64);
                }
            }
            if said == letters {
                total += share;
            }
        }
        -total.ln()
    }

    #[test]
    fn forward_and_backward_are_those_of_all_paths() {
        let cases: [(usize, usize, usize, &[i64]); 8] = [
            (1, 3, 0, &[2]),
            (4, 3, 0, &[]),
            (5, 3, 0, &[1, 2]),
            (5, 4, 0, &[2, 2]),
            (6, 3, 2, &[0, 1, 0]),
            (7, 3, 0, &[1, 1, 2]),
            (6, 4, 3, &[0, 0, 1]),
            (5, 2, 1, &[0, 0, 0]),
        ];
        // All in one batch, so that sequences follow one another.
        for (i, (rows, classes, blank, letters)) in cases.into_iter().enumerate() {
            let x: Vec<f32> = random(i as u64, rows * classes).iter().map(|x| 3.0 * x).collect();
            let short: Vec<f32> = random(90 + i as u64, 2 * classes);
            let logits = [short.clone(), x.clone()].concat();
            let ctc = Ctc { blank, zero_infinity: false };
            let spoken = CtcBatch {
                logits: &logits,
                classes,
                rows: &[2, rows],
                letters,
                counts: &[0, letters.len()],
            };
            let (mut losses, mut dx) = ([0f32; 2], vec![0f32; logits.len()]);
            let saved = ctc.forward(spoken, &mut losses).unwrap();
            ctc.backward(spoken, &saved, &[0.5, 1.5], &mut dx).unwrap();
            let case = format!("{rows} {classes} {letters:?}");
            let loss = |x: &[f64]| {
                let (first, second) = x.split_at(2 * classes);
                let first = reference(first, classes, &[], blank);
                vec![first, reference(second, classes, letters, blank)]
            };
            close(&case, &losses, &loss(&wide(&logits)), 2e-6);
            close(&case, &dx, &numeric(&wide(&logits), &[0.5, 1.5], loss), 2e-6);
        }
    }

    #[test]
    fn what_no_path_can_say() {
        let spoken = CtcBatch {
            logits: &[0.5; 9],
            classes: 3,
            rows: &[2, 1, 0],
            letters: &[1, 1, 2, 1],
            counts: &[2, 1, 1],
        };
        let (mut losses, mut dx) = ([0f32; 3], [1f32; 9]);
        let infinite = Ctc::default();
        let saved = infinite.forward(spoken, &mut losses).unwrap();
        assert_eq!([losses[0], losses[2]], [f32::INFINITY; 2]);
        assert!((losses[1] - 3f32.ln()).abs() < 1e-6);
        infinite.backward(spoken, &saved, &[1.0; 3], &mut dx).unwrap();
        assert_eq!(dx[..6], [0.0; 6]);
        assert!(dx[6..].iter().all(|x| *x != 0.0));
        Ctc { zero_infinity: true, ..infinite }.forward(spoken, &mut losses).unwrap();
        assert_eq!([losses[0], losses[2]], [0.0; 2]);
    }

    /// Each row of the gradient sums to 0, since probabilities sum to 1 on both sides; the loss of
    /// labels that are all certain is 0.
    #[test]
    fn long_sequences_keep_their_digits() {
        let (rows, classes) = (4000, 30);
        let x: Vec<f32> = random(7, rows * classes).iter().map(|x| 8.0 * x).collect();
        let letters: Vec<i64> = (0..1200).map(|i| 1 + (i * 7 % 29)).collect();
        let spoken = CtcBatch {
            logits: &x,
            classes,
            rows: &[rows],
            letters: &letters,
            counts: &[letters.len()],
        };
        let (mut losses, mut dx) = ([0f32], vec![0f32; x.len()]);
        let ctc = Ctc::default();
        let saved = ctc.forward(spoken, &mut losses).unwrap();
        ctc.backward(spoken, &saved, &[1.0], &mut dx).unwrap();
        assert!(losses[0] > 1000.0 && losses[0].is_finite());
        for (t, row) in dx.chunks(classes).enumerate() {
            let sum: f32 = row.iter().sum();
            assert!(sum.abs() < 1e-6, "row {t} sums to {sum}");
        }
        let sure: Vec<f32> =
            (0..rows * 2).map(|i| if i % 4 == 1 || i % 4 == 2 { 50.0 } else { -50.0 }).collect();
        let letters = vec![1; rows / 2];
        let counts = [letters.len()];
        let spoken = CtcBatch {
            logits: &sure,
            classes: 2,
            rows: &[rows],
            letters: &letters,
            counts: &counts,
        };
        ctc.forward(spoken, &mut losses).unwrap();
        assert!(losses[0].abs() < 1e-4, "{}", losses[0]);
    }

    #[test]
    fn a_nan_is_passed_on_and_stays_in_its_sequence() {
        let mut logits = random(3, 12);
        logits[1] = f32::NAN;
        let spoken = CtcBatch {
            logits: &logits,
            classes: 3,
            rows: &[2, 2],
            letters: &[1, 2],
            counts: &[1, 1],
        };
        let mut losses = [0f32; 2];
        Ctc::default().forward(spoken, &mut losses).unwrap();
        assert!(losses[0].is_nan() && losses[1].is_finite(), "{losses:?}");
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let good =
            CtcBatch { logits: &[0.0; 6], classes: 3, rows: &[2], letters: &[1], counts: &[1] };
        let error = |ctc: Ctc, spoken| ctc.forward(spoken, &mut [0.0]).unwrap_err().0;
        let ctc = Ctc::default();
        assert!(error(ctc, CtcBatch { letters: &[3], ..good }).contains("label 0 is 3"));
        assert!(error(ctc, CtcBatch { letters: &[0], ..good }).contains("but the blank"));
        assert!(error(ctc, CtcBatch { rows: &[3], ..good }).contains("6 logits, need 3 rows of 3"));
        assert!(error(ctc, CtcBatch { counts: &[2], ..good }).contains("1 labels, the sequences"));
        assert!(error(Ctc { blank: 3, ..ctc }, good).contains("the blank is 3"));
    }
}

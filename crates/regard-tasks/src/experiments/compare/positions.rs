//! Position encodings beyond the trained length: each position predicts the symbol two positions
//! before it, which needs information on positions.

use super::learn::{Draws, accuracy, device, integers, loss, percent, train};
use super::{CompareOptions, ComparisonResult, Figure, Line};
use burn::module::Module;
use burn::tensor::{Int, Tensor};
use regard_attention::layers::{
    Call, Embedding, EmbeddingConfig, LearnedPositions, Linear, LinearConfig, Rotary,
    SelfAttention, SelfAttentionConfig, alibi_slopes, sinusoidal,
};
use regard_attention::mask::causal;
use regard_attention::{Attention, Init};
use regard_models::Result;

const SYMBOLS: usize = 12;
const WIDTH: usize = 64;
const HEADS: usize = 2;
const BATCH: usize = 16;
/// Length of training sequences.
const TRAINED: usize = 32;
/// Longest evaluated sequence: there are vectors for all of these positions, trained or not.
const LONGEST: usize = 128;
/// Distance of the symbol to predict.
const BACK: usize = 2;
/// Number of positions at the end that are evaluated.
const MARKED: usize = 8;

/// Kind of position encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PositionVariant {
    Sine,
    Learned,
    Rotary,
    Alibi,
    Nothing,
}

const ALL: [PositionVariant; 5] = [
    PositionVariant::Sine,
    PositionVariant::Learned,
    PositionVariant::Rotary,
    PositionVariant::Alibi,
    PositionVariant::Nothing,
];

impl PositionVariant {
    fn name(self) -> &'static str {
        match self {
            PositionVariant::Sine => "sine",
            PositionVariant::Learned => "learned",
            PositionVariant::Rotary => "rotary",
            PositionVariant::Alibi => "ALiBi",
            PositionVariant::Nothing => "none",
        }
    }
}

#[derive(Module, Debug)]
struct Model {
    embedding: Embedding,
    learned: Option<LearnedPositions>,
    rotary: Option<Rotary>,
    layer: SelfAttention,
    classes: Linear,
    #[module(skip)]
    told: PositionVariant,
}

impl Model {
    fn new(told: PositionVariant, seed: u64) -> Model {
        let init = &mut Init::new(seed, &device());
        let learned =
            || LearnedPositions::new(LONGEST, WIDTH, 1.0, &mut Init::new(seed + 1, &device()));
        Model {
            embedding: EmbeddingConfig::new(SYMBOLS, WIDTH).init(init),
            learned: (told == PositionVariant::Learned).then(learned),
            rotary: (told == PositionVariant::Rotary).then(|| Rotary::new(LONGEST, WIDTH / HEADS)),
            layer: SelfAttentionConfig::new(WIDTH, HEADS).init(init),
            classes: LinearConfig::new(WIDTH, SYMBOLS).init(init),
            told,
        }
    }

    /// `[B, T]` → `[B, T, SYMBOLS]`
    fn forward(&self, ids: Tensor<2, Int>) -> Tensor<3> {
        let mut x = self.embedding.forward(ids);
        let [_, t, m] = x.dims();
        let mut attention = Attention::dot().mask(causal());
        match self.told {
            PositionVariant::Sine => x = x + sinusoidal(t, m, &device()).unsqueeze(),
            PositionVariant::Learned => {
                x = self.learned.as_ref().expect("it learns them").forward(x, 0);
            }
            PositionVariant::Alibi => attention = attention.alibi(alibi_slopes(HEADS, &device())),
            PositionVariant::Rotary | PositionVariant::Nothing => {}
        }
        let call = Call::new(&attention).rotary(self.rotary.as_ref());
        self.classes.forward(self.layer.forward(x, call))
    }

    /// Computes logits at the last `marked` positions.
    fn ends(&self, ids: Tensor<2, Int>, marked: usize) -> Tensor<2> {
        let [b, t] = ids.dims();
        let all = self.forward(ids);
        all.slice([0..b, t - marked..t, 0..SYMBOLS]).reshape([b * marked, SYMBOLS])
    }
}

/// Draws sequences `[rows, length]` and the targets of their last positions.
fn batch(rows: usize, length: usize, marked: usize, draws: &mut Draws) -> (Vec<usize>, Vec<usize>) {
    let ids: Vec<usize> = (0..rows * length).map(|_| draws.below(SYMBOLS)).collect();
    let places = |row: usize| (length - marked..length).map(move |i| row * length + i - BACK);
    let wanted = (0..rows).flat_map(places).map(|at| ids[at]).collect();
    (ids, wanted)
}

/// Computes the accuracy at some lengths, after training at one.
fn shares(told: PositionVariant, lengths: &[usize], steps: u64, seed: u64) -> Vec<f64> {
    let model = train(Model::new(told, seed), steps, 1e-2, |model, step| {
        let marked = TRAINED - BACK;
        let (ids, wanted) = batch(BATCH, TRAINED, marked, &mut Draws::new(seed, step));
        loss(model.ends(integers(&ids, [BATCH, TRAINED]), marked), &wanted)
    });
    let share = |length: &usize| {
        const EXAM: usize = 64;
        let (ids, wanted) = batch(EXAM, *length, MARKED, &mut Draws::new(seed, u64::MAX));
        accuracy(model.ends(integers(&ids, [EXAM, *length]), MARKED), &wanted)
    };
    lengths.iter().map(share).collect()
}

pub fn measure(options: &CompareOptions) -> Result<ComparisonResult> {
    let (lengths, steps): (&[usize], u64) =
        if options.quick { (&[32, 48, 128], 250) } else { (&[16, 32, 40, 48, 64, 96, 128], 500) };
    let mut heading = vec!["positions".to_string()];
    heading.extend(lengths.iter().map(|length| format!("length {length}")));
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    let mut found = ComparisonResult::new(
        format!(
            "which of {SYMBOLS} symbols was {BACK} positions back? One self-attention of width \
             {WIDTH}, trained at length {TRAINED} ({steps} steps), evaluated at the last {MARKED} \
             positions; chance is {}",
            percent(1.0 / SYMBOLS as f64)
        ),
        &heading,
    );
    let mut lines = vec![];
    for told in ALL {
        let shares = shares(told, lengths, steps, options.seed);
        let mut row = vec![told.name().to_string()];
        row.extend(shares.iter().map(|share| percent(*share)));
        found.row(row);
        for (length, share) in lengths.iter().zip(&shares) {
            found.number(told.name(), &format!("at_{length}"), *share);
        }
        let points = lengths.iter().zip(&shares).map(|(n, share)| (*n as f64, 100.0 * share));
        lines.push(Line { name: told.name().into(), points: points.collect() });
    }
    found.figures.push(Figure {
        name: "positions".into(),
        title: format!("accuracy beyond the trained length of {TRAINED}"),
        x: "length".into(),
        y: "%".into(),
        logarithmic: [false, false],
        lines,
    });
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learned_positions_end_where_training_did() {
        let lengths = [TRAINED, 64];
        let learned = shares(PositionVariant::Learned, &lengths, 250, 0);
        assert!(learned[0] > 0.8 && learned[1] < 0.5, "{learned:?}");
        let rotary = shares(PositionVariant::Rotary, &lengths, 250, 0);
        assert!(rotary[0] > 0.8 && rotary[1] > learned[1] + 0.2, "{rotary:?}");
        let nothing = shares(PositionVariant::Nothing, &[TRAINED], 100, 0);
        assert!(nothing[0] < 0.3, "{nothing:?}");
    }
}

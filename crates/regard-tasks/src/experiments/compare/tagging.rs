//! Tags that depend on a distant token: a window of neighbours through a fully connected layer, of
//! any width, or self-attention.
//!
//! The first word of a sentence is its topic. Words after it have a tag of their own, except that
//! ambiguous ones are tagged by the topic.

use super::learn::{Draws, accuracy, device, integers, loss, percent, train};
use super::{CompareOptions, ComparisonResult};
use burn::module::Module;
use burn::tensor::{Int, Tensor};
use regard_attention::layers::{
    Call, Convolution, ConvolutionConfig, Embedding, EmbeddingConfig, Linear, LinearConfig,
    SelfAttention, SelfAttentionConfig, Sequences,
};
use regard_attention::ops::Activation;
use regard_attention::{Attention, Init};
use regard_models::Result;

const LENGTH: usize = 24;
const TOPICS: usize = 4;
/// Number of unambiguous words, and of ambiguous ones.
const WORDS: usize = 12;
const TAGS: usize = 4;
const WIDTH: usize = 32;
const BATCH: usize = 16;

#[derive(Module, Debug)]
struct Model {
    embedding: Embedding,
    window: Option<Convolution>,
    attention: Option<SelfAttention>,
    tags: Linear,
}

impl Model {
    /// Creates a model with a window of this many words, or with attention.
    fn new(window: Option<usize>, seed: u64) -> Model {
        let init = &mut Init::new(seed, &device());
        let embedding = EmbeddingConfig::new(TOPICS + 2 * WORDS, WIDTH).init(init);
        let sizes = window.map(|width| ConvolutionConfig {
            inputs: WIDTH,
            outputs: WIDTH,
            width,
            activation: Activation::Relu,
        });
        let attention = window.is_none().then(|| SelfAttentionConfig::new(WIDTH, 2).init(init));
        let window = sizes.map(|sizes| sizes.init(init));
        Model { embedding, window, attention, tags: LinearConfig::new(WIDTH, TAGS).init(init) }
    }

    /// `[B, T]` → `[B·T, TAGS]`
    fn forward(&self, ids: Tensor<2, Int>) -> Tensor<2> {
        let x = self.embedding.forward(ids);
        let [b, t, m] = x.dims();
        let rows = x.clone().reshape([b * t, m]);
        let seen = match (&self.window, &self.attention) {
            (Some(window), _) => window.forward(rows.clone(), &Sequences::new(&vec![t; b])),
            (_, Some(attention)) => {
                attention.forward(x, Call::new(&Attention::dot())).reshape([b * t, m])
            }
            _ => rows.clone(),
        };
        // The tag depends on the attended token and on the word itself.
        self.tags.forward(burn::tensor::activation::relu(rows + seen))
    }
}

/// Draws sentences `[rows, LENGTH]`, a tag for every word, and which words are ambiguous.
fn batch(rows: usize, draws: &mut Draws) -> (Vec<usize>, Vec<usize>, Vec<bool>) {
    let (mut ids, mut tags, mut ambiguous) = (vec![], vec![], vec![]);
    for _ in 0..rows {
        let topic = draws.below(TOPICS);
        ids.push(topic);
        tags.push(topic % TAGS);
        ambiguous.push(false);
        for _ in 1..LENGTH {
            let word = draws.below(2 * WORDS);
            ids.push(TOPICS + word);
            tags.push(if word < WORDS { word % TAGS } else { topic % TAGS });
            ambiguous.push(word >= WORDS);
        }
    }
    (ids, tags, ambiguous)
}

/// Trains a model and returns its accuracy on unambiguous words and on ambiguous ones, both far
/// from the topic, and its number of parameters.
fn tagged(window: Option<usize>, steps: u64, seed: u64) -> ([f64; 2], usize) {
    let model = Model::new(window, seed);
    let parameters = model.num_params();
    let model = train(model, steps, 1e-2, |model, step| {
        let (ids, tags, _) = batch(BATCH, &mut Draws::new(seed, step));
        loss(model.forward(integers(&ids, [BATCH, LENGTH])), &tags)
    });
    const EXAM: usize = 64;
    let (ids, tags, ambiguous) = batch(EXAM, &mut Draws::new(seed, u64::MAX));
    let logits = model.forward(integers(&ids, [EXAM, LENGTH]));
    let far = |at: &usize| at % LENGTH > 6;
    let share = |wanted: bool| {
        let places: Vec<usize> =
            (0..tags.len()).filter(far).filter(|at| ambiguous[*at] == wanted).collect();
        let chosen: Vec<usize> = places.iter().map(|at| tags[*at]).collect();
        accuracy(logits.clone().select(0, integers(&places, [places.len()])), &chosen)
    };
    ([share(false), share(true)], parameters)
}

const WINDOWS: [(&str, Option<usize>); 4] = [
    ("window of 3", Some(3)),
    ("window of 11", Some(11)),
    ("window of 47: all", Some(2 * LENGTH - 1)),
    ("self-attention", None),
];

pub fn measure(options: &CompareOptions) -> Result<ComparisonResult> {
    let steps = if options.quick { 250 } else { 500 };
    let mut found = ComparisonResult::new(
        format!(
            "sentences of {LENGTH} words, {TAGS} tags; ambiguous words are tagged by the first \
             word; evaluated beyond position 6; width {WIDTH}, {steps} steps of {BATCH} sentences; \
             chance is {}",
            percent(1.0 / TAGS as f64)
        ),
        &["layer", "parameters", "plain words", "ambiguous words"],
    );
    for (name, window) in WINDOWS {
        let ([plain, ambiguous], parameters) = tagged(window, steps, options.seed);
        found.number(name, "plain", plain);
        found.number(name, "ambiguous", ambiguous);
        found.number(name, "parameters", parameters as f64);
        found.row(vec![name.into(), parameters.to_string(), percent(plain), percent(ambiguous)]);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_does_not_see_the_topic_and_attention_does() {
        let ([plain, ambiguous], small) = tagged(Some(3), 250, 0);
        assert!(plain > 0.95 && ambiguous < 0.45, "{plain} {ambiguous}");
        let ([plain, ambiguous], attention) = tagged(None, 250, 0);
        assert!(plain > 0.9 && ambiguous > 0.75, "{plain} {ambiguous}");
        let (_, all) = tagged(Some(2 * LENGTH - 1), 1, 0);
        assert!(attention < 2 * small && all > 5 * attention, "{small} {attention} {all}");
    }
}

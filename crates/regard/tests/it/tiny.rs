//! Models that have learned nothing, made in a moment: enough to see what is done with one.

use crate::program::folder;
use regard_tasks::data::pairs::{Pair, group};
use regard_tasks::train::Learner;
use regard_tasks::translate::{Corpus, Recipe, Translation};
use std::path::Path;

const PAIRS: [(&str, &str); 6] = [
    ("They are watching.", "Ils regardent."),
    ("I am hungry.", "J'ai faim."),
    ("Where are you?", "Où es-tu ?"),
    ("The cat sleeps on the chair.", "Le chat dort sur la chaise."),
    ("We read the book.", "Nous lisons le livre."),
    ("Go on!", "Continuez !"),
];

/// What a Transformer of the smallest kind is called.
pub const TRANSFORMER: &str = "
model_type = 'transformer'
d_model = 16
encoder_layers = 1
decoder_layers = 1
encoder_attention_heads = 2
decoder_attention_heads = 2
encoder_ffn_dim = 16
decoder_ffn_dim = 16
";

/// The same with a table of 24 positions.
pub const LEARNED: &str = "
model_type = 'transformer'
positions = 'learned'
max_position_embeddings = 24
d_model = 16
encoder_layers = 1
decoder_layers = 1
encoder_attention_heads = 2
decoder_attention_heads = 2
encoder_ffn_dim = 16
decoder_ffn_dim = 16
";

/// A model that does not look at its source.
pub const BLIND: &str = "
model_type = 'rnn'
embedding_size = 8
hidden_size = 8
";

/// Writes a model into a folder of its own and returns its name.
pub fn model(test: &str, kind: &str) -> String {
    let recipe = format!(
        "name = 'tiny'\ntask = 'translate'\nseed = 3\n[data]\nset = 'files'\n\
         [vocabulary.shared]\nkind = 'bpe'\nsize = 90\n[decode]\nnum_beams = 2\nmin_length = 8\nmax_length = 12\n\
         [model]\n{kind}"
    );
    let recipe = Recipe::parse(&recipe, &[]).expect("a recipe");
    let pair = |(source, target): &(&str, &str)| Pair {
        source: (*source).into(),
        target: (*target).into(),
    };
    let train: Vec<Pair> = PAIRS.iter().map(pair).collect();
    let corpus = Corpus { valid: group(&train), train, test: vec![] };
    let translation = Translation::new(&recipe, corpus).expect("a model");
    let path = folder(test).join("model");
    std::fs::create_dir_all(&path).expect("a folder for the model");
    translation.save(Path::new(&path)).expect("a model on the disk");
    path.to_str().expect("a name").to_string()
}

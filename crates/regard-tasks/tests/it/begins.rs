//! Translators and story models whose embeddings are initialised from word vectors.

use crate::small::{Folder, corpus, letters, recipe};
use regard_models::checkpoint::Arrays;
use regard_tasks::text::Tokenizer;
use regard_tasks::train::{Learner, Trained};
use regard_tasks::translate::{Recipe, Translation};
use std::fs;

/// Row of a word in the embedding tables whose names end with this.
fn rows(weights: &Arrays, table: &str, tokenizer: &Tokenizer, word: &str) -> Vec<Vec<f32>> {
    let id = tokenizer.id(word).unwrap() as usize;
    let tables = weights.iter().filter(|(name, _)| name.ends_with(table));
    tables.map(|(_, array)| array.floats().unwrap()[4 * id..4 * id + 4].to_vec()).collect()
}

#[test]
fn a_translator_begins_with_vectors_on_either_side() {
    let folder = Folder::new("begins");
    let file = folder.0.join("vectors.txt");
    fs::write(&file, "a 1 2 3 4\nb 5 6 7 8\nnever 0 0 0 0\n").unwrap();
    let pairs = corpus(letters(200, 2..5, |_| {}), 20);
    let train = "steps = 1\nbatch_tokens = 100";
    let models = [
        "model_type = \"bahdanau\"\nembedding_size = 4\nhidden_size = 8",
        "model_type = \"transformer\"\nd_model = 4\nencoder_layers = 1\ndecoder_layers = 1\n\
         encoder_attention_heads = 2\ndecoder_attention_heads = 2\nencoder_ffn_dim = 8\n\
         decoder_ffn_dim = 8",
    ];
    for model in models {
        let plain = recipe(model, train);
        let before = Translation::new(&plain, pairs.clone()).unwrap();
        let mut with = plain.clone();
        with.vocabulary.shared.as_mut().unwrap().vectors = Some(file.display().to_string());
        let after = Translation::new(&with, pairs.clone()).unwrap();
        let tokens = &after.objective().vocabularies().source;
        let table =
            if model.contains("bahdanau") { "embed_tokens.weight" } else { "shared.weight" };
        let found = rows(&after.network().weights(), table, tokens, "b");
        assert!(!found.is_empty(), "{:?}", after.network().weights().keys());
        assert!(found.iter().all(|row| row == &[5.0, 6.0, 7.0, 8.0]), "{found:?}");
        // Words without a vector keep their initial values.
        let c = |of: &Trained<Translation>| rows(&of.network().weights(), table, tokens, "c");
        assert_eq!(c(&before), c(&after));
        assert_ne!(rows(&before.network().weights(), table, tokens, "b"), found);
    }
    let wide = recipe(&models[0].replace("size = 4", "size = 6"), train);
    let mut wide: Recipe = wide;
    wide.vocabulary.shared.as_mut().unwrap().vectors = Some(file.display().to_string());
    let error = Translation::new(&wide, pairs).err().unwrap().to_string();
    assert!(error.contains("width 4") && error.contains("6]"), "{error}");
}

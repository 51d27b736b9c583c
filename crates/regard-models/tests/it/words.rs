//! The goldens of `fixtures/make/words.py`: models of words and characters against PyTorch's
//! layers; and further properties of these models.

use crate::texts::{close, close_to, largest, numbers, open};
use burn::tensor::{Device, Tensor, TensorData};
use regard_attention::{AdamW, AdamWConfig, Mode};
use regard_models::checkpoint;
use regard_models::text::{self, Head, TextModel, Texts};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn folders() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/words");
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    assert_eq!(folders.len(), 6);
    folders
}

/// A sentence: word ids, and the characters of each.
type Sentence = (Vec<u32>, Vec<Vec<u32>>);

fn sentences(folder: &Path) -> Vec<Sentence> {
    let bytes = std::fs::read(folder.join("said.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let integers = |name: &str| -> Vec<u32> {
        let data = file.tensor(name).unwrap().data().to_vec();
        data.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b) as u32).collect()
    };
    let (mut ids, mut letters) = (integers("ids").into_iter(), integers("letters").into_iter());
    let mut spelled = integers("spelled").into_iter();
    let mut word = || letters.by_ref().take(spelled.next().unwrap() as usize).collect();
    let sentence = |n: u32| {
        let ids: Vec<u32> = ids.by_ref().take(n as usize).collect();
        (ids, (0..n).map(|_| word()).collect())
    };
    integers("lengths").into_iter().map(sentence).collect()
}

fn texts(model: &dyn TextModel, sentences: &[Sentence]) -> Texts {
    let mut texts = Texts::new();
    for (ids, letters) in sentences {
        match model.alphabet() > 0 {
            true => texts.push_spelled(ids, letters),
            false => texts.push(ids),
        }
    }
    texts
}

#[test]
fn every_body_says_what_pytorch_says() {
    let device = Device::flex().autodiff();
    for folder in folders() {
        let model = open(&folder, &device);
        let golden = checkpoint::read_arrays(&folder.join("said.safetensors")).unwrap();
        let said = model.forward(&texts(&*model, &sentences(&folder)), None, Mode::Eval);
        let mut loss = Tensor::<1>::zeros([1], &device);
        for (name, x) in [("hidden", said.hidden), ("logits", said.logits.unwrap())] {
            close(&folder, name, &numbers(&x), &golden[name]);
            let array = &golden[&format!("coefficients.{name}")];
            let shape = [array.shape[0], array.shape[1]];
            let data = TensorData::new(array.floats().unwrap().into_owned(), shape);
            loss = loss + (x * Tensor::<2>::from_data(data, &device)).sum();
        }
        close(&folder, "loss", &numbers(&loss), &golden["loss"]);
        let gradients = model.gradients(&mut loss.backward());
        let wanted = golden.iter().filter_map(|(k, v)| Some((k.strip_prefix("gradient.")?, v)));
        let most = wanted.clone().fold(0f32, |max, (_, x)| max.max(largest(x)));
        for (name, wanted) in wanted.clone() {
            close_to(&folder, name, &gradients[name].floats().unwrap(), wanted, 1e-2 * most);
        }
        assert_eq!(gradients.len(), wanted.count(), "{}", folder.display());
    }
}

#[test]
fn the_weights_of_words_are_told() {
    for folder in folders() {
        let model = open(&folder, &Device::flex());
        let golden = checkpoint::read_arrays(&folder.join("said.safetensors")).unwrap();
        let sentences = sentences(&folder);
        let (_, inside) = model.forward_with_attention(&texts(&*model, &sentences[..1]));
        let told = inside.weights.map(|weights| numbers(&weights));
        let wanted = golden.get("weights").map(|weights| weights.floats().unwrap()[..5].to_vec());
        assert_eq!(told.is_some(), wanted.is_some(), "{}", folder.display());
        for (told, wanted) in told.into_iter().flatten().zip(wanted.into_iter().flatten()) {
            assert!((told - wanted).abs() < 1e-5, "{}: {told} {wanted}", folder.display());
        }
        assert_eq!(inside.hidden.len(), 2);
    }
}

/// Law 2 of ARCHITECTURE.md: results do not depend on the batch, bitwise.
#[test]
fn a_text_says_the_same_alone_and_among_others() {
    for folder in folders() {
        let model = open(&folder, &Device::flex());
        let mut sentences = sentences(&folder);
        // One that is longer than all others together, so that there are several batches.
        let long = sentences.iter().flat_map(|(ids, _)| ids).cycle().take(1500).copied();
        let letters = sentences.iter().flat_map(|(_, words)| words).cycle().take(1500).cloned();
        sentences.insert(1, (long.collect(), letters.collect()));
        let all = model.forward(&texts(&*model, &sentences), None, Mode::Eval);
        let (all, mut first) = (all.logits.unwrap(), 0);
        for (i, sentence) in sentences.iter().enumerate() {
            let alone = texts(&*model, std::slice::from_ref(sentence));
            let alone = model.forward(&alone, None, Mode::Eval).logits.unwrap();
            let [rows, labels] = alone.dims();
            let from = if model.head() == Head::Sequence { i } else { first };
            let among = all.clone().slice([from..from + rows, 0..labels]);
            assert_eq!(numbers(&alone), numbers(&among), "{} text {i}", folder.display());
            first += sentence.0.len();
        }
    }
}

#[test]
fn what_is_saved_is_what_was_read() {
    let device = Device::flex();
    for folder in folders() {
        let model = open(&folder, &device);
        let saved = model.weights();
        assert_eq!(saved, checkpoint::read_weights(&folder).unwrap(), "{}", folder.display());
        let again = text::load(&model.config(), saved, None, 0, &device).unwrap();
        let texts = texts(&*model, &sentences(&folder));
        let [one, other] =
            [model, again].map(|m| numbers(&m.forward(&texts, None, Mode::Eval).logits.unwrap()));
        assert_eq!(one, other);
    }
}

fn config(model_type: &str, more: Value) -> Value {
    let mut config = json!({
        "model_type": model_type, "vocab_size": 12, "embedding_size": 8, "hidden_size": 6,
        "channels": 5, "alphabet_size": 9, "attention_size": 7, "num_labels": 3,
    });
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

fn words() -> Texts {
    let mut texts = Texts::new();
    texts.push_spelled(&[4, 5, 3], &[vec![2, 4, 3], vec![2, 5, 5, 3], vec![2, 3]]);
    texts.push_spelled(&[7], &[vec![2, 6, 3]]);
    texts
}

#[test]
fn every_parameter_learns() {
    let device = Device::flex().autodiff();
    let letters = ["cnn", "lstm", "attention"].map(|kind| json!({ "kind": kind }));
    for model_type in ["bilstm", "cnn"] {
        for head in [Head::Sequence, Head::Tokens] {
            for characters in [letters.to_vec(), vec![Value::Null]].concat() {
                for pooling in ["attention", "mean", "max", "last"] {
                    let dropout = json!({
                        "characters": characters, "pooling": pooling, "num_layers": 2,
                        "word_dropout": 0.3, "embedding_dropout": 0.1, "dropout": 0.1,
                        "classifier_dropout": 0.1,
                    });
                    let config = config(model_type, dropout);
                    let mut model = text::create(&config, head, 3, &device).unwrap();
                    let mode = Mode::Train { seed: 1, step: 1 };
                    let said = model.forward(&words(), None, mode).logits.unwrap();
                    let mut adamw = AdamW::new(AdamWConfig::default());
                    model.step(&mut adamw, 1e-3, (said.clone() * said).sum().backward());
                    assert!(adamw.without_gradient().is_empty(), "{config} {head:?}");
                }
            }
        }
    }
}

#[test]
fn a_frozen_table_stays() {
    let device = Device::flex().autodiff();
    let config = config("bilstm", json!({ "frozen_embeddings": true }));
    let mut model = text::create(&config, Head::Tokens, 3, &device).unwrap();
    let vector: Vec<f32> = (0..8).map(|i| i as f32).collect();
    model.set_words(&[(5, &vector)]).unwrap();
    let table = |model: &dyn TextModel| model.weights()["words.embed_tokens.weight"].clone();
    let before = table(&*model);
    assert_eq!(before.floats().unwrap()[40..48], vector);
    let said = model.forward(&words(), None, Mode::Eval).logits.unwrap();
    let mut adamw = AdamW::new(AdamWConfig::default());
    model.step(&mut adamw, 1e-1, said.sum().backward());
    assert_eq!(table(&*model), before);
    assert_eq!(adamw.without_gradient().len(), 1);
    assert!(
        model.allows_missing_gradient(&adamw.without_gradient()[0]),
        "{:?}",
        adamw.without_gradient()
    );
}

#[test]
fn vectors_that_do_not_fit_are_told() {
    let device = Device::flex();
    let mut model = text::create(&config("cnn", json!({})), Head::Tokens, 3, &device).unwrap();
    let error = |model: &mut dyn TextModel, rows: &[(usize, &[f32])]| {
        model.set_words(rows).unwrap_err().to_string()
    };
    assert!(error(&mut *model, &[(1, &[0.0; 3])]).contains("got a width of 3, the model's"));
    assert!(error(&mut *model, &[(12, &[0.0; 8])]).contains("id 12, the vocabulary has 12"));
    let letters = json!({ "embedding_size": 0, "characters": { "kind": "lstm" } });
    let mut model = text::create(&config("cnn", letters), Head::Tokens, 3, &device).unwrap();
    assert!(error(&mut *model, &[]).contains("no word embeddings"));
    assert_eq!(model.vocabulary(), usize::MAX);
    // The embedding table of any family.
    let bert = json!({ "model_type": "bert", "vocab_size": 9, "hidden_size": 4,
                       "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 4 });
    let mut model = text::create(&bert, Head::Sequence, 3, &device).unwrap();
    model.set_words(&[(2, &[1.0, 2.0, 3.0, 4.0])]).unwrap();
    let weights = model.weights();
    let table = weights["bert.embeddings.word_embeddings.weight"].floats().unwrap();
    assert_eq!(table[8..12], [1.0, 2.0, 3.0, 4.0]);
}

/// Word dropout replaces words by the unknown one, with the configured probability.
#[test]
fn words_become_unknown_in_training() {
    let device = Device::flex();
    let make = |share: f32| {
        let config = config("cnn", json!({ "word_dropout": share, "widths": [1] }));
        text::create(&config, Head::Bare, 3, &device).unwrap()
    };
    let (model, mut texts, mut unknown) = (make(0.25), Texts::new(), Texts::new());
    texts.push(&vec![5; 2000]);
    unknown.push(&[3]);
    let row = numbers(&model.forward(&unknown, None, Mode::Eval).hidden);
    let lost = |step: u64| -> Vec<bool> {
        let said = model.forward(&texts, None, Mode::Train { seed: 1, step }).hidden;
        numbers(&said).chunks(row.len()).map(|x| x == row).collect()
    };
    let count = lost(1).iter().filter(|lost| **lost).count();
    assert!((400..600).contains(&count), "{count} of 2000");
    assert!(lost(1) == lost(1) && lost(1) != lost(2));
    let said = numbers(&model.forward(&texts, None, Mode::Eval).hidden);
    assert!(said.chunks(row.len()).all(|x| x != row));
}

#[test]
fn configurations_that_cannot_be() {
    let error = |model_type: &str, more: Value| {
        let config = config(model_type, more);
        text::create(&config, Head::Sequence, 0, &Device::flex()).err().unwrap().to_string()
    };
    let huge = 1u64 << 40;
    for (model_type, more, wanted) in [
        ("bilstm", json!({ "hidden_size": huge }), "hidden_size"),
        ("bilstm", json!({ "hidden_size": 0 }), "hidden_size: got 0"),
        ("bilstm", json!({ "num_layers": 5000 }), "num_layers: got 5000"),
        ("bilstm", json!({ "embedding_size": huge }), "embedding_size"),
        ("bilstm", json!({ "vocab_size": 1 << 24, "embedding_size": 1 << 20 }), "vocab_size and"),
        ("bilstm", json!({ "embedding_size": 0 }), "need at least 1, or set characters"),
        ("bilstm", json!({ "unk_token_id": 12 }), "the vocabulary has 12 tokens"),
        ("bilstm", json!({ "word_dropout": 1.0 }), "word_dropout: got 1"),
        ("bilstm", json!({ "pooling": "sum" }), "need attention, mean, max or last"),
        ("bilstm", json!({ "attention_size": huge }), "attention_size"),
        ("cnn", json!({ "widths": [] }), "widths: got 0 of them"),
        ("cnn", json!({ "widths": [0] }), "widths: got 0, need 1 to 64"),
        ("cnn", json!({ "widths": [3, 100_000] }), "widths: got 100000"),
        ("cnn", json!({ "channels": huge }), "channels"),
        (
            "cnn",
            json!({ "characters": { "kind": "cnn", "channels": huge } }),
            "characters.channels",
        ),
        ("cnn", json!({ "characters": { "kind": "lstm", "hidden_size": huge } }), "characters.hid"),
        (
            "bilstm",
            json!({ "hidden_size": "abc" }),
            "hidden_size: got \"abc\", need a whole number",
        ),
        (
            "cnn",
            json!({ "characters": { "kind": "cnn", "channels": "abc" } }),
            "characters.channels: got \"abc\", need a whole number, 0 or more",
        ),
        (
            "cnn",
            json!({ "characters": { "kind": "gru" } }),
            "characters.kind: got \"gru\", need one of cnn, lstm, attention",
        ),
        (
            "cnn",
            json!({ "characters": { "kind": "cnn", "width": 3 } }),
            "characters.width: there is no such key; need one of embedding_size, widths",
        ),
        ("cnn", json!({ "characters": { "kind": "cnn" }, "alphabet_size": 0 }), "alphabet_size"),
    ] {
        let error = error(model_type, more.clone());
        assert!(error.contains(wanted), "{more}: {error}");
    }
    let error = text::create(&config("cnn", json!({})), Head::Words, 0, &Device::flex());
    assert!(error.err().unwrap().to_string().contains("cannot be trained to predict words"));
}

#[test]
#[should_panic(expected = "needs the characters of all 1 tokens")]
fn a_model_that_spells_needs_letters() {
    let config = config("bilstm", json!({ "characters": { "kind": "cnn" } }));
    let model = text::create(&config, Head::Tokens, 0, &Device::flex()).unwrap();
    let mut texts = Texts::new();
    texts.push(&[4]);
    model.forward(&texts, None, Mode::Eval);
}

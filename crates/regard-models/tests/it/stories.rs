//! Story models.

use crate::batch::{largest_difference, numbers};
use burn::tensor::Device;
use regard_attention::{AdamW, AdamWConfig, Mode};
use regard_models::Capability;
use regard_models::checkpoint::{self, Array, Arrays, Precision};
use regard_models::story::{Stories, StoryModel};
use regard_models::zoo::{create, is, load, open};
use serde_json::{Value, json};

const WORDS: usize = 23;
const ANSWERS: usize = 7;

/// Every kind of model, with every option.
fn zoo() -> Vec<(&'static str, Value)> {
    let base = |kind: &str, more: Value| {
        let mut config = json!({
            "model_type": kind, "vocab_size": WORDS, "num_labels": ANSWERS, "hidden_size": 16,
            "max_words": 6, "max_sentences": 140, "time_noise": 0.3, "dropout": 0.2,
        });
        let more = more.as_object().unwrap();
        more.iter().for_each(|(key, value)| config[key] = value.clone());
        config
    };
    let story = |more: Value| {
        let mut config = base("story", json!({ "num_attention_heads": 2, "repetitions": 3 }));
        let more = more.as_object().unwrap();
        more.iter().for_each(|(key, value)| config[key] = value.clone());
        config
    };
    vec![
        ("story", story(json!({}))),
        ("story, learned times", story(json!({ "times": "learned", "hidden_act": "gelu" }))),
        ("story, distances", story(json!({ "reach": 5, "attention_dropout": 0.2 }))),
        ("memn2n", base("memn2n", json!({ "hops": 2 }))),
        ("memn2n, sines", base("memn2n", json!({ "hops": 3, "times": "sines" }))),
    ]
}

/// Distinct stories with these numbers of sentences.
fn told(lengths: &[usize]) -> Vec<(Vec<Vec<u32>>, Vec<u32>)> {
    let word = |a: usize, b: usize, c: usize| {
        1 + ((7 * a + 5 * b + 3 * c + a * b + b * c) % (WORDS - 1)) as u32
    };
    let sentence = |a: usize, b: usize| (0..1 + (a + b) % 6).map(|c| word(a, b, c)).collect();
    let story =
        |(a, n): (usize, &usize)| ((0..*n).map(|b| sentence(a, b)).collect(), sentence(a, n + 1));
    lengths.iter().enumerate().map(story).collect()
}

fn stories(told: &[(Vec<Vec<u32>>, Vec<u32>)]) -> Stories {
    let mut stories = Stories::new();
    told.iter().for_each(|(facts, question)| stories.push(facts, question));
    stories
}

fn bits(model: &dyn StoryModel, told: &[(Vec<Vec<u32>>, Vec<u32>)]) -> Vec<u32> {
    let scores = numbers(model.forward(&stories(told), Mode::Eval));
    assert!(scores.iter().all(|x| x.is_finite()));
    scores.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn a_story_among_others_is_what_it_is_alone() {
    let told = told(&[9, 1, 62, 40, 0, 130, 24, 63, 64, 3, 2, 2, 20, 139]);
    for (name, config) in zoo() {
        let model = create::<dyn StoryModel>(&config, 5, &Device::flex()).unwrap();
        let together = bits(&*model, &told);
        for (i, together) in together.chunks(ANSWERS).enumerate() {
            assert_eq!(bits(&*model, &told[i..=i]), together, "{name}: story {i}");
        }
    }
}

#[test]
fn the_order_of_words_and_of_sentences_counts() {
    for (name, config) in zoo() {
        let model = create::<dyn StoryModel>(&config, 5, &Device::flex()).unwrap();
        let scores = |facts: &[[u32; 3]]| {
            let facts = facts.iter().map(|fact| fact.to_vec()).collect();
            bits(&*model, &[(facts, vec![9, 4])])
        };
        let said = scores(&[[1, 2, 3], [4, 5, 6]]);
        assert_ne!(said, scores(&[[3, 2, 1], [4, 5, 6]]), "{name}: words");
        assert_ne!(said, scores(&[[4, 5, 6], [1, 2, 3]]), "{name}: sentences");
        assert_ne!(said, scores(&[[1, 2, 3]]), "{name}: one sentence less");
    }
}

#[test]
fn where_it_looked_can_be_seen() {
    for (name, config) in zoo() {
        let model = create::<dyn StoryModel>(&config, 5, &Device::flex()).unwrap();
        let story = stories(&told(&[11]));
        let (scores, looks) = model.forward_with_attention(&story);
        let said = numbers(model.forward(&story, Mode::Eval));
        assert!(largest_difference(&numbers(scores), &said) <= 1e-5, "{name}");
        assert_eq!(looks.len(), if name == "memn2n" { 2 } else { 3 }, "{name}");
        for look in looks {
            let [_, from, to] = look.dims();
            assert!((from == 1 || from == 12) && to == 12, "{name}");
            for row in numbers(look).chunks(to) {
                assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{name}");
                // The memory has the sentences, not the question.
                assert!(from == 12 || row[11] == 0.0, "{name}");
            }
        }
    }
}

/// One optimiser step with an arbitrary loss.
fn learn(mut model: Box<dyn StoryModel>) -> (Box<dyn StoryModel>, AdamW) {
    let scores = model.forward(&stories(&told(&[5, 2, 9, 30])), Mode::Train { seed: 1, step: 1 });
    let loss = scores.powi_scalar(2).mean();
    let mut adamw = AdamW::new(AdamWConfig { weight_decay: 0.0, ..AdamWConfig::default() });
    model.step(&mut adamw, 0.01, loss.backward());
    (model, adamw)
}

#[test]
fn every_parameter_learns() {
    let device = Device::flex().autodiff();
    for (name, config) in zoo() {
        let model = create::<dyn StoryModel>(&config, 11, &device).unwrap();
        let (count, before) = (model.parameters(), model.weights());
        assert_eq!(count, before.values().map(|array| array.count()).sum::<usize>(), "{name}");
        let (model, adamw) = learn(model);
        assert!(adamw.norm().is_finite(), "{name}");
        assert_eq!(adamw.without_gradient(), [""; 0], "{name}");
        let after = model.weights();
        let same = |(name, array): (&String, &Array)| (after[name] == *array).then(|| name.clone());
        let mut still: Vec<String> = before.iter().filter_map(same).collect();
        // A constant that is added to all scores of a query has no effect.
        still.retain(|name| !name.ends_with("key.bias"));
        assert_eq!(still, [""; 0], "{name}: told how to learn, and did not");
    }
}

#[test]
fn what_is_saved_is_what_is_loaded() {
    let folder = std::env::temp_dir().join(format!("regard-stories-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let told = told(&[4, 9]);
    for (name, config) in zoo() {
        let model = create::<dyn StoryModel>(&config, 11, &Device::flex().autodiff()).unwrap();
        checkpoint::write(&folder, &model.config(), &model.weights(), Precision::Single).unwrap();
        let again = open::<dyn StoryModel>(&folder, &Device::flex()).unwrap();
        assert_eq!((again.config(), again.limits()), (model.config(), model.limits()), "{name}");
        assert!(again.weights() == model.weights(), "{name}");
        assert_eq!(bits(&*again, &told), bits(&*model.evaluation(), &told), "{name}");
        // A loaded model has the same noise as the saved one: otherwise a resumed run would differ.
        let device = Device::flex().autodiff();
        let again = load::<dyn StoryModel>(&model.config(), model.weights(), &device).unwrap();
        assert!(learn(again).0.weights() == learn(model).0.weights(), "{name}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_is_too_long_is_told() {
    let model = create::<dyn StoryModel>(&zoo()[0].1, 1, &Device::flex()).unwrap();
    let panics = |facts: Vec<Vec<u32>>| {
        let mut stories = Stories::new();
        stories.push(&facts, &[1]);
        let forward = std::panic::AssertUnwindSafe(|| model.forward(&stories, Mode::Eval));
        *std::panic::catch_unwind(forward).unwrap_err().downcast::<String>().unwrap()
    };
    assert!(panics(vec![vec![1]; 141]).contains("141 sentences, need at most 140"));
    assert!(panics(vec![vec![1; 7]]).contains("7 words, need at most 6"));
}

#[test]
fn configurations_that_cannot_be() {
    let rows = [
        ("model_type", json!("bert"), "need one of story, memn2n"),
        ("vocab_size", json!(0), "vocab_size: got 0"),
        ("vocab_size", json!(1u64 << 40), "vocab_size: got"),
        ("hidden_size", json!(1 << 23), "hidden_size and hidden_size: got"),
        ("hidden_size", json!("16"), "hidden_size: got \"16\", need a whole number, 0 or more"),
        ("hidden_size", json!(-1), "hidden_size: got -1, need a whole number, 0 or more"),
        ("num_attention_heads", json!(3), "num_attention_heads: got 3, need a divisor"),
        ("num_attention_heads", json!(0), "num_attention_heads: got 0"),
        ("intermediate_size", json!(u32::MAX), "intermediate_size: got"),
        ("repetitions", json!(0), "repetitions: got 0, need 1 to 1024"),
        ("repetitions", json!(1_000_000), "repetitions: got 1000000"),
        ("max_words", json!(0), "max_words: got 0"),
        ("max_sentences", json!(1u64 << 32), "max_sentences: got"),
        ("reach", json!(u64::MAX), "reach: got"),
        ("dropout", json!(1.0), "dropout: got 1"),
        ("time_noise", json!(-0.1), "time_noise: got -0.1"),
        ("attention_dropout", json!(2), "attention_dropout: got 2"),
        ("hidden_act", json!("sine"), "hidden_act: got \"sine\""),
        ("times", json!("clock"), "times: got \"clock\", need one of "),
        ("pad_token_id", json!(WORDS), "pad_token_id: got 23"),
        ("num_labels", json!(0), "num_labels: got 0"),
    ];
    for (key, value, message) in rows {
        let mut config = zoo()[0].1.clone();
        config[key] = value;
        let error =
            create::<dyn StoryModel>(&config, 1, &Device::flex()).err().unwrap().to_string();
        assert!(error.contains(message), "{key}: {error}");
    }
    let mut config = zoo()[3].1.clone();
    config["hops"] = json!(0);
    assert!(
        create::<dyn StoryModel>(&config, 1, &Device::flex())
            .err()
            .unwrap()
            .to_string()
            .contains("hops: got 0")
    );
    assert!(
        is::<dyn StoryModel>(&config)
            && !is::<dyn StoryModel>(&json!({}))
            && <dyn StoryModel as Capability>::types().len() == 2
    );
}

#[test]
fn weights_that_do_not_fit_are_all_told() {
    let model = create::<dyn StoryModel>(&zoo()[0].1, 1, &Device::flex()).unwrap();
    let mut weights: Arrays = model.weights();
    weights.remove("layer.steps");
    weights.insert("places".into(), Array::new(vec![1], vec![0.0]));
    weights.insert("ghost".into(), Array::new(vec![1], vec![0.0]));
    let error = load::<dyn StoryModel>(&model.config(), weights, &Device::flex())
        .err()
        .unwrap()
        .to_string();
    for part in ["layer.steps [3, 16] is missing", "places is [1]", "unexpected tensor ghost"] {
        assert!(error.contains(part), "{error}");
    }
}

//! Compares with `generate` of Hugging Face transformers, recorded by `fixtures/make/decode.py`.

use super::model::{Model, log_softmax, mix};
use crate::decode::row::Choice;
use crate::decode::sample::warp;
use crate::decode::{DecodeInput, Ids, Options, decode};
use serde_json::Value as Json;

fn read(name: &str) -> Json {
    let path = format!("{}/../../fixtures/decode/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str(&text).unwrap()
}

fn tokens(value: &Json) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|x| x.as_u64().unwrap() as u32).collect()
}

/// The formula of the script: the first token, the last two and the next one, hashed.
fn formula(vocabulary: usize, eos: u32) -> impl Fn(usize, &[u32]) -> Vec<f32> {
    move |_, text| {
        let last = text[text.len() - 1];
        let before = if text.len() > 1 { text[text.len() - 2] } else { 0 };
        let logit = |token: u32| {
            let mut h = mix(text[0] + 1);
            for word in [before, last, token] {
                h = mix(h ^ (word + 1));
            }
            let value = (h >> 16) as f32 / 8192.0 - 4.0;
            if token == eos { value + 0.25 * text.len() as f32 - 1.0 } else { value }
        };
        (0..vocabulary as u32).map(logit).collect()
    }
}

/// Runs one case; `split` passes all but the first token of a prompt as a forced prefix instead.
fn check(file: &Json, case: &Json, split: bool) {
    let vocabulary = file["vocabulary"].as_u64().unwrap() as usize;
    let eos = file["eos"].as_u64().unwrap() as u32;
    let options: Options = serde_json::from_value(case["options"].clone()).unwrap();
    let prompts: Vec<Vec<u32>> = case["prompts"].as_array().unwrap().iter().map(tokens).collect();
    let sentence = |(index, prompt): (usize, &Vec<u32>)| {
        let (prompt, prefix) = prompt.split_at(if split { 1 } else { prompt.len() });
        DecodeInput {
            index: index as u64,
            prompt: prompt.to_vec(),
            target_prefix: prefix.to_vec(),
            ..DecodeInput::default()
        }
    };
    let sentences: Vec<DecodeInput> = prompts.iter().enumerate().map(sentence).collect();
    let logits = formula(vocabulary, eos);
    let mut model = Model::new(vocabulary, &sentences, &logits);
    let ids = Ids { bos: 0, eos: Some(eos), pad: None };
    let results = decode(&mut model, &sentences, &options, &ids).unwrap();
    for (place, (got, want)) in results.iter().zip(case["results"].as_array().unwrap()).enumerate()
    {
        let want = want.as_array().unwrap();
        let name = format!("{} from {:?}", case["options"], prompts[place]);
        assert_eq!(got.len(), want.len(), "{name}");
        for (got, want) in got.iter().zip(want) {
            let mut written = got.tokens.clone();
            written.extend(got.finished.then_some(eos));
            let mut wanted = sentences[place].target_prefix.clone();
            wanted.extend(tokens(&want["tokens"]));
            assert_eq!(written, wanted, "{name}");
            assert_eq!(got.token_log_probs.len(), written.len(), "{name}");
            let pairs = [(got.log_prob, &want["log_prob"]), (got.score, &want["score"])];
            for (got, want) in pairs {
                // Greedy search has no score there.
                let Some(want) = want.as_f64() else { continue };
                let error = (f64::from(got) - want).abs();
                assert!(error < 2e-5 * want.abs().max(1.0), "{name}: {got} for {want}");
            }
        }
    }
}

#[test]
fn searches_equal_generate() {
    let file = read("generate");
    for case in file["cases"].as_array().unwrap() {
        check(&file, case, false);
        check(&file, case, true);
    }
}

#[test]
fn what_may_be_drawn_equals_generate() {
    let file = read("warp");
    let vocabulary = file["vocabulary"].as_u64().unwrap() as usize;
    for case in file["cases"].as_array().unwrap() {
        let options: Options = serde_json::from_value(case["options"].clone()).unwrap();
        let logits = formula(vocabulary, 1)(0, &[case["start"].as_u64().unwrap() as u32]);
        let choice = |(token, logit): (usize, &f32)| Choice {
            token: token as u32,
            value: *logit,
            log_prob: 0.0,
        };
        let mut choices: Vec<Choice> = logits.iter().enumerate().map(choice).collect();
        warp(&mut choices, &options, case["least"].as_u64().unwrap() as usize);
        let want = case["probabilities"].as_object().unwrap();
        assert_eq!(choices.len(), want.len(), "{case}");
        let values: Vec<f32> = choices.iter().map(|choice| choice.value).collect();
        for (choice, got) in choices.iter().zip(log_softmax(&values)) {
            let want = want[&choice.token.to_string()].as_f64().unwrap();
            assert!((got.exp() - want).abs() < 1e-6, "{case}: {} for {want}", got.exp());
        }
    }
}

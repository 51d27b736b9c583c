//! Compares with `generate` of Hugging Face transformers, recorded by `fixtures/make/decode.py`.

use super::model::{Model, log_softmax, mix};
use crate::decode::constrain::{RowText, Rules};
use crate::decode::row::{Choice, Row, Value};
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
    let ids = Ids { bos: 0, eos: vec![eos], pad: None };
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

/// The options of a case of `processors.json`, and the end tokens.
fn processing(case: &Json, eos: u32) -> (Options, Vec<u32>) {
    let mut given = case["options"].as_object().unwrap().clone();
    let eos = given.remove("eos_token_id").map_or(vec![eos], |all| tokens(&all));
    let bias = given.remove("logit_bias").unwrap_or_default();
    let bias = bias.as_object().into_iter().flatten();
    let pair =
        |(token, bias): (&String, &Json)| (token.parse().unwrap(), bias.as_f64().unwrap() as f32);
    let base = Options { top_k: 0, do_sample: true, ..Options::default() };
    let mut all = serde_json::to_value(&base).unwrap();
    all.as_object_mut().unwrap().extend(given);
    let options: Options = serde_json::from_value(all).unwrap();
    (Options { logit_bias: bias.map(pair).collect(), ..options }, eos)
}

#[test]
fn processors_equal_those_of_generate() {
    let file = read("processors");
    let eos = file["eos"].as_u64().unwrap() as u32;
    let cases = file["cases"].as_array().unwrap();
    assert!(cases.len() > 150);
    for case in cases {
        let (options, eos) = processing(case, eos);
        let text = &file["texts"][case["text"].as_u64().unwrap() as usize];
        let prompt = tokens(&text["prompt"]);
        let all = [&prompt[..], &tokens(&text["generated"])].concat();
        let logits = file["rows"][case["row"].as_u64().unwrap() as usize].as_array().unwrap();
        let mut logits: Vec<f32> = logits.iter().map(|x| x.as_f64().unwrap() as f32).collect();
        let rules = Rules::new(&options, &Ids { bos: 0, eos, pad: None });
        let text = RowText { tokens: &all, length: all.len(), start: prompt.len() };
        let mut row = Row::default();
        row.constrain(&mut logits, &rules, text);
        row.rank(&logits, logits.len(), Value::Logit, &rules);
        warp(&mut row.choices, &options, 1);
        let want = case["scores"].as_object().unwrap();
        let mut got: Vec<u32> = row.choices.iter().map(|choice| choice.token).collect();
        let mut wanted: Vec<u32> = want.keys().map(|token| token.parse().unwrap()).collect();
        got.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(got, wanted, "{}", case["options"]);
        for choice in &row.choices {
            let want = want[&choice.token.to_string()].as_f64().unwrap();
            let error = (f64::from(choice.value) - want).abs();
            assert!(error < 1e-5, "{}: {} for {want}", case["options"], choice.value);
        }
    }
}

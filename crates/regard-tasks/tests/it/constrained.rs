//! Generated texts that match a regular expression or a JSON schema, for all kinds of search.

use crate::prompts::{generator, gpt2, llama, special, vocabulary};
use crate::small::Dice;
use regard_tasks::batching::{BatchLimits, Lookup};
use regard_tasks::decode::{FinishReason, GenerationConfig};
use regard_tasks::generate::{Generator, Parameters, Response};
use regard_tasks::pipeline::Pipeline;
use serde_json::{Value, json};

/// A tokenizer whose tokens are joined without spaces: `</s>`, pieces of these letters, the letters.
fn pieces(dice: &mut Dice, letters: &[char]) -> (Value, Value) {
    let mut tokens = vec!["</s>".to_string()];
    tokens.extend(letters.iter().map(char::to_string));
    for _ in 0..20 {
        let length = 2 + dice.below(3);
        let piece: String = (0..length).map(|_| letters[dice.below(letters.len())]).collect();
        if !tokens.contains(&piece) {
            tokens.push(piece);
        }
    }
    let ids: serde_json::Map<_, _> =
        tokens.into_iter().enumerate().map(|(id, token)| (token, json!(id))).collect();
    let tokenizer = json!({
        "version": "1.0",
        "added_tokens": [special(0, "</s>")],
        "normalizer": null,
        "pre_tokenizer": { "type": "Split", "pattern": { "Regex": "[\\s\\S]" },
                           "behavior": "Isolated", "invert": false },
        "post_processor": null,
        "decoder": { "type": "Fuse" },
        "model": { "type": "WordLevel", "vocab": ids, "unk_token": "</s>" },
    });
    (tokenizer, json!({ "eos_token": "</s>" }))
}

fn written(writer: &Generator, prompt: &str, parameters: Value) -> Result<Response, String> {
    let parameters: Parameters = serde_json::from_value(parameters).unwrap();
    writer.run_one(prompt.into(), &parameters).map_err(|e| e.to_string())
}

/// The searches, each with a name.
fn searches() -> [(&'static str, Value); 5] {
    [
        ("greedy", json!({})),
        ("samples", json!({ "do_sample": true, "n": 3, "temperature": 1.5, "top_k": 0 })),
        ("nucleus", json!({ "do_sample": true, "n": 2, "top_p": 0.7, "repetition_penalty": 1.4 })),
        ("beams", json!({ "num_beams": 4, "n": 3, "length_penalty": 0.5 })),
        ("drawn beams", json!({ "num_beams": 3, "n": 2, "do_sample": true })),
    ]
}

#[test]
fn every_text_matches_whatever_the_search() {
    let patterns = [
        "[ab]{3,9}c",
        "(abc|ab|a){2,4}",
        "a*b+c?",
        "(é|ab)+c",
        "[^a]{2,5}",
        "(a{2}){1,3}b?",
        ".{5}",
        "(ab|ba|é)*c{2,}",
        "(?i)AB[^é]{1,4}",
        "^(b|c+|éé)a{0,3}$",
    ];
    let mut dice = Dice(5);
    let (mut whole, mut completed) = (0, 0);
    for round in 0..6 {
        let tokenizer = pieces(&mut dice, &['a', 'b', 'c', 'é']);
        // Without an end token a text ends only where no longer one matches.
        let ends = if round % 2 == 0 { vec![0] } else { vec![] };
        let has_end = !ends.is_empty();
        let defaults = GenerationConfig { eos: Some(ends), ..GenerationConfig::default() };
        let writer = generator(&format!("constrained-{round}"), tokenizer, defaults);
        for pattern in patterns {
            let matches = regex::Regex::new(&format!("^(?:{pattern})$")).unwrap();
            for (name, mut search) in searches() {
                let more = json!({ "regex": pattern, "max_new_tokens": 12, "seed": round });
                search.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                let found = written(&writer, "ab", search).unwrap();
                for one in found.results() {
                    let text = &one.generated_text["ab".len()..];
                    let about = format!("{name}: {pattern}: {text:?} {:?}", one.finish_reason);
                    match one.finish_reason {
                        FinishReason::Eos => assert!(has_end && matches.is_match(text), "{about}"),
                        FinishReason::Stop => assert!(matches.is_match(text), "{about}"),
                        FinishReason::Length => assert_eq!(one.token_ids.len(), 12, "{about}"),
                        _ => panic!("{about}"),
                    }
                    whole += usize::from(one.finish_reason != FinishReason::Length);
                    completed += usize::from(one.finish_reason == FinishReason::Stop);
                }
            }
        }
    }
    assert!(whole > 200 && completed > 100 && completed < whole, "{whole} {completed}");
}

#[test]
fn log_probabilities_stay_those_of_the_model() {
    let writer = generator(
        "constrained-logs",
        pieces(&mut Dice(1), &['a', 'b']),
        GenerationConfig::default(),
    );
    let size = writer.tokenizer().size();
    let found = written(
        &writer,
        "ab",
        json!({ "regex": "b{2}a{3,5}", "logprobs": size, "max_new_tokens": 9 }),
    );
    for token in found.unwrap().logprobs.unwrap() {
        let all: f64 = token.top_logprobs.iter().map(|one| f64::from(one.logprob).exp()).sum();
        assert!(token.top_logprobs.len() == size && (all - 1.0).abs() < 1e-4, "{all}");
        let same = token.top_logprobs.iter().find(|one| one.token == token.token).unwrap();
        assert!((same.logprob - token.logprob).abs() < 1e-4, "{token:?}");
    }
}

#[test]
fn guesses_change_nothing() {
    let make = || {
        generator(
            "constrained-guess",
            pieces(&mut Dice(2), &['a', 'b', 'c']),
            GenerationConfig::default(),
        )
    };
    let plain = make();
    let mut looking = make();
    let lookup = Lookup { tokens: 4, context: 1 };
    looking.set_limits(BatchLimits { lookup, ..BatchLimits::default() }).unwrap();
    let mut drafted = make();
    drafted.set_draft(make(), 4).unwrap();
    for pattern in ["(abc|ab|c){4,9}", "(ab){8}c*", "[ab]{2,}c"] {
        for sample in [false, true] {
            let parameters = json!({ "regex": pattern, "max_new_tokens": 14, "do_sample": sample });
            let want = written(&plain, "ababab", parameters.clone()).unwrap();
            for (name, other) in [("lookup", &looking), ("draft", &drafted)] {
                let got = written(other, "ababab", parameters.clone()).unwrap();
                assert_eq!(got.token_ids, want.token_ids, "{name}: {pattern}");
                assert_eq!(got.finish_reason, want.finish_reason, "{name}: {pattern}");
                assert!(got.guesses.is_some());
            }
        }
    }
}

#[test]
fn the_bytes_of_a_character_may_be_several_tokens() {
    let (mut bytes, names) = gpt2();
    bytes["model"]["vocab"] = vocabulary(&["<|endoftext|>", "Ġ", "Ġa", "Ã", "©", "aÃ", "¨b"]);
    let bytes = generator("constrained-bytes", (bytes, names), GenerationConfig::default());
    let (mut marks, names) = llama();
    marks["model"]["vocab"] =
        vocabulary(&["<unk>", "<s>", "</s>", "▁", "▁a", "▁ab", "yz", "<0xC3>", "<0xA9>", "<0xA8>"]);
    let marks = generator("constrained-marks", (marks, names), GenerationConfig::default());
    for writer in [&bytes, &marks] {
        for (pattern, most) in [("(é|aé|è){3}", 9), ("[^a-z ]{2}é", 9), ("a? [éè]b{2}", 12)] {
            let matches = regex::Regex::new(&format!("^(?:{pattern})$")).unwrap();
            for prompt in ["ab", ""] {
                let parameters = json!({ "regex": pattern, "max_new_tokens": most, "n": 4,
                                         "do_sample": true, "temperature": 2.0 });
                for one in written(writer, prompt, parameters).unwrap().results() {
                    let text = &one.generated_text[prompt.len()..];
                    assert!(matches.is_match(text), "{pattern} after {prompt:?}: {one:?}");
                    assert_eq!(one.finish_reason, FinishReason::Stop);
                }
            }
        }
    }
}

/// The first token of a text loses its space with this tokenizer.
#[test]
fn json_is_valid_where_a_text_begins() {
    let (mut marks, names) = llama();
    let signs = ["\"", "▁\"", "[", "▁[", "]", "▁]", ",", "▁,", "\",", "],"];
    let first = ["<unk>", "<s>", "</s>", "▁", "▁a", "▁ab", "yz"];
    marks["model"]["vocab"] = vocabulary(&[&first[..], &signs[..]].concat());
    let writer = generator("constrained-json", (marks, names), GenerationConfig::default());
    let options = json!(["a b", "ab"]);
    let schema = json!({ "type": "array", "minItems": 2, "maxItems": 2,
                         "items": { "enum": options } });
    for prompt in ["", "ab"] {
        let parameters = json!({ "json_schema": schema, "max_new_tokens": 20, "n": 4,
                                 "do_sample": true, "temperature": 2.0 });
        for one in written(&writer, prompt, parameters).unwrap().results() {
            let text = &one.generated_text[prompt.len()..];
            let value: Vec<Value> = serde_json::from_str(text)
                .unwrap_or_else(|e| panic!("{text:?} after {prompt:?}: {e}"));
            let all_known = value.iter().all(|item| options.as_array().unwrap().contains(item));
            assert!(value.len() == 2 && all_known, "{text}");
            assert!(text.starts_with('['), "{text:?} after {prompt:?}");
        }
    }
}

#[test]
fn what_ends_a_text_and_what_does_not() {
    let defaults = || GenerationConfig { eos: Some(vec![0]), ..GenerationConfig::default() };
    let writer = generator("constrained-ends", pieces(&mut Dice(9), &['a', 'b', 'c']), defaults());
    let ask = |more: Value| {
        let mut all = json!({ "regex": "a{2,4}b{3}", "max_new_tokens": 30 });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        written(&writer, "c", all).unwrap()
    };
    // Neither the end token nor a stop token comes before the text matches; then nothing can follow.
    let bias = json!({ "</s>": 1e4, "c": 1e4 });
    for more in
        [json!({ "logit_bias": bias, "stop_tokens": ["c"] }), json!({ "min_new_tokens": 25 })]
    {
        let found = ask(more);
        assert!(found.generated_text.ends_with("bbb"), "{found:?}");
        assert_eq!(found.finish_reason, FinishReason::Stop);
    }
    // A stop string and the maximum length end a text early.
    let found = ask(json!({ "stop": ["bb"] }));
    assert!(found.generated_text.ends_with('a') && found.finish_reason == FinishReason::Stop);
    let found = ask(json!({ "max_new_tokens": 1 }));
    assert_eq!((found.finish_reason, found.token_ids.len()), (FinishReason::Length, 1));
    // Where the text matches, the end token may come.
    let found = ask(json!({ "regex": "[ab]+", "logit_bias": { "</s>": 1e4 } }));
    assert_eq!((found.finish_reason, found.token_ids.len()), (FinishReason::Eos, 1));
    // What follows is forbidden.
    let forbidden: Vec<u32> = (1..writer.tokenizer().size() as u32)
        .filter(|id| writer.tokenizer().token(*id).is_some_and(|token| token.contains('b')))
        .collect();
    let none: serde_json::Map<_, _> =
        forbidden.iter().map(|id| (id.to_string(), json!(-1e30))).collect();
    let found = ask(json!({ "logit_bias": none }));
    assert!(found.generated_text.ends_with('b'), "a bias is no prohibition: {found:?}");
}

#[test]
fn wrong_constraints_are_errors() {
    let writer = generator(
        "constrained-wrong",
        pieces(&mut Dice(9), &['a', 'b']),
        GenerationConfig::default(),
    );
    for (parameters, want) in [
        (json!({ "regex": "a", "json_schema": {} }), "regex and json_schema: got both"),
        (json!({ "regex": "a(" }), "regex: unclosed group, at character 2"),
        (json!({ "regex": "[0-9]+" }), "regex: no text that matches can be written"),
        (json!({ "regex": "a{3}1" }), "regex: no text that matches can be written"),
        (json!({ "json_schema": { "type": "null" } }), "json_schema: no text that matches can be"),
        (json!({ "json_schema": { "not": {} } }), "json_schema at /not: the keyword \"not\""),
    ] {
        let error = written(&writer, "a", parameters).unwrap_err();
        assert!(error.starts_with(want), "{error}");
    }
    // One way to go on, of two, needs what no token has.
    let found = written(&writer, "a", json!({ "regex": "a{3}1|b{3}", "max_new_tokens": 9 }));
    assert_eq!(found.unwrap().generated_text, "abbb");
}

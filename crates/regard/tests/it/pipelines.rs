//! Tasks as a service calls them: requests and responses in JSON, which are what `--json` prints.

use crate::program::{folder, regard};
use regard_models::ModelFiles;
use regard_tasks::audio::{Sound, wav};
use regard_tasks::pipeline::{self, Opened, TASKS};
use serde_json::{Value, json as value};
use std::path::Path;

fn shipped(name: &str) -> ModelFiles {
    (&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name)).into()
}

fn open(task: &str, model: &str) -> Box<dyn Opened> {
    (pipeline::task(task).unwrap().open)(shipped(model)).unwrap()
}

/// A request of a task, and the command that asks the same.
fn calls() -> Vec<(&'static str, &'static str, Value, Vec<&'static str>)> {
    let text = "They are watching.";
    let story = "John took the milk. John went to the hallway.";
    vec![
        ("translate", "en-fr", value!({ "inputs": text }), vec!["translate", text]),
        (
            "translate",
            "en-fr",
            value!({ "inputs": text, "parameters": {
                "num_beams": 3, "num_return_sequences": 2, "output_attentions": true } }),
            vec![
                "translate",
                text,
                "--num-beams",
                "3",
                "--num-return-sequences",
                "2",
                "--align",
                "pharaoh",
            ],
        ),
        (
            "generate",
            "shakespeare",
            value!({ "inputs": "ROMEO:", "parameters": {
                "max_new_tokens": 8, "do_sample": true, "seed": 3, "num_return_sequences": 2 } }),
            vec![
                "generate",
                "ROMEO:",
                "--max-new-tokens",
                "8",
                "--do-sample",
                "--seed",
                "3",
                "--num-return-sequences",
                "2",
            ],
        ),
        ("score", "shakespeare", value!({ "inputs": "to be" }), vec!["score", "to be"]),
        ("tag", "en-pos", value!({ "inputs": text }), vec!["tag", text]),
        (
            "tag",
            "en-pos",
            value!({ "inputs": text, "parameters": { "aggregation_strategy": "tokens" } }),
            vec!["tag", text, "--by", "tokens"],
        ),
        (
            "answer-story",
            "stories",
            value!({ "inputs": { "question": "Where is John?", "context": story },
                     "parameters": { "top_k": 2 } }),
            vec!["answer", "Where is John?", "--context", story, "--top-k", "2"],
        ),
        (
            "point",
            "hull",
            value!({ "inputs": { "points": [[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.4]] },
                     "parameters": { "output_attentions": true } }),
            vec!["point", "0 0  1 0  1 1  0 1  0.5 0.4", "--attend"],
        ),
    ]
}

#[test]
fn json_is_the_response() {
    for (task, model, request, mut args) in calls() {
        let response = open(task, model).call(request).unwrap();
        args.push("--json");
        let ran = regard(&args);
        assert_eq!(ran.out.trim_end(), response.to_string(), "{args:?}: {}", ran.err);
    }
}

#[test]
fn files_are_bytes_with_a_name() {
    let hum: Vec<f32> = (0..6000).map(|i| 0.3 * (i as f32 * 0.1).sin()).collect();
    let bytes = wav::encode(&Sound { samples: hum, rate: 16000 });
    let file = folder("pipelines").join("hum.wav");
    std::fs::write(&file, &bytes).unwrap();
    let file = file.to_str().unwrap();
    let request = value!({ "inputs": { "data": base64(&bytes), "file": file },
                           "parameters": { "top_k": 2 } });
    let response = open("recognize", "digits").call(request).unwrap();
    let printed = regard(&["recognize", file, "--top-k", "2", "--json"]).out;
    assert_eq!(printed.trim_end(), response.to_string());
    let error = open("recognize", "digits").call(value!({ "inputs": "AAAA" })).unwrap_err();
    assert!(error.to_string().contains("not a WAV file"), "{error}");
}

/// Standard base64, by its definition.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |chunk: &[u8]| {
        let mut word = [0; 3];
        word[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, word[0], word[1], word[2]]);
        let letter = |i: usize| match i <= chunk.len() {
            true => char::from(LETTERS[(bits >> (18 - 6 * i)) as usize & 63]),
            false => '=',
        };
        (0..4).map(letter).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

#[test]
fn many_inputs_give_many_responses() {
    let tagger = open("tag", "en-pos");
    let one = |text: &str| tagger.call(value!({ "inputs": text })).unwrap();
    let both = tagger.call(value!({ "inputs": ["They are watching.", "Go."] })).unwrap();
    assert_eq!(both, value!([one("They are watching."), one("Go.")]));
    // One that cannot be answered does not hold up the others.
    let pointer = open("point", "hull");
    let two = value!({ "inputs": [{ "points": [[0, 0], [1, 0], [1, 1], [0.2, 0.1]] },
                                  { "points": [[0]] }] });
    let two = pointer.call(two).unwrap();
    assert!(two[0]["answer"].is_array() && two[1]["error"].is_string(), "{two}");
}

#[test]
fn what_is_wrong_in_a_request_is_told_by_its_key() {
    let tagger = open("tag", "en-pos");
    for (request, says) in [
        (value!([]), "request: need an object"),
        (value!({}), "inputs: need one input or a list"),
        (value!({ "inputs": 3 }), "inputs: got 3, need a text"),
        (value!({ "inputs": ["a", 3] }), "inputs[1]: got 3, need a text"),
        (value!({ "inputs": "a", "text": "b" }), "text: unknown key; a request has only"),
        (
            value!({ "inputs": "a", "parameters": { "by": 1 } }),
            "parameters.by: there is no such key",
        ),
    ] {
        let error = tagger.call(request.clone()).unwrap_err().to_string();
        assert!(error.contains(says), "{request}: {error}");
    }
    // Also beside the settings of a search.
    let translator = open("translate", "en-fr");
    let request = |parameters| value!({ "inputs": "Go.", "parameters": parameters });
    for (parameters, says) in [
        (value!({ "num_beam": 3 }), "parameters.num_beam: there is no such key"),
        (value!({ "num_beams": "x" }), "parameters.num_beams: got \"x\", need a whole number"),
        (value!({ "early_stopping": "x" }), "parameters.early_stopping: got \"x\", need false,"),
        (value!({ "num_beams": 0 }), "num_beams: got 0"),
        (value!({ "min_length": 9, "max_length": 4 }), "min_length 9 is above max_length 4"),
    ] {
        let error = translator.call(request(parameters)).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn every_task_has_schemas_that_say_what_fields_mean() {
    for row in TASKS {
        let (request, response) = ((row.request)(), (row.response)());
        let properties = request.get("properties").and_then(Value::as_object).unwrap();
        assert!(properties.contains_key("inputs"), "{}: {request:?}", row.name);
        assert!(properties.contains_key("parameters"), "{}: {request:?}", row.name);
        assert_eq!(request.get("additionalProperties"), Some(&value!(false)), "{}", row.name);
        let described = response.get("properties").and_then(Value::as_object).unwrap();
        for (name, field) in described {
            let told = field.get("description").or(field.get("$ref"));
            assert!(told.is_some(), "{}: {name} has no description", row.name);
        }
        assert!(pipeline::task(row.models).is_some(), "{}: {}", row.name, row.models);
        let verb = row.verb.strip_prefix("regard ").unwrap();
        assert!(row.name.starts_with(verb.split(' ').next().unwrap()), "{}", row.name);
    }
}

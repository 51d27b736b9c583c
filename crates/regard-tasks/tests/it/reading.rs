//! The goldens of `fixtures/make/reading.py`: what transformers' pipelines say.

use regard_models::text::Head;
use regard_tasks::reading::{Asking, Grouping, Pooling, Reader};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/reading").join(name)
}

fn golden(name: &str, head: Head) -> (Reader, Vec<Value>) {
    let reader = Reader::load(&folder(name), head).unwrap_or_else(|e| panic!("{e}"));
    let text = std::fs::read_to_string(folder(name).join("said.json")).unwrap();
    (reader, serde_json::from_str(&text).unwrap())
}

fn text(case: &Value, key: &str) -> String {
    case[key].as_str().unwrap().to_string()
}

fn close(got: f64, wanted: &Value) {
    let wanted = wanted.as_f64().unwrap();
    assert!((got - wanted).abs() <= 1e-5, "{got} is not {wanted}");
}

#[test]
fn hidden_words_are_guessed_as_by_the_pipeline() {
    let (reader, cases) = golden("BertForMaskedLM", Head::Words);
    for case in cases {
        let found = reader.fill(&text(&case, "text"), 3).unwrap();
        let lists = match case["said"][0].is_array() {
            true => case["said"].as_array().unwrap().clone(),
            false => vec![case["said"].clone()],
        };
        assert_eq!(found.len(), lists.len());
        for (found, list) in found.iter().zip(&lists) {
            assert_eq!(found.len(), 3);
            for (candidate, wanted) in found.iter().zip(list.as_array().unwrap()) {
                assert_eq!(u64::from(candidate.token), wanted["token"].as_u64().unwrap());
                assert_eq!(candidate.token_str, text(wanted, "token_str"));
                close(candidate.score, &wanted["score"]);
            }
        }
    }
    let error = reader.fill("they are watching", 3).unwrap_err().to_string();
    assert!(error.contains("[MASK]"), "{error}");
    let error = reader.fill(&"[MASK] ".repeat(60), 3).unwrap_err().to_string();
    assert!(error.contains("reads 40"), "{error}");
}

#[test]
fn texts_get_the_labels_of_the_pipeline() {
    let (reader, cases) = golden("BertForSequenceClassification", Head::Sequence);
    let texts: Vec<String> = cases.iter().map(|case| text(case, "text")).collect();
    let pairs: Vec<(&str, Option<&str>)> = texts.iter().map(|t| (t.as_str(), None)).collect();
    // All at once: texts of different lengths are read together.
    for (labels, case) in reader.classify(&pairs).unwrap().iter().zip(&cases) {
        for (label, wanted) in labels.iter().zip(case["said"].as_array().unwrap()) {
            assert_eq!(label.label, text(wanted, "label"));
            close(label.score, &wanted["score"]);
        }
        assert_eq!(labels.len(), 3);
    }
    let long = "the cat sat on the mat ".repeat(30);
    assert_eq!(reader.classify(&[(&long, None)]).unwrap()[0].len(), 3);
}

#[test]
fn words_get_the_entities_of_the_pipeline() {
    let (reader, cases) = golden("BertForTokenClassification", Head::Tokens);
    for case in &cases {
        let text_here = text(case, "text");
        let found = reader.tag(&[&text_here], Grouping::Entities).unwrap().remove(0);
        let wanted = case["said"].as_array().unwrap();
        assert_eq!(found.len(), wanted.len(), "{text_here}");
        for (entity, wanted) in found.iter().zip(wanted) {
            assert_eq!(entity.entity_group, text(wanted, "entity_group"));
            let place = (entity.start as u64, entity.end as u64);
            assert_eq!(place, (wanted["start"].as_u64().unwrap(), wanted["end"].as_u64().unwrap()));
            close(entity.score, &wanted["score"]);
            // The words are those of the text, not the vocabulary's.
            let characters: Vec<char> = text_here.chars().collect();
            let there: String = characters[entity.start..entity.end].iter().collect();
            assert_eq!(entity.word, there);
        }
        let words = reader.tag(&[&text_here], Grouping::Words).unwrap().remove(0);
        assert!(words.iter().all(|word| !word.word.contains(' ')));
    }
    // Windows of a long text: every word once, in order, and those far from all ends the same.
    let one = "ann sees the red house in paris and bob is in london . ";
    let long = one.repeat(8);
    let all = reader.tag(&[&long], Grouping::Words).unwrap().remove(0);
    assert_eq!(all.len(), 8 * 13);
    assert!(all.windows(2).all(|pair| pair[0].end <= pair[1].start));
}

#[test]
fn answers_are_the_best_spans() {
    let (reader, cases) = golden("BertForQuestionAnswering", Head::Span);
    for case in &cases {
        let asking = Asking { top_k: 4, max_answer_len: 5, ..Asking::default() };
        let (question, context) = (text(case, "question"), text(case, "context"));
        let found = reader.answer(&question, &context, &asking).unwrap();
        assert_eq!(found.len(), 4);
        for (answer, wanted) in found.iter().zip(case["said"].as_array().unwrap()) {
            assert_eq!(answer.answer, text(wanted, "answer"));
            assert_eq!(answer.start as u64, wanted["start"].as_u64().unwrap());
            close(answer.score, &wanted["score"]);
        }
    }
    let long = "the cat sat on the mat . bob is in london ! ".repeat(12);
    let found = reader.answer("who is in london?", &long, &Asking::default()).unwrap();
    let characters: Vec<char> = long.chars().collect();
    let there: String = characters[found[0].start..found[0].end].iter().collect();
    assert_eq!(found[0].answer, there);
}

#[test]
fn vectors_are_means_or_the_first() {
    let (reader, cases) = golden("BertModel", Head::Bare);
    let texts: Vec<String> = cases.iter().map(|case| text(case, "text")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for (pooling, normalize, key) in [(Pooling::Mean, true, "mean"), (Pooling::Cls, false, "cls")] {
        let vectors = reader.embed(&texts, pooling, normalize).unwrap();
        for (vector, case) in vectors.iter().zip(&cases) {
            let wanted = case[key].as_array().unwrap();
            vector.iter().zip(wanted).for_each(|(x, wanted)| close(f64::from(*x), wanted));
            assert_eq!(vector.len(), wanted.len());
        }
    }
    // A text that is longer than the model reads is read in parts.
    let long = "the cat sat on the mat ".repeat(30);
    assert_eq!(reader.embed(&[&long], Pooling::Mean, false).unwrap()[0].len(), 16);
}

#[test]
fn a_model_is_not_asked_what_it_was_not_trained_for() {
    let error = Reader::load(&folder("BertForMaskedLM"), Head::Span).err().unwrap().to_string();
    assert!(error.contains("BertForMaskedLM") && error.contains("train it"), "{error}");
    // Vectors can be had of any.
    assert!(Reader::load(&folder("BertForMaskedLM"), Head::Bare).is_ok());
}

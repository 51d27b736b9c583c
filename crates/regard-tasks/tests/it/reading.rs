//! The goldens of `fixtures/make/reading.py`: outputs of transformers' pipelines.

use burn::tensor::Device;
use regard_attention::Mode;
use regard_models::checkpoint::{self, Precision};
use regard_models::text::{self as text_models, Head, Texts};
use regard_tasks::answer::Asking;
use regard_tasks::embed::SentencePooling;
use regard_tasks::reader::TextEncoder;
use regard_tasks::tag::Grouping;
use regard_tasks::text::Tokenizer;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/reading").join(name)
}

fn golden(name: &str, head: Head) -> (TextEncoder, Vec<Value>) {
    let reader = TextEncoder::load(&folder(name), head).unwrap_or_else(|e| panic!("{e}"));
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
    assert!(error.contains("takes at most 40"), "{error}");
}

#[test]
fn texts_get_the_labels_of_the_pipeline() {
    let (reader, cases) = golden("BertForSequenceClassification", Head::Sequence);
    let texts: Vec<String> = cases.iter().map(|case| text(case, "text")).collect();
    let pairs: Vec<(&str, Option<&str>)> = texts.iter().map(|t| (t.as_str(), None)).collect();
    // As a batch: texts of different lengths are encoded together.
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
            // The words are those of the text, not tokens.
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
    for (pooling, normalize, key) in
        [(SentencePooling::Mean, true, "mean"), (SentencePooling::Cls, false, "cls")]
    {
        let vectors = reader.embed(&texts, pooling, normalize).unwrap();
        for (vector, case) in vectors.iter().zip(&cases) {
            let wanted = case[key].as_array().unwrap();
            vector.iter().zip(wanted).for_each(|(x, wanted)| close(f64::from(*x), wanted));
            assert_eq!(vector.len(), wanted.len());
        }
    }
    // A text that is longer than the context is encoded in windows.
    let long = "the cat sat on the mat ".repeat(30);
    assert_eq!(reader.embed(&[&long], SentencePooling::Mean, false).unwrap()[0].len(), 16);
}

#[test]
fn a_model_is_not_asked_what_it_was_not_trained_for() {
    let error =
        TextEncoder::load(&folder("BertForMaskedLM"), Head::Span).err().unwrap().to_string();
    assert!(
        error.contains("BertForMaskedLM")
            && error.contains("regard train answer --data FILE --from "),
        "{error}"
    );
    // Any model gives embeddings.
    assert!(TextEncoder::load(&folder("BertForMaskedLM"), Head::Bare).is_ok());
}

/// An untrained model with XLNet's special tokens: the token that represents the sequence is at
/// its end.
fn xlnet(folder: &Path) {
    let words =
        ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "who", "is", "ann", "bob", "in"];
    let ids: serde_json::Map<String, Value> =
        words.iter().enumerate().map(|(i, word)| (word.to_string(), i.into())).collect();
    let part = |id: &str, of: u32| serde_json::json!({ "Sequence": { "id": id, "type_id": of } });
    let mark =
        |id: &str, of: u32| serde_json::json!({ "SpecialToken": { "id": id, "type_id": of } });
    let token = |id: &str| serde_json::json!({ "id": id, "ids": [ids[id]], "tokens": [id] });
    let tokenizer = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
        "added_tokens": [],
        "pre_tokenizer": { "type": "WhitespaceSplit" },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [part("A", 0), mark("<sep>", 0), mark("<cls>", 2)],
            "pair": [part("A", 0), mark("<sep>", 0), part("B", 1), mark("<sep>", 1), mark("<cls>", 2)],
            "special_tokens": { "<sep>": token("<sep>"), "<cls>": token("<cls>") },
        },
        "decoder": null,
        "model": { "type": "WordLevel", "vocab": ids, "unk_token": "<unk>" },
    });
    std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let config = serde_json::json!({
        "model_type": "xlnet", "vocab_size": words.len(), "d_model": 16, "n_layer": 1, "n_head": 2,
        "d_inner": 16, "initializer_range": 0.5,
    });
    let model = text_models::create(&config, Head::Span, 5, &Device::flex()).unwrap();
    checkpoint::write(folder, &model.config(), &model.weights(), Precision::Single).unwrap();
}

/// Probability of no answer, from the model itself: both ends at the token that represents the
/// sequence, among that and the positions of the context.
fn of_nothing(folder: &Path, question: &str, context: &str, cls: &str) -> f64 {
    let model = text_models::open(folder, None, 0, &Device::flex()).unwrap();
    let tokenizer = Tokenizer::load(folder).unwrap();
    let whole = tokenizer.encode_special(question, Some(context)).unwrap();
    let mut texts = Texts::new();
    texts.push_typed(&whole.ids, &whole.types);
    let logits = model.forward(&texts, None, Mode::Eval).logits.unwrap();
    let logits: Vec<f32> = logits.into_data().try_into_vec().unwrap();
    let at = whole.tokens.iter().position(|token| token == cls).unwrap();
    let share = |side: usize| {
        let power = |at: usize| f64::from(logits[2 * at + side]).exp();
        power(at) / (power(at) + whole.places(1).map(power).sum::<f64>())
    };
    share(0) * share(1)
}

#[test]
fn no_answer_is_where_the_model_has_the_whole_text() {
    let own = crate::small::Folder::new("reading-nothing");
    xlnet(&own.0);
    let bert = folder("BertForQuestionAnswering");
    let (question, context) = ("who is in", "ann is in bob");
    for (folder, cls) in [(own.0.as_path(), "<cls>"), (&bert, "[CLS]")] {
        let reader = TextEncoder::load(folder, Head::Span).unwrap();
        let asking = Asking { top_k: 100, handle_impossible_answer: true, ..Asking::default() };
        let found = reader.answer(question, context, &asking).unwrap();
        let nothing = found.iter().find(|answer| answer.answer.is_empty()).unwrap();
        let wanted = of_nothing(folder, question, context, cls);
        assert!((nothing.score - wanted).abs() < 1e-6, "{cls}: {} is not {wanted}", nothing.score);
        // Without that option, all of the probability is in the text.
        let asking = Asking { handle_impossible_answer: false, ..asking };
        let found = reader.answer(question, context, &asking).unwrap();
        assert!(found.iter().all(|answer| !answer.answer.is_empty()));
    }
    // A vocabulary without such a token cannot predict it.
    let text = std::fs::read_to_string(own.0.join("tokenizer.json")).unwrap();
    std::fs::write(own.0.join("tokenizer.json"), text.replace("<cls>", "<other>")).unwrap();
    let reader = TextEncoder::load(&own.0, Head::Span).unwrap();
    let asking = Asking { handle_impossible_answer: true, ..Asking::default() };
    let error = reader.answer(question, context, &asking).unwrap_err().to_string();
    assert!(error.contains("no answer"), "{error}");
}

//! The verbs that read texts or go on with them: what each prints, line by line.

use crate::program::{fails, folder, json, piped, regard};
use regard_tasks::answer_story::{self, Tales};
use regard_tasks::data::Characters;
use regard_tasks::data::babi::{Fact, Story, StoryQuestion};
use regard_tasks::generate::{Language, Recipe};
use regard_tasks::recipe;
use regard_tasks::train::Learner;
use std::path::Path;

/// A golden model of `fixtures/make/reading.py`.
fn golden(name: &str) -> String {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/reading");
    all.join(name).to_str().unwrap().to_string()
}

#[test]
fn a_text_gets_a_label() {
    let model = golden("BertForSequenceClassification");
    let said = json(&["classify", "They are watching.", "--model", &model, "--json"]);
    assert!(said["label"].is_string() && said["score"].is_number(), "{said}");
    let said = json(&["classify", "the cat", "--top-k", "3", "--model", &model, "--json"]);
    assert_eq!(said["labels"].as_array().unwrap().len(), 3);
    let text = regard(&["classify", "one", "two", "--model", &model]).out;
    assert_eq!(text.lines().count(), 2);
    assert!(text.lines().all(|line| line.split('\t').count() == 2), "{text}");
}

#[test]
fn words_get_labels() {
    let model = golden("BertForTokenClassification");
    let said = json(&["tag", "They are watching.", "--by", "words", "--model", &model, "--json"]);
    let entities = said["entities"].as_array().unwrap();
    assert_eq!(entities.len(), 4);
    assert_eq!((&entities[2]["word"], &entities[2]["start"]), (&"watching".into(), &9.into()));
    for key in ["entity_group", "score", "word", "start", "end"] {
        assert!(entities[0].get(key).is_some(), "{key}");
    }
    let text = regard(&["tag", "They are watching.", "--by", "words", "--model", &model]).out;
    assert_eq!(text.split_whitespace().count(), 4, "{text}");
}

#[test]
fn a_question_gets_an_answer() {
    let model = golden("BertForQuestionAnswering");
    let ask = |context: &str| {
        json(&["answer", "who is in paris?", "--context", context, "--model", &model, "--json"])
    };
    let said = ask("Ann is in Paris, and Bob is in London.");
    let (start, end) = (said["start"].as_u64().unwrap(), said["end"].as_u64().unwrap());
    let there = &"Ann is in Paris, and Bob is in London."[start as usize..end as usize];
    assert_eq!(said["answer"], there);
    // Where nothing stands there is no answer, and still an object.
    assert_eq!(ask(" ")["answer"], "");
    fails(&["answer", "who?", "--model", &model], &["--context or --file"]);
}

#[test]
fn a_hidden_word_is_guessed() {
    let model = golden("BertForMaskedLM");
    let said = json(&["fill", "they are [MASK] .", "--top-k", "2", "--model", &model, "--json"]);
    let candidates = said["candidates"].as_array().unwrap();
    assert_eq!(candidates.len(), 2);
    for key in ["token_str", "token", "score", "sequence"] {
        assert!(candidates[0].get(key).is_some(), "{key}");
    }
    let two = json(&["fill", "they [MASK] the [MASK]", "--model", &model, "--json"]);
    assert_eq!(two["candidates"].as_array().unwrap().len(), 2);
    let sequence = two["candidates"][0][0]["sequence"].as_str().unwrap();
    assert!(sequence.ends_with("the [MASK]"), "{sequence}");
    fails(&["fill", "nothing", "--model", &model], &["[MASK]"]);
}

/// A folder of sentence-transformers says how one vector is made of a text.
#[test]
fn a_folder_says_how_its_vectors_are_pooled() {
    let model = folder("reading_pooling");
    for entry in std::fs::read_dir(golden("BertModel")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, model.join(path.file_name().unwrap())).unwrap();
    }
    let at = model.to_str().unwrap();
    let vector = |more: &[&str]| -> Vec<f64> {
        let args = ["embed", "They are watching.", "--json", "--model", at];
        let said = json(&[&args[..], more].concat());
        said["embedding"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
    };
    let [mean, cls, max] = ["mean", "cls", "max"].map(|way| vector(&["--pooling", way]));
    assert!(mean != cls && cls != max && mean != max);
    assert!(max.iter().zip(&cls).all(|(max, cls)| max >= cls));
    assert_eq!(vector(&[]), mean, "the default");
    std::fs::create_dir(model.join("1_Pooling")).unwrap();
    let says = |flag: &str, normalize: bool| {
        let module = |i: usize, path: &str, class: &str| {
            let class = format!("sentence_transformers.models.{class}");
            serde_json::json!({ "idx": i, "name": i.to_string(), "path": path, "type": class })
        };
        let mut modules = vec![module(0, "", "Transformer"), module(1, "1_Pooling", "Pooling")];
        if normalize {
            modules.push(module(2, "2_Normalize", "Normalize"));
        }
        let modules = serde_json::to_string(&modules).unwrap();
        std::fs::write(model.join("modules.json"), modules).unwrap();
        let config = serde_json::json!({ "word_embedding_dimension": 16, flag: true });
        std::fs::write(model.join("1_Pooling/config.json"), config.to_string()).unwrap();
    };
    for (flag, wanted) in [("cls_token", &cls), ("max_tokens", &max), ("mean_tokens", &mean)] {
        says(&format!("pooling_mode_{flag}"), false);
        assert_eq!(&vector(&[]), wanted, "{flag}");
    }
    says("pooling_mode_cls_token", true);
    let length: f64 = vector(&[]).iter().map(|x| x * x).sum();
    assert!((length - 1.0).abs() < 1e-5, "{length}");
    assert_eq!(vector(&[]), vector(&["--pooling", "cls", "--normalize"]));
    // What is exported says so too.
    let out = folder("reading_pooling_out");
    let out = out.to_str().unwrap();
    assert_eq!(regard(&["models", "export", at, "--out", out]).code, 0);
    let exported = json(&["embed", "They are watching.", "--json", "--model", out]);
    assert_eq!(exported["embedding"][0].as_f64(), vector(&[]).first().copied());
    // What cannot be done is not done otherwise.
    says("pooling_mode_lasttoken", false);
    fails(&["embed", "a", "--model", at], &["1_Pooling/config.json", "lasttoken", "--pooling"]);
    assert_eq!(vector(&["--pooling", "cls"]), cls);
    let modules = model.join("modules.json");
    let dense = std::fs::read_to_string(&modules).unwrap().replace("Pooling\"", "Dense\"");
    std::fs::write(&modules, dense.replace("1_Dense", "1_Pooling")).unwrap();
    fails(&["embed", "a", "--model", at], &["modules.json", "models.Dense"]);
    std::fs::write(&modules, r#"[{"path": "../x", "type": "a.Pooling"}]"#).unwrap();
    fails(&["embed", "a", "--model", at], &["modules.json", "../x"]);
}

#[test]
fn a_text_becomes_a_vector() {
    let model = golden("BertModel");
    let said = json(&["embed", "They are watching.", "--normalize", "--model", &model, "--json"]);
    let vector: Vec<f64> =
        said["embedding"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
    let length: f64 = vector.iter().map(|x| x * x).sum();
    assert!(vector.len() == 16 && (length - 1.0).abs() < 1e-5);
    fails(&["classify", "text", "--model", &model], &["BertModel"]);
}

/// A model of stories that has learned nothing but their words.
fn listener(test: &str) -> String {
    let recipe = "name = 'tiny'\ntask = 'stories'\n[data]\nset = 'files'\n[model]\n\
                  model_type = 'memn2n'\nhidden_size = 8\n";
    let recipe = recipe::parse(recipe, &[], &|_| None).unwrap();
    let recipe = answer_story::Recipe::from_table(recipe).unwrap();
    let fact = |id, text: &str| Fact { id, text: text.into() };
    let facts = vec![fact(1, "John took the milk."), fact(2, "Mary went to the hall.")];
    let (text, answers) = ("Where is Mary?".into(), vec!["hall".into()]);
    let question = StoryQuestion { text, answers, support: vec![2], after: 2 };
    let (text, answers) = ("Where is John?".into(), vec!["garden".into()]);
    let other = StoryQuestion { text, answers, support: vec![], after: 2 };
    let story = Story { facts, questions: vec![question, other] };
    let tales = vec![Tales { task: 1, stories: vec![story] }];
    let corpus = answer_story::Corpus { train: tales.clone(), valid: tales, test: vec![] };
    let path = folder(test).join("model");
    std::fs::create_dir_all(&path).unwrap();
    answer_story::StoryObjective::new(&recipe, &corpus).unwrap().save(&path).unwrap();
    path.to_str().unwrap().to_string()
}

#[test]
fn a_story_is_asked_about() {
    let model = listener("stories");
    let base = ["answer", "where is mary", "--context", "Mary took the milk.", "--model", &model];
    let said = json(&[&base[..], &["--json", "--top-k", "2"]].concat());
    assert!(["hall", "garden"].contains(&said["answer"].as_str().unwrap()), "{said}");
    assert_eq!(said["answers"].as_array().unwrap().len(), 2);
    // All that was said is all that can be looked at.
    let wanted =
        serde_json::json!([{ "sentence": 0, "text": "Mary took the milk.", "weight": 1.0 }]);
    assert_eq!(said["support"], wanted);
    let text = regard(&base).out;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[1]), (2, "  0  1.00  Mary took the milk."), "{text}");
    assert_eq!(lines[0].split('\t').count(), 2, "{text}");
    let told = |context| ["answer", "Where is Mary?", "--context", context, "--model", &model];
    fails(&told("John took the sword."), &["sword", "10 words"]);
    fails(&told("John John John John John John."), &["6 words", "at most 5"]);
}

/// A language model that has learned nothing.
fn writer(test: &str) -> String {
    let recipe = "name = 'tiny'\ntask = 'language'\nseed = 1\ncontext = 8\n[data]\nset = 'files'\n\
                  [vocabulary]\nkind = 'char'\n[model]\nmodel_type = 'gpt2'\nn_embd = 16\nn_layer = 1\n\
                  n_head = 2\n";
    let recipe = Recipe::from_table(recipe::parse(recipe, &[], &|_| None).unwrap()).unwrap();
    let text = Characters::new("the quick brown fox jumps over the lazy dog\n".repeat(20));
    let path = folder(test).join("model");
    std::fs::create_dir_all(&path).unwrap();
    Language::new(&recipe, &text.into()).unwrap().save(&path).unwrap();
    path.to_str().unwrap().to_string()
}

#[test]
fn a_text_goes_on() {
    let model = writer("generate");
    let said = json(&["generate", "the", "--max-new-tokens", "30", "--model", &model, "--json"]);
    assert!(said["generated_text"].as_str().unwrap().starts_with("the"));
    assert_eq!(said["token_ids"].as_array().unwrap().len(), 30);
    // As it comes and at the end, the same text.
    let streamed = regard(&["generate", "the", "--max-new-tokens", "30", "--model", &model]).out;
    assert_eq!(
        streamed.trim_end_matches('\n'),
        said["generated_text"].as_str().unwrap().trim_end_matches('\n')
    );
    let draw = |seed: &str| {
        regard(&[
            "generate",
            "a",
            "a",
            "--do-sample",
            "--max-new-tokens",
            "20",
            "--seed",
            seed,
            "--model",
            &model,
        ])
        .out
    };
    assert_eq!(draw("1"), draw("1"));
    assert_ne!(draw("1"), draw("2"));
}

#[test]
fn a_text_has_a_probability() {
    let model = writer("score");
    let said = json(&["score", "the lazy dog", "--model", &model, "--windows", "--json"]);
    let each = said["token_logprobs"].as_array().unwrap();
    assert_eq!((each.len(), said["tokens"].as_array().unwrap().len()), (12, 12));
    assert!(each[0].is_null() && each[1..].iter().all(|x| x.as_f64().unwrap() < 0.0));
    let sum: f64 = each.iter().filter_map(|x| x.as_f64()).sum();
    assert!((sum - said["logprob"].as_f64().unwrap()).abs() < 1e-9);
}

/// A model of GPT-2's kind puts nothing around a text, so an empty one has no tokens.
#[test]
fn an_empty_line_does_not_end_the_stream() {
    let model = writer("empty_lines");
    let lines = b"the fox\n\nthe \xff dog\nlazy";
    let run = |verb: &str, more: &[&str]| {
        let output = piped(&[&[verb, "--model", &model], more].concat(), lines);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let (code, out, err) = run("embed", &["--json"]);
    assert_eq!(code, 1, "{err}");
    let objects: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answered: Vec<bool> = objects.iter().map(|o| o["embedding"].is_array()).collect();
    assert_eq!(answered, [true, false, false, true], "{out}");
    for (object, part) in [(&objects[1], "line 2: a text without tokens"), (&objects[2], "line 3")]
    {
        let why = object["error"].as_str().unwrap();
        assert!(why.starts_with(part) && err.contains(why), "{why}: {err}");
    }
    let (code, out, _) = run("embed", &[]);
    let empty: Vec<bool> = out.lines().map(str::is_empty).collect();
    assert_eq!((code, empty), (1, vec![false, true, true, false]));
    // What can be said of nothing is said.
    let (code, out, _) = run("score", &[]);
    assert_eq!((code, out.lines().count()), (1, 4));
    assert!(!out.lines().nth(1).unwrap().is_empty(), "{out}");
    // An argument without an answer is an error at once.
    fails(&["embed", "", "--model", &model], &["text 1", "without tokens"]);
}

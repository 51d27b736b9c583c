//! Evaluation of models: metrics are those of training, and what a model cannot predict counts as
//! wrong.

use crate::small::Folder;
use regard_models::ModelFiles;
use regard_tasks::data::Part;
use regard_tasks::evaluation::{
    Details, EvaluationData, Report, WorstExample, WorstLabel, WorstText,
};
use regard_tasks::recipe::{self, Task};
use regard_tasks::train::{Event, Record, Run};
use std::fs;
use std::path::{Path, PathBuf};

const MODEL: &str = r#"
[model]
model_type = "bert"
hidden_size = 32
num_hidden_layers = 1
num_attention_heads = 4
intermediate_size = 64
max_position_embeddings = 64
initializer_range = 0.15
hidden_dropout_prob = 0.0
attention_probs_dropout_prob = 0.0

[vocabulary]
kind = "wordpiece"
size = 150
lowercase = true
"#;

fn on(part: Part) -> EvaluationData {
    EvaluationData::Set { set: None, part: Some(part) }
}

fn task(text: &str) -> Box<dyn Task> {
    recipe::task(toml::from_str(text).unwrap()).unwrap()
}

/// Trains by a recipe with one evaluation at its end; returns its metrics and the progress output.
fn train(folder: &Path, text: &str) -> (Vec<(String, f64)>, String) {
    let recipe = task(text);
    let mut prepared = recipe.prepare().unwrap();
    let mut last = vec![];
    let mut watch = |event: Event| {
        if let Event::Evaluated { evaluation, .. } = event {
            last = evaluation.measures.clone();
        }
        true
    };
    let (options, seed) = (recipe.options(), recipe.seed());
    let run =
        Run { folder, options, seed, resume: false, record: &Record::default(), watch: &mut watch };
    run.train(&mut *prepared.learner).unwrap();
    (last, prepared.about)
}

/// Metrics of a report as in a run's log.
fn measures(report: &Report) -> Vec<(String, f64)> {
    report.marks.iter().map(|mark| (format!("valid_{}", mark.name), mark.value)).collect()
}

fn value(report: &Report, name: &str) -> f64 {
    let mark = report.marks.iter().find(|mark| mark.name == name);
    mark.unwrap_or_else(|| panic!("no {name} in {:?}", report.marks)).value
}

/// Checks that labels, confusions and worst examples agree with the metrics, and returns the last.
pub fn worst_labels(report: &Report) -> Vec<&WorstLabel> {
    let Details { labels, confusion, worst, .. } = report.details.as_ref().expect("details");
    let total: u64 = labels.iter().map(|label| label.support).sum();
    assert_eq!(total as usize, report.asked);
    for (at, label) in labels.iter().enumerate() {
        assert_eq!(confusion[at].iter().sum::<u64>() + label.missed, label.support, "{label:?}");
        assert_eq!(confusion.iter().map(|row| row[at]).sum::<u64>(), label.predicted, "{label:?}");
    }
    let right: u64 = (0..labels.len()).map(|at| confusion[at][at]).sum();
    assert!((value(report, "accuracy") - 100.0 * right as f64 / total as f64).abs() < 1e-9);
    fn label(worst: &WorstExample) -> &WorstLabel {
        let WorstExample::Label(label) = worst else { panic!("not a label: {worst:?}") };
        label
    }
    let worst: Vec<&WorstLabel> = worst.iter().map(label).collect();
    assert!(!worst.is_empty() && worst.len() <= 10);
    assert!(worst.windows(2).all(|two| two[0].probability <= two[1].probability), "{worst:?}");
    for each in &worst {
        assert!(each.probability <= each.predicted_probability + 1e-12, "{each:?}");
        assert!(each.predicted_probability <= 1.0 + 1e-12 && !each.text.is_empty(), "{each:?}");
    }
    worst
}

/// The worst examples whose outputs are texts.
fn worst_texts(report: &Report) -> Vec<&WorstText> {
    fn text(worst: &WorstExample) -> &WorstText {
        let WorstExample::Text(text) = worst else { panic!("not a text: {worst:?}") };
        text
    }
    report.details.as_ref().expect("details").worst.iter().map(text).collect()
}

fn recipe_of(task: &str, steps: usize, folder: &Path, ends: &str, parts: &[&str]) -> String {
    let file =
        |part: &&str| format!("{part} = '{}'\n", folder.join(format!("{part}.{ends}")).display());
    let files: String = parts.iter().map(file).collect();
    format!(
        "name = 'exam'\ntask = '{task}'\nseed = 2\n[data]\nset = 'files'\n{files}max_tokens = 24\n\
         {MODEL}\n[train]\nsteps = {steps}\nbatch_tokens = 512\nlr = 3e-3\nwarmup = 5\n\
         schedule = 'cosine'\nlabel_smoothing = 0.0\neval_every = {steps}\n"
    )
}

const NAMES: [&str; 6] = ["ann", "bob", "carl", "dora", "emil", "fay"];
const PLACES: [&str; 5] = ["paris", "rome", "oslo", "lima", "cairo"];

#[test]
fn a_classifier_gets_the_numbers_of_its_training() {
    let folder = Folder::new("exam-classify");
    let line = |i: usize| format!("{} sleeps in {}\t{}\n", NAMES[i % 6], PLACES[i % 5], i % 3);
    let write = |part: &str, lines: String| {
        fs::write(folder.0.join(format!("{part}.tsv")), lines).unwrap();
    };
    write("train", (0..20).map(line).chain(["Ann, sleeps in Paris!\t0\n".into()]).collect());
    write("valid", (20..30).map(line).collect());
    // The first of these is twice in the training data, once with other punctuation.
    write("test", "ann sleeps in paris.\t0\nbob dreams in oslo\t1\ncarl dreams\t2\n".into());
    let text = recipe_of("classify", 3, &folder.0, "tsv", &["train", "valid", "test"]);
    let run = folder.0.join("run");
    let (last, about) = train(&run, &text);
    assert!(about.contains("2 texts left out because the test part has them"), "{about}");
    let valid = task(&text).evaluate(&ModelFiles::from(&run), &on(Part::Valid)).unwrap();
    assert_eq!(measures(&valid), last, "bit for bit");
    assert_eq!((valid.asked, valid.unit, valid.excluded), (10, "texts", 0));
    let test = task(&text)
        .evaluate(&ModelFiles::from(&run), &EvaluationData::Set { set: None, part: None })
        .unwrap();
    assert_eq!((test.part, test.asked, test.excluded), (Some(Part::Test), 3, 0));
    worst_labels(&valid);
    let lines = ["ann sleeps in paris.", "bob dreams in oslo", "carl dreams"];
    for each in worst_labels(&test) {
        assert_eq!(each.text, lines[each.number.unwrap() - 1]);
        assert_eq!(each.label, (each.number.unwrap() - 1).to_string());
    }

    // Without a test part there is nothing to leave out, and nothing to report.
    let without = recipe_of("classify", 3, &folder.0, "tsv", &["train", "valid"]);
    let (_, about) = train(&folder.0.join("other"), &without);
    assert!(!about.contains("left out"), "{about}");
    let error =
        task(&without).evaluate(&ModelFiles::from(&run), &on(Part::Test)).unwrap_err().to_string();
    assert!(error.contains("files has no test part"), "{error}");
    let file = EvaluationData::File(folder.0.join("test.tsv"));
    let whole = task(&text).evaluate(&ModelFiles::from(&run), &file).unwrap();
    assert_eq!((whole.part, whole.asked), (None, 3));
    assert_eq!(measures(&whole), measures(&test));
    // Labels that the model does not have are reported.
    write("odd", "ann sleeps\tnever\n".into());
    let error = task(&text)
        .evaluate(&ModelFiles::from(&run), &EvaluationData::File(folder.0.join("odd.tsv")))
        .unwrap_err();
    assert!(error.to_string().contains("no label \"never\"; its labels are 0, 1, 2"), "{error}");
}

/// A sentence of CoNLL-U; the text need not have all of its words.
fn sentence(text: &str, words: &[(&str, &str)]) -> String {
    let row = |(n, (form, tag)): (usize, &(&str, &str))| {
        format!("{}\t{form}\t_\t{tag}\t_\t_\t0\troot\t_\t_\n", n + 1)
    };
    let rows: String = words.iter().enumerate().map(row).collect();
    format!("# text = {text}\n{rows}\n")
}

#[test]
fn words_without_a_token_are_wrong_and_entities_are_counted() {
    let folder = Folder::new("exam-tag");
    let lives = |i: usize| {
        let (name, place) = (NAMES[i % 6], PLACES[i % 5]);
        let words =
            [(name, "B-PER"), ("smith", "I-PER"), ("lives", "O"), ("in", "O"), (place, "B-LOC")];
        sentence(&format!("{name} smith lives in {place}"), &words)
    };
    for part in ["train", "valid"] {
        let text: String = (0..30).map(lives).collect();
        fs::write(folder.0.join(format!("{part}.conllu")), text).unwrap();
    }
    let text = recipe_of("tag", 40, &folder.0, "conllu", &["train", "valid"]);
    let run = folder.0.join("run");
    let (last, _) = train(&run, &text);
    let valid = task(&text).evaluate(&ModelFiles::from(&run), &on(Part::Valid)).unwrap();
    assert_eq!(measures(&valid), last, "bit for bit");
    assert_eq!((value(&valid, "accuracy"), value(&valid, "entity_f1")), (100.0, 100.0));
    assert_eq!((valid.asked, valid.unit), (150, "words"));
    worst_labels(&valid);
    // The text of the second sentence ends before its last word, and a label is unknown.
    let words =
        [("bob", "B-PER"), ("smith", "I-PER"), ("lives", "B-ORG"), ("in", "O"), ("rome", "B-LOC")];
    let odd = lives(0) + &sentence("bob smith lives in", &words);
    fs::write(folder.0.join("odd.conllu"), odd).unwrap();
    let report = task(&text)
        .evaluate(&ModelFiles::from(&run), &EvaluationData::File(folder.0.join("odd.conllu")))
        .unwrap();
    assert_eq!((report.asked, value(&report, "accuracy")), (10, 80.0));
    // The word with the unknown label and the one without a token are counted, and not shown.
    let shown = worst_labels(&report);
    assert_eq!(shown.len(), 8, "{shown:?}");
    assert!(shown.iter().all(|each| each.text.contains('[') && each.number <= Some(2)));
    let labels = &report.details.as_ref().unwrap().labels;
    let unknown = labels.iter().find(|label| label.label == "B-ORG").unwrap();
    assert_eq!((unknown.support, unknown.recall, unknown.missed), (1, 0.0, 0));
    let place = labels.iter().find(|label| label.label == "B-LOC").unwrap();
    assert_eq!((place.support, place.missed, place.recall), (2, 1, 50.0));
    // Three of five entities are found, and nothing else is predicted.
    assert_eq!(value(&report, "entity_precision"), 100.0);
    assert_eq!(value(&report, "entity_recall"), 60.0);
    // A sentence that is longer than the model's context: truncated words count as wrong.
    let many: Vec<(&str, &str)> = (0..40).map(|_| ("lives", "O")).collect();
    let long = sentence(&vec!["lives"; 40].join(" "), &many);
    fs::write(folder.0.join("long.conllu"), long).unwrap();
    let report = task(&text)
        .evaluate(&ModelFiles::from(&run), &EvaluationData::File(folder.0.join("long.conllu")))
        .unwrap();
    assert!(report.asked == 40 && value(&report, "accuracy") <= 100.0 * 22.0 / 40.0, "{report:?}");
}

#[test]
fn answers_get_the_numbers_of_their_training() {
    let folder = Folder::new("exam-answer");
    let article = |i: usize| {
        let (name, place) = (NAMES[i % 6], PLACES[i % 5]);
        let context = format!("{name} lives in {place} .");
        let start = context.find(place).unwrap();
        serde_json::json!({ "title": i.to_string(), "paragraphs": [{ "context": context, "qas": [{
            "id": i.to_string(), "question": format!("where does {name} live ?"),
            "answers": [{ "text": place, "answer_start": start }],
        }] }] })
    };
    let file = |range: std::ops::Range<usize>| {
        let data: Vec<_> = range.map(article).collect();
        serde_json::json!({ "version": "1.1", "data": data }).to_string()
    };
    fs::write(folder.0.join("train.json"), file(0..30)).unwrap();
    fs::write(folder.0.join("valid.json"), file(30..40)).unwrap();
    let text = recipe_of("answer", 3, &folder.0, "json", &["train", "valid"]);
    let run = folder.0.join("run");
    let (last, _) = train(&run, &text);
    let valid = task(&text).evaluate(&ModelFiles::from(&run), &on(Part::Valid)).unwrap();
    assert_eq!(measures(&valid), last, "bit for bit");
    assert_eq!((valid.asked, valid.unit), (10, "questions"));
    let worst = worst_texts(&valid);
    assert!(worst.windows(2).all(|two| two[0].score <= two[1].score), "{worst:?}");
    for each in worst {
        assert!(each.score < 100.0 && each.text.starts_with("where does"), "{each:?}");
        assert!(PLACES.contains(&each.reference.as_str()), "{each:?}");
    }
    // Where a text may have no answer, predicting one is wrong.
    let impossible = file(0..1).replace("\"answers\":[{", "\"is_impossible\":true,\"other\":[{");
    let impossible = impossible.replace("\"other\"", "\"answers\":[],\"plausible_answers\"");
    fs::write(folder.0.join("none.json"), impossible).unwrap();
    let none = task(&text)
        .evaluate(&ModelFiles::from(&run), &EvaluationData::File(folder.0.join("none.json")))
        .unwrap();
    let exact = value(&none, "exact");
    assert!(exact == 0.0 || exact == 100.0, "{none:?}");
}

#[test]
fn a_language_model_gets_the_numbers_of_its_training() {
    let folder = Folder::new("exam-language");
    let all = "the quick brown fox jumps over the lazy dog\n".repeat(30);
    fs::write(folder.0.join("train.txt"), &all).unwrap();
    fs::write(folder.0.join("other.txt"), "über the lazy döq").unwrap();
    for (kind, n) in [("char", 1), ("bytes", 2)] {
        let text = format!(
            "name = 'exam'\ntask = 'generate'\nseed = 1\ncontext = 8\n[data]\nset = 'files'\n\
             train = '{}'\n[vocabulary]\nkind = '{kind}'\nsize = 300\n[model]\nmodel_type = 'gpt2'\n\
             n_embd = 16\nn_layer = 1\nn_head = 2\n[train]\nsteps = 3\nbatch_tokens = 64\n\
             eval_every = 3\nlabel_smoothing = 0.1\n",
            folder.0.join("train.txt").display()
        );
        let run = folder.0.join(format!("run-{n}"));
        let (last, _) = train(&run, &text);
        let valid = task(&text).evaluate(&ModelFiles::from(&run), &on(Part::Valid)).unwrap();
        assert_eq!(measures(&valid)[..1], last[..], "bit for bit");
        let (loss, letter) = (value(&valid, "loss"), value(&valid, "loss_per_character"));
        assert_eq!(value(&valid, "perplexity"), loss.exp());
        match kind {
            "char" => assert_eq!(loss, letter, "a letter is a token"),
            _ => assert!(letter < loss, "a token is some letters"),
        }
        assert!(task(&text).evaluate(&ModelFiles::from(&run), &on(Part::Test)).is_err());
        let other = EvaluationData::File(folder.0.join("other.txt"));
        let other = task(&text).evaluate(&ModelFiles::from(&run), &other).unwrap();
        // Two characters have two bytes each; the first of them is given.
        let per = |name: &str| value(&other, name);
        assert!((per("loss_per_character") * 16.0 - per("loss_per_byte") * 17.0).abs() < 1e-9);
        let bits = per("loss_per_byte") / std::f64::consts::LN_2;
        assert!((per("bits_per_byte") - bits).abs() < 1e-12);
        if kind == "char" {
            // One of the 16 predicted characters is unknown.
            assert_eq!((other.asked, per("unknown")), (16, 100.0 / 16.0));
        }
    }
}

#[test]
fn hidden_words_get_the_numbers_of_their_training() {
    let folder = Folder::new("exam-pretrain");
    let line = |i: usize, j: usize| {
        let (name, place) = (NAMES[(i + j) % 6], PLACES[(i / 6 + j) % 5]);
        format!("{name} lives in {place} now. it is good in {place}.")
    };
    let document = |i| (0..5 + i / 30).map(|j| line(i, j)).collect::<Vec<_>>().join("\n") + "\n\n";
    let path = folder.0.join("texts.txt");
    fs::write(&path, (0..120).map(document).collect::<String>()).unwrap();
    let text = format!(
        "name = 'exam'\ntask = 'fill'\nseed = 2\ncontext = 32\n[data]\nset = 'files'\n\
         files = ['{}']\n{MODEL}\n[train]\nsteps = 120\nbatch_tokens = 512\nlr = 3e-3\nwarmup = 5\n\
         schedule = 'cosine'\neval_every = 120\n",
        path.display()
    );
    let run = folder.0.join("run");
    let (last, _) = train(&run, &text);
    let valid = task(&text).evaluate(&ModelFiles::from(&run), &on(Part::Valid)).unwrap();
    assert_eq!(measures(&valid), last, "bit for bit");
    let accuracy = value(&valid, "words_accuracy");
    // Most of the words are always the same.
    assert!((20.0..100.0).contains(&accuracy), "{accuracy}");
    assert!((0.0..=100.0).contains(&value(&valid, "follows")));
    let error =
        task(&text).evaluate(&ModelFiles::from(&run), &on(Part::Test)).unwrap_err().to_string();
    assert!(error.contains("no test part"), "{error}");
    assert!(
        task(&text).evaluate(&ModelFiles::from(&run), &EvaluationData::File(path)).unwrap().asked
            > valid.asked
    );
}

/// A golden model of `fixtures/make/reading.py`, by a recipe that is made for it.
fn golden(name: &str) -> (PathBuf, Box<dyn Task>) {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/reading");
    let folder = all.join(name);
    let recipe = recipe::task(recipe::of_model(&folder).unwrap()).unwrap();
    (folder, recipe)
}

#[test]
fn a_model_without_a_recipe_is_examined_on_files() {
    let folder = Folder::new("exam-golden");
    let file = |name: &str, text: &str| {
        let path = folder.0.join(name);
        fs::write(&path, text).unwrap();
        EvaluationData::File(path)
    };
    let (model, recipe) = golden("BertForSequenceClassification");
    // transformers predicts `fair` for the first text; labels may be names or numbers.
    let texts = file("texts.tsv", "They are watching the cat.\tfair\n. . . .\tgood\n");
    let by_name = recipe.evaluate(&ModelFiles::from(&model), &texts).unwrap();
    assert_eq!((recipe.task(), by_name.asked), ("classify", 2));
    let numbered = file("numbers.csv", "text,label\nThey are watching the cat.,1\n. . . .,2\n");
    assert_eq!(
        measures(&recipe.evaluate(&ModelFiles::from(&model), &numbered).unwrap()),
        measures(&by_name)
    );
    let (model, recipe) = golden("BertForTokenClassification");
    let words = file(
        "words.conllu",
        &sentence("Ann sees Bob", &[("Ann", "O"), ("sees", "O"), ("Bob", "O")]),
    );
    let report = recipe.evaluate(&ModelFiles::from(&model), &words).unwrap();
    assert_eq!((recipe.task(), report.asked, report.marks.len()), ("tag", 3, 4));
    let strange =
        file("strange.conllu", &sentence("Ann sees", &[("Ann", "PROPN"), ("sees", "VERB")]));
    let error = recipe.evaluate(&ModelFiles::from(&model), &strange).unwrap_err().to_string();
    assert!(error.contains("\"PROPN\", is one of the model's"), "{error}");
    let (model, recipe) = golden("BertForMaskedLM");
    let text = file("text.txt", "the cat sat on the mat. bob is in london.\nann is in paris.\n");
    let report = recipe.evaluate(&ModelFiles::from(&model), &text).unwrap();
    assert_eq!(recipe.task(), "fill");
    assert!(value(&report, "words") > 0.0 && report.marks.iter().all(|m| m.name != "follows"));
    let (_, recipe) = golden("BertForQuestionAnswering");
    assert_eq!(recipe.task(), "answer");
    let bare = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/reading/BertModel");
    let error = recipe::of_model(&bare).unwrap_err().to_string();
    assert!(error.contains("has no task head"), "{error}");
}

/// The versions of SST-2 on the real data: validation, test, and what is left out.
#[test]
fn phrases_are_learned_and_sentences_decide() {
    if regard_tasks::data::sets::find("sst2").is_err() {
        return regard_fuzz::skip("the data set sst2 is not on this machine");
    }
    let folder = Folder::new("exam-sst2");
    let recipe = |held_out: &str| {
        recipe_of("classify", 1, &folder.0, "tsv", &[])
            .replace("set = 'files'", &format!("set = 'sst2-phrases'\n{held_out}"))
            .replace("\"wordpiece\"", "\"word\"")
    };
    let prepared = task(&recipe("")).prepare().unwrap();
    assert!(prepared.about.contains("\n60609 examples"), "{}", prepared.about);
    assert!(
        prepared.about.contains("5 texts left out because the test part has them"),
        "{}",
        prepared.about
    );
    let sentences = recipe("held_out = 'sst2-sentences'");
    let (last, about) = train(&folder.0.join("run"), &sentences);
    assert!(about.contains("10 texts left out because the test part has them"), "{about}");
    let examine = |text: &str, on: &EvaluationData| {
        task(text).evaluate(&ModelFiles::from(&folder.0.join("run")), on).unwrap()
    };
    let valid = examine(&sentences, &on(Part::Valid));
    assert_eq!((valid.asked, valid.data.as_str()), (872, "sst2-sentences"));
    assert_eq!(measures(&valid), last);
    let test = examine(&sentences, &on(Part::Test));
    assert_eq!((test.asked, test.excluded), (1821, 0));
    // A model that was trained on all phrases is not evaluated on those.
    let other = EvaluationData::Set { set: Some("sst2-sentences".into()), part: None };
    let test = examine(&recipe(""), &other);
    assert_eq!((test.asked, test.excluded, test.part), (1815, 6, Some(Part::Test)));
    let own = examine(&recipe(""), &EvaluationData::Set { set: None, part: None });
    assert_eq!((own.asked, own.excluded), (872, 0));
}

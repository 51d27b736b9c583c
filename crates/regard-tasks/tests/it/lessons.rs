//! Small training tasks for text encoders: each takes seconds, and attention can be inspected.

use crate::small::Folder;
use regard_models::text::Head;
use regard_tasks::answer::Asking;
use regard_tasks::reader::TextEncoder;
use regard_tasks::recipe::{self, Task};
use regard_tasks::tag::Grouping;
use regard_tasks::train::{Event, Record, Run};
use std::fs;
use std::path::Path;

const MODEL: &str = r#"
[model]
model_type = "bert"
hidden_size = 32
num_hidden_layers = 2
num_attention_heads = 4
intermediate_size = 64
max_position_embeddings = 64
initializer_range = 0.15
hidden_dropout_prob = 0.0
attention_probs_dropout_prob = 0.0

[vocabulary]
kind = "wordpiece"
size = 200
lowercase = true
"#;

/// Trains by a recipe, and returns the last value of the model selection metric.
pub fn train(folder: &Path, text: &str) -> f64 {
    let recipe: Box<dyn Task> = recipe::task(toml::from_str(text).unwrap()).unwrap();
    let mut prepared = recipe.prepare().unwrap();
    let mut last = f64::NAN;
    let mut watch = |event: Event| {
        if let Event::Evaluated { evaluation, .. } = event {
            last = evaluation.decides;
        }
        true
    };
    let (options, seed) = (recipe.options(), recipe.seed());
    let run =
        Run { folder, options, seed, resume: false, record: &Record::default(), watch: &mut watch };
    run.train(&mut *prepared.learner).unwrap();
    last
}

fn recipe(task: &str, steps: usize, folder: &Path, ends: &str) -> String {
    let data = |part: &str| folder.join(format!("{part}.{ends}")).display().to_string();
    format!(
        "name = 'lesson'\ntask = '{task}'\nseed = 2\n[data]\nset = 'files'\ntrain = '{}'\nvalid = \
         '{}'\nmax_tokens = 48\n{MODEL}\n[train]\nsteps = {steps}\nbatch_tokens = 512\nlr = 3e-3\n\
         warmup = 10\nschedule = 'cosine'\nlabel_smoothing = 0.0\neval_every = {steps}\n",
        data("train"),
        data("valid"),
    )
}

const NAMES: [&str; 6] = ["ann", "bob", "carl", "dora", "emil", "fay"];
const PLACES: [&str; 5] = ["paris", "rome", "oslo", "lima", "cairo"];

/// Sentences of who lives where, a different one for each number.
fn lives(i: usize) -> (&'static str, &'static str) {
    (NAMES[i % 6], PLACES[i / 6 % 5])
}

#[test]
fn a_label_is_learned() {
    let folder = Folder::new("lesson-classify");
    // Word order decides: a bag of words cannot solve it.
    let line = |i: usize| {
        let (a, b) = (NAMES[i % 6], NAMES[(i + 1 + i / 6) % 6]);
        format!("{a} sees {b} today\t{}\n", if a < b { "before" } else { "after" })
    };
    let lines: String = (0..30).map(line).collect();
    fs::write(folder.0.join("train.tsv"), &lines).unwrap();
    fs::write(folder.0.join("valid.tsv"), &lines).unwrap();
    let run = folder.0.join("run");
    let accuracy = train(&run, &recipe("classify", 150, &folder.0, "tsv"));
    assert!(accuracy > 95.0, "{accuracy}");
    let reader = TextEncoder::load(&run, Head::Sequence).unwrap();
    let said = reader.classify(&[("Ann sees Bob today", None), ("bob sees ann today", None)]);
    let said: Vec<String> = said.unwrap().into_iter().map(|mut l| l.remove(0).label).collect();
    assert_eq!(said, ["before", "after"]);
}

#[test]
fn words_are_labelled() {
    let folder = Folder::new("lesson-tag");
    let sentence = |i: usize| {
        let (name, place) = lives(i);
        let words =
            [(name, "NAME"), ("lives", "VERB"), ("in", "PREP"), (place, "PLACE"), (".", "DOT")];
        let row = |(n, (form, tag)): (usize, &(&str, &str))| {
            let joined = if n == 3 { "SpaceAfter=No" } else { "_" };
            format!("{}\t{form}\t_\t{tag}\t_\t_\t0\troot\t_\t{joined}\n", n + 1)
        };
        let rows: String = words.iter().enumerate().map(row).collect();
        format!("# sent_id = {i}\n# text = {name} lives in {place}.\n{rows}\n")
    };
    let train_text: String = (0..30).filter(|i| i % 4 != 0).map(sentence).collect();
    let valid_text: String = (0..30).step_by(4).map(sentence).collect();
    fs::write(folder.0.join("train.conllu"), train_text).unwrap();
    fs::write(folder.0.join("valid.conllu"), valid_text).unwrap();
    let run = folder.0.join("run");
    let accuracy = train(&run, &recipe("tag", 40, &folder.0, "conllu"));
    assert!(accuracy > 99.0, "{accuracy}");
    let reader = TextEncoder::load(&run, Head::Tokens).unwrap();
    let words = reader.tag(&["Emil lives in Rome."], Grouping::Words).unwrap().remove(0);
    let said: Vec<(&str, &str)> =
        words.iter().map(|w| (w.word.as_str(), w.entity_group.as_str())).collect();
    let wanted =
        [("Emil", "NAME"), ("lives", "VERB"), ("in", "PREP"), ("Rome", "PLACE"), (".", "DOT")];
    assert_eq!(said, wanted);
}

#[test]
fn answers_are_found() {
    let folder = Folder::new("lesson-answer");
    let question = |i: usize| {
        let ((one, here), (two, there)) = (lives(i), lives(i + 7));
        let context = format!("{one} lives in {here} . {two} lives in {there} .");
        let asked = if i.is_multiple_of(2) { (one, here) } else { (two, there) };
        let start =
            if i.is_multiple_of(2) { context.find(here) } else { context.rfind(there) }.unwrap();
        serde_json::json!({ "context": context, "qas": [{
            "id": i.to_string(), "question": format!("where does {} live ?", asked.0),
            "answers": [{ "text": asked.1, "answer_start": start }],
        }] })
    };
    let file = |range: std::ops::Range<usize>| {
        let paragraphs: Vec<_> = range.map(question).collect();
        let article = serde_json::json!({ "title": "Homes", "paragraphs": paragraphs });
        serde_json::json!({ "version": "1.1", "data": [article] }).to_string()
    };
    fs::write(folder.0.join("train.json"), file(0..180)).unwrap();
    fs::write(folder.0.join("valid.json"), file(0..40)).unwrap();
    let run = folder.0.join("run");
    let f1 = train(&run, &recipe("answer", 500, &folder.0, "json"));
    assert!(f1 > 90.0, "{f1}");
    let reader = TextEncoder::load(&run, Head::Span).unwrap();
    let context = "Bob lives in Oslo . Dora lives in Lima .";
    let found = reader.answer("Where does Dora live ?", context, &Asking::default()).unwrap();
    assert_eq!((found[0].answer.as_str(), found[0].start), ("Lima", 34));
}

#[test]
fn every_family_can_be_taught() {
    let folder = Folder::new("lesson-families");
    let lines: String = (0..12).map(|i| format!("{} sleeps\t{}\n", NAMES[i % 6], i % 2)).collect();
    fs::write(folder.0.join("train.tsv"), &lines).unwrap();
    fs::write(folder.0.join("valid.tsv"), &lines).unwrap();
    let small = "model_type = 'bert'\nhidden_size = 32\nnum_hidden_layers = 2\n";
    let text = recipe("classify", 2, &folder.0, "tsv").replace("'bert'", "\"bert\"");
    let (before, after) = text.split_once("[model]").unwrap();
    let (_, after) = after.split_once("[vocabulary]").unwrap();
    for (i, model) in [
        small,
        "model_type = 'roberta'\nhidden_size = 32\nnum_hidden_layers = 2\n\
         num_attention_heads = 4\nintermediate_size = 64\npad_token_id = 0\n",
        "model_type = 'distilbert'\ndim = 32\nn_layers = 2\nn_heads = 4\nhidden_dim = 64\n",
        "model_type = 'gpt2'\nn_embd = 32\nn_layer = 2\nn_head = 4\n",
        "model_type = 'xlnet'\nd_model = 32\nn_layer = 2\nn_head = 4\nd_inner = 64\n",
        "model_type = 'bilstm'\nhidden_size = 16\n",
        "model_type = 'cnn'\nchannels = 8\n",
    ]
    .iter()
    .enumerate()
    {
        let model = match i {
            0 => format!("{model}num_attention_heads = 4\nintermediate_size = 64\n"),
            _ => model.to_string(),
        };
        let text = format!("{before}[model]\n{model}\n[vocabulary]{after}");
        let run = folder.0.join(format!("run-{i}"));
        assert!(train(&run, &text) >= 0.0, "{model}");
        // The trained model initialises another task.
        let again = folder.0.join(format!("again-{i}"));
        let (without, _) = text.split_once("[model]").unwrap();
        let (_, options) = text.split_once("[train]").unwrap();
        let from = format!("seed = 2\nfrom = '{}'", run.display());
        let next = format!("{}\n[train]{options}", without.replace("seed = 2", &from));
        assert!(train(&again, &next) >= 0.0, "{model}");
        let too_long = next.replace("max_tokens = 48", "max_tokens = 5000");
        let recipe = recipe::task(toml::from_str(&too_long).unwrap()).unwrap();
        if i < 4 {
            let error = recipe.prepare().err().unwrap().to_string();
            assert!(error.contains("data.max_tokens"), "{error}");
        }
    }
}

#[test]
fn hidden_words_and_halves_are_learned() {
    let folder = Folder::new("lesson-pretrain");
    // Two languages: a half of one never follows a half of the other.
    let document = |i: usize| {
        let line = |j: usize| {
            let (name, place) = lives(7 * i + j);
            match i % 2 {
                0 => format!("{name} lives in {place} now."),
                _ => format!("es wohnt {name} in der stadt {place}."),
            }
        };
        (0..8).map(line).collect::<Vec<_>>().join("\n") + "\n\n"
    };
    let text: String = (0..60).map(document).collect();
    fs::write(folder.0.join("texts.txt"), text).unwrap();
    let recipe = format!(
        "name = 'lesson'\ntask = 'fill'\nseed = 2\ncontext = 32\n[data]\nset = 'files'\n\
         files = ['{}']\n{MODEL}\n[train]\nsteps = 150\nbatch_tokens = 1024\nlr = 3e-3\n\
         warmup = 10\nschedule = 'cosine'\nlabel_smoothing = 0.0\neval_every = 150\n",
        folder.0.join("texts.txt").display()
    );
    let run = folder.0.join("run");
    let loss = train(&run, &recipe);
    // Names and places cannot be known, the rest can: chance is above 4.
    assert!(loss < 2.2, "{loss}");
    let reader = TextEncoder::load(&run, Head::Words).unwrap();
    let found = reader.fill("Ann [MASK] in Oslo now.", 1).unwrap();
    assert_eq!(found[0][0].token_str, "lives");
}

#[test]
fn what_cannot_be_taught_is_told() {
    let error = |text: &str| {
        let recipe = recipe::task(toml::from_str(text).unwrap());
        recipe.and_then(|r| r.prepare().map(|_| ()).map_err(|e| e.to_string())).unwrap_err()
    };
    let folder = Path::new("nowhere");
    let right = recipe("classify", 1, folder, "tsv");
    assert!(error(&right).contains("train.tsv"));
    assert!(error(&right.replace("'files'", "'imdb'")).contains("sst2-phrases"));
    assert!(error(&right.replace("'classify'", "'paint'")).contains("translate, generate"));
    let both = right.replace("seed = 2", "seed = 2\nfrom = 'somewhere'");
    assert!(error(&both).contains("cannot be set with `from`"));
}

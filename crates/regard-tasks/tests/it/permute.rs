//! Permutation language modelling: loss, training and resumption.

use crate::resumed::left;
use crate::small::{Dice, Folder};
use regard_attention::Mode;
use regard_models::checkpoint::read_weights;
use regard_tasks::data::{Pair, TextCorpus};
use regard_tasks::generate;
use regard_tasks::permute::{Corpus, Permutation, Recipe};
use regard_tasks::recipe;
use regard_tasks::train::{Evaluation, Event, Learner, Record, Run, TrainOutcome};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A recipe for a small model, with more lines.
fn small(top: &str, more: &str) -> Recipe {
    let text = format!(
        "name = 'small'\ntask = 'permute'\nseed = 2\n{top}\n[data]\nset = 'files'\n\
         [vocabulary]\nkind = 'word'\nsize = 60\n\
         [model]\nmodel_type = 'xlnet'\nd_model = 32\nn_layer = 2\nn_head = 4\nd_inner = 64\n\
         initializer_range = 0.2\n{more}"
    );
    Recipe::from_table(toml::from_str(&text).unwrap()).unwrap()
}

const NAMES: [&str; 6] = ["ann", "bob", "carl", "dora", "emil", "fay"];
const PLACES: [&str; 5] = ["paris", "rome", "oslo", "lima", "cairo"];

/// A random name and a random place.
fn some(dice: &mut Dice) -> (&'static str, &'static str) {
    (NAMES[dice.below(6)], PLACES[dice.below(5)])
}

/// Sentences of twelve words that end with the name that they begin with, and have their place
/// twice.
fn text(documents: usize) -> TextCorpus {
    let mut dice = Dice(1);
    let mut sentence = || {
        let (name, place) = some(&mut dice);
        format!("{name} goes to {place} , and from {place} home goes {name} . ")
    };
    let mut part = |documents: usize| -> Vec<String> {
        (0..documents).map(|_| (0..8).map(|_| sentence()).collect()).collect()
    };
    TextCorpus { train: part(documents), valid: part(8) }
}

/// Sentences in two languages.
fn pairs() -> Corpus {
    let mut dice = Dice(2);
    let mut pair = |_| {
        let (name, place) = some(&mut dice);
        let (source, target) =
            (format!("{name} lives in {place} ."), format!("es wohnt {name} in {place} ."));
        Pair { source, target }
    };
    Corpus::Pairs([(0..200).map(&mut pair).collect(), (0..60).map(&mut pair).collect()])
}

fn train(
    (recipe, corpus): (&Recipe, &Corpus),
    folder: &Path,
    resume: bool,
    watch: &mut dyn FnMut(Event) -> bool,
) -> TrainOutcome {
    let mut learner = Permutation::new(recipe, corpus).unwrap();
    let (options, seed) = (&recipe.train, recipe.seed);
    Run { folder, options, seed, resume, record: &Record::default(), watch }
        .train(&mut learner)
        .unwrap()
}

/// Metrics of the last evaluation of a run.
fn measured(row: (&Recipe, &Corpus), folder: &Path) -> BTreeMap<String, f64> {
    let mut last: Option<Evaluation> = None;
    train(row, folder, false, &mut |event| {
        if let Event::Evaluated { evaluation, .. } = event {
            last = Some(evaluation.clone());
        }
        true
    });
    last.unwrap().measures.into_iter().collect()
}

const QUICK: &str = "[train]\nbatch_tokens = 384\nlr = 4e-3\nwarmup = 10\nschedule = 'cosine'\n\
                     label_smoothing = 0.0\n";

#[test]
fn a_batch_costs_what_transformers_says() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/permute");
    for name in ["running", "parts"] {
        let files = format!("data.files=[{:?}]", fixtures.join("text.txt"));
        let table = recipe::read(&fixtures.join(format!("{name}.toml")), &[files]).unwrap();
        let recipe = Recipe::from_table(table).unwrap();
        let mut learner = Permutation::new(&recipe, &recipe.data.read().unwrap()).unwrap();
        learner.network_mut().restore(read_weights(&fixtures.join(name)).unwrap()).unwrap();
        let read = |file: &str| -> Value {
            let text = fs::read_to_string(fixtures.join(name).join(file)).unwrap();
            serde_json::from_str(&text).unwrap()
        };
        let (drawn, said) = (read("drawn.json"), read("said.json"));
        let examples: Vec<usize> = (0..learner.lengths().len()).collect();
        let mode = Mode::Train { seed: recipe.seed, step: drawn["step"].as_u64().unwrap() };
        let told = learner.drawn(&examples, mode);
        assert_eq!(drawn["rows"].as_array().unwrap().len(), told.len());
        for (told, known) in told.iter().zip(drawn["rows"].as_array().unwrap()) {
            let now = json!({
                "ids": told.sequence.ids, "types": told.sequence.types,
                "memory": told.sequence.memory, "targets": told.targets, "ranks": told.ranks,
            });
            assert_eq!(&now, known, "{name}: draws have changed; make the fixture again");
        }
        let memories = told.iter().filter(|told| !told.sequence.memory.is_empty()).count();
        assert_eq!(memories > 3, name == "running");
        let loss = learner.loss(&examples, mode).value.into_scalar::<f32>();
        let wanted = said["loss"].as_f64().unwrap();
        assert!((f64::from(loss) - wanted).abs() < 1e-4 * wanted, "{name}: {loss}, {wanted}");
    }
}

#[test]
fn what_stands_on_the_right_is_learned_from() {
    let folder = Folder::new("permute-learns");
    let more =
        format!("dropout = 0.0\n[filling]\nspans = 200\n{QUICK}steps = 500\neval_every = 500");
    let corpus = Corpus::Running(text(60));
    let measure = measured((&small("context = 48", &more), &corpus), &folder.0);
    // The first name of a sentence and its first place are random, so that a left-to-right model
    // cannot do better. The only uncertainty here is a span that masks both occurrences.
    let least = (6f64.ln() + 5f64.ln()) / 12.0;
    assert!(measure["valid_span_loss"] < 0.7 * least, "{} of {least}", measure["valid_span_loss"]);
    assert!(measure["valid_span_accuracy"] > 92.0, "{}", measure["valid_span_accuracy"]);
}

#[test]
fn the_other_language_is_learned_from() {
    let folder = Folder::new("permute-pairs");
    let more = format!(
        "dropout = 0.0\n[targets]\none_in = 3\n[filling]\nspans = 200\n[parts]\nrandom = 0.0\n\
         alone = 0.3\n{QUICK}steps = 700\neval_every = 700"
    );
    let measure = measured((&small("context = 48", &more), &pairs()), &folder.0);
    let (beside, alone) = (measure["valid_span_loss"], measure["valid_span_loss_alone"]);
    assert!(
        beside < 0.3 * alone && alone < 1.5,
        "{beside} beside the other language, {alone} alone"
    );
}

#[test]
fn resumed_is_never_stopped() {
    let options = "[train]\nsteps = 9\nbatch_tokens = 128\naccumulate = 2\nlr = 1e-2\nwarmup = 3\n\
                   log_every = 2\neval_every = 4\nsave_every = 3\nkeep = 3";
    let filling = "dropout = 0.2\n[filling]\nspans = 20";
    let parts = format!("{filling}\n[parts]\nrandom = 0.4\nalone = 0.3\n{options}");
    let running = format!("{filling}\n{options}");
    let rows = [
        ("memory", small("context = 24\nmemory = 12", &running), Corpus::Running(text(4))),
        ("parts", small("context = 24\nmemory = 12", &parts), Corpus::Running(text(4))),
        ("pairs", small("context = 32", &parts), pairs()),
    ];
    for (name, recipe, corpus) in &rows {
        let [whole, halves] =
            ["whole", "halves"].map(|kind| Folder::new(&format!("permute-{name}-{kind}")));
        let row = (recipe, corpus);
        let end = train(row, &whole.0, false, &mut |_| true);
        // Killed between two checkpoints, and stopped after one.
        let stopped = train(row, &halves.0, false, &mut |event| !matches!(event, Event::Saved(3)));
        assert!(matches!(stopped, TrainOutcome::Interrupted { step: 3 }), "{stopped:?}");
        assert_eq!(train(row, &halves.0, true, &mut |_| true), end, "{name}");
        assert!(left(&halves.0) == left(&whole.0), "{name}");
    }
}

#[test]
fn both_peers_cut_a_text_alike() {
    let folder = Folder::new("permute-peers");
    let text = text(10);
    let (one, other) = (folder.0.join("xlnet"), folder.0.join("gpt"));
    [&one, &other].iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
    let corpus = Corpus::Running(text.clone());
    let mut recipe = small("context = 24", "");
    (recipe.vocabulary.kind, recipe.vocabulary.size) = ("bytes".into(), 300);
    Permutation::new(&recipe, &corpus).unwrap().save(&one).unwrap();
    let gpt = "name = 'gpt'\ntask = 'generate'\ncontext = 24\n[data]\nset = 'files'\n\
               [vocabulary]\nkind = 'bytes'\nsize = 300\n[filling]\nspans = 30\n\
               [model]\nmodel_type = 'gpt2'\nn_embd = 16\nn_layer = 1\nn_head = 2\n";
    let gpt = generate::Recipe::from_table(toml::from_str(gpt).unwrap()).unwrap();
    let learner = generate::Language::new(&gpt, &text).unwrap();
    learner.save(&other).unwrap();
    let read = |folder: &Path| fs::read(folder.join("tokenizer.json")).unwrap();
    assert!(read(&one) == read(&other));
    let names: Vec<String> =
        learner.evaluate().unwrap().measures.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["valid_loss", "valid_span_loss", "valid_span_accuracy"]);
}

#[test]
fn what_cannot_be_told_is_said() {
    let error = |top: &str, more: &str, corpus: Corpus| {
        Permutation::new(&small(top, more), &corpus).err().unwrap().to_string()
    };
    assert!(error("memory = 4", "", pairs()).contains("a pair has no preceding text"));
    let nothing = TextCorpus { train: vec!["a b".into()], valid: vec![] };
    assert!(error("", "", Corpus::Running(nothing)).contains("the validation part has no text"));
    let mut bert = small("", "");
    bert.model = json!({
        "model_type": "bert", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 8,
    });
    let message = Permutation::new(&bert, &pairs()).err().unwrap().to_string();
    assert!(message.contains("need xlnet"), "{message}");
    let table = |text: &str| {
        let all = format!(
            "name = 'x'\ntask = 'permute'\n{text}\n[data]\nset = 'files'\n[vocabulary]\n\
             kind = 'bytes'\nsize = 300\n[model]\nmodel_type = 'xlnet'\n"
        );
        Recipe::from_table(toml::from_str(&all).unwrap()).unwrap_err()
    };
    for (text, needed) in [
        ("context = 3", "context: got 3"),
        ("targets = { one_in = 0 }", "targets.one_in"),
        ("parts = { alone = 2.0 }", "parts.alone: got 2"),
        ("filling = { lengths = [1, 200] }", "filling.lengths"),
        ("hiding = { share = 0.1 }", "hiding"),
    ] {
        assert!(table(text).contains(needed), "{}", table(text));
    }
}

#[test]
fn words_begin_with_vectors_of_others() {
    let place = Folder::new("permute-vectors");
    let row = |word: &str, x: f32| format!("{word}{}\n", format!(" {x}").repeat(32));
    let file = place.0.join("vectors.txt");
    fs::write(&file, row("ann", 0.25) + &row("oslo", -0.5)).unwrap();
    let mut recipe = small("", "");
    recipe.vocabulary.vectors = Some(file.display().to_string());
    let learner = Permutation::new(&recipe, &Corpus::Running(text(40))).unwrap();
    let weights = learner.network().weights();
    let table = weights["transformer.word_embedding.weight"].floats().unwrap();
    let rows = |x: f32| table.chunks_exact(32).filter(|row| row.iter().all(|y| *y == x)).count();
    assert_eq!((rows(0.25), rows(-0.5)), (1, 1));
    recipe.model["d_model"] = json!(16);
    let error = Permutation::new(&recipe, &Corpus::Running(text(40))).err().unwrap().to_string();
    assert!(error.contains("32"), "{error}");
}

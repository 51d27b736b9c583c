//! Models learn small tasks, and attend to the right positions.

use crate::small::{Dice, Folder, corpus, letters, recipe, train};
use regard_tasks::data::Pair;
use regard_tasks::decode::Options;
use regard_tasks::train::TrainOutcome;
use regard_tasks::translate::{Corpus, Recipe, Translator};

const TRAIN: &str = "batch_tokens = 250\nlr = 5e-3\nwarmup = 30\nschedule = \"cosine\"\n\
                     label_smoothing = 0.0\nlog_every = 50\neval_every = 1000";

const BAHDANAU: &str = "model_type = \"bahdanau\"\nembedding_size = 24\nhidden_size = 32\n\
                        bidirectional = true";
const LUONG: &str = "model_type = \"luong\"\nembedding_size = 24\nhidden_size = 32\n\
                     bidirectional = true";
const TRANSFORMER: &str = "model_type = \"transformer\"\nd_model = 48\nencoder_layers = 1\n\
                           decoder_layers = 1\nencoder_attention_heads = 2\n\
                           decoder_attention_heads = 2\nencoder_ffn_dim = 64\n\
                           decoder_ffn_dim = 64\nnorms = \"pre\"";

/// Fraction of the test part that is generated without a mistake, and, if a source position is
/// right for each token, the fraction of tokens that attended there most.
fn learn(
    name: &str,
    (recipe, corpus): (&Recipe, &Corpus),
    right: Option<fn(usize, usize) -> usize>,
) -> (f64, f64) {
    let folder = Folder::new(name);
    let end = train((recipe, corpus), &folder.0, false, &mut |_| true).unwrap();
    assert!(matches!(end, TrainOutcome::Done { .. }), "{end:?}");
    let translator = Translator::load(&folder.0).unwrap();
    let sources: Vec<&str> = corpus.test.iter().map(|group| group.source.as_str()).collect();
    let options = Options { max_length: 40, ..Options::default() };
    let found = translator.translate(&sources, &options, 32, true).unwrap();
    let (mut exact, mut looked, mut tokens) = (0, 0, 0);
    for (group, all) in corpus.test.iter().zip(&found) {
        exact += usize::from(all[0].text == group.targets[0]);
        let Some(right) = right else { continue };
        let n = all[0].source_tokens.len();
        for (i, row) in all[0].found.attention.iter().enumerate().take(n) {
            let most = (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap();
            looked += usize::from(most == right(i, n));
            tokens += 1;
        }
    }
    (exact as f64 / found.len() as f64, looked as f64 / tokens.max(1) as f64)
}

fn check(name: &str, model: &str, steps: usize, then: fn(&mut [&str])) {
    let corpus = corpus(letters(1500, 2..9, then), 100);
    let recipe = recipe(model, &format!("steps = {steps}\n{TRAIN}"));
    let place: fn(usize, usize) -> usize =
        if name.starts_with("copy") { |i, _| i } else { |i, n| n - 1 - i };
    let (exact, looked) = learn(name, (&recipe, &corpus), Some(place));
    assert!(exact >= 0.95, "{name}: {exact} exact");
    assert!(looked >= 0.9, "{name}: looked right for {looked} of the tokens");
}

#[test]
fn bahdanau_copies() {
    check("copy-bahdanau", BAHDANAU, 400, |_| ());
}

#[test]
fn bahdanau_reverses() {
    check("reverse-bahdanau", BAHDANAU, 400, |words| words.reverse());
}

#[test]
fn luong_copies() {
    check("copy-luong", LUONG, 400, |_| ());
}

#[test]
fn luong_reverses() {
    check("reverse-luong", LUONG, 400, |words| words.reverse());
}

#[test]
fn a_transformer_copies() {
    check("copy-transformer", TRANSFORMER, 400, |_| ());
}

/// The second layer learns from the first where the end is.
#[test]
fn a_transformer_reverses() {
    check(
        "reverse-transformer",
        &TRANSFORMER.replace("encoder_layers = 1", "encoder_layers = 2"),
        1000,
        |words| words.reverse(),
    );
}

/// Dates as people write them, and as machines do.
fn dates(count: usize) -> Vec<Pair> {
    let months = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let mut dice = Dice(5);
    let line = |_| {
        let (y, m, d) = (1990 + dice.below(40), dice.below(12), 1 + dice.below(28));
        let month = months[m];
        let source = match dice.below(3) {
            0 => format!("{month} {d}, {y}"),
            1 => format!("{d} {month} {y}"),
            _ => format!("{month} {d} of the year {y}"),
        };
        Pair { source, target: format!("{y}-{:02}-{d:02}", m + 1) }
    };
    (0..count).map(line).collect()
}

#[test]
fn dates_become_those_of_machines() {
    let text = format!(
        "name = \"dates\"\ntask = \"translate\"\nseed = 3\n[data]\nset = \"files\"\n\
         [vocabulary.source]\nkind = \"word\"\n[vocabulary.target]\nkind = \"char\"\n\
         [model]\n{BAHDANAU}\n[train]\nsteps = 400\n{TRAIN}\n[evaluate]\nby = \"loss\"\n"
    );
    let recipe = Recipe::parse(&text, &["train.lr=1e-2".to_string()]).unwrap();
    let (exact, _) = learn("dates", (&recipe, &corpus(dates(2000), 100)), None);
    assert!(exact >= 0.95, "{exact} exact");
}

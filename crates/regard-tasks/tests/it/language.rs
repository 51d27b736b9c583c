//! Language models that are trained, generate and score.

use crate::small::Folder;
use regard_tasks::data::{Characters, TextCorpus};
use regard_tasks::decode::Options;
use regard_tasks::generate::{Generator, Language, Recipe};
use regard_tasks::train::{Event, Learner, Record, Run};

const RECIPE: &str = r#"
name = "alphabet"
task = "generate"
seed = 3
context = 12

[data]
set = "files"

[vocabulary]
kind = "char"

[model]
model_type = "gpt2"
n_embd = 32
n_layer = 2
n_head = 2
resid_pdrop = 0.0
embd_pdrop = 0.0
attn_pdrop = 0.0

[train]
steps = 120
batch_tokens = 192
lr = 1e-2
warmup = 10
schedule = "cosine"
label_smoothing = 0.0
eval_every = 60
"#;

fn recipe() -> Recipe {
    Recipe::from_table(toml::from_str(RECIPE).unwrap()).unwrap()
}

/// The alphabet, repeated, a line each.
fn alphabet() -> TextCorpus {
    Characters::new("abcdefghijklmnopqrstuvwxyz\n".repeat(60)).into()
}

fn trained(folder: &std::path::Path) -> f64 {
    let recipe = recipe();
    let mut learner = Language::new(&recipe, &alphabet()).unwrap();
    let mut losses = vec![];
    let mut watch = |event: Event| {
        if let Event::Evaluated { evaluation, .. } = event {
            losses.push(evaluation.decides);
        }
        true
    };
    let run = Run {
        folder,
        options: &recipe.train,
        seed: recipe.seed,
        resume: false,
        record: &Record::default(),
        watch: &mut watch,
    };
    run.train(&mut learner).unwrap();
    *losses.last().unwrap()
}

#[test]
fn the_alphabet_is_learned_written_and_scored() {
    let folder = Folder::new("language");
    let loss = trained(&folder.0);
    assert!(loss < 0.1, "the next letter is always the same: {loss}");
    let writer = Generator::load(&folder.0).unwrap();
    let options = Options { max_new_tokens: Some(60), ..Options::default() };
    let mut seen = vec![];
    let written = writer.generate("klm", &options, 0, &[], &mut |id| seen.push(id)).unwrap();
    // Far beyond the context of twelve characters.
    let wanted: String = ('n'..='z').chain(['\n']).chain('a'..='z').chain(['\n']).collect();
    assert!(written[0].text.starts_with(&wanted), "{:?}", written[0].text);
    assert_eq!(written[0].ids.len(), 60);
    assert_eq!(seen, written[0].ids[..seen.len()], "what was watched is what was written");
    assert!(seen.len() + 1 >= written[0].ids.len());
    let stopped = writer.generate("klm", &options, 0, &["uv".into()], &mut |_| {}).unwrap();
    assert_eq!(stopped[0].text, "nopqrst");
    assert_eq!(stopped[0].ids.len(), 9, "up to the v, and no further");
    let beams = Options { num_beams: 3, num_return_sequences: 2, ..options };
    let found = writer.generate("abc", &beams, 0, &[], &mut |_| {}).unwrap();
    assert_eq!((found.len(), &found[0].text[..5]), (2, "defgh"));

    let likely = writer.score("abcdefghijklmnopqrstuvwxyz\nabcdefghij").unwrap();
    assert_eq!((likely.tokens.len(), likely.token_logprobs[0]), (37, None));
    assert!(likely.logprob() > -5.0, "{}", likely.logprob());
    let unlikely = writer.score("abcdefghijklmnopqrstuvwxyz\nabcdefgxij").unwrap();
    assert!(unlikely.logprob() < likely.logprob() - 3.0);
    // A sliding window gives every character but the first its probability.
    assert!(likely.token_logprobs[1..].iter().all(Option::is_some));
}

#[test]
fn a_text_that_fits_is_scored_as_a_whole() {
    let writer = {
        let recipe = recipe();
        let learner = Language::new(&recipe, &alphabet()).unwrap();
        let folder = Folder::new("language-score");
        learner.save(&folder.0).unwrap();
        Generator::load(&folder.0).unwrap()
    };
    // The first window of a longer text is the text that fits.
    let (short, long) =
        (writer.score("abcdefghijkl").unwrap(), writer.score("abcdefghijklmn").unwrap());
    for (one, other) in short.token_logprobs.iter().zip(&long.token_logprobs) {
        match (one, other) {
            (Some(one), Some(other)) => assert!((one - other).abs() < 1e-5),
            _ => assert_eq!(one, other),
        }
    }
}

#[test]
fn what_cannot_be_learned_is_told() {
    let error = |change: &dyn Fn(&mut Recipe), text: TextCorpus| {
        let mut recipe = recipe();
        change(&mut recipe);
        Language::new(&recipe, &text).err().unwrap().to_string()
    };
    let short = Characters { train: "ab".into(), valid: "ab".into() }.into();
    assert!(error(&|_| {}, short).contains("more than context = 12"));
    let bert = |recipe: &mut Recipe| {
        recipe.model = serde_json::json!({ "model_type": "bert", "hidden_size": 12 });
    };
    assert!(error(&bert, alphabet()).contains("does not generate text"));
    let wide = |recipe: &mut Recipe| recipe.model["n_positions"] = 8.into();
    assert!(error(&wide, alphabet()).contains("need at most 8"));
}

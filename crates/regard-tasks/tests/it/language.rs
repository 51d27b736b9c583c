//! Language models that are trained, generate and score.

use crate::small::Folder;
use regard_tasks::data::{Characters, TextCorpus};
use regard_tasks::decode::FinishReason;
use regard_tasks::decode::Options;
use regard_tasks::generate::{
    Generated, Generation, Generator, Language, LongText, PromptOptions, Recipe, Written,
};
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
    let mut seen = (vec![], String::new());
    let mut watch = |written: Written| {
        seen.0.extend(written.token);
        seen.1 += written.text;
        true
    };
    let prompt = writer.prompt("klm", PromptOptions::default()).unwrap();
    let written = writer.generate(&prompt, &Generation::new(&options), &mut watch).unwrap();
    // Far beyond the context of twelve characters.
    let wanted: String = ('n'..='z').chain(['\n']).chain('a'..='z').chain(['\n']).collect();
    assert!(written[0].text.starts_with(&wanted), "{:?}", written[0].text);
    assert_eq!(written[0].ids.len(), 60);
    assert_eq!(written[0].finish_reason, FinishReason::Length);
    assert_eq!((&seen.0, &seen.1), (&written[0].ids, &written[0].text));
    let stop = ["uv".to_string()];
    let run = |options: &Options, stop: &[String], include_stop: bool| -> Vec<Generated> {
        let how = Generation { stop, include_stop, likely: 2, ..Generation::new(options) };
        writer.generate(&prompt, &how, &mut |_| true).unwrap()
    };
    let stopped = &run(&options, &stop, false)[0];
    assert_eq!((&stopped.text[..], stopped.finish_reason), ("nopqrst", FinishReason::Stop));
    assert_eq!(stopped.ids.len(), 9, "up to the v, and no further");
    assert_eq!(run(&options, &stop, true)[0].text, "nopqrstuv");
    for (at, id) in stopped.ids.iter().enumerate() {
        let [(best, log_prob), (_, second)] = stopped.likely[at][..] else { panic!() };
        assert!(best == *id && log_prob == stopped.log_probs[at] && second < log_prob);
    }
    // No stop before the least number of tokens, also of a string that began before.
    for (least, text) in [(9, "nopqrst"), (10, "nopqrstuvwxyz\nabcdefghijklmnopqrst")] {
        let options = Options { min_new_tokens: least, ..options.clone() };
        assert_eq!(run(&options, &stop, false)[0].text, text);
    }
    let v = writer.token_id("stop", &"v".into()).unwrap();
    let at_token = Options { stop_token_ids: vec![v], ..options.clone() };
    let stopped = &run(&at_token, &[], false)[0];
    assert_eq!((&stopped.text[..], stopped.finish_reason), ("nopqrstu", FinishReason::Stop));
    assert_eq!((stopped.ids.len(), stopped.log_probs.len()), (8, 9), "with that of the end");
    let biased = Options { logit_bias: vec![(v, 100.0)], ..options.clone() };
    assert!(run(&biased, &[], false)[0].text.bytes().all(|byte| byte == b'v'));
    let beams = Options { num_beams: 3, num_return_sequences: 2, ..options.clone() };
    let found = run(&beams, &[], false);
    assert_eq!((found.len(), &found[0].text[..5]), (2, "nopqr"));
    let found = run(&beams, &stop, false);
    assert_eq!((&found[0].text[..], found[0].finish_reason), ("nopqrst", FinishReason::Stop));
    // A watcher that has seen enough.
    let mut tokens = 0;
    let mut watch = |_: Written| {
        tokens += 1;
        tokens < 5
    };
    let cut = writer.generate(&prompt, &Generation::new(&options), &mut watch).unwrap();
    assert_eq!((&cut[0].text[..], cut[0].finish_reason), ("nopqr", FinishReason::Cancelled));

    let error = writer.score("abcdefghijklmnopqrstuvwxyz\nabcdefghij", LongText::Refuse);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("37 tokens, the model's context is 12"), "{error}");
    let error = writer.prompt("abcdefghijklmnopqrstuvwxyz", PromptOptions::default());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("26 tokens, the model's context is 12"), "{error}");
    let options = PromptOptions { truncate: true, ..PromptOptions::default() };
    let prompt = writer.prompt("abcdefghijklmnopqrstuvwxyz", options).unwrap();
    assert_eq!((prompt.ids().len(), prompt.truncated()), (12, 14));
    let end = writer.score("abcdefghijklmnopqrstuvwxyz\nabcdefghij", LongText::Truncate).unwrap();
    assert_eq!((end.tokens.len(), end.truncated, &end.tokens[0][..]), (13, 24, "y"));

    let likely = writer.score("abcdefghijklmnopqrstuvwxyz\nabcdefghij", LongText::Windows).unwrap();
    assert_eq!((likely.tokens.len(), likely.token_logprobs[0]), (37, None));
    assert!(likely.logprob() > -5.0, "{}", likely.logprob());
    let unlikely = "abcdefghijklmnopqrstuvwxyz\nabcdefgxij";
    let unlikely = writer.score(unlikely, LongText::Windows).unwrap();
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
    let score = |text: &str| writer.score(text, LongText::Windows).unwrap();
    let (short, long) = (score("abcdefghijkl"), score("abcdefghijklmn"));
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

//! Images: trained with augmentation and dropout, stopped, resumed, and evaluated.

use crate::resumed::left;
use crate::small::Folder;
use regard_models::vit::Vit;
use regard_models::{ModelFiles, zoo};
use regard_tasks::classify_image::{FILE, ImageClassifier, Recipe};
use regard_tasks::data::{Part, idx};
use regard_tasks::evaluation::EvaluationData;
use regard_tasks::recipe::{self, Task};
use regard_tasks::train::{Event, RunOptions, TrainOutcome, start};
use std::fs;
use std::path::Path;

const SIDES: [usize; 2] = [6, 8];

/// Images that are bright at the top, at the bottom or nowhere, in the four files of MNIST.
fn write(folder: &Path) {
    for (part, count) in [("train", 60), ("t10k", 21)] {
        let pixel = |i: usize, at: usize| {
            let (row, noise) = (at / SIDES[1], (at * 29 + i * 13) % 60);
            let lit = match i % 3 {
                0 => row < 2,
                1 => row >= 4,
                _ => false,
            };
            (noise + if lit { 150 } else { 0 }) as u8
        };
        let area = SIDES[0] * SIDES[1];
        let pixels: Vec<u8> = (0..count * area).map(|at| pixel(at / area, at % area)).collect();
        let labels: Vec<u8> = (0..count).map(|i| (i % 3) as u8).collect();
        let images = idx::to_bytes(&[count, SIDES[0], SIDES[1]], &pixels);
        fs::write(folder.join(format!("{part}-images-idx3-ubyte")), images).unwrap();
        let labels = idx::to_bytes(&[count], &labels);
        fs::write(folder.join(format!("{part}-labels-idx1-ubyte")), labels).unwrap();
    }
}

fn recipe(folder: &Path, steps: u64) -> Recipe {
    let text = format!(
        "name = 'small'\ntask = 'classify-image'\nseed = 3\n[data]\nset = 'files'\nfolder = '{}'\n\
         valid = 15\n[model]\nmodel_type = 'vit'\npatch_size = 2\nhidden_size = 16\n\
         num_hidden_layers = 1\nnum_attention_heads = 2\nintermediate_size = 16\n\
         initializer_range = 0.2\nhidden_dropout_prob = 0.1\n\
         [augment]\nshift = 1\nflip = true\nerase = 0.3\n\
         [train]\nsteps = {steps}\nbatch_tokens = 9\naccumulate = 2\nlr = 1e-2\nwarmup = 5\n\
         log_every = 3\neval_every = 4\nsave_every = 5\nkeep = 2\naverage = 2\nweight_decay = 0.01",
        folder.display()
    );
    Recipe::from_table(recipe::parse(&text, &[], &|_| None).unwrap()).unwrap()
}

fn train(recipe: &Recipe, folder: &Path, resume: bool, stop: Option<u64>) -> TrainOutcome {
    let mut watch = |event: Event| match event {
        Event::Saved(step) => Some(step) != stop,
        _ => true,
    };
    start(recipe, &RunOptions { folder, resume, memory: None }, &mut watch).unwrap()
}

#[test]
fn a_run_that_was_resumed_is_the_run_that_was_not() {
    let folder = Folder::new("images-resumed");
    write(&folder.0);
    let recipe = recipe(&folder.0, 22);
    let [whole, parts] = ["whole", "parts"].map(|name| folder.0.join(name));
    assert!(matches!(train(&recipe, &whole, false, None), TrainOutcome::Done { step: 22, .. }));
    assert_eq!(train(&recipe, &parts, false, Some(10)), TrainOutcome::Interrupted { step: 10 });
    assert!(matches!(train(&recipe, &parts, true, None), TrainOutcome::Done { step: 22, .. }));
    assert_eq!(left(&whole), left(&parts));
}

#[test]
fn an_exam_gives_the_numbers_of_the_run() {
    let folder = Folder::new("images-exam");
    write(&folder.0);
    let (mut recipe, run) = (recipe(&folder.0, 80), folder.0.join("run"));
    // The best checkpoint is the model, so that its metrics are in the log.
    recipe.train.average = 0;
    let TrainOutcome::Done { best, .. } = train(&recipe, &run, false, None) else {
        panic!("not done")
    };
    let on = |part: Part| EvaluationData::Set { set: None, part: Some(part) };
    let valid = recipe.evaluate(&ModelFiles::from(&run), &on(Part::Valid)).unwrap();
    let mark = |report: &regard_tasks::evaluation::Report, name: &str| {
        report.marks.iter().find(|mark| mark.name == name).unwrap().value
    };
    assert_eq!((valid.asked, mark(&valid, "accuracy")), (15, best));
    let test = recipe
        .evaluate(&ModelFiles::from(&run), &EvaluationData::Set { set: None, part: None })
        .unwrap();
    assert!(test.asked == 21 && mark(&test, "accuracy") > 90.0, "{test:?}");
    // Images that are held out are the last ones of the training file.
    for (report, file, from) in [(&valid, "train-images", None), (&test, "t10k-images", Some(0))] {
        for each in crate::exams::worst_labels(report) {
            let number = each.text.strip_prefix("image ").unwrap().split(' ').next().unwrap();
            let number: usize = number.parse().unwrap();
            assert!(each.text.contains(file), "{each:?}");
            assert!(from.is_none_or(|from| (from..from + 21).contains(&number)), "{each:?}");
        }
    }
    let file = EvaluationData::File(folder.0.join("t10k-images-idx3-ubyte"));
    let named = recipe.evaluate(&ModelFiles::from(&run), &file).unwrap();
    assert_eq!(mark(&named, "accuracy"), mark(&test, "accuracy"));
    assert!(run.join("model").join(FILE).is_file());
    // Without a stem, with a class token and learned positions it is Hugging Face's ViT.
    let config = regard_models::checkpoint::read_config(&run.join("model")).unwrap();
    assert_eq!(config["model_type"], "vit");
    assert!(zoo::is::<Vit>(&config) && ImageClassifier::load(&run).is_ok());
}

//! Speech: tones that are learned as labels and as characters, saved, recognised whole and
//! streamed, and resumed.

use crate::exams::worst_labels;
use crate::small::{Folder, trained};
use regard_models::ModelFiles;
use regard_tasks::audio::{Sound, wav};
use regard_tasks::data::{Part, recordings, sets};
use regard_tasks::evaluation::EvaluationData;
use regard_tasks::recipe::{self, Task};
use regard_tasks::recognize::{Recipe, Recognizer};
use regard_tasks::train::TrainOutcome;
use std::path::Path;

/// Words that are two tones each, the same two in another order.
const WORDS: [(&str, [f32; 2]); 3] =
    [("up", [400.0, 900.0]), ("down", [900.0, 400.0]), ("low", [400.0, 400.0])];

fn tones(word: usize, variant: usize) -> Sound {
    let parts = WORDS[word].1.iter().flat_map(|hertz| {
        let hertz = hertz * (1.0 + 0.01 * variant as f32);
        let sample =
            move |i: usize| 0.5 * (hertz * i as f32 / 8000.0 * std::f32::consts::TAU).sin();
        (0..900 + 40 * variant).map(sample)
    });
    Sound { samples: parts.collect(), rate: 8000 }
}

/// Writes recordings and lists of them.
fn record(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    for (part, variants) in [("train", 0..6), ("valid", 6..8)] {
        let mut list = String::new();
        for variant in variants {
            for (word, (text, _)) in WORDS.iter().enumerate() {
                let name = format!("{text}-{variant}.wav");
                std::fs::write(folder.join(&name), wav::encode(&tones(word, variant))).unwrap();
                list += &format!("{name}\t{text}\n");
            }
        }
        std::fs::write(folder.join(format!("{part}.tsv")), list).unwrap();
    }
}

fn recipe(folder: &Path, more: &str, steps: usize) -> Recipe {
    let text = format!(
        "name = 'tones'\ntask = 'recognize'\nseed = 3\n[data]\nset = 'files'\n\
         train = '{0}/train.tsv'\nvalid = '{0}/valid.tsv'\n{more}\n\
         [features]\nsampling_rate = 8000\nfeature_size = 16\nn_fft = 256\nwin_length = 200\n\
         hop_length = 80\n[augment]\nspeed = 2\ngain = 3.0\nnoise = 30.0\ntime_masks = 1\n\
         time_mask = 2\n[model]\nmodel_type = 'speech'\nhidden_size = 24\n\
         num_attention_heads = 2\nnum_hidden_layers = 1\nintermediate_size = 32\n\
         conv_kernel = [3]\nconv_stride = [2]\nleft_context = 6\nright_context = 3\n\
         pooling_size = 8\ndropout = 0.0\n[train]\nsteps = {steps}\nbatch_tokens = 9\nlr = 1e-2\n\
         warmup = 5\nschedule = 'cosine'\nlabel_smoothing = 0.0\neval_every = 20\nkeep = 2",
        folder.display()
    );
    Recipe::from_table(recipe::parse(&text, &[], &|_| None).unwrap()).unwrap()
}

/// The recognizer predicts the same for a stream as for the whole sound.
fn stream(recognizer: &Recognizer, sound: &Sound) {
    let whole = recognizer.recognize(sound, 3).unwrap();
    for piece in [37, 400, 5000] {
        let mut streaming = recognizer.listen();
        sound.samples.chunks(piece).for_each(|samples| streaming.hear(samples, false).unwrap());
        streaming.hear(&[], true).unwrap();
        let heard = streaming.guesses(3).unwrap();
        assert_eq!(heard.len(), whole.len());
        for (heard, whole) in heard.iter().zip(&whole) {
            assert_eq!(heard.text, whole.text);
            assert!((heard.score - whole.score).abs() < 1e-4);
        }
    }
}

#[test]
fn tones_are_learned_as_labels() {
    let place = Folder::new("speech-labels");
    record(&place.0);
    let (recipe, run) = (recipe(&place.0, "", 60), place.0.join("run"));
    let TrainOutcome::Done { best, .. } = trained(&recipe, &run, false, None) else { panic!() };
    assert_eq!(best, 100.0);
    let recognizer = Recognizer::load(&run).unwrap();
    for (word, (text, _)) in WORDS.iter().enumerate() {
        let sound = tones(word, 8);
        let guesses = recognizer.recognize(&sound, 2).unwrap();
        assert_eq!((guesses.len(), guesses[0].text.as_str()), (2, *text));
        stream(&recognizer, &sound);
        // At another rate it is the same word.
        assert_eq!(recognizer.recognize(&sound.at(11025), 1).unwrap()[0].text, *text);
    }
    let report = recipe
        .evaluate(&ModelFiles::from(&run), &EvaluationData::Set { set: None, part: None })
        .unwrap();
    assert_eq!((report.marks[0].name, report.marks[0].value), ("accuracy", 100.0));
    let worst = worst_labels(&report);
    assert!(worst.iter().all(|each| each.text.ends_with(&format!("{}-6.wav", each.label))
        || each.text.ends_with(&format!("{}-7.wav", each.label))));
    let file = EvaluationData::File(place.0.join("train.tsv"));
    assert_eq!(recipe.evaluate(&ModelFiles::from(&run), &file).unwrap().asked, 18);
    // A label that the model does not have counts as wrong.
    std::fs::write(place.0.join("odd.tsv"), "up-0.wav\tup\nlow-0.wav\tsideways\n").unwrap();
    let file = EvaluationData::File(place.0.join("odd.tsv"));
    let odd = recipe.evaluate(&ModelFiles::from(&run), &file).unwrap();
    assert_eq!((odd.marks[0].value, worst_labels(&odd).len()), (50.0, 1));
    let labels = &odd.details.as_ref().unwrap().labels;
    assert_eq!((labels.len(), labels[3].label.as_str(), labels[3].support), (4, "sideways", 1));
}

#[test]
fn joined_tones_are_learned_as_letters() {
    let place = Folder::new("speech-letters");
    record(&place.0);
    let mut recipe = recipe(&place.0, "join = 2", 1500);
    recipe.model["head"] = "ctc".into();
    let run = place.0.join("run");
    let TrainOutcome::Done { best, .. } = trained(&recipe, &run, false, None) else { panic!() };
    assert!(best < 20.0, "{best} % of words are wrong");
    let recognizer = Recognizer::load(&run).unwrap();
    let mut right = 0;
    for (word, (text, _)) in WORDS.iter().enumerate() {
        right += usize::from(recognizer.recognize(&tones(word, 8), 1).unwrap()[0].text == *text);
        stream(&recognizer, &tones(word, 8));
    }
    assert!(right >= 2, "{right} of 3");
}

#[test]
fn resumed_is_never_stopped() {
    let place = Folder::new("speech-resumed");
    record(&place.0);
    let recipe = recipe(&place.0, "", 24);
    let [whole, parts] = ["whole", "parts"].map(|name| place.0.join(name));
    trained(&recipe, &whole, false, None);
    assert!(matches!(
        trained(&recipe, &parts, false, Some(9)),
        TrainOutcome::Interrupted { step: 9 }
    ));
    trained(&recipe, &parts, true, None);
    let weights = |run: &Path| std::fs::read(run.join("model/model.safetensors")).unwrap();
    assert_eq!(weights(&whole), weights(&parts));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let place = Folder::new("speech-wrong");
    record(&place.0);
    let error = |recipe: &Recipe| recipe.prepare().err().unwrap().to_string();
    let good = || recipe(&place.0, "", 1);
    let mut bad = good();
    bad.data.join = 2;
    assert!(error(&bad).contains("data.join"));
    let mut bad = good();
    bad.data.set = "fsdd".into();
    assert!(error(&bad).contains("data.train: only with `files`"));
    let mut bad = good();
    bad.data.valid = None;
    assert!(error(&bad).contains("set data.valid to a list of recordings"));
    let mut bad = good();
    bad.model["hiden_size"] = 3.into();
    assert!(error(&bad).contains("no such key: hiden_size"));
    let mut bad = good();
    bad.features.hop_length = 0;
    assert!(error(&bad).contains("features.hop_length"));
    let whole = std::fs::read(place.0.join("up-0.wav")).unwrap();
    std::fs::write(place.0.join("up-0.wav"), &whole[..whole.len() - 7]).unwrap();
    let told = error(&good());
    assert!(told.contains("up-0.wav: is cut off") && told.contains("at byte 36"), "{told}");
}

#[test]
fn spoken_digits_have_their_parts() {
    let Ok(folder) = sets::find("fsdd") else {
        regard_fuzz::skip("REGARD_DATA has no fsdd");
        return;
    };
    let count = |part| recordings::fsdd(&folder, part).unwrap().len();
    assert_eq!([Part::Train, Part::Valid, Part::Test].map(count), [2400, 300, 300]);
}

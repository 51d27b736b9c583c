//! Training objective of speech recognition.

use super::evaluate::marks;
use super::names::BLANK;
use super::{Clip, Corpus, Names, Recipe};
use crate::about::{self, About};
use crate::audio::front::statistics;
use crate::audio::{AudioAugment, FrontEnd, Preprocessor, Sound};
use crate::data::{Lengths, Part};
use crate::evaluation::measures;
use crate::recipe::ModelTable;
use crate::say;
use crate::train::trained::device;
use crate::train::{BatchLoss, Direction, Evaluation, Objective, Trained};
use burn::tensor::{Int, Tensor, TensorData};
use regard_attention::Mode;
use regard_attention::ops::{CrossEntropy, Ctc, CtcTargets, cross_entropy, ctc_loss};
use regard_kernels::pool;
use regard_kernels::rng::Stream;
use regard_models::speech::{Sounds, Speech, SpeechHead, SpeechLogits};
use regard_models::{Capability, Error, Result, values};
use serde_json::Value;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Random stream of the augmentation; the index of the recording and of each one concatenated to it
/// is added.
const AUGMENT: u64 = 0x7370_6565_6368_8000;

/// Training objective of speech recognition.
pub struct SpeechObjective {
    front: FrontEnd,
    names: Names,
    train: Corpus,
    valid: Corpus,
    augment: AudioAugment,
    join: usize,
    smoothing: f32,
    about: About,
}

fn is_ctc(recipe: &Recipe) -> bool {
    recipe.model.get("head").and_then(Value::as_str) == Some("ctc")
}

/// Returns a summary of the recordings.
fn tell(recipe: &Recipe, train: &Corpus, valid: &Corpus) -> About {
    let mut about = About::default();
    let rate = f64::from(recipe.features.sampling_rate.max(1));
    for (part, corpus) in [(Part::Train, train), (Part::Valid, valid)] {
        let samples: usize = corpus.clips.iter().map(|clip| clip.samples.len()).sum();
        let minutes = samples as f64 / rate / 60.0;
        let what = format!("{}, {minutes:.1} min", say::many(corpus.clips.len(), "recording"));
        about.part(part.name(), recipe.data.source(part), what);
    }
    match is_ctc(recipe) {
        true => {
            let all: std::collections::BTreeSet<char> =
                train.texts().flat_map(str::chars).collect();
            let letters: Vec<String> = all.iter().map(|c| c.to_string()).collect();
            about.line(format!(
                "{}: {}",
                say::many(letters.len(), "character"),
                say::list(&letters, 40)
            ));
        }
        false => about.labels("label", &about::counted(train.texts())),
    }
    about
}

/// Checks that the validation part has no label that the training part lacks.
fn known_labels(recipe: &Recipe, train: &Corpus, valid: &Corpus) -> Result<()> {
    if is_ctc(recipe) {
        return Ok(());
    }
    let known = about::counted(train.texts());
    let theirs = about::counted(valid.texts());
    let new = |(name, _): &&(&str, usize)| !known.iter().any(|(label, _)| label == name);
    let new: Vec<&str> = theirs.iter().filter(new).map(|(name, _)| *name).collect();
    if new.is_empty() {
        return Ok(());
    }
    let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    Err(Error::invalid(format!(
        "{}: its labels {} are not in the training data, which has {}",
        recipe.data.source(Part::Valid),
        say::list(&new, 8),
        say::list(&known, 8)
    )))
}

impl SpeechObjective {
    /// Creates a model with initial weights as a recipe configures it.
    pub fn new(recipe: &Recipe) -> Result<Trained<SpeechObjective>> {
        recipe.augment.check()?;
        let rate = recipe.features.sampling_rate;
        let read = |part| Corpus::read(&recipe.data.recordings(&recipe.data.set, part)?, rate);
        let train = read(Part::Train)?.not_empty("training")?;
        let valid = read(Part::Valid)?.not_empty("validation")?;
        let about = tell(recipe, &train, &valid);
        known_labels(recipe, &train, &valid)?;
        let valid = valid.joined(recipe.data.join, rate);
        let front = front(&recipe.features, &train)?;
        let mut table = ModelTable::new(&recipe.model)?;
        table.set_default("head", "labels");
        let head: SpeechHead =
            values::read_at("model.head", table.get("head")).map_err(Error::Invalid)?;
        if head == SpeechHead::Labels && recipe.data.join > 1 {
            let message = "data.join: joined recordings have no single label; need 1, or \
                           model.head = \"ctc\"";
            return Err(Error::invalid(message));
        }
        // Joined transcripts are separated by a space, which then is in the alphabet.
        let between = if recipe.data.join > 1 { Some(" ") } else { None };
        let names = Names::learn(head, train.texts().chain(between));
        table.set_labels(names.all());
        table.set("feature_size", front.width());
        let model = table.create::<Speech>(recipe.seed)?;
        let objective = SpeechObjective {
            front,
            names,
            train,
            valid,
            augment: recipe.augment.clone(),
            join: recipe.data.join,
            smoothing: recipe.train.label_smoothing,
            about,
        };
        Ok(Trained::new(model, objective))
    }

    /// Returns a summary of the sizes.
    pub(super) fn about(&self, millions: f64) -> String {
        let what = match self.names.head() {
            SpeechHead::Labels => "labels",
            SpeechHead::Ctc => "characters",
        };
        self.about.clone().with_sizes(format!(
            "{} training and {} validation recordings, {} {what}, {millions:.3} M parameters",
            self.train.clips.len(),
            self.valid.clips.len(),
            self.names.len(),
        ))
    }

    /// Returns the augmented feature rows of an example in this step, and its transcript.
    fn example(&self, example: usize, mode: Mode) -> (Vec<f32>, String) {
        let rate = self.front.preprocessor().sampling_rate;
        let Mode::Train { seed, step } = mode else {
            let Clip { samples, text } = self.train.clips[example].clone();
            return (self.front.rows(&Sound { samples, rate }), text);
        };
        let site = AUGMENT.wrapping_add((example as u64) << 20);
        let (mut samples, mut texts) = (vec![], vec![]);
        let company = self.train.company(example, self.join, seed, step);
        for (i, clip) in company.iter().map(|i| &self.train.clips[*i]).enumerate() {
            let random = Stream::new(seed, step, site + 1 + i as u64);
            samples.extend(self.augment.sound(&clip.samples, rate, random));
            texts.push(clip.text.as_str());
        }
        let mut rows = self.front.rows(&Sound { samples, rate });
        self.augment.hide(&mut rows, self.front.width(), Stream::new(seed, step, site));
        (rows, texts.join(" "))
    }
}

/// Creates the front end with the mean and standard deviation of the training recordings.
fn front(features: &Preprocessor, train: &Corpus) -> Result<FrontEnd> {
    let told = |message: String| Error::invalid(format!("features.{message}"));
    let plain = Preprocessor { mean: vec![], std: vec![], ..features.clone() };
    let front = FrontEnd::new(plain.clone()).map_err(told)?;
    let rate = plain.sampling_rate;
    let rows = train.clips.iter().map(|clip| {
        let sound = Sound { samples: clip.samples.clone(), rate };
        front.rows(&sound)
    });
    let (mean, std) = statistics(&rows.collect::<Vec<_>>(), front.width());
    FrontEnd::new(Preprocessor { mean, std, ..plain }).map_err(told)
}

impl Objective for SpeechObjective {
    type Model = Speech;

    /// A batch is a number of recordings. Nothing is padded, so there is no reason to batch
    /// recordings by length.
    fn lengths(&self) -> Vec<Lengths> {
        vec![Lengths { source: 1, target: 0 }; self.train.clips.len()]
    }

    fn loss(&self, model: &Speech, examples: &[usize], mode: Mode) -> BatchLoss {
        let slots: Vec<_> = examples.iter().map(|_| Mutex::new(Default::default())).collect();
        pool::parallel(examples.len(), &|i| {
            let heard = self.example(examples[i], mode);
            *slots[i].lock().unwrap_or_else(PoisonError::into_inner) = heard;
        });
        let mut sounds = Sounds::new(self.front.width());
        let mut wanted = vec![];
        for slot in slots {
            let (rows, text) = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
            sounds.push(&rows);
            wanted.push(self.names.encode(&text).expect("the names are those of these texts"));
        }
        let SpeechLogits { logits, lengths } = model.forward(&sounds, mode);
        let value = match model.settings().head {
            SpeechHead::Labels => {
                let wanted = TensorData::new(wanted.concat(), [examples.len()]);
                let wanted = Tensor::<1, Int>::from_data(wanted, &device());
                let options = CrossEntropy { smoothing: self.smoothing, ignore: None };
                cross_entropy(logits, wanted, options)
            }
            SpeechHead::Ctc => {
                let mut said = CtcTargets::new();
                lengths.iter().zip(&wanted).for_each(|(rows, text)| said.push(*rows, text));
                // A transcript longer than the remaining rows has an infinite loss, which is set to
                // 0.
                let options = Ctc { blank: BLANK, zero_infinity: true };
                ctc_loss(logits, said, options).mean()
            }
        };
        BatchLoss { value, tokens: examples.len() }
    }

    fn tokens(&self, examples: &[usize]) -> usize {
        examples.len()
    }

    fn counts(&self) -> &'static str {
        "recordings"
    }

    fn evaluate(&self, model: &Speech) -> Result<Evaluation> {
        let model = model.evaluation();
        let (marks, sample) = marks(&model, &self.front, &self.names, &self.valid);
        let better = match model.settings().head {
            SpeechHead::Labels => Direction::Higher,
            SpeechHead::Ctc => Direction::Lower,
        };
        Ok(Evaluation::new(measures(&marks), marks[0].value, better).with_sample(sample))
    }

    fn save_rest(&self, _config: &Value, folder: &Path) -> Result<()> {
        self.front.preprocessor().save(folder)
    }
}

//! Learning to find answers.

use super::{Exam, Example, Goal, Marks, Recipe, cost_of};
use crate::data::squad::{SPLIT, Squad};
use crate::data::{Part, Split, sets};
use crate::metrics::{Spans, spans};
use crate::reading::Asking;
use crate::text::Tokenizer;
use burn::tensor::{Tensor, TensorData};
use regard_models::text::Head;
use regard_models::{Error, Result};

/// By article, so that the model is not chosen on what is reported: the test part is the same.
const PARTS: Split = Split { valid: 50, ..SPLIT };
/// Questions that are asked in an evaluation during training.
const ASKED: usize = 300;
/// What logits of places that are not there are.
const NOWHERE: f32 = -1e9;

/// Questions with their answers.
pub(in super::super) struct Questions {
    train: Vec<Example>,
    valid: Vec<Asked>,
    asking: Asking,
}

/// A question of the held-out part.
struct Asked {
    question: String,
    context: String,
    answers: Vec<String>,
}

impl Questions {
    pub fn read(recipe: &Recipe) -> Result<(Tokenizer, Questions)> {
        let (train, held_out) = match recipe.data.set.as_str() {
            "squad" => {
                let all = Squad::read(sets::find("squad")?.join("dev-v1.1.json"))?;
                (all.clone(), all)
            }
            "files" => {
                let [train, valid] = recipe.data.files()?;
                (Squad::read(train)?, Squad::read(valid)?)
            }
            other => {
                return Err(Error::invalid(format!(
                    "data.set: got {other:?}, need squad or files"
                )));
            }
        };
        let whole = recipe.data.set == "files";
        let of = |squad: &Squad, part: Part| -> Vec<crate::data::squad::Article> {
            match whole {
                true => squad.articles.clone(),
                false => squad.part(&PARTS, part).into_iter().cloned().collect(),
            }
        };
        let articles = of(&train, Part::Train);
        let contexts = articles.iter().flat_map(|a| &a.paragraphs).map(|p| p.context.as_str());
        let tokenizer = recipe.tokenizer(contexts)?;
        let length = recipe.data.max_tokens;
        let asking = Asking { max_seq_len: length, doc_stride: length / 3, ..Asking::default() };
        let mut examples = vec![];
        for (context, question) in articles.iter().flat_map(|article| article.questions()) {
            let Some(place) = question.answers.iter().find_map(|a| a.place.clone()) else {
                continue;
            };
            // A question that leaves no room for a text is not learned from.
            let windows =
                tokenizer.windows(&question.text, Some(context), length, asking.doc_stride);
            for window in windows.unwrap_or_default() {
                let inside = |byte: usize| {
                    let mut places = window.places(1);
                    places.find(|at| (window.offsets[*at].0..window.offsets[*at].1).contains(&byte))
                };
                let ends = inside(place.start).zip(inside(place.end.saturating_sub(1)));
                // A window without the whole answer teaches nothing here.
                if let Some((first, last)) = ends {
                    examples.push(Example::new(window, vec![first as i64, last as i64]));
                }
            }
        }
        let held_out = of(&held_out, Part::Valid);
        let mut valid: Vec<Asked> = held_out
            .iter()
            .flat_map(|article| article.questions())
            .map(|(context, question)| Asked {
                question: question.text.clone(),
                context: context.to_string(),
                answers: question.answers.iter().map(|answer| answer.text.clone()).collect(),
            })
            .collect();
        valid.sort_by_key(|asked| crate::data::split::hash(&asked.question));
        valid.truncate(ASKED);
        Ok((tokenizer, Questions { train: examples, valid, asking }))
    }
}

impl Goal for Questions {
    const HEAD: Head = Head::Span;
    const DECIDES: &'static str = "valid_f1";

    fn labels(&self) -> &[String] {
        &[]
    }

    fn examples(&self) -> &[Example] {
        &self.train
    }

    fn asked(&self) -> usize {
        self.valid.len()
    }

    /// The mean cost of where answers begin and of where they end, each among the places of its
    /// own text.
    fn cost(&self, logits: Tensor<2>, batch: &[&Example], _smoothing: f32) -> Tensor<1> {
        let wide = batch.iter().map(|example| example.ids.len()).max().unwrap_or(1);
        let (mut index, mut away, mut first) = (vec![], vec![], 0i64);
        for example in batch {
            let n = example.ids.len();
            index.extend((0..wide).map(|at| first + at.min(n - 1) as i64));
            away.extend((0..wide).map(|at| if at < n { 0.0 } else { NOWHERE }));
            first += n as i64;
        }
        let (rows, device) = (batch.len(), logits.device());
        let index = Tensor::from_data(TensorData::new(index, [rows * wide]), &device);
        let away = Tensor::<2>::from_data(TensorData::new(away, [rows, wide]), &device);
        let placed = logits.select(0, index);
        let side = |side: usize| {
            let scores = placed.clone().slice([0..rows * wide, side..side + 1]);
            let wanted = batch.iter().map(|example| example.wanted[side]).collect();
            // Smoothed, a cost would reach for places that are not there.
            cost_of(scores.reshape([rows, wide]) + away.clone(), wanted, 0.0)
        };
        (side(0) + side(1)) / 2.0
    }

    fn evaluate(&self, exam: &Exam) -> Result<Marks> {
        let mut scores = Spans::new(spans::Rules::Version1);
        let mut sample = None;
        for asked in &self.valid {
            let found = exam.reader.answer(&asked.question, &asked.context, &self.asking);
            // A question that cannot be asked is not answered.
            let found = found.unwrap_or_default();
            let said = found.first().map_or("", |answer| answer.answer.as_str());
            scores.add(said, &asked.answers);
            sample.get_or_insert_with(|| format!("{} → {said}", asked.question));
        }
        let measures = vec![
            ("valid_exact".to_string(), scores.exact()),
            ("valid_f1".to_string(), scores.f1()),
        ];
        Ok((measures, sample))
    }
}

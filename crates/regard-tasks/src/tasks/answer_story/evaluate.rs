//! Error rate per task.

use super::book::{Book, StoryQuestion};
use super::{StoryAnswerer, Tales};
use crate::data::babi;
use regard_attention::{Mode, backend};
use regard_models::Result;
use regard_models::story::StoryModel;
use serde::Serialize;

/// Questions per evaluation batch.
const AT_ONCE: usize = 256;

/// Results of a model on one task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoryMetrics {
    /// Number of the bAbI task, 1 to 20.
    pub task: usize,
    /// Name of the task.
    pub name: String,
    /// Number of questions.
    pub questions: usize,
    /// Number of questions answered wrongly, unusable ones included.
    pub wrong: usize,
    /// Number of unusable questions: a word or the answer is unknown to the model.
    pub unreadable: usize,
    /// Error rate, percent of the questions.
    pub error: f64,
}

/// Results of a model on several tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoryReport {
    /// Results of each task.
    pub tasks: Vec<StoryMetrics>,
    /// Mean of the error rates, percent.
    pub mean_error: f64,
    /// Number of tasks with an error rate above 5 %, which count as failed in the literature.
    pub failed: usize,
}

impl StoryReport {
    fn new(tasks: Vec<StoryMetrics>) -> StoryReport {
        let sum: f64 = tasks.iter().map(|marks| marks.error).sum();
        let failed = tasks.iter().filter(|marks| marks.error > 5.0).count();
        StoryReport { mean_error: sum / tasks.len().max(1) as f64, failed, tasks }
    }

    /// Returns the report for some of the tasks.
    pub fn of(&self, tasks: &[usize]) -> StoryReport {
        let asked = |marks: &&StoryMetrics| tasks.contains(&marks.task);
        StoryReport::new(self.tasks.iter().filter(asked).cloned().collect())
    }
}

/// Evaluates a model on all questions of some stories.
pub fn measure(listener: &StoryAnswerer, tales: &[Tales]) -> Result<StoryReport> {
    let model = listener.model();
    let book = Book::new(tales, listener.words(), &model.limits())?;
    Ok(report(model, &book).0)
}

/// Returns the report and the mean negative log-likelihood of the correct answers.
pub(super) fn report(model: &dyn StoryModel, book: &Book) -> (StoryReport, f64) {
    let mut marks: Vec<StoryMetrics> = book
        .unreadable
        .iter()
        .map(|(task, unreadable)| {
            let name = babi::TASKS.iter().find(|(number, _)| number == task);
            let name = name.map_or("", |(_, name)| name).to_string();
            let (questions, wrong) = (*unreadable, *unreadable);
            StoryMetrics {
                task: *task,
                name,
                questions,
                wrong,
                unreadable: *unreadable,
                error: 0.0,
            }
        })
        .collect();
    let mut cost = 0.0;
    for asked in book.questions.chunks(AT_ONCE) {
        for (StoryQuestion { task, answer, .. }, scores) in
            asked.iter().zip(scores(model, book, asked))
        {
            let best = (0..scores.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b]));
            let mine = marks.iter_mut().find(|marks| marks.task == *task);
            let mine = mine.expect("every task of the book has its metrics");
            mine.questions += 1;
            mine.wrong += usize::from(best != Some(*answer));
            cost -= log_share(&scores, *answer);
        }
    }
    for mine in &mut marks {
        mine.error = 100.0 * mine.wrong as f64 / mine.questions.max(1) as f64;
    }
    (StoryReport::new(marks), cost / book.questions.len().max(1) as f64)
}

/// Returns the logits of all answers for each question.
fn scores(model: &dyn StoryModel, book: &Book, asked: &[StoryQuestion]) -> Vec<Vec<f32>> {
    let logits = model.forward(&book.stories(asked.iter()), Mode::Eval);
    let [_, answers] = logits.dims();
    let mut numbers = vec![];
    backend::numbers(logits, &mut numbers);
    numbers.chunks_exact(answers).map(<[f32]>::to_vec).collect()
}

/// Computes the log-probability of an answer.
fn log_share(scores: &[f32], answer: usize) -> f64 {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = scores.iter().map(|x| f64::from(x - most).exp()).sum();
    f64::from(scores[answer] - most) - sum.ln()
}

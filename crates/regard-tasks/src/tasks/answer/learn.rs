//! Training of extractive question answering.

use super::Asking;
use crate::about::About;
use crate::data::Part;
use crate::data::known::{self, DataSet, Format};
use crate::data::split::hash;
use crate::data::squad::{Article, Squad};
use crate::evaluation::{DetailedMarks, Details, EvaluationData, EvaluationSet, Metric, Source};
use crate::metrics::{SpanMetrics, spans};
use crate::reader::TextEncoder;
use crate::reader::learn::{
    Data, EvaluationExamples, Evaluator, Example, Marks, Recipe, TextTask, cost_of,
};
use crate::recipe::details::{ShownInput, ShownOutput};
use crate::say;
use crate::text::Tokenizer;
use burn::tensor::{Tensor, TensorData};
use regard_models::text::Head;
use regard_models::{Error, Result};

/// Largest number of questions evaluated on a validation part, those with the smallest hashes: each
/// question needs a pass over its whole text, and validation runs often.
const ASKED: usize = 300;
/// Added to the logits of padding positions.
const NOWHERE: f32 = -1e9;

/// Training and validation questions with their answers.
pub(crate) struct Questions {
    train: Vec<Example>,
    valid: QuestionExample,
    about: About,
}

/// Evaluation set of questions.
pub(crate) struct QuestionExample {
    questions: Vec<Question>,
    asking: Asking,
}

/// A question, its context and its reference answers.
struct Question {
    question: String,
    context: String,
    answers: Vec<String>,
}

fn asking(longest: usize) -> Asking {
    Asking { max_seq_len: longest, doc_stride: longest / 3, ..Asking::default() }
}

/// Returns the articles of a part.
fn articles(data: &Data, part: Part) -> Result<Vec<Article>> {
    let (key, name) = data.named(part);
    match known::named("answer", key, name)? {
        Some(DataSet { format: Format::Questions(read), .. }) => read(part),
        Some(set) => known::unread(set),
        None if part == Part::Valid && data.shares() => Err(Error::invalid(
            "data.valid: is not set; name a file of questions (SQuAD's JSON) to choose the best \
             model by: --set data.valid=FILE",
        )),
        None => Ok(Squad::read(data.file(part)?)?.articles),
    }
}

impl QuestionExample {
    fn new(articles: &[Article], asking: Asking) -> QuestionExample {
        let question = |(context, question): (&str, &crate::data::squad::Question)| Question {
            question: question.text.clone(),
            context: context.to_string(),
            answers: question.answers.iter().map(|answer| answer.text.clone()).collect(),
        };
        let all = || articles.iter().flat_map(Article::questions);
        // If some questions are unanswerable, an empty answer may be correct.
        let handle_impossible_answer = all().any(|(_, question)| question.impossible);
        let asking = Asking { handle_impossible_answer, ..asking };
        QuestionExample { questions: all().map(question).collect(), asking }
    }

    /// Builds an evaluation set; a validation part is reduced to [`ASKED`] questions.
    fn of_part(articles: &[Article], part: Part, asking: Asking) -> QuestionExample {
        let mut asked = QuestionExample::new(articles, asking);
        if part == Part::Valid {
            asked.questions.sort_by_key(|question| hash(&question.question));
            asked.questions.truncate(ASKED);
        }
        asked
    }
}

impl TextTask for Questions {
    const HEAD: Head = Head::Span;
    const DECIDES: &'static str = "valid_f1";
    const COUNTED: &'static str = "texts";
    type EvaluationExamples = QuestionExample;

    fn read(recipe: &Recipe) -> Result<(Tokenizer, Questions)> {
        let train = articles(&recipe.data, Part::Train)?;
        let paragraphs = train.iter().flat_map(|article| &article.paragraphs);
        let tokenizer = recipe.tokenizer(paragraphs.map(|paragraph| paragraph.context.as_str()))?;
        let asking = asking(recipe.data.max_tokens);
        let mut examples = vec![];
        for (context, question) in train.iter().flat_map(Article::questions) {
            let Some(place) = question.answers.iter().find_map(|a| a.place.clone()) else {
                continue;
            };
            // A question too long to leave room for its context is skipped.
            let (length, stride) = (asking.max_seq_len, asking.doc_stride);
            let windows = tokenizer.windows(&question.text, Some(context), length, stride);
            for window in windows.unwrap_or_default() {
                let inside = |byte: usize| {
                    let mut places = window.places(1);
                    places.find(|at| (window.offsets[*at].0..window.offsets[*at].1).contains(&byte))
                };
                let ends = inside(place.start).zip(inside(place.end.saturating_sub(1)));
                // A window that lacks part of the answer is skipped.
                if let Some((first, last)) = ends {
                    examples.push(Example::new(window, vec![first as i64, last as i64]));
                }
            }
        }
        let mut about = About::default();
        let mut tell = |part: Part, articles: &[Article], more: &str| {
            let questions = articles.iter().flat_map(Article::questions).count();
            let what = format!(
                "{} about {}{more}",
                say::many(questions, "question"),
                say::many(articles.len(), "article")
            );
            about.part(part.name(), recipe.data.source(part), what);
        };
        tell(Part::Train, &train, "");
        let held_out = articles(&recipe.data, Part::Valid)?;
        let valid = QuestionExample::of_part(&held_out, Part::Valid, asking);
        tell(Part::Valid, &held_out, &format!(", {} evaluated", valid.questions.len()));
        if recipe.data.has_test(recipe.data.set_of(Part::Test)) {
            about.part("test", recipe.data.source(Part::Test), "for regard eval");
        }
        Ok((tokenizer, Questions { train: examples, valid, about }))
    }

    fn labels(&self) -> &[String] {
        &[]
    }

    fn examples(&self) -> &[Example] {
        &self.train
    }

    fn valid(&self) -> &QuestionExample {
        &self.valid
    }

    fn about(&self) -> About {
        self.about.clone()
    }

    fn counted(&self, _: &Example) -> usize {
        1
    }

    /// Returns the mean of the cross-entropies of the answer's start and end positions, each over
    /// the positions of its own text.
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
            // No label smoothing: it would put probability on padding positions.
            cost_of(scores.reshape([rows, wide]) + away.clone(), wanted, 0.0)
        };
        (side(0) + side(1)) / 2.0
    }

    fn paper(
        recipe: &Recipe,
        on: &EvaluationData,
        reader: &TextEncoder,
    ) -> Result<(QuestionExample, EvaluationSet)> {
        let data = recipe.data.on(on);
        let source = on.decide(data.set_of(Part::Test), |set| data.has_test(set))?;
        let asking = asking(recipe.data.max_tokens.min(reader.longest()));
        let paper = match source {
            Source::File(path) => QuestionExample::new(&Squad::read(path)?.articles, asking),
            Source::Set(_, part) => QuestionExample::of_part(&articles(&data, part)?, part, asking),
        };
        let sheet = EvaluationSet::new(&source, paper.asked(), "questions");
        Ok((paper, sheet))
    }
}

impl EvaluationExamples for QuestionExample {
    fn asked(&self) -> usize {
        self.questions.len()
    }

    fn mark(&self, exam: &Evaluator) -> Result<Marks> {
        let Answered { marks, said, .. } = self.answered(exam);
        let first = self.questions.first().zip(said.first());
        Ok((marks, first.map(|(asked, said)| format!("{} → {said}", asked.question))))
    }

    fn mark_in_detail(&self, exam: &Evaluator) -> Result<DetailedMarks> {
        let Answered { marks, said, f1 } = self.answered(exam);
        let show = |at: usize| {
            let Question { question, answers, .. } = &self.questions[at];
            // Several people were asked, who often give the same answer.
            let mut different: Vec<&str> = answers.iter().map(String::as_str).collect();
            different.sort_unstable();
            different.dedup();
            let reference = match different.is_empty() {
                true => "(no answer)".to_string(),
                false => different.join(" | "),
            };
            let input = ShownInput { number: None, text: question.clone() };
            ShownOutput { input, reference, hypothesis: said[at].clone() }
        };
        Ok((marks, Some(Details::of_texts("F1 of the words, percent", 100.0, &f1, show))))
    }
}

/// Answers to the questions of an evaluation set.
struct Answered {
    marks: Vec<Metric>,
    said: Vec<String>,
    /// F1 of each answer, percent.
    f1: Vec<f64>,
}

impl QuestionExample {
    fn answered(&self, exam: &Evaluator) -> Answered {
        let mut scores = SpanMetrics::new(match self.asking.handle_impossible_answer {
            true => spans::Rules::Version2,
            false => spans::Rules::Version1,
        });
        let (mut all, mut f1) = (vec![], vec![]);
        for Question { question, context, answers } in &self.questions {
            // A question that cannot be encoded counts as unanswered.
            let found = exam.reader.answer(question, context, &self.asking).unwrap_or_default();
            let said = found.into_iter().next().map_or(String::new(), |answer| answer.answer);
            f1.push(100.0 * scores.add(&said, answers).f1);
            all.push(said);
        }
        let marks = vec![
            Metric { name: "exact", value: scores.exact(), unit: "% of questions" },
            Metric { name: "f1", value: scores.f1(), unit: "% of words" },
        ];
        Answered { marks, said: all, f1 }
    }
}

//! Metrics of question answering: the exact match and F1 of SQuAD, by the rules of its evaluation
//! scripts for version 1.1 and version 2.0 (Rajpurkar et al. 2016, 2018).

use std::collections::HashMap;

use super::segment::words;

/// Version of SQuAD whose evaluation script is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// Version 1.1: every question has an answer; the F1 of an empty answer is 0.
    #[default]
    Version1,
    /// Version 2.0: a question may have no answer; then an empty prediction is right.
    Version2,
}

/// The score of one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SpanScore {
    /// Whether it equals one of the gold answers, after [`normalize`].
    pub exact: bool,
    /// Largest F1 of words with one of the gold answers.
    pub f1: f64,
}

/// Sums over questions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SpanSums {
    /// Number of exact answers.
    pub exact: u64,
    /// Sum of F1 over questions.
    pub f1: f64,
    /// Number of questions.
    pub questions: u64,
}

/// Scores of answers over a corpus.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SpanMetrics {
    rules: Rules,
    /// Sums over questions that have an answer.
    pub answered: SpanSums,
    /// Sums over questions that have none.
    pub unanswered: SpanSums,
}

impl SpanMetrics {
    /// Creates empty sums.
    pub fn new(rules: Rules) -> SpanMetrics {
        SpanMetrics { rules, ..SpanMetrics::default() }
    }

    /// Adds a predicted answer with all gold answers of its question, and returns its score. A
    /// model that finds no answer predicts `""`. By the rules of version 1.1 no prediction is right
    /// if there is no gold answer.
    pub fn add<A: AsRef<str>>(&mut self, said: &str, answers: &[A]) -> SpanScore {
        let score = self.rules.score(said, answers);
        let sums = if answers.is_empty() { &mut self.unanswered } else { &mut self.answered };
        sums.exact += u64::from(score.exact);
        sums.f1 += score.f1;
        sums.questions += 1;
        score
    }

    /// Adds the sums of another part of the corpus.
    ///
    /// # Panics
    /// If it was scored by other rules.
    pub fn merge(&mut self, other: &SpanMetrics) {
        assert_eq!(self.rules, other.rules, "answers by the rules of two versions");
        self.answered = self.answered.plus(other.answered);
        self.unanswered = self.unanswered.plus(other.unanswered);
    }

    /// Returns the sums over all questions.
    pub fn all(&self) -> SpanSums {
        self.answered.plus(self.unanswered)
    }

    /// Returns the percentage of exact answers; 0 if there is no question.
    pub fn exact(&self) -> f64 {
        self.all().mean_exact()
    }

    /// Returns the mean F1 in percent; 0 if there is no question.
    pub fn f1(&self) -> f64 {
        self.all().mean_f1()
    }
}

impl SpanSums {
    /// Returns the percentage of exact answers; 0 if there is no question.
    pub fn mean_exact(&self) -> f64 {
        100.0 * self.exact as f64 / self.questions.max(1) as f64
    }

    /// Returns the mean F1 in percent; 0 if there is no question.
    pub fn mean_f1(&self) -> f64 {
        100.0 * self.f1 / self.questions.max(1) as f64
    }

    fn plus(self, other: SpanSums) -> SpanSums {
        SpanSums {
            exact: self.exact + other.exact,
            f1: self.f1 + other.f1,
            questions: self.questions + other.questions,
        }
    }
}

impl Rules {
    /// Scores a predicted answer against the closest of the gold answers.
    pub fn score<A: AsRef<str>>(self, said: &str, answers: &[A]) -> SpanScore {
        let said = normalize(said);
        let mut answers: Vec<String> = answers.iter().map(|a| normalize(a.as_ref())).collect();
        if self == Rules::Version2 {
            answers.retain(|answer| !answer.is_empty());
            if answers.is_empty() {
                answers.push(String::new());
            }
        }
        SpanScore {
            exact: answers.contains(&said),
            f1: answers.iter().map(|answer| self.f1(&said, answer)).fold(0.0, f64::max),
        }
    }

    /// Computes the F1 of the words of two normalised texts, counted with repetitions.
    fn f1(self, said: &str, answer: &str) -> f64 {
        if self == Rules::Version2 && (said.is_empty() || answer.is_empty()) {
            return f64::from(u8::from(said == answer));
        }
        let mut left: HashMap<&str, usize> = HashMap::new();
        words(answer).for_each(|word| *left.entry(word).or_default() += 1);
        let shared = words(said).filter(|word| match left.get_mut(word) {
            Some(count @ 1..) => {
                *count -= 1;
                true
            }
            _ => false,
        });
        let shared = shared.count();
        if shared == 0 {
            return 0.0;
        }
        let all = words(said).count() + words(answer).count();
        2.0 * shared as f64 / all as f64
    }
}

/// Normalises an answer for comparison: lower case, without ASCII punctuation, without the words
/// `a`, `an` and `the`, with single spaces. Differs from Python's only for a combining vowel sign
/// right after an article, which here makes it another word.
pub fn normalize(answer: &str) -> String {
    let plain: String =
        answer.to_lowercase().chars().filter(|c| !c.is_ascii_punctuation()).collect();
    let mut text = String::with_capacity(plain.len());
    let mut rest = plain.as_str();
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        text += if matches!(word, "a" | "an" | "the") { " " } else { word };
        let end = after.find(char::is_alphanumeric).unwrap_or(after.len());
        let (between, after) = after.split_at(end);
        text += between;
        rest = after;
    }
    words(&text).collect::<Vec<_>>().join(" ")
}

/// A predicted answer with the model's score for "no answer".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThresholdedAnswer {
    /// Score of "no answer"; larger means that an answer is less likely.
    pub no_answer: f64,
    /// Score of the predicted answer: exact match as 0 or 1, or F1.
    pub score: f64,
    /// Whether the predicted answer is non-empty.
    pub says: bool,
    /// Whether the question has a gold answer.
    pub answered: bool,
}

/// Finds the threshold of `no_answer` with the best mean score, and returns both, the mean in
/// percent: a question whose `no_answer` is above it counts as unanswered. As in the script of
/// version 2.0, it is fitted to the very questions that are scored.
pub fn best_threshold(questions: &[ThresholdedAnswer]) -> (f64, f64) {
    let mut sorted: Vec<&ThresholdedAnswer> = questions.iter().collect();
    sorted.sort_by(|a, b| a.no_answer.total_cmp(&b.no_answer));
    // Starts with no question answered, then answers one more at a time.
    let mut sum = questions.iter().filter(|question| !question.answered).count() as f64;
    let (mut best, mut threshold) = (sum, 0.0);
    for question in sorted {
        sum += match question {
            ThresholdedAnswer { answered: true, score, .. } => *score,
            ThresholdedAnswer { says: true, .. } => -1.0,
            _ => 0.0,
        };
        if sum > best {
            (best, threshold) = (sum, question.no_answer);
        }
    }
    (threshold, 100.0 * best / questions.len().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_compared_without_trifles() {
        for (answer, wanted) in [
            ("The  Beatles!", "beatles"),
            ("an A-Team, the end", "ateam end"),
            ("theatre", "theatre"),
            ("a–the", "–"),
            ("“The” École\u{a0}1", "“ ” école 1"),
            ("...", ""),
            ("", ""),
        ] {
            assert_eq!(normalize(answer), wanted, "{answer:?}");
        }
    }

    #[test]
    fn the_best_answer_counts() {
        let mut spans = SpanMetrics::new(Rules::Version1);
        assert_eq!(spans.add("the cat", &["Cat.", "dog"]), SpanScore { exact: true, f1: 1.0 });
        let half = spans.add("big cat cat", &["dog", "a cat sat"]);
        assert_eq!((half.exact, half.f1), (false, 0.4));
        assert_eq!(spans.add("", &["x"]), SpanScore::default());
        assert_eq!(spans.add("the", &["a"]), SpanScore { exact: true, f1: 0.0 });
        assert_eq!((spans.exact(), spans.f1()), (50.0, 35.0));
        let mut more = spans;
        more.merge(&spans);
        assert_eq!((more.all().questions, more.f1()), (8, 35.0));
    }

    #[test]
    fn nothing_may_be_right() {
        let mut spans = SpanMetrics::new(Rules::Version2);
        let none: [&str; 0] = [];
        assert_eq!(spans.add("", &none).f1, 1.0);
        assert_eq!(spans.add("yes", &none).f1, 0.0);
        assert_eq!(spans.add("", &["yes"]).f1, 0.0);
        assert_eq!(spans.add("the", &["."]), SpanScore { exact: true, f1: 1.0 });
        assert_eq!((spans.answered.questions, spans.unanswered.mean_exact()), (2, 50.0));
        assert_eq!(SpanMetrics::default().exact(), 0.0);
    }

    #[test]
    fn a_threshold_turns_doubt_into_silence() {
        let row = |no_answer, score, answered| ThresholdedAnswer {
            no_answer,
            score,
            says: true,
            answered,
        };
        let rows = [row(0.9, 0.0, false), row(0.1, 1.0, true), row(0.4, 0.5, true)];
        assert_eq!(best_threshold(&rows), (0.4, 250.0 / 3.0));
        assert_eq!(best_threshold(&[]), (0.0, 0.0));
    }
}

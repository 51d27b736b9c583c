//! Learning to label words.

use super::{Exam, Example, Goal, IGNORED, Marks, Recipe};
use crate::data::conllu::{Sentence, Sentences, Word};
use crate::data::{Part, sets};
use crate::metrics::Confusion;
use crate::text::Tokenizer;
use regard_models::text::Head;
use regard_models::{Error, Result};
use std::borrow::Cow;

/// Sentences whose words have labels.
pub(in super::super) struct Tags {
    labels: Vec<String>,
    train: Vec<Example>,
    valid: Vec<Example>,
    /// Words of the validation part that no token tells: those count as wrong.
    missed: u64,
}

impl Tags {
    pub fn read(recipe: &Recipe) -> Result<(Tokenizer, Tags)> {
        let [train, valid] = parts(recipe)?;
        let texts: Vec<Cow<str>> = train.iter().map(written).collect();
        let tokenizer = recipe.tokenizer(texts.iter().map(|text| &**text))?;
        let words = || train.iter().flat_map(|sentence| &sentence.words);
        let mut labels: Vec<String> = words().map(|word| word.universal.clone()).collect();
        labels.sort_unstable();
        labels.dedup();
        let longest = recipe.data.max_tokens;
        let examples = |sentences: &[Sentence]| -> Result<Vec<Example>> {
            let all =
                sentences.iter().map(|sentence| example(sentence, &tokenizer, &labels, longest));
            Ok(all.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
        };
        let words: usize = valid.iter().map(|sentence| sentence.words.len()).sum();
        let (train, valid) = (examples(&train)?, examples(&valid)?);
        let told: usize = valid.iter().map(Example::counted).sum();
        let missed = words.saturating_sub(told) as u64;
        Ok((tokenizer, Tags { labels, train, valid, missed }))
    }
}

/// The text of a sentence, or its words with spaces between them where nobody kept the text.
fn written(sentence: &Sentence) -> Cow<'_, str> {
    match &sentence.text {
        Some(text) => text.into(),
        None => {
            let words: Vec<&str> = sentence.words.iter().map(|word| word.form.as_str()).collect();
            words.join(" ").into()
        }
    }
}

fn parts(recipe: &Recipe) -> Result<[Vec<Sentence>; 2]> {
    match recipe.data.set.as_str() {
        "ud-english-ewt" => {
            let folder = sets::find("ud-english-ewt")?;
            let part = |part| Sentences::open_part(&folder, part)?.collect::<Result<Vec<_>>>();
            Ok([part(Part::Train)?, part(Part::Valid)?])
        }
        "files" => {
            let read = |path| Sentences::open(path)?.collect::<Result<Vec<_>>>();
            let [train, valid] = recipe.data.files()?;
            Ok([read(train)?, read(valid)?])
        }
        other => {
            Err(Error::invalid(format!("data.set: got {other:?}, need ud-english-ewt or files")))
        }
    }
}

/// A sentence as numbers: the first token of a word has the word's label, others count nothing;
/// a tokenizer of words is given the words themselves.
/// Nothing, if the words cannot be found in the text, or none has a token of its own.
fn example(
    sentence: &Sentence,
    tokenizer: &Tokenizer,
    labels: &[String],
    longest: usize,
) -> Result<Option<Example>> {
    if tokenizer.alphabet().is_some() {
        // Its tokens are words, and these are known.
        let words: Vec<&str> = sentence.words.iter().map(|word| word.form.as_str()).collect();
        let words = &words[..words.len().min(longest)];
        let label =
            |word: &Word| labels.binary_search(&word.universal).map_or(IGNORED, |i| i as i64);
        let wanted: Vec<i64> = sentence.words.iter().take(words.len()).map(label).collect();
        let counts = wanted.iter().any(|label| *label != IGNORED);
        return Ok(counts.then_some(Example::new(tokenizer.encode_words(words)?, wanted)));
    }
    let Some(text) = &sentence.text else { return Ok(None) };
    let encoding = tokenizer.encode_within(text, None, longest)?;
    let mut wanted = vec![IGNORED; encoding.len()];
    let mut from = 0;
    for word in &sentence.words {
        let (Some(place), Ok(label)) = (&word.place, labels.binary_search(&word.universal)) else {
            continue;
        };
        let tokens = from..encoding.len();
        let mut tokens = tokens.filter(|at| !encoding.special[*at]);
        // A token may span two words, as in a contraction; the first one has it.
        if let Some(at) = tokens.find(|at| {
            let (start, end) = encoding.offsets[*at];
            end > place.start && start < place.end
        }) && encoding.offsets[at].0 >= place.start
        {
            wanted[at] = label as i64;
            from = at + 1;
        }
    }
    let counts = wanted.iter().any(|label| *label != IGNORED);
    Ok(counts.then(|| Example::new(encoding, wanted)))
}

impl Goal for Tags {
    const HEAD: Head = Head::Tokens;
    const DECIDES: &'static str = "valid_accuracy";

    fn labels(&self) -> &[String] {
        &self.labels
    }

    fn examples(&self) -> &[Example] {
        &self.train
    }

    fn asked(&self) -> usize {
        self.valid.len()
    }

    fn evaluate(&self, exam: &Exam) -> Result<Marks> {
        let mut confusion = Confusion::new(self.labels.len());
        exam.labels(&self.valid, |said, right| confusion.add(said, right))?;
        let share = confusion.total() as f64 / (confusion.total() + self.missed).max(1) as f64;
        let accuracy = 100.0 * confusion.accuracy() * share;
        Ok((vec![("valid_accuracy".to_string(), accuracy)], None))
    }
}

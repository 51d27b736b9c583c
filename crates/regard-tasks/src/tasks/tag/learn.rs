//! Training of token classification.

use crate::about::{self, About};
use crate::data::Part;
use crate::data::conllu::{Sentence, Sentences};
use crate::data::known::{self, DataSet, Format};
use crate::evaluation::{EvaluationData, EvaluationSet, Source};
use crate::reader::TextEncoder;
use crate::reader::learn::{Data, EvaluationExamples, Example, IGNORED, Recipe, TextTask};
use crate::say;
use crate::text::{Encoding, Tokenizer};
use regard_models::text::Head;
use regard_models::{Error, Result};
use std::borrow::Cow;
use std::path::Path;

/// Training and validation sentences with a label for each word.
pub(crate) struct Tags {
    labels: Vec<String>,
    train: Vec<Example>,
    valid: Tagged,
    about: About,
}

/// Evaluation set: encoded sentences and the reference labels of all their words.
pub(crate) struct Tagged {
    /// Labels that the model can predict.
    pub(super) labels: Vec<String>,
    pub(super) examples: Vec<Example>,
    pub(super) sentences: Vec<Words>,
    /// Words of the sentences, to show them; empty in training.
    pub(super) shown: Vec<Vec<String>>,
    /// Whether all sentences of the data are there, so that their indices are those of the data.
    pub(super) is_whole: bool,
}

/// Words of a sentence.
pub(super) struct Words {
    /// Index into the examples; `None` if no word of the sentence has a labelled token.
    pub example: Option<usize>,
    /// For each word the index of its token, `None` if it has none, and its reference label.
    pub words: Vec<(Option<usize>, String)>,
}

/// Checks that the validation part has at least one label of the training part.
fn known_labels(recipe: &Recipe, labels: &[String], valid: &[Sentence]) -> Result<()> {
    let theirs =
        about::counted(valid.iter().flat_map(|s| &s.words).map(|word| word.universal.as_str()));
    let is_new = |(name, _): &&(&str, usize)| !labels.iter().any(|label| label == name);
    let new: Vec<&str> = theirs.iter().filter(is_new).map(|(name, _)| *name).collect();
    if new.len() < theirs.len() || theirs.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{}: none of its labels ({}) is in the training data ({})",
        recipe.data.source(Part::Valid),
        say::list(&new, 8),
        say::list(labels, 8)
    )))
}

/// Returns the text of a sentence, or its words joined by spaces if the file has no text.
fn written(sentence: &Sentence) -> Cow<'_, str> {
    match &sentence.text {
        Some(text) => text.into(),
        None => {
            let words: Vec<&str> = sentence.words.iter().map(|word| word.form.as_str()).collect();
            words.join(" ").into()
        }
    }
}

fn sentences(data: &Data, part: Part) -> Result<Vec<Sentence>> {
    let (key, name) = data.named(part);
    match known::named("tag", key, name)? {
        Some(DataSet { format: Format::Tagged(read), .. }) => read(part),
        Some(set) => known::unread(set),
        None => {
            let mut read = read(data.file(part)?)?;
            read.retain(|sentence| data.keeps(part, &written(sentence)));
            Ok(read)
        }
    }
}

fn read(path: &Path) -> Result<Vec<Sentence>> {
    Sentences::open(path)?.collect()
}

impl Tagged {
    /// Encodes sentences for a model with these labels; `number` maps a label's name to its index.
    fn new(
        labels: &[String],
        sentences: &[Sentence],
        tokenizer: &Tokenizer,
        longest: usize,
        number: &dyn Fn(&str) -> Option<usize>,
    ) -> Result<Tagged> {
        let mut all = Tagged {
            labels: labels.to_vec(),
            examples: vec![],
            sentences: vec![],
            shown: vec![],
            is_whole: false,
        };
        for sentence in sentences {
            let (encoding, tokens) = cut(sentence, tokenizer, longest)?;
            let mut wanted = vec![IGNORED; encoding.len()];
            for (token, word) in tokens.iter().zip(&sentence.words) {
                if let (Some(token), Some(label)) = (token, number(&word.universal)) {
                    wanted[*token] = label as i64;
                }
            }
            // A sentence without any known label has no loss and no predictions.
            let counts = wanted.iter().any(|label| *label != IGNORED);
            let example = counts.then_some(all.examples.len());
            if counts {
                all.examples.push(Example::new(encoding, wanted));
            }
            let right = sentence.words.iter().map(|word| word.universal.clone());
            all.sentences.push(Words { example, words: tokens.into_iter().zip(right).collect() });
        }
        Ok(all)
    }
}

/// Encodes a sentence; also returns the index of the token that represents each word.
fn cut(
    sentence: &Sentence,
    tokenizer: &Tokenizer,
    longest: usize,
) -> Result<(Encoding, Vec<Option<usize>>)> {
    if tokenizer.alphabet().is_some() {
        // Tokens are words here, so the word boundaries are known.
        let words: Vec<&str> = sentence.words.iter().map(|word| word.form.as_str()).collect();
        let read = words.len().min(longest);
        let tokens = (0..words.len()).map(|word| (word < read).then_some(word)).collect();
        return Ok((tokenizer.encode_words(&words[..read])?, tokens));
    }
    let text = sentence.text.as_deref().unwrap_or_default();
    let encoding = tokenizer.encode_within(text, None, longest)?;
    let tokens = first_tokens(sentence, &encoding);
    Ok((encoding, tokens))
}

/// Returns the first token of each word; `None` for a word that is not found in the text, lies
/// beyond its truncated end, or starts inside the token of another word.
fn first_tokens(sentence: &Sentence, encoding: &Encoding) -> Vec<Option<usize>> {
    let mut from = 0;
    let one = |word: &crate::data::conllu::Word| {
        let place = word.place.as_ref()?;
        let mut tokens = (from..encoding.len()).filter(|at| !encoding.special[*at]);
        let touches = |at: &usize| {
            let (start, end) = encoding.offsets[*at];
            end > place.start && start < place.end
        };
        // A token may span two words, as in a contraction; it belongs to the first one.
        let at = tokens.find(touches).filter(|at| encoding.offsets[*at].0 >= place.start)?;
        from = at + 1;
        Some(at)
    };
    sentence.words.iter().map(one).collect()
}

impl TextTask for Tags {
    const HEAD: Head = Head::Tokens;
    const DECIDES: &'static str = "valid_accuracy";
    const COUNTED: &'static str = "words";
    type EvaluationExamples = Tagged;

    fn read(recipe: &Recipe) -> Result<(Tokenizer, Tags)> {
        let train = sentences(&recipe.data, Part::Train)?;
        let valid = sentences(&recipe.data, Part::Valid)?;
        let texts: Vec<Cow<str>> = train.iter().map(written).collect();
        let tokenizer = recipe.tokenizer(texts.iter().map(|text| &**text))?;
        let words = train.iter().flat_map(|sentence| &sentence.words);
        let mut labels: Vec<String> = words.map(|word| word.universal.clone()).collect();
        labels.sort_unstable();
        labels.dedup();
        let longest = recipe.data.max_tokens;
        let tagged = |sentences: &[Sentence]| {
            let number = |name: &str| labels.iter().position(|label| label == name);
            Tagged::new(&labels, sentences, &tokenizer, longest, &number)
        };
        let mut about = About::default();
        for (part, sentences) in [(Part::Train, &train), (Part::Valid, &valid)] {
            let words = sentences.iter().map(|sentence| sentence.words.len()).sum();
            let what =
                format!("{}, {}", say::many(sentences.len(), "sentence"), say::many(words, "word"));
            about.part(part.name(), recipe.data.source(part), what);
        }
        if recipe.data.has_test(recipe.data.set_of(Part::Test)) {
            about.part("test", recipe.data.source(Part::Test), "for regard eval");
        }
        let words = || train.iter().flat_map(|sentence| &sentence.words);
        about.labels("label", &about::counted(words().map(|word| word.universal.as_str())));
        known_labels(recipe, &labels, &valid)?;
        let (train, valid) = (tagged(&train)?.examples, tagged(&valid)?);
        Ok((tokenizer, Tags { labels, train, valid, about }))
    }

    fn labels(&self) -> &[String] {
        &self.labels
    }

    fn examples(&self) -> &[Example] {
        &self.train
    }

    fn valid(&self) -> &Tagged {
        &self.valid
    }

    fn about(&self) -> About {
        self.about.clone()
    }

    fn paper(
        recipe: &Recipe,
        on: &EvaluationData,
        reader: &TextEncoder,
    ) -> Result<(Tagged, EvaluationSet)> {
        let data = recipe.data.on(on);
        let source = on.decide(data.set_of(Part::Test), |set| data.has_test(set))?;
        let sentences = match source {
            Source::File(path) => read(path)?,
            Source::Set(_, part) => sentences(&data, part)?,
        };
        let longest = recipe.data.max_tokens.min(reader.longest());
        let number = |name: &str| reader.label_number(name);
        let mut paper =
            Tagged::new(reader.labels(), &sentences, reader.tokenizer(), longest, &number)?;
        let words = |sentence: Sentence| sentence.words.into_iter().map(|word| word.form).collect();
        paper.shown = sentences.into_iter().map(words).collect();
        paper.is_whole = source.part() != Some(Part::Valid) || !data.shares();
        let sheet = EvaluationSet::new(&source, paper.asked(), "words");
        if paper.examples.is_empty() && sheet.asked > 0 {
            // If only some labels are unknown to the model, their words count as wrong instead.
            let first = paper.sentences.iter().find_map(|sentence| sentence.words.first());
            let theirs = first.map_or("", |(_, right)| right.as_str());
            let own = say::list(reader.labels(), 10);
            return Err(Error::invalid(format!(
                "{}: none of its labels, such as {theirs:?}, is one of the model's: {own}",
                sheet.data
            )));
        }
        Ok((paper, sheet))
    }
}

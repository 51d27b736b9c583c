//! Text encoders with their tokenizers, shared by the tasks that label a text or its tokens, answer
//! a question in it, predict masked tokens, or embed it. Results have the fields of Hugging Face's
//! pipelines.

mod folder;
pub(crate) mod learn;

pub use learn::{Data, ReaderVocabulary, Recipe};

use crate::embed::{SentenceSettings, sentence};
use crate::import::preset;
use crate::text::{Alphabet, Encoding, Tokenizer};
use crate::{logits, say, train};
use burn::tensor::{Device, Tensor};
use regard_attention::Mode;
use regard_attention::backend;
use regard_models::text::{self, Head, TextModel, TextOutput, Texts};
use regard_models::{Error, Labels, ModelFiles, Result, checkpoint};

/// Number of tokens per forward pass.
pub(crate) const AT_ONCE: usize = 8192;

/// A text model with its tokenizer.
pub struct TextEncoder {
    pub(crate) model: Box<dyn TextModel>,
    pub(crate) tokenizer: Tokenizer,
    labels: Vec<String>,
    /// Files it was loaded from, kept if it was opened for embeddings ([`Head::Bare`]).
    files: Option<ModelFiles>,
}

impl TextEncoder {
    /// Creates an encoder from a model and its tokenizer.
    pub fn new(model: Box<dyn TextModel>, tokenizer: Tokenizer) -> TextEncoder {
        let labels = Labels::names(&model.config());
        TextEncoder { model, tokenizer, labels, files: None }
    }

    /// Opens a model from its files: a folder (which may be a training run's) or files in memory.
    /// The model must have been trained with this head; [`Head::Bare`], for embeddings, fits any.
    pub fn load(model: impl Into<ModelFiles>, head: Head) -> Result<TextEncoder> {
        let files = train::files(model)?;
        let config = files.config()?;
        let named = text::head_of(&config)
            .map_err(|e| Error::file(files.path(checkpoint::CONFIG), e.to_string()))?;
        let words = |head: Head| matches!(head, Head::Words | Head::Pretraining);
        if head != Head::Bare && named != head && !(words(head) && words(named)) {
            let class = config["architectures"][0].as_str().unwrap_or("no architecture");
            // Training cannot start from a built-in model, nor from one without this head.
            let from = files.folder().filter(|_| text::has_head(&config, head));
            let it = if from.is_some() { "it" } else { "one" };
            let how = |task: &str| {
                let command = preset::command(task, from).expect("the task has an importer");
                format!("Train {it} for that: {command}")
            };
            let how = match head {
                Head::Sequence => format!("to classify texts. {}", how("classify")),
                Head::Tokens => format!("to label words. {}", how("tag")),
                Head::Span => format!("to answer questions. {}", how("answer")),
                _ => "to predict masked tokens. Take one that was, such as \
                      google-bert/bert-base-uncased, or train one: regard train wikitext2-bert"
                    .to_string(),
            };
            return Err(Error::file(
                files.path(checkpoint::CONFIG),
                format!("names {class}: this model was not trained {how}"),
            ));
        }
        let head = if head == Head::Bare { Head::Bare } else { named };
        let model = text::open(files.clone(), Some(head), 0, &Device::flex())?;
        let tokenizer = Tokenizer::of(&files)?;
        fits(&*model, &tokenizer).map_err(|e| Error::file(files.place(), e.to_string()))?;
        let mut reader = TextEncoder::new(model, tokenizer);
        if head == Head::Bare {
            reader.files = Some(files);
        }
        Ok(reader)
    }

    /// Returns how a text is embedded, as the folder of a sentence-transformers model defines it;
    /// `None` if it does not.
    ///
    /// # Errors
    /// If the folder asks for something that is not supported.
    pub fn sentence(&self) -> Result<Option<SentenceSettings>> {
        self.files.as_ref().map_or(Ok(None), sentence::read)
    }

    /// Returns the files of a model that was opened for embeddings.
    pub(crate) fn files(&self) -> Option<&ModelFiles> {
        self.files.as_ref()
    }

    /// Returns the tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Returns the names of the labels, by their index.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// Returns the index of a label by its name. If no name is a number, the data may use numbers
    /// instead: see [`TextEncoder::numbered`].
    pub fn label_number(&self, name: &str) -> Option<usize> {
        let named = self.labels.iter().position(|label| label == name);
        if named.is_some() || self.labels.iter().any(|label| label.parse::<u64>().is_ok()) {
            return named;
        }
        let number = name.strip_prefix("LABEL_").unwrap_or(name).parse().ok();
        number.filter(|n| self.labels.is_empty() || *n < self.labels.len())
    }

    /// Returns a note on which label each number stands for, if data have numbers in place of
    /// names.
    pub fn numbered<'a>(&self, names: impl IntoIterator<Item = &'a String>) -> Option<String> {
        let unknown = |name: &&String| !self.labels.contains(name);
        let taken = |name: &'a String| {
            Some(format!("{name} = {}", self.labels.get(self.label_number(name)?)?))
        };
        let taken: Vec<String> = names.into_iter().filter(unknown).filter_map(taken).collect();
        (!taken.is_empty()).then(|| {
            let taken = say::list(&taken, 10);
            format!("the data have label numbers; they are read as the model's labels: {taken}")
        })
    }

    /// Returns the error for a model without the head that a task needs: that of classes whose
    /// names end in `need`.
    pub(crate) fn without_head(&self, need: &str) -> Error {
        let config = self.model.config();
        let got = config["architectures"][0].as_str().unwrap_or("none");
        Error::invalid(format!("config.json: architectures: got {got}, need a class …{need}"))
    }

    pub(crate) fn label(&self, number: usize) -> String {
        self.labels.get(number).cloned().unwrap_or_else(|| format!("LABEL_{number}"))
    }

    /// Returns the out-of-vocabulary words of a text and the number of all its words. `None` if the
    /// model reads subwords, or the characters of words.
    pub fn unknown_words<'t>(&self, text: &'t str) -> Option<(Vec<&'t str>, usize)> {
        (self.model.alphabet() == 0).then(|| self.tokenizer.unknown_words(text))?
    }

    /// Returns the maximum number of tokens of a text.
    pub fn longest(&self) -> usize {
        self.model.longest().unwrap_or(usize::MAX)
    }

    /// Runs the model on encodings, in batches of about [`AT_ONCE`] tokens, and calls `see` with
    /// the index of a batch's first encoding, its encodings and the output.
    pub(crate) fn read(
        &self,
        encodings: &[Encoding],
        mut see: impl FnMut(usize, &[Encoding], TextOutput) -> Result<()>,
    ) -> Result<()> {
        let mut first = 0;
        while first < encodings.len() {
            let mut tokens = 0;
            let fits = encodings[first..].iter().take_while(|encoding| {
                tokens += encoding.len();
                tokens <= AT_ONCE
            });
            let part = &encodings[first..][..fits.count().max(1)];
            let mut texts = Texts::new();
            for encoding in part {
                if encoding.is_empty() {
                    return Err(Error::invalid("a text without tokens cannot be encoded"));
                }
                let Encoding { ids, types, letters, .. } = encoding;
                push(&*self.model, &mut texts, ids, types, letters);
            }
            see(first, part, self.model.forward(&texts, None, Mode::Eval))?;
            first += part.len();
        }
        Ok(())
    }
}

/// Adds a text, with the token types or the characters of its tokens if the model uses them.
pub(crate) fn push(
    model: &dyn TextModel,
    texts: &mut Texts,
    ids: &[u32],
    types: &[u32],
    letters: &[Vec<u32>],
) {
    match (model.is_typed(), model.alphabet() > 0) {
        (true, _) => texts.push_typed(ids, types),
        (false, true) => texts.push_spelled(ids, letters),
        (false, false) => texts.push(ids),
    }
}

/// Returns an error if the tokenizer has more tokens or characters than the model's vocabulary.
pub(crate) fn fits(model: &dyn TextModel, tokenizer: &Tokenizer) -> Result<()> {
    let (tokens, words) = (tokenizer.size(), model.vocabulary());
    if tokens > words {
        return Err(Error::invalid(format!(
            "tokenizer: has {tokens} tokens, need at most vocab_size = {words} of config.json"
        )));
    }
    let (letters, known) = (tokenizer.alphabet().map(Alphabet::size), model.alphabet());
    match letters {
        None if known > 0 => Err(Error::invalid(
            "the model uses characters, but the tokenizer has none: need a vocabulary of \
             words with characters, such as kind = \"treebank\"",
        )),
        Some(letters) if known > 0 && letters > known => Err(Error::invalid(format!(
            "tokenizer: has {letters} characters, need at most alphabet_size = {known} of \
                 config.json"
        ))),
        _ => Ok(()),
    }
}

/// Returns the elements of a tensor, row by row.
///
/// # Errors
/// If one is NaN or infinite.
pub(crate) fn numbers(x: Tensor<2>) -> Result<Vec<f32>> {
    let mut numbers = vec![];
    backend::numbers(x, &mut numbers);
    logits::finite(&numbers).map(|()| numbers)
}

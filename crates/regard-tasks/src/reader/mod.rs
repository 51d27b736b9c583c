//! What models that read texts are asked: a label for a text, labels for its words, an answer in
//! it, a word that is hidden in it, or a vector for it. What comes out has the fields of Hugging
//! Face's pipelines.

mod folder;
pub(crate) mod learn;

pub use learn::{Data, Recipe, Vocabulary};

use crate::embed::{Sentence, sentence};
use crate::text::{Alphabet, Encoding, Tokenizer};
use crate::{logits, say, train};
use burn::tensor::{Device, Tensor};
use regard_attention::Mode;
use regard_attention::backend;
use regard_models::text::{self, Head, Output, TextModel, Texts};
use regard_models::{Error, Labels, ModelFiles, Result, checkpoint};

/// Tokens that are read at a time.
pub(crate) const AT_ONCE: usize = 8192;

/// A model that reads, with its tokenizer.
pub struct Reader {
    pub(crate) model: Box<dyn TextModel>,
    pub(crate) tokenizer: Tokenizer,
    labels: Vec<String>,
    /// Where it was read from, if it is asked for vectors.
    files: Option<ModelFiles>,
}

impl Reader {
    /// From a model and its tokenizer.
    pub fn new(model: Box<dyn TextModel>, tokenizer: Tokenizer) -> Reader {
        let labels = Labels::names(&model.config());
        Reader { model, tokenizer, labels, files: None }
    }

    /// Opens a model: of a folder, which may be a training run's, or of a part of the program. The
    /// model must have been trained for what
    /// it is asked; vectors can be had of any.
    pub fn load(model: impl Into<ModelFiles>, head: Head) -> Result<Reader> {
        let files = train::files(model)?;
        let config = files.config()?;
        let named = text::head_of(&config)
            .map_err(|e| Error::file(files.path(checkpoint::CONFIG), e.to_string()))?;
        let words = |head: Head| matches!(head, Head::Words | Head::Pretraining);
        if head != Head::Bare && named != head && !(words(head) && words(named)) {
            let class = config["architectures"][0].as_str().unwrap_or("no architecture");
            // No other model can begin with one that ships.
            let (it, from) = match files.folder() {
                Some(folder) => ("it", format!(" --set from={}", folder.display())),
                None => ("one", String::new()),
            };
            let how = match head {
                Head::Sequence => format!("to give texts labels. Train {it} for that: regard train sst2-minilm{from}"),
                Head::Tokens => format!("to label words. Train {it} for that: regard train ewt-minilm{from}"),
                Head::Span => format!("to answer questions. Train {it} for that: regard train squad-minilm{from}"),
                _ => "to guess hidden words. Take one that was, such as google-bert/bert-base-uncased, or train one: regard train wikitext2-bert".to_string(),
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
        let mut reader = Reader::new(model, tokenizer);
        if head == Head::Bare {
            reader.files = Some(files);
        }
        Ok(reader)
    }

    /// How the vector of a text is made, as the folder of a sentence-transformers model says it;
    /// nothing, if it does not.
    ///
    /// # Errors
    /// If it says what cannot be done here.
    pub fn sentence(&self) -> Result<Option<Sentence>> {
        self.files.as_ref().map_or(Ok(None), sentence::read)
    }

    /// Its tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The names of its labels.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// The number of a label, by its name. Where no name is a number, data may number labels: see
    /// [`Reader::numbered`].
    pub fn label_number(&self, name: &str) -> Option<usize> {
        let named = self.labels.iter().position(|label| label == name);
        if named.is_some() || self.labels.iter().any(|label| label.parse::<u64>().is_ok()) {
            return named;
        }
        let number = name.strip_prefix("LABEL_").unwrap_or(name).parse().ok();
        number.filter(|n| self.labels.is_empty() || *n < self.labels.len())
    }

    /// Says which label each number stands for, if data have numbers in place of label names.
    pub fn numbered<'a>(&self, names: impl IntoIterator<Item = &'a String>) -> Option<String> {
        let unknown = |name: &&String| !self.labels.contains(name);
        let taken = |name: &'a String| {
            Some(format!("{name} is {}", self.labels.get(self.label_number(name)?)?))
        };
        let taken: Vec<String> = names.into_iter().filter(unknown).filter_map(taken).collect();
        (!taken.is_empty()).then(|| {
            format!("labels are numbers in the data, names in the model: {}", say::list(&taken, 10))
        })
    }

    pub(crate) fn label(&self, number: usize) -> String {
        self.labels.get(number).cloned().unwrap_or_else(|| format!("LABEL_{number}"))
    }

    /// The most tokens that the model reads.
    pub(crate) fn longest(&self) -> usize {
        self.model.longest().unwrap_or(usize::MAX)
    }

    /// Reads encodings, about as many tokens at a time as fit, and gives each part to `see` with
    /// the number of its first encoding.
    pub(crate) fn read(
        &self,
        encodings: &[Encoding],
        mut see: impl FnMut(usize, &[Encoding], Output) -> Result<()>,
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
                    return Err(Error::invalid("a text without tokens cannot be read"));
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

/// Adds a text, with the types or the letters of its tokens if the model is told them.
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

/// A model that does not know all tokens of a vocabulary, or all of its letters, is not its model.
pub(crate) fn fits(model: &dyn TextModel, tokenizer: &Tokenizer) -> Result<()> {
    let (tokens, words) = (tokenizer.size(), model.vocabulary());
    if tokens > words {
        return Err(Error::invalid(format!("{tokens} tokens, of which the model has {words}")));
    }
    let (letters, known) = (tokenizer.alphabet().map(Alphabet::size), model.alphabet());
    match letters {
        None if known > 0 => Err(Error::invalid(
            "the model reads letters, and the tokenizer does not say them: need a vocabulary of \
             words with letters, as kind = \"treebank\" has",
        )),
        Some(letters) if known > 0 && letters > known => {
            Err(Error::invalid(format!("{letters} letters, of which the model has {known}")))
        }
        _ => Ok(()),
    }
}

/// The numbers of a tensor, row after row.
///
/// # Errors
/// If one is NaN or infinite: no answer comes of those.
pub(crate) fn numbers(x: Tensor<2>) -> Result<Vec<f32>> {
    let mut numbers = vec![];
    backend::numbers(x, &mut numbers);
    logits::finite(&numbers).map(|()| numbers)
}

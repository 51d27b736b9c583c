//! Comparison of a quantised model with the original.

use super::{Measure, Quality, References, Sample};
use crate::decode::generation;
use crate::metrics::Bleu;
use crate::reader::{fits, push};
use crate::text::{Encoding, Tokenizer};
use crate::translate::{Tokens, Translator};
use burn::tensor::{Device, Tensor, activation};
use regard_attention::Mode;
use regard_attention::backend::numbers;
use regard_attention::quant::Bits;
use regard_models::text::{self, Head, TextModel, Texts};
use regard_models::{Error, ModelFiles, Network, Result, Seq2Seq, zoo};

/// Longest piece of a text that a language model reads at once.
const WINDOW: usize = 512;

/// Most tokens of the sample: about a minute for a model of a hundred million parameters.
const MOST_TOKENS: usize = 8192;

/// Number of bits for the name of a weight.
pub(super) type Plan<'a> = &'a dyn Fn(&str) -> Option<Bits>;

/// A model and the sample on which it is measured, with the results of the original.
pub(super) enum Subject {
    Text(TextSubject),
    Pairs(PairSubject),
}

impl Subject {
    pub fn open(files: &ModelFiles, sample: &Sample) -> Result<Subject> {
        let config = files.config()?;
        if zoo::is::<dyn Seq2Seq>(&config) {
            return Ok(Subject::Pairs(PairSubject::open(files, sample)?));
        }
        if zoo::is::<dyn TextModel>(&config) {
            return Ok(Subject::Text(TextSubject::open(files, sample)?));
        }
        Err(Error::invalid(format!(
            "model_type: got {}; text models and translators can be quantised",
            config["model_type"]
        )))
    }

    pub fn measure(&self) -> Measure {
        match self {
            Subject::Pairs(_) => Measure::Bleu,
            Subject::Text(text) if text.causal => Measure::Perplexity,
            Subject::Text(_) => Measure::Cosine,
        }
    }

    /// What a quantised model loses.
    pub fn loss(&self, plan: Plan) -> Result<f64> {
        match self {
            Subject::Pairs(pairs) => Ok(pairs.quantized(plan)?.1.loss),
            Subject::Text(text) => Ok(text.quantized(plan, false)?.1.loss),
        }
    }

    /// The quantised model, compared in full.
    pub fn compare(&self, plan: Plan) -> Result<(Box<dyn Network>, Quality)> {
        match self {
            Subject::Pairs(pairs) => pairs.quantized(plan),
            Subject::Text(text) => text.quantized(plan, true),
        }
    }
}

/// A text model.
pub(super) struct TextSubject {
    files: ModelFiles,
    causal: bool,
    /// Pieces of the texts.
    pieces: Vec<Encoding>,
    /// Negative log-likelihood of the sample by the original, for causal models.
    nats: f64,
    /// Hidden states of the original, piece by piece, for encoders.
    hidden: Vec<Vec<f32>>,
}

impl TextSubject {
    fn open(files: &ModelFiles, sample: &Sample) -> Result<TextSubject> {
        let model = text::open(files.clone(), None, 0, &Device::flex())?;
        let tokenizer = Tokenizer::of(files)?;
        fits(&*model, &tokenizer)?;
        let causal = model.head() == Head::Words && model.decode(&[&[]]).is_some();
        let longest = model.longest().unwrap_or(usize::MAX).min(WINDOW);
        let pieces = match causal {
            true => running(&tokenizer, sample, longest)?,
            false => separate(&tokenizer, sample, longest)?,
        };
        check_vocabulary(&tokenizer, sample)?;
        let ids: Vec<u32> = pieces.iter().flat_map(|piece| piece.ids.iter().copied()).collect();
        check_known(&tokenizer, &ids, sample)?;
        let mut subject =
            TextSubject { files: files.clone(), causal, pieces, nats: 0.0, hidden: vec![] };
        if causal {
            for piece in &subject.pieces {
                subject.nats += nats(&log_probabilities(&*model, piece)?, piece);
            }
        } else {
            let states = subject.pieces.iter().map(|piece| hidden(&*model, piece).0);
            subject.hidden = states.collect();
        }
        Ok(subject)
    }

    fn quantized(&self, plan: Plan, full: bool) -> Result<(Box<dyn Network>, Quality)> {
        let open = || text::open(self.files.clone(), None, 0, &Device::flex());
        let mut model = open()?;
        model.quantize(plan);
        let original = if full { Some(open()?) } else { None };
        let quality = match self.causal {
            true => self.perplexity(&*model, original.as_deref())?,
            false => self.cosine(&*model, original.as_deref())?,
        };
        Ok((model, quality))
    }

    fn perplexity(
        &self,
        model: &dyn TextModel,
        original: Option<&dyn TextModel>,
    ) -> Result<Quality> {
        let (mut total, mut divergence, mut same, mut count) = (0.0, 0.0, 0usize, 0usize);
        for piece in &self.pieces {
            let after = log_probabilities(model, piece)?;
            total += nats(&after, piece);
            let rows = piece.ids.len() - 1;
            count += rows;
            let Some(original) = original else { continue };
            let before = log_probabilities(original, piece)?;
            let words = after.len() / rows;
            for (before, after) in before.chunks(words).zip(after.chunks(words)) {
                divergence += kullback_leibler(before, after);
                same += usize::from(first(before) == first(after));
            }
        }
        let each = |nats: f64| (nats / count as f64).exp();
        let (before, after) = (each(self.nats), each(total));
        Ok(Quality {
            measure: Measure::Perplexity,
            references: None,
            before,
            after,
            loss: after / before - 1.0,
            bound: 0.0,
            divergence: original.map(|_| divergence / count as f64),
            tokens: None,
            agreement: original.map(|_| same as f64 / count as f64),
            texts: None,
            measured_tokens: Some(count),
        })
    }

    fn cosine(&self, model: &dyn TextModel, original: Option<&dyn TextModel>) -> Result<Quality> {
        let (mut total, mut of_tokens, mut same, mut labels) = (0.0, 0.0, 0usize, 0usize);
        for (piece, before) in self.pieces.iter().zip(&self.hidden) {
            let (after, logits) = hidden(model, piece);
            let width = before.len() / piece.ids.len();
            total += cosine(&mean(before, width), &mean(&after, width));
            let tokens = before.chunks(width).zip(after.chunks(width));
            of_tokens += tokens.map(|(a, b)| cosine(a, b)).sum::<f64>() / piece.ids.len() as f64;
            let Some(((after, width), original)) = logits.zip(original) else { continue };
            if let (_, Some((before, _))) = hidden(original, piece) {
                let rows = before.chunks(width).zip(after.chunks(width));
                let equal = rows.map(|(a, b)| usize::from(first(a) == first(b)));
                same += equal.sum::<usize>();
                labels += before.len() / width;
            }
        }
        let after = total / self.pieces.len() as f64;
        Ok(Quality {
            measure: Measure::Cosine,
            references: None,
            before: 1.0,
            after,
            loss: 1.0 - after,
            bound: 0.0,
            divergence: None,
            tokens: Some(of_tokens / self.pieces.len() as f64),
            agreement: (labels > 0).then(|| same as f64 / labels as f64),
            texts: Some(self.pieces.len()),
            measured_tokens: Some(self.pieces.iter().map(|piece| piece.ids.len()).sum()),
        })
    }
}

/// Texts one after the other, cut into pieces of at least two tokens.
fn running(tokenizer: &Tokenizer, sample: &Sample, longest: usize) -> Result<Vec<Encoding>> {
    let texts: Vec<&str> = sample.examples.iter().map(|e| e.text.as_str()).collect();
    let mut whole = tokenizer.encode(&texts.join("\n"))?;
    whole.ids.truncate(MOST_TOKENS);
    let piece = |ids: &[u32]| Encoding { ids: ids.to_vec(), ..Encoding::default() };
    let pieces: Vec<Encoding> =
        whole.ids.chunks(longest).filter(|ids| ids.len() > 1).map(piece).collect();
    enough(pieces, sample)
}

/// Each text for itself, as the model was trained; the ends of long texts are cut off.
fn separate(tokenizer: &Tokenizer, sample: &Sample, longest: usize) -> Result<Vec<Encoding>> {
    let (mut pieces, mut tokens) = (vec![], 0);
    for example in &sample.examples {
        let mut encoding = tokenizer.encode_special(&example.text, None)?;
        encoding.ids.truncate(longest);
        encoding.types.truncate(longest);
        encoding.letters.truncate(longest);
        tokens += encoding.ids.len();
        if !encoding.ids.is_empty() && tokens <= MOST_TOKENS {
            pieces.push(encoding);
        }
    }
    enough(pieces, sample)
}

fn enough(pieces: Vec<Encoding>, sample: &Sample) -> Result<Vec<Encoding>> {
    match pieces.is_empty() {
        true => Err(Error::invalid(format!("{}: has too few tokens", sample.name))),
        false => Ok(pieces),
    }
}

/// Log-probabilities `[T − 1, V]` of the tokens after the first.
fn log_probabilities(model: &dyn TextModel, piece: &Encoding) -> Result<Vec<f32>> {
    let mut texts = Texts::new();
    texts.push(&piece.ids);
    let at: Vec<usize> = (0..piece.ids.len() - 1).collect();
    let logits = model.forward(&texts, Some(&at), Mode::Eval).logits;
    let logits = logits.expect("a causal language model has logits");
    Ok(floats(activation::log_softmax(logits, 1)))
}

/// Hidden states `[T, M]`, and the logits of the head with their width, if it has one.
fn hidden(model: &dyn TextModel, piece: &Encoding) -> (Vec<f32>, Option<(Vec<f32>, usize)>) {
    let mut texts = Texts::new();
    push(model, &mut texts, &piece.ids, &piece.types, &piece.letters);
    let output = model.forward(&texts, None, Mode::Eval);
    let logits = output.logits.map(|logits| {
        let width = logits.dims()[1];
        (floats(logits), width)
    });
    (floats(output.hidden), logits)
}

fn floats(x: Tensor<2>) -> Vec<f32> {
    let mut all = vec![];
    numbers(x, &mut all);
    all
}

/// Negative log-likelihood of the tokens after the first.
fn nats(all: &[f32], piece: &Encoding) -> f64 {
    let next = &piece.ids[1..];
    let words = all.len() / next.len();
    let one = |(row, id): (usize, &u32)| -f64::from(all[row * words + *id as usize]);
    next.iter().enumerate().map(one).sum()
}

/// Divergence of two distributions, given their log-probabilities.
fn kullback_leibler(p: &[f32], q: &[f32]) -> f64 {
    let term = |(p, q): (&f32, &f32)| {
        let p = f64::from(*p);
        if p == f64::NEG_INFINITY { 0.0 } else { p.exp() * (p - f64::from(*q)) }
    };
    p.iter().zip(q).map(term).sum()
}

/// Index of the largest element; the first of equal ones.
fn first(row: &[f32]) -> usize {
    let best = |best: usize, at: usize| if row[at] > row[best] { at } else { best };
    (0..row.len()).fold(0, best)
}

/// Mean of rows of this width.
fn mean(rows: &[f32], width: usize) -> Vec<f32> {
    let mut sum = vec![0.0; width];
    for row in rows.chunks(width) {
        sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
    }
    let count = (rows.len() / width) as f32;
    sum.iter().map(|x| x / count).collect()
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    match (dot(a, a) * dot(b, b)).sqrt() {
        0.0 if a == b => 1.0,
        0.0 => 0.0,
        size => dot(a, b) / size,
    }
}

/// A translator.
pub(super) struct PairSubject {
    files: ModelFiles,
    sources: Vec<String>,
    /// Translations of the file, or else those of the original.
    references: Vec<String>,
    /// Whose translations the references are.
    kind: References,
    /// Translations by the original.
    original: Vec<String>,
}

/// Most sentences that are translated.
const MOST_SENTENCES: usize = 500;

/// Largest share of unknown tokens in a sample that a model can be measured on.
const MOST_UNKNOWN: f64 = 0.2;

/// Smallest BLEU of a translator that a loss can be measured from.
const LEAST_BLEU: f64 = 5.0;

/// Refuses a sample that the model cannot read.
fn check_known(tokenizer: &Tokenizer, ids: &[u32], sample: &Sample) -> Result<()> {
    let unknown = tokenizer.special().unk;
    let count = ids.iter().filter(|id| Some(**id) == unknown).count();
    match count as f64 > MOST_UNKNOWN * ids.len() as f64 {
        false => Ok(()),
        true => Err(Error::invalid(format!(
            "{}: {count} of {} tokens are not in the vocabulary; pass --data FILE with texts in the \
             language of the model",
            sample.name,
            ids.len()
        ))),
    }
}

/// Refuses the built-in sentences for a vocabulary of another script.
fn check_vocabulary(tokenizer: &Tokenizer, sample: &Sample) -> Result<()> {
    if *sample != Sample::built_in() {
        return Ok(());
    }
    let letter = |id: u32| tokenizer.token(id)?.chars().find(|c| c.is_alphabetic());
    let letters: Vec<char> = (0..tokenizer.size() as u32).filter_map(letter).collect();
    // Latin letters, with accents and those of byte-level vocabularies.
    let others = letters.iter().filter(|c| **c > '\u{24f}').count();
    match 2 * others > letters.len() {
        false => Ok(()),
        true => Err(Error::invalid(format!(
            "{others} of {} tokens of the vocabulary are not in Latin letters, and the built-in \
             sentences are English; pass --data FILE with texts in the language of the model",
            letters.len()
        ))),
    }
}

impl PairSubject {
    fn open(files: &ModelFiles, sample: &Sample) -> Result<PairSubject> {
        let examples = &sample.examples[..sample.examples.len().min(MOST_SENTENCES)];
        let sources: Vec<String> = examples.iter().map(|e| e.text.clone()).collect();
        let translator = translator(files, zoo::open(files.clone(), &Device::flex())?)?;
        let tokenizer = &translator.tokens().source;
        check_vocabulary(tokenizer, sample)?;
        check_known(tokenizer, &tokenizer.ids_batch(&sources)?.concat(), sample)?;
        let original = translations(&translator, &sources)?;
        let targets: Option<Vec<String>> = examples.iter().map(|e| e.target.clone()).collect();
        let kind = if targets.is_some() { References::Data } else { References::Original };
        let references = targets.unwrap_or_else(|| original.clone());
        let subject = PairSubject { files: files.clone(), sources, references, kind, original };
        // Otherwise nothing could be lost.
        match subject.bleu(&subject.original) {
            least if least < LEAST_BLEU => Err(Error::invalid(format!(
                "{}: the model has BLEU {least:.2} on it, too little to measure a loss; need lines \
                 with a source, a tab and its translation, in the languages of the model",
                sample.name
            ))),
            _ => Ok(subject),
        }
    }

    fn bleu(&self, texts: &[String]) -> f64 {
        let mut counts = Bleu::new().counts();
        for (text, reference) in texts.iter().zip(&self.references) {
            counts.add(text, &[reference]);
        }
        counts.score().score
    }

    fn quantized(&self, plan: Plan) -> Result<(Box<dyn Network>, Quality)> {
        let mut model = zoo::open::<dyn Seq2Seq>(self.files.clone(), &Device::flex())?;
        model.quantize(plan);
        let translator = translator(&self.files, model)?;
        let texts = translations(&translator, &self.sources)?;
        let same = texts.iter().zip(&self.original).filter(|(a, b)| a == b).count();
        let (before, after) = (self.bleu(&self.original), self.bleu(&texts));
        let quality = Quality {
            measure: Measure::Bleu,
            references: Some(self.kind),
            before,
            after,
            loss: before - after,
            bound: 0.0,
            divergence: None,
            tokens: None,
            agreement: Some(same as f64 / texts.len() as f64),
            texts: Some(texts.len()),
            measured_tokens: None,
        };
        Ok((translator.into_model(), quality))
    }
}

fn translator(files: &ModelFiles, model: Box<dyn Seq2Seq>) -> Result<Translator> {
    Translator::new(model, Tokens::load(files)?, generation::load(files)?)
}

fn translations(translator: &Translator, sources: &[String]) -> Result<Vec<String>> {
    let all = translator.translate(sources, translator.defaults(), 32, false)?;
    let best = |found: Vec<crate::translate::Translated>| {
        found.into_iter().next().map(|best| best.text).unwrap_or_default()
    };
    Ok(all.into_iter().map(best).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_and_vectors_are_compared() {
        let log = |p: &[f32]| p.iter().map(|p| p.ln()).collect::<Vec<_>>();
        let (p, q) = (log(&[0.5, 0.5, 0.0]), log(&[0.25, 0.75, 0.0]));
        let want = 0.5 * 2f64.ln() + 0.5 * (0.5f64 / 0.75).ln();
        assert!((kullback_leibler(&p, &q) - want).abs() < 1e-6);
        assert_eq!(kullback_leibler(&p, &p), 0.0);
        assert_eq!(first(&[1.0, 3.0, 3.0]), 1);
        assert_eq!(mean(&[1.0, 2.0, 3.0, 6.0], 2), [2.0, 4.0]);
        assert!((cosine(&[1.0, 0.0], &[1.0, 1.0]) - 0.5f64.sqrt()).abs() < 1e-12);
        assert_eq!((cosine(&[0.0], &[0.0]), cosine(&[0.0], &[1.0])), (1.0, 0.0));
    }
}

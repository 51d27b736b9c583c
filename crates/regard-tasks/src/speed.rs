//! Times a text model on random tokens: forward pass, generation and training step.

use crate::batching::{BatchEngine, BatchLimits};
use crate::train;
use burn::tensor::{Device, Tensor, TensorData};
use regard_attention::Stream;
use regard_attention::ops::{CrossEntropy, cross_entropy};
pub use regard_attention::plan::{Part, PartTimes, measure};
use regard_attention::plan::{count_step, timed};
use regard_attention::{AdamW, AdamWConfig, Mode};
use regard_models::text::{self, Head, TextModel, Texts};
use regard_models::{Error, ModelFiles, Result};
use std::time::Instant;

/// A model to be timed.
pub struct TextBenchmark {
    model: Box<dyn TextModel>,
    adamw: AdamW,
    device: Device,
    step: u64,
}

/// A model of random weights, of the type in which they are wanted.
fn random(files: &ModelFiles, head: Head, device: &Device) -> Result<Box<dyn TextModel>> {
    let mut model = text::create(&files.config()?, head, 0, device)?;
    if let Some(bits) = files.storage().filter(|_| !device.is_autodiff()) {
        model.quantize(&|_| Some(bits));
    }
    Ok(model)
}

/// Opens or creates a causal language model, as [`TextBenchmark::open`] does, to generate many
/// sequences at once.
///
/// # Errors
/// If the files cannot be read, or the model cannot be planned.
pub fn batching(model: impl Into<ModelFiles>, limits: BatchLimits) -> Result<BatchEngine> {
    let (files, device) = (train::files(model)?, Device::flex());
    let model = match files.has_weights() {
        true => text::open(files, Some(Head::Words), 0, &device)?,
        false => random(&files, Head::Words, &device)?,
    };
    let plan = model.plan().ok_or_else(|| {
        Error::invalid("this model does not generate many sequences at once: need a decoder")
    })?;
    Ok(BatchEngine::new(plan, limits))
}

/// Times of generation.
pub struct GenerationTimes {
    /// Seconds to process the prompts and predict the first token.
    pub first: f64,
    /// Seconds for each further token.
    pub steps: Vec<f64>,
}

impl TextBenchmark {
    /// Opens a model, with autodiff if `learning`. A model that has a configuration but no weights
    /// gets random ones: the time does not depend on them.
    pub fn open(model: impl Into<ModelFiles>, head: Head, learning: bool) -> Result<TextBenchmark> {
        let files = train::files(model)?;
        let device = if learning { Device::flex().autodiff() } else { Device::flex() };
        let model = match files.has_weights() {
            true => text::open(files, Some(head), 0, &device)?,
            false => random(&files, head, &device)?,
        };
        let adamw = AdamW::new(AdamWConfig { max_norm: Some(1.0), ..AdamWConfig::default() });
        Ok(TextBenchmark { model, adamw, device, step: 0 })
    }

    fn model(&self) -> &dyn TextModel {
        &*self.model
    }

    /// Returns the number of trainable parameters.
    pub fn parameters(&self) -> usize {
        self.model().parameters()
    }

    /// Returns the size of the weights in bytes, in the types in which they are kept.
    pub fn bytes(&self) -> usize {
        self.model().weights().values().map(|array| array.size()).sum()
    }

    /// Draws texts of random tokens with these lengths, in tokens.
    pub fn texts(&self, lengths: &[usize]) -> Result<Texts> {
        let longest = lengths.iter().copied().max().unwrap_or(0);
        if let Some(most) = self.model().longest().filter(|most| *most < longest) {
            let message = format!("a text of {longest} tokens: the model can read {most}");
            return Err(Error::invalid(message));
        }
        let words = self.model().vocabulary() as u32;
        let mut texts = Texts::new();
        for (row, length) in lengths.iter().enumerate() {
            let draw = Stream::new(0, row as u64, 0);
            let ids: Vec<u32> = (0..*length as u64).map(|i| draw.bits(i) % words).collect();
            texts.push(&ids);
        }
        Ok(texts)
    }

    /// Measures the seconds of a forward pass: to hidden states or, for a head that predicts
    /// tokens, to the logits of the token after each text.
    pub fn read(&self, texts: &Texts) -> f64 {
        let began = Instant::now();
        let said = self.model().forward(texts, Some(&texts.lasts()), Mode::Eval);
        drop(said.logits.unwrap_or(said.hidden).into_data());
        began.elapsed().as_secs_f64()
    }

    /// Measures the seconds to process the prompts, all of one length, and to generate `words`
    /// further tokens.
    pub fn write(&self, texts: &Texts, words: usize) -> Result<GenerationTimes> {
        let (firsts, lengths) = (texts.firsts(), texts.lengths());
        let rows: Vec<&[u32]> =
            firsts.iter().zip(lengths).map(|(at, n)| &texts.ids()[*at..at + n]).collect();
        let (begin, ends): (Vec<&[u32]>, Vec<u32>) =
            rows.iter().map(|row| (&row[..row.len() - 1], row[row.len() - 1])).unzip();
        let began = Instant::now();
        let writing = self.model().decode(&begin);
        let mut writing = writing.ok_or_else(|| Error::invalid("this model cannot generate"))?;
        let mut logits = vec![];
        count_step();
        timed(Part::Rest, || writing.step_slices(&ends, &mut logits));
        let first = began.elapsed().as_secs_f64();
        let (draw, all) = (Stream::new(0, 0, 1), self.model().vocabulary() as u32);
        let mut steps = vec![];
        for word in 0..words as u64 {
            let began = Instant::now();
            let drawn = (0..rows.len() as u64).map(|row| draw.bits(word << 32 | row) % all);
            let drawn: Vec<u32> = drawn.collect();
            count_step();
            timed(Part::Rest, || writing.step_slices(&drawn, &mut logits));
            steps.push(began.elapsed().as_secs_f64());
        }
        Ok(GenerationTimes { first, steps })
    }

    /// Measures the seconds of a training step with labels: forward, loss, backward, clipping,
    /// AdamW.
    pub fn learn(&mut self, texts: &Texts) -> f64 {
        let began = Instant::now();
        self.step += 1;
        let mode = Mode::Train { seed: 0, step: self.step };
        let logits = self.model().forward(texts, None, mode).logits.expect("a head for labels");
        let [rows, _] = logits.dims();
        let labels: Vec<i64> = (0..rows as i64).map(|row| row % 2).collect();
        let labels = Tensor::from_data(TensorData::new(labels, [rows]), &self.device);
        let loss = cross_entropy(logits, labels, CrossEntropy::default());
        let grads = loss.backward();
        self.model.step(&mut self.adamw, 1e-5, grads);
        drop(loss.into_data());
        began.elapsed().as_secs_f64()
    }
}

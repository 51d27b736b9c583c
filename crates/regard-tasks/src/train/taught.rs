//! What all learners have in common whose model reads texts.

use crate::text::Tokenizer;
use crate::train::begin;
use burn::tensor::Device;
use regard_models::Result;
use regard_models::text::TextModel;
use std::path::Path;

/// A model that is being taught, with its tokenizer.
pub(crate) struct Taught {
    pub model: Box<dyn TextModel>,
    pub tokenizer: Tokenizer,
    pub device: Device,
    /// How many words began with vectors of others.
    begun: Option<usize>,
}

impl Taught {
    pub fn new(model: Box<dyn TextModel>, tokenizer: Tokenizer, device: Device) -> Taught {
        Taught { model, tokenizer, device, begun: None }
    }

    /// Gives those words that others have vectors for these vectors.
    pub fn begin_with(&mut self, vectors: &str) -> Result<()> {
        let known = begin::known(&self.tokenizer, vectors)?;
        let rows: Vec<(usize, &[f32])> = known.iter().map(|(id, row)| (*id, &row[..])).collect();
        self.model.set_words(&rows)?;
        self.begun = Some(rows.len());
        Ok(())
    }

    pub fn model(&self) -> &dyn TextModel {
        &*self.model
    }

    /// Writes its tokenizer into the model's folder.
    pub fn save_tokenizer(&self, folder: &Path) -> Result<()> {
        self.tokenizer.save(folder.join("tokenizer.json"))
    }

    /// So many examples of a kind, and the sizes.
    pub fn about(&self, count: usize, what: &str) -> String {
        let (words, parameters) = (self.tokenizer.size(), self.model().parameters());
        let begun = self.begun.map(|n| format!(" ({n} with vectors, {} without)", words - n));
        format!(
            "{count} {what}, a vocabulary of {words}{}, {:.2} M parameters",
            begun.unwrap_or_default(),
            parameters as f64 / 1e6,
        )
    }
}

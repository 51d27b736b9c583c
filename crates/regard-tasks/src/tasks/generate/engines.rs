//! The engines of a generator: its model's, and that of a smaller model that guesses.

use super::Generator;
use crate::batching::{BatchEngine, BatchLimits, Cancel, Session};
use crate::text::Tokenizer;
use regard_models::text::TextModel;
use regard_models::{Error, Result};

/// Processes the sequences of all threads together.
pub(super) struct Engines {
    model: BatchEngine,
    draft: Option<Draft>,
}

/// A smaller model that guesses.
struct Draft {
    engine: BatchEngine,
    /// Tokens that it guesses at once.
    tokens: usize,
}

impl Engines {
    /// Plans a model; `None` if it cannot be planned.
    pub fn new(model: &dyn TextModel) -> Option<Engines> {
        Some(Engines {
            model: BatchEngine::new(model.plan()?, BatchLimits::default()),
            draft: None,
        })
    }

    /// Engine of the model.
    pub fn model(&self) -> &BatchEngine {
        &self.model
    }

    pub fn set_limits(&mut self, limits: BatchLimits) {
        self.model.set_limits(limits);
    }

    /// Adds a smaller model. The memory for caches is divided as the caches of equally long texts
    /// need it.
    pub fn set_draft(&mut self, draft: Engines, tokens: usize) {
        let mut engine = draft.model;
        let (own, its) = (self.model.bytes(4096) as u128, engine.bytes(4096) as u128);
        let mut limits = *self.model.limits();
        let share = limits.cache_bytes as u128 * its / (own + its).max(1);
        let share = usize::try_from(share).expect("a part of a usize");
        limits.cache_bytes -= share;
        engine.set_limits(BatchLimits { cache_bytes: share, ..*engine.limits() });
        self.model.set_limits(limits);
        self.draft = Some(Draft { engine, tokens });
    }

    /// Whether tokens are guessed.
    pub fn guesses(&self) -> bool {
        self.draft.is_some() || self.model.limits().lookup.tokens > 0
    }

    /// Begins a session of rows of up to `length` tokens.
    pub fn session(&self, rows: usize, length: usize, cancel: &Cancel) -> Result<Session<'_>> {
        let mut session = self.model.session(rows, length, cancel)?;
        if let (Some(Draft { engine, tokens }), 1) = (&self.draft, rows) {
            let longest = engine.plan().longest().unwrap_or(usize::MAX);
            // All threads take room here first, and then there: none waits for one behind it.
            session.set_draft(engine.session(1, length.min(longest), cancel)?, *tokens);
        }
        Ok(session)
    }
}

impl Generator {
    /// Returns what processes the sequences of all threads, unless the model decodes by itself.
    pub fn batching(&self) -> Option<&BatchEngine> {
        self.engines().map(Engines::model)
    }

    /// Returns the limits under which sequences are processed together.
    pub fn limits(&self) -> BatchLimits {
        self.batching().map_or_else(BatchLimits::default, |engine| *engine.limits())
    }

    /// Replaces the limits.
    ///
    /// # Errors
    /// If the model decodes by itself, without limits.
    pub fn set_limits(&mut self, limits: BatchLimits) -> Result<()> {
        self.engines_mut()?.set_limits(limits);
        Ok(())
    }

    /// Lets a smaller model guess `tokens` tokens at once, which this model checks together. Texts
    /// are the same as without.
    ///
    /// # Errors
    /// If its vocabulary is another one, or one of the models decodes by itself.
    pub fn set_draft(&mut self, mut draft: Generator, tokens: usize) -> Result<()> {
        same_tokens(self.tokenizer(), draft.tokenizer())?;
        draft.engines_mut()?;
        let draft = draft.into_engines().expect("it has them");
        self.engines_mut()?.set_draft(draft, tokens);
        Ok(())
    }

    /// Whether tokens are guessed.
    pub(super) fn makes_guesses(&self) -> bool {
        self.engines().is_some_and(Engines::guesses)
    }
}

/// Checks that two tokenizers mean the same by every token id.
///
/// # Errors
/// With the first token that differs.
fn same_tokens(model: &Tokenizer, draft: &Tokenizer) -> Result<()> {
    let (own, other) = (model.size(), draft.size());
    let different = (0..own.max(other) as u32).find(|id| model.token(*id) != draft.token(*id));
    let Some(id) = different else { return Ok(()) };
    let spelled = |tokenizer: &Tokenizer| match tokenizer.token(id) {
        Some(token) => format!("{token:?}"),
        None => "no token".to_string(),
    };
    Err(Error::invalid(format!(
        "draft: its vocabulary has {other} tokens, the model's {own}, and token {id} is {} there and \
         {} here; need a model with the same vocabulary",
        spelled(draft),
        spelled(model)
    )))
}

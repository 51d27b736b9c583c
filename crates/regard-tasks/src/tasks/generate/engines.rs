//! The engines of a generator: its model's, and that of a smaller model that guesses.

use super::Generator;
use crate::batching::{BatchEngine, BatchLimits, Cancel, Session};
use crate::text::Tokenizer;
use regard_models::text::TextModel;
use regard_models::{Error, Result};

/// Processes the sequences of all threads together.
pub(super) struct Engines {
    /// Limits of both models together.
    limits: BatchLimits,
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
        let limits = BatchLimits::default();
        Some(Engines { limits, model: BatchEngine::new(model.plan()?, limits), draft: None })
    }

    /// Engine of the model.
    pub fn model(&self) -> &BatchEngine {
        &self.model
    }

    pub fn set_limits(&mut self, limits: BatchLimits) {
        self.limits = limits;
        self.divide();
    }

    /// Adds a smaller model, or replaces it.
    pub fn set_draft(&mut self, draft: Engines, tokens: usize) {
        self.draft = Some(Draft { engine: draft.model, tokens });
        self.divide();
    }

    /// Divides the memory for caches as those of equally long texts need it.
    fn divide(&mut self) {
        let mut limits = self.limits;
        self.model.set_limits(limits);
        let Some(Draft { engine, .. }) = &mut self.draft else { return };
        let (own, its) = (self.model.bytes(4096) as u128, engine.bytes(4096) as u128);
        let share = limits.cache_bytes as u128 * its / (own + its).max(1);
        let share = usize::try_from(share).expect("a part of a usize");
        limits.cache_bytes -= share;
        engine.set_limits(BatchLimits { cache_bytes: share, ..*engine.limits() });
        self.model.set_limits(limits);
    }

    /// Whether tokens are guessed.
    pub fn guesses(&self) -> bool {
        self.draft.is_some() || self.model.limits().lookup.tokens > 0
    }

    /// Begins a session of rows of up to `length` tokens. All threads take room of the model first,
    /// and then of the draft: none waits for one behind it.
    pub fn session(&self, rows: usize, length: usize, cancel: &Cancel) -> Result<Session<'_>> {
        let Some(Draft { engine, tokens }) = &self.draft else {
            return self.model.session(rows, length, cancel);
        };
        let bytes = self.model.fitting(rows, length, self.limits.cache_bytes)?;
        let own = self.model.limits().cache_bytes;
        let mut session = self.model.reserve(bytes.min(own), [rows, length], cancel)?;
        if bytes > own {
            // It needs room of the draft, and goes without guesses.
            session.keep_room(engine.reserve(bytes - own, [0, 0], cancel)?);
            return Ok(session);
        }
        let length = length.min(engine.plan().longest().unwrap_or(usize::MAX));
        let its = engine.bytes(length);
        if rows == 1 && its <= engine.limits().cache_bytes {
            session.set_draft(engine.reserve(its, [1, length], cancel)?, *tokens);
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
        self.engines().map_or_else(BatchLimits::default, |engines| engines.limits)
    }

    /// Replaces the limits.
    ///
    /// # Errors
    /// If the model decodes by itself, without limits.
    pub fn set_limits(&mut self, limits: BatchLimits) -> Result<()> {
        self.engines_mut()?.set_limits(limits);
        Ok(())
    }

    /// Returns how many tokens, at most `most`, fit after a prompt into the KV caches of `rows`
    /// sequences. `most` if not even one fits: to ask for room is the error then.
    pub(crate) fn fitting(&self, rows: usize, prompt: usize, most: usize) -> usize {
        let Some(engines) = self.engines() else { return most };
        let fits = |new: usize| {
            let bytes = engines.model.bytes(prompt.saturating_add(new));
            rows.saturating_mul(bytes) <= engines.limits.cache_bytes
        };
        if fits(most) || !fits(1) {
            return most;
        }
        let (mut fit, mut over) = (1, most);
        while over - fit > 1 {
            let middle = fit + (over - fit) / 2;
            match fits(middle) {
                true => fit = middle,
                false => over = middle,
            }
        }
        fit
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

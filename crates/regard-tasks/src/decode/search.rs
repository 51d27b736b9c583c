//! The loop shared by all kinds of search: model step, candidates, selection, reordering.

use super::constrain::{RowText, Rules};
use super::row::{Row, Value};
use super::tree::{Done, End, Node, ROOT, Tree};
use super::{
    DecodeInput, FinishReason, Hypothesis, Ids, Options, StepAttention, Stepper, beam, sample,
};
use crate::{Error, Result};
use regard_attention::Stream;
use regard_attention::ops::{Scan, all_below_infinity};
use regard_attention::pool::parallel;
use std::cell::Cell;
use std::sync::Mutex;

/// Number of logits from which the rows are divided among threads: one thread takes about 60 µs for
/// as many, about the time to wake another.
const SHARED: usize = 64 * 1024;

/// Buffers of a sentence's rows. The lock only satisfies the compiler: no two threads use the same
/// row.
pub(super) type Rows<'a> = &'a mut [Mutex<Row>];

/// Asks the model whether the text of a row of a sentence ends with a token.
pub(super) type Ends<'a> = dyn FnMut(usize, u32) -> Option<FinishReason> + 'a;

/// State that does not change during a search.
pub(super) struct Search<'a> {
    pub options: &'a Options,
    ids: &'a Ids,
    rules: Rules,
    value: Value,
    /// Number of candidates to find in a row.
    wanted: usize,
    /// Minimum number of candidates left by `top_k` and the like: in a beam one more than there are
    /// end tokens, so that one does not end.
    least: usize,
}

/// A running hypothesis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live {
    /// Last node in the tree.
    pub node: u32,
    /// Sum of log-probabilities, after the penalties.
    pub score: f32,
    /// Token to feed next.
    pub token: u32,
    /// Row of the sentence that it continues.
    pub origin: usize,
    /// Row of its attention in the tree.
    pub look: u32,
    /// Index of the sample.
    pub sample: u64,
}

impl Default for Live {
    fn default() -> Live {
        Live { node: ROOT, score: 0.0, token: 0, origin: 0, look: 0, sample: 0 }
    }
}

/// State of a sentence during the search.
pub(super) struct Progress<'a> {
    sentence: &'a DecodeInput,
    /// Index in the batch.
    place: usize,
    pub tree: Tree,
    /// Running hypotheses; empty once the sentence is done.
    pub live: Vec<Live>,
    /// Finished hypotheses, best first.
    pub done: Vec<Done>,
    /// Tokens of each running hypothesis, including the prompt.
    pub length: usize,
    /// Tokens of the prompt and the prefix.
    pub start: usize,
    /// Length at which the sentence stops, including the prompt.
    pub limit: usize,
}

/// Decodes a batch: returns the hypotheses of each of `sentences`, best first. `sentences` are the
/// rows of the model, in order.
///
/// There are `num_return_sequences` hypotheses, or fewer if the model allows no more; always at
/// least one.
///
/// # Errors
/// If the options are invalid, if a prompt is as long as the maximum length, if a coverage penalty
/// is set for a model that does not return attention, or if the model returns a logit that is NaN
/// or +∞. (−∞ marks an impossible token.)
pub fn decode<S: Stepper + ?Sized>(
    model: &mut S,
    sentences: &[DecodeInput],
    options: &Options,
    ids: &Ids,
) -> Result<Vec<Vec<Hypothesis>>> {
    options.check()?;
    let vocabulary = model.vocabulary();
    let search = Search::new(options, ids, vocabulary);
    let mut active: Vec<Progress> = sentences
        .iter()
        .enumerate()
        .map(|(place, sentence)| search.start(place, sentence))
        .collect::<Result<_>>()?;
    let mut results = vec![Vec::new(); sentences.len()];
    let mut work: Vec<Mutex<Row>> = Vec::new();
    let (mut tokens, mut parents, mut text) = (Vec::new(), Vec::new(), Vec::new());
    let (mut likely, mut scan) = (Vec::new(), Scan::default());
    let mut all_logits = LOGITS.take();
    while !active.is_empty() {
        tokens.clear();
        tokens.extend(active.iter().flat_map(|progress| &progress.live).map(|live| live.token));
        let attention = model.step(&tokens, &mut all_logits);
        check_step(&all_logits, attention.as_ref(), tokens.len(), vocabulary);
        check_logits(&all_logits)?;
        likely.clear();
        if model.recorded() > 0 {
            let rows = all_logits.chunks_exact(vocabulary);
            likely.extend(rows.map(|row| most_likely(row, model.recorded(), &mut scan)));
        }
        work.resize_with(work.len().max(tokens.len()), Mutex::default);

        let rows = all_logits.chunks_exact_mut(vocabulary).zip(&mut work);
        let lives = active.iter().flat_map(|p| p.live.iter().map(move |live| (p, live)));
        for (i, ((logits, row), (progress, live))) in rows.zip(lives).enumerate() {
            let row = row.get_mut().expect("no panic in another row");
            row.allow(logits, model.allowed(i).as_deref(), &search.rules);
            search.constrain(progress, live, logits, row, &mut text);
        }
        let rank = |i: usize| {
            let logits = &all_logits[i * vocabulary..(i + 1) * vocabulary];
            let mut row = work[i].lock().expect("no panic in another row");
            row.rank(logits, search.wanted, search.value, &search.rules);
            if options.do_sample {
                sample::warp(&mut row.choices, options, search.least);
            }
        };
        if all_logits.len() >= SHARED {
            parallel(tokens.len(), &rank);
        } else {
            (0..tokens.len()).for_each(rank);
        }

        parents.clear();
        let mut first = 0;
        for progress in &mut active {
            let rows = first..first + progress.live.len();
            progress.look(attention.as_ref(), &mut likely, first);
            let ends = &mut |row: usize, token: u32| model.ends(first + row, token);
            progress.advance(&mut work[rows.clone()], &search, ends)?;
            parents.extend(progress.live.iter().map(|live| first + live.origin));
            first = rows.end;
        }
        active.retain_mut(|progress| {
            if progress.live.is_empty() {
                progress.done.truncate(options.num_return_sequences);
                let found = progress.done.iter().map(|done| progress.tree.hypothesis(*done));
                results[progress.place] = found.collect();
            }
            !progress.live.is_empty()
        });
        let same =
            parents.len() == tokens.len() && parents.iter().enumerate().all(|(i, p)| i == *p);
        if !same && !active.is_empty() {
            model.reorder(&parents);
        }
    }
    if all_logits.capacity() <= KEPT_LOGITS {
        LOGITS.set(all_logits);
    }
    Ok(results)
}

/// Largest number of logits whose memory a thread keeps: 8 MiB, 32 sentences with 4 beams and 16,000
/// tokens.
const KEPT_LOGITS: usize = 2 << 20;

thread_local! {
    /// Logits of the last step of the last search, for their memory: the system would clear some
    /// megabytes for every search.
    static LOGITS: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

/// Returns the `k` most likely tokens of a row with their log-probabilities, the best first.
fn most_likely(row: &[f32], k: usize, scan: &mut Scan) -> Vec<(u32, f32)> {
    scan.row(row, k);
    let log_sum = scan.sum.ln() as f32;
    let mut found: Vec<(u32, f32)> =
        scan.top.iter().map(|(logit, token)| (*token, (logit - scan.largest) - log_sum)).collect();
    found.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    found
}

/// Returns an error if a logit is NaN or +∞.
fn check_logits(logits: &[f32]) -> Result<()> {
    if all_below_infinity(logits) {
        return Ok(());
    }
    let bad = logits.iter().find(|x| x.is_nan() || **x == f32::INFINITY);
    Err(crate::logits::not_finite(bad.copied().unwrap_or(f32::NAN)))
}

fn check_step(logits: &[f32], attention: Option<&StepAttention>, rows: usize, vocabulary: usize) {
    assert!(
        logits.len() == rows * vocabulary,
        "Stepper::step: got {} logits for {rows} tokens, needs one row of {vocabulary} for each",
        logits.len()
    );
    if let Some(StepAttention { weights, keys }) = attention {
        assert!(
            weights.len() == rows * keys,
            "Stepper::step: got {} weights for {rows} tokens, needs {keys} for each",
            weights.len()
        );
    }
}

impl<'a> Search<'a> {
    fn new(options: &'a Options, ids: &'a Ids, vocabulary: usize) -> Search<'a> {
        assert!(vocabulary > 0, "decode: got an empty vocabulary, needs at least one token");
        let ends = ids.eos.len() + options.stop_token_ids.len();
        let least = if options.num_beams == 1 { 1 } else { (1 + ends).max(2) };
        let wanted = match (options.do_sample, options.top_k) {
            (true, 0) => vocabulary,
            (true, k) => k.max(least),
            (false, _) if options.num_beams == 1 => 1,
            (false, _) => beam::width(options, ends),
        };
        Search {
            options,
            ids,
            rules: Rules::new(options, ids),
            value: if options.num_beams == 1 { Value::Logit } else { Value::LogProb },
            wanted: wanted.min(vocabulary),
            least,
        }
    }

    fn start<'s>(&self, place: usize, sentence: &'s DecodeInput) -> Result<Progress<'s>> {
        let prompt = sentence.prompt.len().max(1);
        let start = prompt + sentence.target_prefix.len();
        let Options { max_length, max_len_a, max_len_b, .. } = *self.options;
        let limit = match self.options.max_new_tokens {
            Some(new) => start.saturating_add(new),
            None if max_len_a == 0.0 && max_len_b == 0 => max_length,
            // A short source still gets one token.
            None => {
                let related = (max_len_a * sentence.source as f32).ceil() as usize;
                max_length.min(related.saturating_add(max_len_b).max(start + 1))
            }
        };
        if limit <= start {
            return Err(Error::invalid(format!(
                "max_length: got {limit}, but sentence {} begins with {start} tokens already; \
                 raise max_length, or give max_new_tokens",
                sentence.index
            )));
        }
        let token = sentence.prompt.last().copied().unwrap_or(self.ids.bos);
        Ok(Progress {
            sentence,
            place,
            tree: Tree::default(),
            live: vec![Live { token, ..Live::default() }],
            done: Vec::new(),
            length: prompt,
            start,
            limit,
        })
    }

    fn constrain(
        &self,
        progress: &Progress,
        live: &Live,
        logits: &mut [f32],
        row: &mut Row,
        text: &mut Vec<u32>,
    ) {
        text.clear();
        if self.rules.need_text() {
            text.extend_from_slice(&progress.sentence.prompt);
            if text.is_empty() {
                text.push(self.ids.bos);
            }
            progress.tree.tokens(live.node, text);
        }
        let text = RowText { tokens: text, length: progress.length, start: progress.start };
        row.constrain(logits, &self.rules, text);
    }

    /// Number of tokens that end a sentence.
    pub fn ends(&self) -> usize {
        self.ids.eos.len() + self.options.stop_token_ids.len()
    }

    /// Whether, and how, a token of a row ends a sentence.
    pub fn end(&self, token: u32, row: usize, ends: &mut Ends) -> Option<End> {
        let by_token = |reason| Some(End { reason, by_token: true });
        if self.ids.eos.contains(&token) {
            by_token(FinishReason::Eos)
        } else if self.options.stop_token_ids.contains(&token) {
            by_token(FinishReason::Stop)
        } else {
            ends(row, token).map(|reason| End { reason, by_token: false })
        }
    }

    /// Returns the random stream of a sentence at this step.
    pub fn stream(&self, progress: &Progress) -> Stream {
        Stream::new(self.options.seed, progress.length as u64, progress.sentence.index)
    }
}

impl Progress<'_> {
    /// Number of generated tokens, without prompt and prefix.
    pub fn generated(&self) -> usize {
        self.length - self.start
    }

    /// Stores the attention of this sentence's rows, which start at row `first` of the batch, and
    /// their most likely tokens, if there are some for each row.
    fn look(
        &mut self,
        attention: Option<&StepAttention>,
        likely: &mut [Vec<(u32, f32)>],
        first: usize,
    ) {
        for (i, live) in self.live.iter_mut().enumerate() {
            let row = attention.map(|StepAttention { weights, keys }| {
                let source = self.sentence.source;
                assert!(
                    source <= *keys,
                    "Stepper::step: got attention to {keys} tokens of a source of {source}"
                );
                let used = if source == 0 { *keys } else { source };
                &weights[(first + i) * keys..][..used]
            });
            let likely = likely.get_mut(first + i).map(std::mem::take);
            live.look = self.tree.look(row, likely);
        }
    }

    /// Appends one token to each row.
    fn advance(&mut self, rows: Rows, search: &Search, ends: &mut Ends) -> Result<()> {
        let forced = self.length + self.sentence.target_prefix.len() - self.start;
        if let Some(token) = self.sentence.target_prefix.get(forced) {
            let live = &mut self.live[0];
            let (parent, look) = (live.node, live.look);
            live.node = self.tree.push(Node { parent, token: *token, log_prob: 0.0, look });
            live.token = *token;
            self.length += 1;
            return Ok(());
        }
        match search.options.num_beams {
            1 => sample::advance(self, rows, search, ends),
            _ => beam::advance(self, rows, search, ends),
        }
    }

    /// Keeps a finished hypothesis, if it is among the best `most`.
    pub fn keep(&mut self, done: Done, most: usize) {
        // Of ties the earlier stays first.
        let at = self.done.partition_point(|other| other.score >= done.score);
        self.done.insert(at, done);
        self.done.truncate(most);
    }

    /// Ends a hypothesis that has no possible next token.
    pub fn stop(&mut self, live: &Live, search: &Search) -> Result<()> {
        let score = self.tree.score(live.node, live.score, self.generated(), search.options)?;
        self.keep(Done { node: live.node, score, end: End::NO_TOKEN }, usize::MAX);
        Ok(())
    }
}

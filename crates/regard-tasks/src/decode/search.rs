//! The loop that all kinds of search share: feed, look, choose, reorder.

use super::constrain::Rules;
use super::row::{Row, Value};
use super::tree::{Done, Node, ROOT, Tree};
use super::{Attention, Hypothesis, Ids, Options, Sentence, Stepper, beam, sample};
use crate::{Error, Result};
use regard_attention::Stream;
use regard_attention::pool::parallel;
use std::sync::Mutex;

/// Logits from which on the rows are shared out to the threads: one thread takes about 60 µs for
/// as many, which is what waking another may take.
const SHARED: usize = 64 * 1024;

/// The working memory of a sentence's rows. A lock tells the compiler what the loop knows: that
/// no two threads have the same row.
pub(super) type Rows<'a> = &'a mut [Mutex<Row>];

/// What does not change during a search.
pub(super) struct Search<'a> {
    pub options: &'a Options,
    ids: &'a Ids,
    rules: Rules,
    value: Value,
    /// Tokens of a row that have to be looked at.
    wanted: usize,
    /// Tokens that are always left to be drawn: two in a beam, so that one does not end.
    least: usize,
}

/// A hypothesis that goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live {
    /// Its last node in the tree.
    pub node: u32,
    /// Its sum of log-probabilities, after the penalties.
    pub score: f32,
    /// What to feed next.
    pub token: u32,
    /// Which row of the sentence it was before.
    pub origin: usize,
    /// Where it looks now.
    pub look: u32,
    /// Which of the samples it is.
    pub sample: u64,
}

impl Default for Live {
    fn default() -> Live {
        Live { node: ROOT, score: 0.0, token: 0, origin: 0, look: 0, sample: 0 }
    }
}

/// A sentence in the middle of the search.
pub(super) struct Progress<'a> {
    sentence: &'a Sentence,
    /// Its place in the batch.
    place: usize,
    pub tree: Tree,
    /// Empty once the sentence is done.
    pub live: Vec<Live>,
    /// Best first.
    pub done: Vec<Done>,
    /// Tokens of each live row, with the prompt.
    pub length: usize,
    /// Tokens of the prompt and the prefix.
    pub start: usize,
    /// Where the sentence has to stop.
    pub limit: usize,
}

/// Finds the best sentences that a model can write: for each of `sentences`, which are the rows of
/// the model, in order, its hypotheses, best first.
///
/// There are `num_return_sequences` of them, or fewer if the model allows no more; at least one
/// always.
///
/// # Errors
/// If the options cannot be, if a prompt leaves nothing of the largest length, if a coverage
/// penalty is asked of a model that does not tell where it looks, or if the model gives a logit
/// that is NaN or +∞. (−∞ is a token that cannot be.)
pub fn decode<S: Stepper + ?Sized>(
    model: &mut S,
    sentences: &[Sentence],
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
    let mut all_logits = Vec::new();
    while !active.is_empty() {
        tokens.clear();
        tokens.extend(active.iter().flat_map(|progress| &progress.live).map(|live| live.token));
        let attention = model.step(&tokens, &mut all_logits);
        check_step(&all_logits, attention.as_ref(), tokens.len(), vocabulary);
        check_logits(&all_logits)?;
        work.resize_with(work.len().max(tokens.len()), Mutex::default);

        let rows = all_logits.chunks_exact_mut(vocabulary).zip(&mut work);
        let lives = active.iter().flat_map(|p| p.live.iter().map(move |live| (p, live)));
        for ((logits, row), (progress, live)) in rows.zip(lives) {
            let row = row.get_mut().expect("no panic in another row");
            search.constrain(progress, live, (logits, row), &mut text);
        }
        let rank = |i: usize| {
            let logits = &all_logits[i * vocabulary..(i + 1) * vocabulary];
            let mut row = work[i].lock().expect("no panic in another row");
            row.rank(logits, search.wanted, search.value, search.rules.penalty);
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
            progress.look(attention.as_ref(), first);
            progress.advance(&mut work[rows.clone()], &search)?;
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
    Ok(results)
}

/// A sentence that is chosen by what is no number is no answer.
fn check_logits(logits: &[f32]) -> Result<()> {
    // One pass without a branch for each number; only NaN and +∞ are not below +∞.
    if logits.iter().fold(true, |fine, x| fine & (*x < f32::INFINITY)) {
        return Ok(());
    }
    let bad = logits.iter().find(|x| x.is_nan() || **x == f32::INFINITY);
    Err(crate::logits::not_finite(bad.copied().unwrap_or(f32::NAN)))
}

fn check_step(logits: &[f32], attention: Option<&Attention>, rows: usize, vocabulary: usize) {
    assert!(
        logits.len() == rows * vocabulary,
        "Stepper::step: got {} logits for {rows} tokens, needs one row of {vocabulary} for each",
        logits.len()
    );
    if let Some(Attention { weights, keys }) = attention {
        assert!(
            weights.len() == rows * keys,
            "Stepper::step: got {} weights for {rows} tokens, needs {keys} for each",
            weights.len()
        );
    }
}

impl<'a> Search<'a> {
    fn new(options: &'a Options, ids: &'a Ids, vocabulary: usize) -> Search<'a> {
        assert!(vocabulary > 0, "decode: the model has an empty vocabulary, and can say nothing");
        let least = options.num_beams.min(2);
        let wanted = match (options.do_sample, options.top_k) {
            (true, 0) => vocabulary,
            (true, k) => k.max(least),
            (false, _) if options.num_beams == 1 => 1,
            (false, _) => beam::width(options),
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

    fn start<'s>(&self, place: usize, sentence: &'s Sentence) -> Result<Progress<'s>> {
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
        (logits, row): (&mut [f32], &mut Row),
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
        row.constrain(logits, &self.rules, text, progress.length);
    }

    /// Whether a token ends a sentence.
    pub fn is_end(&self, token: u32) -> bool {
        self.ids.eos == Some(token)
    }

    /// The random numbers of a sentence at this step.
    pub fn stream(&self, progress: &Progress) -> Stream {
        Stream::new(self.options.seed, progress.length as u64, progress.sentence.index)
    }
}

impl Progress<'_> {
    /// Tokens of each live row that count.
    pub fn generated(&self) -> usize {
        self.length - self.start
    }

    /// Remembers where the rows, of which this sentence has those from `first` on, look.
    fn look(&mut self, attention: Option<&Attention>, first: usize) {
        for (i, live) in self.live.iter_mut().enumerate() {
            let row = attention.map(|Attention { weights, keys }| {
                let source = self.sentence.source;
                assert!(
                    source <= *keys,
                    "attention to {keys} tokens of a source that has {source}"
                );
                let used = if source == 0 { *keys } else { source };
                &weights[(first + i) * keys..][..used]
            });
            live.look = self.tree.look(row);
        }
    }

    /// Writes one token to each row.
    fn advance(&mut self, rows: Rows, search: &Search) -> Result<()> {
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
            1 => sample::advance(self, rows, search),
            _ => beam::advance(self, rows, search),
        }
    }

    /// Keeps a finished hypothesis, if it is among the best `most`.
    pub fn keep(&mut self, done: Done, most: usize) {
        // Of equal ones the first stays the first.
        let at = self.done.partition_point(|other| other.score >= done.score);
        self.done.insert(at, done);
        self.done.truncate(most);
    }

    /// Gives up on a hypothesis that cannot go on.
    pub fn stop(&mut self, live: &Live, search: &Search) -> Result<()> {
        let score = self.tree.score(live.node, live.score, self.generated(), search.options)?;
        self.keep(Done { node: live.node, score, ended: false }, usize::MAX);
        Ok(())
    }
}

//! The steps of all sessions.

use super::engine::BatchEngine;
use super::prompts::Prompts;
use super::state::{Answer, Part, Request, State};
use regard_attention::plan::{Chunk, Work};
use std::sync::MutexGuard;
use std::time::Instant;

impl BatchEngine {
    /// Computes one step of all requests.
    pub(super) fn step<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        state.busy = true;
        let mut batch = self.batch(&mut state);
        let mut work = state.work.take().unwrap_or_default();
        drop(state);
        // Whatever happens, the others must not wait for ever.
        let computed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            self.compute(&mut batch, &mut work)
        }));
        let mut state = self.lock();
        state.busy = false;
        state.last_step = Some(Instant::now());
        state.count.steps += 1;
        match computed {
            Ok(logits) => {
                state.work = Some(work);
                self.answer(&mut state, batch, logits);
            }
            Err(panic) => {
                let message = panic.downcast_ref::<String>().cloned();
                let message = message.or(panic.downcast_ref::<&str>().map(|x| x.to_string()));
                let message = message.unwrap_or_else(|| "the step failed".into());
                for (number, _) in batch {
                    state.order.retain(|waiting| *waiting != number);
                    state.answers.insert(number, Err(format!("a decoding step: {message}")));
                }
            }
        }
        self.changed.notify_all();
        state
    }

    /// Takes the requests of the next step.
    fn batch(&self, state: &mut State) -> Vec<(u64, Part)> {
        let mut batch = vec![];
        let feeds = |request: &Request| matches!(request, Request::Tokens { .. });
        let feeding: Vec<u64> = state
            .requests
            .iter()
            .filter(|(_, request)| feeds(request))
            .map(|(number, _)| *number)
            .collect();
        let room = match feeding.is_empty() {
            true => self.limits.prompt_tokens,
            false => self.limits.prompt_tokens_beside,
        };
        let mut room = room.max(1);
        for number in feeding {
            let request = state.requests.remove(&number).expect("it was just there");
            batch.push((number, Part { request, now: 0 }));
        }
        // Prompts in the order in which they came. One that begins as another does waits for it.
        let order: Vec<u64> = state.order.iter().copied().collect();
        let mut begun: Vec<Vec<u32>> = vec![];
        for number in order {
            let Some(Request::Prompt { tokens, read, .. }) = state.requests.get(&number) else {
                continue;
            };
            if room == 0 {
                break;
            }
            if *read == 0 && begun.iter().any(|other| Prompts::alike(other, tokens)) {
                continue;
            }
            let Some(Request::Prompt { mut row, tokens, mut read }) =
                state.requests.remove(&number)
            else {
                continue;
            };
            if read == 0
                && row.is_empty()
                && let Some(known) = state.prompts.find(&tokens)
            {
                read = known.len();
                state.count.shared_tokens += read as u64;
                row = known;
            }
            begun.push(tokens.clone());
            let now = room.min(tokens.len() - read);
            room -= now;
            batch.push((number, Part { request: Request::Prompt { row, tokens, read }, now }));
        }
        batch
    }

    /// Runs the model, and returns the logits of all rows that are fed.
    fn compute(&self, batch: &mut [(u64, Part)], work: &mut Work) -> Vec<f32> {
        let mut chunks = vec![];
        for (_, Part { request, now }) in batch {
            match request {
                Request::Tokens { rows, tokens } => {
                    let rows = rows.iter_mut().zip(&*tokens);
                    chunks.extend(rows.map(|(cache, tokens)| Chunk {
                        cache,
                        tokens,
                        prompt: false,
                        wanted: tokens.len(),
                    }));
                }
                // All of it was known.
                Request::Prompt { .. } if *now == 0 => {}
                Request::Prompt { row, tokens, read } => {
                    let tokens = &tokens[*read..*read + *now];
                    chunks.push(Chunk { cache: row, tokens, prompt: true, wanted: 0 });
                }
            }
        }
        let mut logits = vec![];
        if !chunks.is_empty() {
            self.plan.forward(&mut chunks, work, &mut logits);
        }
        logits
    }

    /// Hands out the results of a step.
    fn answer(&self, state: &mut State, batch: Vec<(u64, Part)>, logits: Vec<f32>) {
        let mut rest = &logits[..];
        for (number, Part { request, now }) in batch {
            match request {
                Request::Tokens { rows, tokens } => {
                    let fed: usize = tokens.iter().map(Vec::len).sum();
                    state.count.fed_tokens += fed as u64;
                    let (mine, after) = rest.split_at(fed * self.plan.vocabulary());
                    rest = after;
                    let answer = Answer { rows, logits: mine.to_vec() };
                    state.answers.insert(number, Ok(answer));
                    state.order.retain(|waiting| *waiting != number);
                    state.expected.push(number);
                }
                Request::Prompt { row, tokens, read } => {
                    let read = read + now;
                    state.count.prompt_tokens += now as u64;
                    if read < tokens.len() {
                        state.requests.insert(number, Request::Prompt { row, tokens, read });
                        continue;
                    }
                    let most = self.limits.tokens.saturating_sub(state.reserved);
                    state.prompts.keep(&tokens, &row, most);
                    let answer = Answer { rows: vec![row], logits: vec![] };
                    state.answers.insert(number, Ok(answer));
                    state.order.retain(|waiting| *waiting != number);
                }
            }
        }
    }
}

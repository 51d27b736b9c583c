//! A long prompt beside sessions that write.

use super::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[test]
fn eight_write_while_a_prompt_of_4000_tokens_is_read() {
    let engine = &engine(BatchLimits::default());
    let long = text(4000, 100);
    let want = generate(&self::engine(BatchLimits::default()), &long, 3);
    let written: Vec<AtomicUsize> = (0..8).map(|_| AtomicUsize::new(0)).collect();
    let (written, done) = (&written, &AtomicBool::new(false));
    let all = || written.iter().map(|n| n.load(Ordering::SeqCst)).collect::<Vec<_>>();
    thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|i| {
                scope.spawn(move || {
                    let prompt = text(3 + 20 * i, i);
                    let mut session = engine.session(1, 4000, &Cancel::new()).unwrap();
                    let more = |tokens: usize| {
                        written[i].store(tokens, Ordering::SeqCst);
                        tokens < 3500 && !done.load(Ordering::SeqCst)
                    };
                    (write_while(&mut session, &prompt, &more), prompt)
                })
            })
            .collect();
        while all().iter().any(|tokens| *tokens < 5) {
            thread::yield_now();
        }
        let (before, steps) = (all(), engine.usage().steps);
        let mut reader = engine.session(1, 4003, &Cancel::new()).unwrap();
        let got = write_while(&mut reader, &long, &|tokens| tokens < 3);
        let (after, steps) = (all(), engine.usage().steps - steps);
        done.store(true, Ordering::SeqCst);
        assert!(got == want);
        // The prompt was read in parts of 32 tokens.
        assert!(steps >= 125, "{steps}");
        for (before, after) in before.iter().zip(&after) {
            assert!(after - before >= 20, "{before} {after} in {steps} steps");
        }
        for writer in writers {
            let (got, prompt) = writer.join().unwrap();
            let alone = generate(&self::engine(BatchLimits::default()), &prompt, got.0.len());
            assert!(got == alone);
        }
    });
}

#[test]
fn a_short_prompt_does_not_wait_for_the_end_of_a_long_one() {
    let engine = &engine(BatchLimits { prompt_tokens: 32, ..BatchLimits::default() });
    thread::scope(|scope| {
        let long = scope.spawn(|| generate(engine, &text(4000, 1), 1));
        while engine.usage().prompt_tokens < 100 {
            thread::yield_now();
        }
        generate(engine, &text(40, 2), 2);
        assert!(engine.usage().prompt_tokens < 3500, "{:?}", engine.usage());
        long.join().unwrap();
    });
}

#[test]
fn a_short_prompt_shares_the_head_of_a_long_one_and_does_not_wait_for_the_rest() {
    let limits = BatchLimits { prompt_tokens: 32, ..BatchLimits::default() };
    let engine = &engine(limits);
    let head = text(20, 7);
    let [long, short] = [(4000, 1), (40, 2)].map(|(n, seed)| [&head[..], &text(n, seed)].concat());
    thread::scope(|scope| {
        let reader = scope.spawn(|| generate(engine, &long, 1));
        while engine.usage().prompt_tokens < 100 {
            thread::yield_now();
        }
        let got = generate(engine, &short, 2);
        assert!(engine.usage().prompt_tokens < 3500, "{:?}", engine.usage());
        assert_eq!(engine.usage().shared_tokens, 20);
        assert!(got == generate(&self::engine(limits), &short, 2));
        reader.join().unwrap();
    });
}

#[test]
fn an_idle_session_is_waited_for_once() {
    let engine = &engine(BatchLimits::default());
    let (mut idle, mut other) = (
        engine.session(1, 10, &Cancel::new()).unwrap(),
        engine.session(1, 10, &Cancel::new()).unwrap(),
    );
    idle.read(&[&[1]]).unwrap();
    other.read(&[&[2]]).unwrap();
    let mut logits = vec![];
    idle.step(&[3], &mut logits).unwrap();
    assert_eq!(engine.lock().expected, [0]);
    other.step(&[4], &mut logits).unwrap();
    assert_eq!(engine.lock().expected, [1]);
}

#[test]
fn a_measurement_that_does_not_fit_is_an_error() {
    let mut config = config();
    config["max_position_embeddings"] = json!(128);
    let engine = engine_of(&config, BatchLimits::default());
    for (new, prompt) in [(110, 50), (8, 200), (8, usize::MAX), (usize::MAX, 50)] {
        let error = engine.pace_beside(2, new, prompt).unwrap_err().to_string();
        assert!(error.contains("at most 128"), "{error}");
    }
    let error = engine.tokens_per_second(2, usize::MAX).unwrap_err().to_string();
    assert!(error.contains("at most 128"), "{error}");
    // Nobody writes while nothing is read.
    let error = engine.pace_beside(2, 8, 0).unwrap_err().to_string();
    assert!(error.contains("wrote nothing"), "{error}");
    // Writers get no processor at all now and then, beside the tests of other threads.
    let engine = self::engine(BatchLimits::default());
    let found = (0..10).find_map(|_| engine.pace_beside(2, 8, 3000).ok()).unwrap();
    assert!(found.alone.iter().chain(&found.beside).all(|x| x.is_finite() && *x > 0.0));
}

//! Steps that panic, and sessions that are cancelled while another thread computes.

use super::state::Request;
use super::*;

/// Asks for a session that no thread has.
fn ask(engine: &BatchEngine, number: u64, request: Request) {
    let mut state = engine.lock();
    state.requests.insert(number, request);
    state.order.push_back(number);
}

fn prompt(engine: &BatchEngine, tokens: Vec<u32>, read: usize) -> Request {
    let row = engine.plan().sequence(CacheType::F32);
    Request::Prompt { row, tokens, read, scores: None }
}

#[test]
fn a_request_that_panics_fails_alone() {
    let engine = engine(BatchLimits::default());
    let want = generate(&engine, &text(90, 1), 12);
    let mut session = engine.session(1, 110, &Cancel::new()).unwrap();
    let bad = || {
        // No session lets a token pass that is not in the vocabulary.
        let rows = vec![engine.plan().sequence(CacheType::F32)];
        ask(&engine, 1000, Request::Tokens { rows, tokens: vec![vec![WORDS as u32]] });
        ask(&engine, 1001, prompt(&engine, vec![3, WORDS as u32], 0));
        ask(&engine, 1002, prompt(&engine, text(30, 2), 0));
    };
    let got = write_while(&mut session, &text(90, 1), &|written| {
        if written % 5 == 0 {
            for number in 1000..1003 {
                if let Some(answer) = engine.lock().answers.remove(&number) {
                    let error = answer.err();
                    assert_eq!(error.is_none(), number == 1002, "{number}: {error:?}");
                    assert!(error.is_none_or(|why| why.starts_with("a decoding step: ")));
                }
            }
            bad();
        }
        written < 12
    });
    assert!(got == want);
    assert!(engine.lock().answers.contains_key(&1002));
}

#[test]
fn a_panic_in_the_choice_of_requests_leaves_nobody_waiting() {
    let engine = &engine(BatchLimits::default());
    let mut session = engine.session(1, 10, &Cancel::new()).unwrap();
    session.read(&[&[1, 2]]).unwrap();
    // More is read than there is.
    ask(engine, 1000, prompt(engine, vec![1], 2));
    let stepped = session.step(&[3], &mut vec![]);
    if let Err(error) = stepped {
        assert!(error.to_string().contains("a decoding step: "), "{error}");
    }
    let state = engine.lock();
    assert!(state.answers[&1000].is_err());
    assert!(state.requests.is_empty() && state.order.is_empty() && !state.busy);
    drop(state);
    let fresh = self::engine(BatchLimits::default());
    assert!(generate(engine, &[1, 2, 3], 5) == generate(&fresh, &[1, 2, 3], 5));
}

#[test]
fn a_session_is_cancelled_while_another_thread_computes() {
    let engine = &engine(BatchLimits { prompt_tokens: 64, ..BatchLimits::default() });
    let (long, cancel) = (&text(4000, 1), &Cancel::new());
    thread::scope(|scope| {
        let first = scope.spawn(|| generate(engine, long, 2));
        while engine.usage().prompt_tokens < 100 {
            thread::yield_now();
        }
        // The same prompt waits for the first one, which computes the steps.
        let second = scope.spawn(|| {
            let mut session = engine.session(1, 4002, cancel).unwrap();
            session.read(&[long]).unwrap_err().to_string()
        });
        while !engine.lock().requests.contains_key(&1) {
            thread::yield_now();
        }
        cancel.cancel();
        let error = second.join().unwrap();
        assert!(error.contains("cancelled"), "{error}");
        assert!(engine.usage().prompt_tokens < 3900, "{:?}", engine.usage());
        assert_eq!(engine.usage().sessions, 1);
        let fresh = self::engine(BatchLimits::default());
        assert!(first.join().unwrap() == generate(&fresh, long, 2));
    });
}

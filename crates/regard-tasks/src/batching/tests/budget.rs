//! The budget of bytes: who waits, who is refused, what is free when.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// Limits with room for this many sequences of `length` tokens.
fn room(sequences: usize, length: usize) -> BatchLimits {
    let bytes = engine(BatchLimits::default()).bytes(length);
    BatchLimits { cache_bytes: sequences * bytes, ..BatchLimits::default() }
}

#[test]
fn sessions_beyond_the_limit_wait_and_can_be_cancelled() {
    let engine = engine(room(3, 64));
    let error = engine.session(2, 100, &Cancel::new()).err().unwrap().to_string();
    // Two layers, two heads of keys and of values, 4 floats: 64 positions are 8,192 bytes.
    assert!(error.contains("2 sequences of up to 100 tokens need 32.8 kB in f32"), "{error}");
    assert!(error.contains("the limit is 24.6 kB"), "{error}");
    let first = engine.session(2, 60, &Cancel::new()).unwrap();
    assert_eq!(engine.usage().reserved_bytes, 2 * engine.bytes(64));
    let cancel = Cancel::new();
    cancel.cancel();
    let error = engine.session(1, 128, &cancel).err().unwrap().to_string();
    assert!(error.contains("cancelled while it waited for room"), "{error}");
    let began = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let session = engine.session(1, 128, &Cancel::new()).unwrap();
            began.store(true, Ordering::SeqCst);
            drop(session);
        });
        while engine.usage().waiting == 0 {
            thread::yield_now();
        }
        assert!(!began.load(Ordering::SeqCst));
        drop(first);
    });
    assert!(began.load(Ordering::SeqCst));
    assert_eq!(engine.usage().reserved_bytes, 0);
}

#[test]
fn a_cancelled_session_frees_its_pages_at_once() {
    let limits = BatchLimits { prompt_tokens: 16, ..room(1, 4100) };
    let engine = engine(limits);
    let (cancel, prompt) = (Cancel::new(), text(4000, 1));
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut session = engine.session(1, 4100, &cancel).unwrap();
            session.read(&[&prompt]).unwrap_err().to_string()
        });
        while engine.usage().prompt_tokens < 200 {
            thread::yield_now();
        }
        let read = engine.usage();
        assert!(read.cache_bytes > 0 && read.reserved_bytes == limits.cache_bytes, "{read:?}");
        // Another one waits for the room.
        let other = scope.spawn(|| generate(&engine, &text(3000, 2), 2));
        cancel.cancel();
        let error = reader.join().unwrap();
        assert!(error.contains("cancelled"), "{error}");
        other.join().unwrap();
    });
    let after = engine.usage();
    assert!(after.prompt_tokens < 4000 + 2999, "{after:?}");
    assert_eq!((after.reserved_bytes, after.sessions, after.waiting), (0, 0, 0));
    // What is left is the other's prompt, which is kept.
    assert!(after.cache_bytes <= engine.bytes(3000), "{after:?}");
}

#[test]
fn memory_of_ended_sessions_and_of_kept_prompts_is_bounded() {
    let engine = engine(room(3, 128));
    for i in 0..10 {
        generate(&engine, &text(120, i), 4);
    }
    // Two prompts are kept: the third must leave its room to the session before it begins.
    let usage = engine.usage();
    assert!(usage.cache_bytes > 0 && usage.cache_bytes <= 2 * engine.bytes(128), "{usage:?}");
    // All of them go when the room is needed.
    drop(engine.session(3, 128, &Cancel::new()).unwrap());
    assert_eq!(engine.usage().cache_bytes, 0);
}

#[test]
fn many_sessions_in_little_room_all_end_and_stay_in_it() {
    for cache in CacheType::ALL {
        let bytes = engine(BatchLimits { cache, ..BatchLimits::default() }).bytes(192);
        let limits = BatchLimits {
            cache,
            cache_bytes: 3 * bytes,
            prompt_tokens: 40,
            prompt_tokens_beside: 7,
            lookup: Lookup { tokens: 3, context: 1 },
        };
        let engine = &engine(limits);
        thread::scope(|scope| {
            for thread in 0..12 {
                scope.spawn(move || {
                    for round in 0..4 {
                        let (rows, length) = (1 + (thread + round) % 3, 60 + 11 * thread);
                        let cancel = Cancel::new();
                        let mut session = engine.session(rows, length, &cancel).unwrap();
                        if (thread + round) % 5 == 0 {
                            cancel.cancel();
                        }
                        let prompt = text(length - 20, thread * 7 + round);
                        let Ok(()) = session.read(&vec![&prompt[..]; rows]) else {
                            assert!(cancel.is_cancelled());
                            continue;
                        };
                        let mut logits = vec![];
                        for token in 0..15 {
                            match session.step(&vec![token; rows], &mut logits) {
                                Ok(()) => session.reorder(&vec![0; rows]),
                                Err(_) => assert!(cancel.is_cancelled()),
                            }
                            if cancel.is_cancelled() {
                                break;
                            }
                        }
                    }
                });
            }
        });
        let usage = engine.usage();
        assert_eq!((usage.sessions, usage.waiting, usage.reserved_bytes), (0, 0, 0), "{usage:?}");
        assert!(usage.most_cache_bytes <= limits.cache_bytes, "{usage:?}, {limits:?}");
    }
}

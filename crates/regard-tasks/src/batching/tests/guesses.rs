//! Guesses change how soon tokens come, and nothing else.

use super::draft::Draft;
use super::*;

/// Generates with a smaller model that guesses.
fn with_draft(
    engine: &BatchEngine,
    draft: &BatchEngine,
    prompt: &[u32],
    new: usize,
) -> ((Vec<u32>, Vec<u32>), Guesses) {
    let length = prompt.len() + new;
    let mut session = engine.session(1, length, &Cancel::new()).unwrap();
    session.set_draft(draft.session(1, length, &Cancel::new()).unwrap(), 4);
    let written = write_while(&mut session, prompt, &|written| written < new);
    (written, session.guesses())
}

#[test]
fn looking_up_changes_nothing_but_the_number_of_steps() {
    for cache in CacheType::ALL {
        let lookup = Lookup { tokens: 4, context: 1 };
        let guessing = engine(BatchLimits { lookup, cache, ..BatchLimits::default() });
        let plain = engine(BatchLimits { cache, ..BatchLimits::default() });
        // A text that repeats itself, and one that does not.
        for prompt in [text(10, 1).repeat(4), text(30, 2)] {
            let want = generate(&plain, &prompt, 60);
            assert!(generate(&guessing, &prompt, 60) == want, "{cache:?}");
        }
        let (some, none) = (guessing.usage(), plain.usage());
        assert!(some.steps < none.steps, "{some:?}");
        assert_eq!(none.guesses, Guesses::default());
        let Guesses { guessed, accepted } = some.guesses;
        assert!(0 < accepted && accepted < guessed, "{some:?}");
        // Each accepted guess saves a step.
        assert_eq!(some.steps + accepted, none.steps, "{some:?}");
    }
}

#[test]
fn a_draft_changes_nothing_but_the_number_of_steps() {
    let mut smaller = config();
    smaller["num_hidden_layers"] = json!(1);
    smaller["vocab_size"] = json!(WORDS + 7);
    let [windowed, _] = windowed();
    let plain = engine(BatchLimits::default());
    // The model itself guesses right, but for what comes after the end.
    let any = u64::MAX;
    for (config, seed, wrong) in [(config(), 5, 4), (smaller, 9, any), (windowed, 5, any)] {
        let draft = BatchEngine::new(model(&config, seed).plan().unwrap(), BatchLimits::default());
        for prompt in [text(1, 4), text(90, 3)] {
            let want = generate(&plain, &prompt, 120);
            let (got, guesses) = with_draft(&plain, &draft, &prompt, 120);
            assert!(got == want, "{config}");
            assert!(guesses.guessed > 0, "{guesses:?}");
            assert!(guesses.guessed - guesses.accepted <= wrong, "{guesses:?} {config}");
        }
    }
}

#[test]
fn several_threads_share_a_draft() {
    let mut smaller = config();
    smaller["num_hidden_layers"] = json!(1);
    let draft = &BatchEngine::new(model(&smaller, 5).plan().unwrap(), BatchLimits::default());
    let engine = &engine(BatchLimits::default());
    let prompts: Vec<Vec<u32>> = (0..6).map(|i| text(5 + 13 * i, i)).collect();
    let alone: Vec<_> = prompts.iter().map(|prompt| generate(engine, prompt, 30)).collect();
    thread::scope(|scope| {
        let threads: Vec<_> = prompts
            .iter()
            .map(|prompt| scope.spawn(move || with_draft(engine, draft, prompt, 30).0))
            .collect();
        for (thread, want) in threads.into_iter().zip(&alone) {
            assert!(thread.join().unwrap() == *want);
        }
    });
    assert_eq!(draft.usage().sessions, 0);
}

#[test]
fn models_with_windows_check_both_kinds_of_guesses() {
    let lookup = Lookup { tokens: 6, context: 1 };
    for config in windowed() {
        let plain = engine_of(&config, BatchLimits::default());
        let bytes = 2 * plain.bytes(400);
        let limits = BatchLimits { lookup, cache_bytes: bytes, ..BatchLimits::default() };
        let (guessing, draft) = (engine_of(&config, limits), engine_of(&config, limits));
        // A text that repeats itself, and one that does not.
        for prompt in [text(10, 1).repeat(20), text(170, 2)] {
            let want = generate(&plain, &prompt, 120);
            assert!(generate(&guessing, &prompt, 120) == want, "{config}");
            let (got, guesses) = with_draft(&guessing, &draft, &prompt, 120);
            assert!(got == want, "{config}");
            assert!(0 < guesses.accepted && guesses.accepted < guesses.guessed, "{guesses:?}");
        }
        for engine in [&guessing, &draft] {
            assert!(engine.usage().most_cache_bytes <= bytes, "{:?}", engine.usage());
        }
    }
}

#[test]
fn a_draft_that_lags_reads_what_it_missed_as_a_prompt() {
    for config in [vec![config()], windowed().to_vec()].concat() {
        let engine = engine_of(&config, BatchLimits::default());
        let begin = |length: usize| {
            let mut draft = Draft::new(engine.session(1, 800, &Cancel::new()).unwrap(), 4);
            draft.read(&text(length, 1)).unwrap();
            draft
        };
        let all = text(600, 1);
        let mut draft = begin(10);
        let before = engine.usage();
        draft.guess(&all, WORDS, 64).unwrap();
        let after = engine.usage();
        // One token of the text, and the guesses but the last.
        assert_eq!(after.fed_tokens - before.fed_tokens, 4, "{config}");
        assert_eq!(after.prompt_tokens - before.prompt_tokens, 589, "{config}");
        drop(draft);
        assert!(after.most_cache_bytes <= engine.bytes(800), "{config}");
    }
}

#[test]
fn a_draft_that_fails_is_dropped_and_the_text_goes_on() {
    let (plain, draft) = (engine(BatchLimits::default()), engine(BatchLimits::default()));
    let want = generate(&plain, &text(20, 1), 30);
    for fails_at in [0, 10] {
        let cancel = Cancel::new();
        let mut session = plain.session(1, 50, &Cancel::new()).unwrap();
        session.set_draft(draft.session(1, 50, &cancel).unwrap(), 3);
        if fails_at == 0 {
            cancel.cancel();
        }
        let got = write_while(&mut session, &text(20, 1), &|written| {
            if written == fails_at {
                cancel.cancel();
            }
            written < 30
        });
        assert!(got == want);
        assert_eq!(draft.usage().sessions, 0);
        assert_eq!(session.guesses().guessed > 0, fails_at > 0);
    }
}

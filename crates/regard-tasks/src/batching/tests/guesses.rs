//! Guesses change how soon tokens come, and nothing else.

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
    let mut windowed = config();
    windowed["model_type"] = json!("mistral");
    windowed["sliding_window"] = json!(40);
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

//! Scores of given texts.

use super::*;
use regard_attention::Mode;
use regard_models::text::Texts;

/// Log-probabilities by the model on tensors, in double precision.
fn by_tensors(text: &[u32], known: usize) -> Vec<f64> {
    let mut texts = Texts::new();
    texts.push(text);
    let logits = model(&config(), 5).forward(&texts, None, Mode::Eval).logits.unwrap();
    let logits: Vec<f32> = logits.into_data().try_into_vec().unwrap();
    let of = |at: usize| {
        let row = &logits[(at - 1) * WORDS..at * WORDS];
        let sum: f64 = row.iter().map(|x| f64::from(*x).exp()).sum();
        f64::from(row[text[at] as usize]) - sum.ln()
    };
    (known..text.len()).map(of).collect()
}

#[test]
fn scores_are_those_of_the_model_and_the_same_bits_together() {
    let texts: Vec<Vec<u32>> = (0..7).map(|i| text(1 + 45 * i, i)).collect();
    let score = |engine: &BatchEngine, text: &[u32], known: usize| {
        let mut session = engine.session(1, text.len(), &Cancel::new()).unwrap();
        session.score(text, known).unwrap()
    };
    let limits =
        BatchLimits { prompt_tokens: 37, prompt_tokens_beside: 5, ..BatchLimits::default() };
    let known = |i: usize| 1 + 20 * (i / 2);
    let alone: Vec<Vec<f64>> = texts
        .iter()
        .enumerate()
        .map(|(i, text)| score(&engine(BatchLimits::default()), text, known(i)))
        .collect();
    for (i, (text, got)) in texts.iter().zip(&alone).enumerate() {
        let want = by_tensors(text, known(i));
        assert_eq!(got.len(), want.len());
        for (got, want) in got.iter().zip(&want) {
            assert!((got - want).abs() < 1e-4, "{got} {want}");
        }
    }
    // Beside each other and beside a writer, in small parts.
    let (engine, texts) = (&engine(limits), &texts);
    thread::scope(|scope| {
        let writer = scope.spawn(|| generate(engine, &text(20, 50), 100));
        let threads: Vec<_> = (0..texts.len())
            .map(|i| scope.spawn(move || score(engine, &texts[i], known(i))))
            .collect();
        for (thread, want) in threads.into_iter().zip(&alone) {
            let got = thread.join().unwrap();
            assert!(got.iter().zip(want).all(|(a, b)| a.to_bits() == b.to_bits()));
            assert_eq!(got.len(), want.len());
        }
        writer.join().unwrap();
    });
}

//! Recall: the first position holds a symbol, noise follows, and the last position predicts the
//! symbol. One layer of each kind, the same number of steps, one training for each distance.

use super::layer::LayerKind;
use super::learn::{Draws, LayerClassifier, accuracy, integers, loss, percent, train};
use super::{CompareOptions, ComparisonResult, Figure, Line};
use regard_models::Result;

/// Number of symbols, and of noise tokens.
pub(super) const SYMBOLS: usize = 8;
const BATCH: usize = 32;
const WIDTH: usize = 32;

/// Draws sequences `[rows, distance + 1]` and the symbol at the beginning of each.
fn batch(rows: usize, distance: usize, draws: &mut Draws) -> (Vec<usize>, Vec<usize>) {
    let (mut ids, mut wanted) = (vec![], vec![]);
    for _ in 0..rows {
        let symbol = draws.below(SYMBOLS);
        wanted.push(symbol);
        ids.push(symbol);
        ids.extend((0..distance).map(|_| SYMBOLS + draws.below(SYMBOLS)));
    }
    (ids, wanted)
}

/// Trains a layer at a distance and returns the fraction of symbols it recalls.
fn recalled(kind: LayerKind, distance: usize, steps: u64, seed: u64) -> f64 {
    let model = LayerClassifier::new(kind, 2 * SYMBOLS, WIDTH, SYMBOLS, seed);
    let shape = |rows: usize| [rows, distance + 1];
    let model = train(model, steps, 1e-2, |model, step| {
        let (ids, wanted) = batch(BATCH, distance, &mut Draws::new(seed, step));
        loss(model.last(integers(&ids, shape(BATCH))), &wanted)
    });
    const EXAM: usize = 256;
    let (ids, wanted) = batch(EXAM, distance, &mut Draws::new(seed, u64::MAX));
    accuracy(model.last(integers(&ids, shape(EXAM))), &wanted)
}

pub fn measure(options: &CompareOptions) -> Result<ComparisonResult> {
    let (distances, steps): (&[usize], u64) =
        if options.quick { (&[1, 8, 48], 200) } else { (&[1, 4, 8, 16, 32, 64, 128], 400) };
    let mut heading = vec!["layer".to_string()];
    heading.extend(distances.iter().map(|distance| format!("at {distance}")));
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    let mut found = ComparisonResult::new(
        format!(
            "which of {SYMBOLS} symbols came first? One layer of width {WIDTH}, {steps} steps of \
             {BATCH} sequences for each distance; chance is {}",
            percent(1.0 / SYMBOLS as f64)
        ),
        &heading,
    );
    let mut lines = vec![];
    for kind in LayerKind::ALL {
        let (mut row, mut points) = (vec![kind.name().to_string()], vec![]);
        for distance in distances {
            let share = recalled(kind, *distance, steps, options.seed);
            row.push(percent(share));
            points.push((*distance as f64, 100.0 * share));
            found.number(kind.name(), &format!("at_{distance}"), share);
        }
        let furthest = points[points.len() - 1].1 / 100.0;
        found.number(kind.name(), "at_furthest", furthest);
        found.row(row);
        lines.push(Line { name: kind.name().into(), points });
    }
    found.numbers.insert("furthest".into(), distances[distances.len() - 1] as f64);
    found.figures.push(Figure {
        name: "distance".into(),
        title: "symbols recalled at a distance".into(),
        x: "distance".into(),
        y: "%".into(),
        logarithmic: [true, false],
        lines,
    });
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attention_recalls_what_a_recurrence_and_a_window_do_not() {
        let share = |kind, distance| recalled(kind, distance, 200, 0);
        assert!(share(LayerKind::Tanh, 1) > 0.8, "a recurrence recalls its neighbour");
        let [global, tanh, truncated] =
            [LayerKind::Global, LayerKind::Tanh, LayerKind::Truncated].map(|kind| share(kind, 48));
        assert!(global > 0.7 && tanh < 0.5 && truncated < 0.35, "{global} {tanh} {truncated}");
    }
}

//! Path length from the first position to the last, speed-up by threads, and sensitivity to order.

use super::cost::{Step, WIDTH};
use super::layer::{LayerKind, REACH, WINDOW};
use super::{CompareOptions, ComparisonResult, Figure, Line};
use burn::tensor::{Device, Tensor, TensorData};
use regard_attention::Stream;
use regard_attention::pool::{set_threads, threads};
use regard_attention::{Attention, Init};
use regard_kernels::attention::AttentionInputs;
use regard_kernels::attention::mask::Rule;
use regard_kernels::view::View;
use regard_models::{Error, Result};

/// Computes the number of sequential steps until the first of `length` positions has reached the
/// last: time steps of a recurrence, layers of the others.
pub fn steps(kind: LayerKind, length: usize) -> Result<usize> {
    let seen = seen(kind, length)?;
    let mut reached = vec![false; length];
    reached[0] = true;
    for step in 0.. {
        if reached[length - 1] {
            return Ok(step);
        }
        let next: Vec<bool> =
            seen.iter().map(|(from, to)| reached[*from..*to].contains(&true)).collect();
        if next == reached {
            break;
        }
        reached = next;
    }
    Err(Error::invalid(format!("{}: the first position never reaches the last", kind.name())))
}

/// Returns the range of positions that each position sees in one step: for attention, that of its
/// mask.
fn seen(kind: LayerKind, length: usize) -> Result<Vec<(usize, usize)>> {
    let invalid = |error: regard_kernels::view::Error| Error::invalid(error.to_string());
    let Some(mask) = kind.mask() else {
        let (back, on) = match kind {
            LayerKind::Convolution => (WINDOW / 2, WINDOW / 2),
            _ => (1, 0),
        };
        let range = |i: usize| (i.saturating_sub(back), (i + on + 1).min(length));
        return Ok((0..length).map(range).collect());
    };
    let zeros = vec![0.0; length];
    let view = View::new(&zeros, [1, 1, length, 1]).map_err(invalid)?;
    let attention = Attention::dot().mask(mask.clone());
    let inputs = AttentionInputs { q: view, k: view, v: view, params: vec![] };
    let grid = attention.spec().check(&inputs).map_err(invalid)?;
    let range = |i: usize| {
        let (from, to) = mask.range(&grid, 0, i).expect("both masks are ranges");
        (from.max(0) as usize, to.min(length as i64) as usize)
    };
    Ok((0..length).map(range).collect())
}

/// Computes the change of the last output, relative to its norm, when the inputs before it are
/// reversed.
fn order(kind: LayerKind, seed: u64) -> f64 {
    const LENGTH: usize = 12;
    let device = Device::flex();
    let stream = Stream::new(seed, 0, 11);
    let numbers: Vec<f32> = (0..(LENGTH * WIDTH) as u64).map(|i| stream.normal(i)).collect();
    let layer = kind.init(WIDTH, &mut Init::new(seed, &device));
    let last = |numbers: Vec<f32>| -> Vec<f32> {
        let x = Tensor::from_data(TensorData::new(numbers, [1, LENGTH, WIDTH]), &device);
        let y = layer.forward(x).slice([0..1, LENGTH - 1..LENGTH, 0..WIDTH]);
        y.into_data().try_to_vec().expect("floats come as floats")
    };
    let mut turned: Vec<&[f32]> = numbers.chunks_exact(WIDTH).collect();
    turned[..LENGTH - 1].reverse();
    let (one, other) = (last(numbers.clone()), last(turned.concat()));
    let norm = |x: &mut dyn Iterator<Item = f32>| x.map(|x| f64::from(x).powi(2)).sum::<f64>();
    let apart = norm(&mut one.iter().zip(&other).map(|(x, y)| x - y));
    (apart / norm(&mut one.iter().copied())).sqrt()
}

pub fn measure(options: &CompareOptions) -> Result<ComparisonResult> {
    let (far, length) = (1024, if options.quick { 1024 } else { 4096 });
    let many = threads().max(2);
    let mut found = ComparisonResult::new(
        format!(
            "path length in time steps or layers; time of a step at length {length} on 1 and on \
             {many} threads; order: relative change of the last output when the inputs before it \
             are reversed, without position encodings"
        ),
        &["layer", "path from 1 to 1024", "time 1 thread", "threads", "speed-up", "order"],
    );
    let mut lines = vec![];
    for kind in LayerKind::ALL {
        let name = kind.name();
        let path = steps(kind, far)?;
        let step = Step::new(kind, length, options.seed);
        let before = threads();
        set_threads(1);
        let one = step.seconds(4);
        set_threads(many);
        let all = step.seconds(4);
        set_threads(before);
        let moved = order(kind, options.seed);
        found.number(name, "steps_to_1024", path as f64);
        found.number(name, "speed_up", one / all);
        found.number(name, "order", moved);
        found.row(vec![
            name.into(),
            path.to_string(),
            format!("{:.1} ms", 1e3 * one),
            many.to_string(),
            format!("{:.2}×", one / all),
            format!("{moved:.3}"),
        ]);
        let lengths = [2, 8, 32, 128, 512, 1024];
        let point = |n: usize| Ok((n as f64, steps(kind, n)? as f64));
        let points = lengths.into_iter().map(point).collect::<Result<_>>()?;
        lines.push(Line { name: name.into(), points });
    }
    found.numbers.insert("threads".into(), many as f64);
    found.figures.push(Figure {
        name: "path".into(),
        title: format!("maximum path length, first to last position (window of ±{REACH})"),
        x: "length".into(),
        y: "time steps or layers".into(),
        logarithmic: [true, true],
        lines,
    });
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_definitions() {
        let wanted = [
            (LayerKind::Tanh, 100),
            (LayerKind::Lstm, 100),
            (LayerKind::Convolution, 100),
            (LayerKind::Global, 1),
            (LayerKind::Truncated, 13),
        ];
        for (kind, want) in wanted {
            assert_eq!(steps(kind, 101).unwrap(), want, "{}", kind.name());
        }
        assert_eq!(steps(LayerKind::Tanh, 1).unwrap(), 0);
    }

    #[test]
    fn attention_alone_does_not_see_order_and_a_recurrence_does() {
        assert!(order(LayerKind::Tanh, 1) > 0.05, "{}", order(LayerKind::Tanh, 1));
        assert!(order(LayerKind::Global, 1) < 1e-5, "{}", order(LayerKind::Global, 1));
    }
}

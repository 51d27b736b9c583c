//! Norm of the gradient of the last output with respect to inputs at a distance, at initialisation:
//! for a recurrence it is a product of as many matrices as there are steps.

use super::layer::LayerKind;
use super::learn::device;
use super::{CompareOptions, ComparisonResult, Figure, Line};
use burn::tensor::{Tensor, TensorData};
use regard_attention::Init;
use regard_attention::Stream;
use regard_models::Result;

const WIDTH: usize = 64;
const LENGTH: usize = 65;
/// Number of sequences over which norms are averaged.
const ROWS: usize = 16;

/// Computes the mean norm of the gradient with respect to the input at each distance from the last
/// position.
pub fn norms(kind: LayerKind, seed: u64) -> Vec<f64> {
    let device = device();
    let draw = |site: u64, shape: [usize; 3]| {
        let stream = Stream::new(seed, 0, site);
        let count = shape.iter().product::<usize>() as u64;
        let numbers: Vec<f32> = (0..count).map(|i| stream.normal(i)).collect();
        Tensor::<3>::from_data(TensorData::new(numbers, shape), &device)
    };
    let x = draw(21, [ROWS, LENGTH, WIDTH]).require_grad();
    let layer = kind.init(WIDTH, &mut Init::new(seed, &device));
    let last = layer.forward(x.clone()).slice([0..ROWS, LENGTH - 1..LENGTH, 0..WIDTH]);
    // A random direction of length about 1 for each row, so that the output is a scalar.
    let along = draw(22, [ROWS, 1, WIDTH]) / (WIDTH as f64).sqrt();
    let grads = (last * along).sum().backward();
    let gradient = x.grad(&grads).expect("the input is followed");
    let numbers = gradient.into_data().try_to_vec::<f32>().expect("floats come as floats");
    let norm = |row: usize, at: usize| {
        let from = (row * LENGTH + at) * WIDTH;
        numbers[from..from + WIDTH].iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt()
    };
    let mean = |at: usize| (0..ROWS).map(|row| norm(row, at)).sum::<f64>() / ROWS as f64;
    (0..LENGTH).rev().map(mean).collect()
}

pub fn measure(options: &CompareOptions) -> Result<ComparisonResult> {
    const SHOWN: [usize; 5] = [0, 4, 16, 32, 60];
    let mut heading = vec!["layer".to_string()];
    heading.extend(SHOWN.map(|distance| format!("at {distance}")));
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    let mut found = ComparisonResult::new(
        format!(
            "|∂ output at the end / ∂ input at a distance|, width {WIDTH}, initialised as in \
             PyTorch, mean over {ROWS} sequences"
        ),
        &heading,
    );
    let mut lines = vec![];
    for kind in LayerKind::ALL {
        let norms = norms(kind, options.seed);
        let mut row = vec![kind.name().to_string()];
        for distance in SHOWN {
            row.push(match norms[distance] {
                0.0 => "0".into(),
                norm => format!("{norm:.1e}"),
            });
            found.number(kind.name(), &format!("at_{distance}"), norms[distance]);
        }
        found.row(row);
        let seen = norms.iter().enumerate().filter(|(_, norm)| **norm > 0.0);
        let points = seen.map(|(distance, norm)| (distance as f64, *norm)).collect();
        lines.push(Line { name: kind.name().into(), points });
    }
    found.figures.push(Figure {
        name: "gradient".into(),
        title: "gradient norm at a distance".into(),
        x: "distance".into(),
        y: "norm".into(),
        logarithmic: [false, true],
        lines,
    });
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recurrence_forgets_and_attention_does_not() {
        let found = super::super::quick("gradient");
        let at =
            |kind: LayerKind, distance| found.get(kind.name(), &format!("at_{distance}")).unwrap();
        assert!(at(LayerKind::Tanh, 60) < 1e-4 * at(LayerKind::Tanh, 0));
        assert!(at(LayerKind::Lstm, 60) < 1e-4 * at(LayerKind::Lstm, 0));
        assert!(at(LayerKind::Global, 60) > 0.1 * at(LayerKind::Global, 16));
        assert!(at(LayerKind::Global, 60) > 100.0 * at(LayerKind::Tanh, 60));
        assert_eq!(at(LayerKind::Truncated, 32), 0.0);
        assert_eq!(at(LayerKind::Convolution, 4), 0.0);
    }
}

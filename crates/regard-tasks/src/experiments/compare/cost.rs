//! Time and memory of a layer as functions of the length: `L·d²`, `L²·d` or `L·w·d`.

use super::layer::{LayerKind, REACH, SequenceLayer, WINDOW};
use super::{CompareOptions, ComparisonResult, Figure, Line, megabytes};
use burn::tensor::{Device, Tensor, TensorData};
use regard_attention::Init;
use regard_attention::Stream;
use regard_models::Result;
use std::time::Instant;

/// Width of all layers, `d`.
pub const WIDTH: usize = 64;
/// Length of the reference probe, whose memory is negligible.
const NOTHING: usize = 16;

/// A training step of a layer on one sequence: forward and backward.
pub struct Step {
    layer: SequenceLayer,
    x: Tensor<3>,
}

impl Step {
    /// Creates a layer and a random sequence of this length.
    pub fn new(kind: LayerKind, length: usize, seed: u64) -> Step {
        let device = Device::flex().autodiff();
        let stream = Stream::new(seed, 0, 7);
        let numbers: Vec<f32> = (0..(length * WIDTH) as u64).map(|i| stream.normal(i)).collect();
        let x = Tensor::from_data(TensorData::new(numbers, [1, length, WIDTH]), &device);
        Step { layer: kind.init(WIDTH, &mut Init::new(seed, &device)), x: x.require_grad() }
    }

    /// Runs the step and returns its seconds.
    pub fn run(&self) -> f64 {
        let started = Instant::now();
        let loss = self.layer.forward(self.x.clone()).sum();
        let grads = loss.backward();
        let gradient = self.x.grad(&grads).expect("the input is followed");
        drop(gradient.into_data());
        started.elapsed().as_secs_f64()
    }

    /// Returns the minimum over `times` runs after a warm-up: other processes only make a step
    /// slower.
    pub fn seconds(&self, times: usize) -> f64 {
        self.run();
        (0..times).map(|_| self.run()).fold(f64::INFINITY, f64::min)
    }
}

/// Fits the exponent of a power law: the slope of a line through the logarithms.
pub fn exponent(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let logs = || points.iter().map(|(x, y)| (x.ln(), y.ln()));
    let (x, y) = (logs().map(|p| p.0).sum::<f64>() / n, logs().map(|p| p.1).sum::<f64>() / n);
    let up: f64 = logs().map(|p| (p.0 - x) * (p.1 - y)).sum();
    up / logs().map(|p| (p.0 - x).powi(2)).sum::<f64>()
}

pub fn measure(options: &CompareOptions) -> Result<ComparisonResult> {
    let lengths: &[usize] =
        if options.quick { &[512, 1024, 2048] } else { &[512, 1024, 2048, 4096, 8192] };
    // The memory of short sequences is below the variation of a process's own memory.
    let longer: &[usize] =
        if options.quick { &[4096, 8192, 16384] } else { &[4096, 8192, 16384, 32768] };
    let (longest, most) = (lengths[lengths.len() - 1], longer[longer.len() - 1]);
    let mut found = ComparisonResult::new(
        format!(
            "forward and backward of one layer of width d = {WIDTH} on one sequence; the window w \
             is {WINDOW} rows of the CNN and {} keys of the truncated attention; exponents of time \
             fitted over lengths {} to {longest}, of memory over {} to {most}",
            2 * REACH + 1,
            lengths[0],
            longer[0],
        ),
        &["layer", "by definition", "time ~ L^", "of the longest", "memory ~ L^", "of the longest"],
    );
    let (mut times, mut memories) = (vec![], vec![]);
    for kind in LayerKind::ALL {
        let name = kind.name();
        let mut points = vec![];
        for length in lengths {
            let step = Step::new(kind, *length, options.seed);
            points.push((*length as f64, step.seconds(if *length > 2048 { 3 } else { 5 })));
        }
        let memory = memory(options, kind, longer);
        let slope = exponent(&points);
        let last = points[points.len() - 1].1;
        found.number(name, "time_exponent", slope);
        found.number(name, "seconds_at_longest", last);
        let grows = memory.as_ref().map(|points| exponent(points));
        let there = memory.as_ref().map(|points| points[points.len() - 1].1);
        if let (Some(slope), Some(bytes)) = (grows, there) {
            found.number(name, "memory_exponent", slope);
            found.number(name, "bytes_at_longest", bytes);
        }
        found.row(vec![
            name.into(),
            kind.growth().into(),
            format!("{slope:.2}"),
            format!("{:.1} ms", 1e3 * last),
            grows.map_or("–".into(), |slope| format!("{slope:.2}")),
            there.map_or("–".into(), megabytes),
        ]);
        let milliseconds = points.iter().map(|p| (p.0, 1e3 * p.1)).collect();
        times.push(Line { name: name.into(), points: milliseconds });
        memories.extend(memory.map(|points| {
            let points = points.iter().map(|p| (p.0, p.1 / 1e6)).collect();
            Line { name: name.into(), points }
        }));
    }
    found.numbers.insert("longest".into(), longest as f64);
    let figure = |name: &str, y: &str, lines| Figure {
        name: name.into(),
        title: format!("{y} of a training step against the length"),
        x: "length".into(),
        y: y.into(),
        logarithmic: [true, true],
        lines,
    };
    found.figures.push(figure("time", "milliseconds", times));
    if !memories.is_empty() {
        found.figures.push(figure("memory", "megabytes", memories));
    }
    Ok(found)
}

/// Measures the memory of a step at each length, beyond that of the reference probe.
fn memory(options: &CompareOptions, kind: LayerKind, lengths: &[usize]) -> Option<Vec<(f64, f64)>> {
    let peak = options.peak_memory?;
    let before = peak(kind.name(), NOTHING)?;
    let taken = |length: &usize| {
        let bytes = peak(kind.name(), *length)?.saturating_sub(before);
        Some((*length as f64, (bytes as f64).max(1.0)))
    };
    lengths.iter().map(taken).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_those_of_powers() {
        for power in [0.5, 1.0, 2.0] {
            let points: Vec<_> = [2f64, 4.0, 16.0].map(|x| (x, 3.0 * x.powf(power))).into();
            assert!((exponent(&points) - power).abs() < 1e-9);
        }
    }

    /// Times are not asserted, since they need an idle machine; that a window scores fewer pairs is
    /// tested in the laws of the engine.
    #[test]
    fn every_layer_takes_a_step() {
        for kind in LayerKind::ALL {
            let seconds = Step::new(kind, 40, 0).seconds(1);
            assert!(seconds.is_finite() && seconds > 0.0, "{}: {seconds}", kind.name());
        }
    }
}

//! Features of large numbers, such as ages, are scaled: beside them, features around 0 would not
//! count, and training would not converge.

use super::nodes::{Node, Nodes};
use super::{Findings, Place};
use crate::import::reading::{Column, Reading, Scale};
use crate::say;

/// Magnitude above which a feature is scaled. Smaller ones, such as 0 and 1, are left as they are.
const LARGE: f32 = 5.0;
/// Deviation below which a column is constant, as a part of its largest value.
const CONSTANT: f64 = 1e-6;
/// Scaled columns that are named.
const LISTED: usize = 8;
/// Role of the columns of features.
const FEATURES: &str = "features";

/// Scales columns of large numbers, and notes how in the reading of the nodes. Returns a sentence
/// about them.
pub(super) fn fit(nodes: &mut Nodes) -> Option<String> {
    let scales = scales(nodes);
    if scales.iter().all(Option::is_none) {
        return None;
    }
    apply_to(&mut nodes.all, &scales);
    let columns = nodes.reading.columns.get_mut(FEATURES).into_iter().flatten();
    columns.zip(&scales).for_each(|(column, scale)| column.scale = *scale);
    let one = |(name, scale): (&String, &Option<Scale>)| {
        let Scale { mean, deviation } = (*scale)?;
        let own = name.strip_prefix("column '").and_then(|rest| rest.strip_suffix('\''));
        let name = own.unwrap_or(name);
        Some(format!("{name} scaled by mean {}, deviation {}", digits(mean), digits(deviation)))
    };
    let told: Vec<String> = nodes.features.iter().zip(&scales).filter_map(one).collect();
    let more = match told.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!("; and {} more", say::count(more)),
    };
    Some(format!("features: {}{more}", told[..told.len().min(LISTED)].join("; ")))
}

/// A number with one digit after the point, or with three digits if it is small.
fn digits(number: f64) -> String {
    match number == 0.0 || number.abs() >= 1.0 {
        true => format!("{number:.1}"),
        false => format!("{number:.3}"),
    }
}

/// Scales the nodes of another table as those of training were.
pub(super) fn apply(nodes: &mut Nodes, trained: &Reading, findings: &mut Findings) {
    let columns = trained.columns.get(FEATURES).map_or(&[][..], Vec::as_slice);
    let is_sound = |scale: &Scale| {
        scale.mean.is_finite() && scale.deviation.is_finite() && scale.deviation > 0.0
    };
    if columns.iter().filter_map(|column| column.scale.as_ref()).any(|scale| !is_sound(scale)) {
        let message = "the record of the run has a scale of a feature that is no finite number";
        findings.error("features", Place::whole(&nodes.path), message);
        return;
    }
    let scales: Vec<Option<Scale>> = columns.iter().map(|column: &Column| column.scale).collect();
    apply_to(&mut nodes.all, &scales);
}

/// Scale of each column over all nodes; `None` for those of small numbers.
fn scales(nodes: &Nodes) -> Vec<Option<Scale>> {
    let count = nodes.all.len() as f64;
    let mut most = vec![0f32; nodes.features.len()];
    let mut means = vec![0f64; nodes.features.len()];
    let values = || nodes.all.iter().flat_map(|node| &node.features);
    for (column, value) in values() {
        let at = *column as usize;
        most[at] = most[at].max(value.abs());
        means[at] += f64::from(*value) / count;
    }
    let mut squares = vec![0f64; nodes.features.len()];
    let mut zeros = vec![count; nodes.features.len()];
    for (column, value) in values() {
        let at = *column as usize;
        squares[at] += (f64::from(*value) - means[at]).powi(2);
        zeros[at] -= 1.0;
    }
    // Values of 0 are not listed.
    for ((square, zeros), mean) in squares.iter_mut().zip(zeros).zip(&means) {
        *square += zeros * mean * mean;
    }
    let scale = |((most, mean), square): ((f32, f64), f64)| {
        let deviation = (square / count).sqrt();
        (most > LARGE).then(|| match deviation > CONSTANT * f64::from(most) {
            true => Scale { mean, deviation },
            // A constant stays one: 1, or −1.
            false => Scale { mean: 0.0, deviation: f64::from(most) },
        })
    };
    most.into_iter().zip(means).zip(squares).map(scale).collect()
}

/// Scales the features of nodes; those that are 0 may be something else then.
fn apply_to(nodes: &mut [Node], scales: &[Option<Scale>]) {
    if scales.iter().all(Option::is_none) {
        return;
    }
    let mut row = vec![0f32; scales.len()];
    for node in nodes {
        row.fill(0.0);
        node.features.iter().for_each(|(column, value)| row[*column as usize] = *value);
        for (value, scale) in row.iter_mut().zip(scales) {
            if let Some(Scale { mean, deviation }) = scale {
                *value = ((f64::from(*value) - mean) / deviation) as f32;
            }
        }
        node.features = (0..).zip(row.iter().copied()).filter(|(_, value)| *value != 0.0).collect();
    }
}

//! Line plots with a legend, as SVG and as text.

mod axis;
mod svg;
mod text;

use axis::Axis;
pub use axis::Scale;

/// Style of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Points joined by lines.
    #[default]
    Line,
    /// Points only.
    Dots,
}

/// A curve.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// Name in the legend.
    pub name: String,
    /// Points (x, y), from left to right.
    pub points: Vec<(f64, f64)>,
    /// Drawing style.
    pub style: Style,
}

/// A plot: curves with axes.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// Title.
    pub title: String,
    /// Label of the horizontal axis.
    pub x: String,
    /// Label of the vertical axis.
    pub y: String,
    /// Scales of the horizontal and the vertical axis.
    pub scales: [Scale; 2],
    /// Curves, in the order of the legend.
    pub curves: Vec<Curve>,
}

impl Plot {
    fn axes(&self) -> [Axis; 2] {
        let all = || self.curves.iter().flat_map(|curve| &curve.points);
        let [x, y] = self.scales;
        [Axis::around(x, all().map(|p| p.0)), Axis::around(y, all().map(|p| p.1))]
    }
}

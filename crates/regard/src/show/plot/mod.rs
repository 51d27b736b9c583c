//! Curves over one axis, with a legend: as SVG, and as text for a terminal.

mod axis;
mod svg;
mod text;

use axis::Axis;
pub use axis::Scale;

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Its points, joined by lines.
    #[default]
    Line,
    /// Its points alone.
    Dots,
}

/// A curve.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// In the legend.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
    /// How it is drawn.
    pub style: Style,
}

/// Curves with their axes.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// Above it.
    pub title: String,
    /// What goes to the right.
    pub x: String,
    /// What goes up.
    pub y: String,
    /// How both axes are divided, the one to the right first.
    pub scales: [Scale; 2],
    /// The curves.
    pub curves: Vec<Curve>,
}

impl Plot {
    fn axes(&self) -> [Axis; 2] {
        let all = || self.curves.iter().flat_map(|curve| &curve.points);
        let [x, y] = self.scales;
        [Axis::around(x, all().map(|p| p.0)), Axis::around(y, all().map(|p| p.1))]
    }
}

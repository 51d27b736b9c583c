//! Curves as SVG: a few lines over one axis, with a legend.

use super::svg::escape;
use std::fmt::Write;

/// A curve.
pub struct Curve {
    /// In the legend.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}

/// Curves with their axes.
pub struct Plot {
    /// Above it.
    pub title: String,
    /// What goes to the right.
    pub x: String,
    /// What goes up.
    pub y: String,
    /// The curves.
    pub curves: Vec<Curve>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
/// Told apart in print and by those who do not see all colours (Okabe and Ito 2008).
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

impl Plot {
    /// As one SVG file. Both axes begin at 0.
    pub fn svg(&self) -> String {
        let all = || self.curves.iter().flat_map(|curve| &curve.points);
        let right = step_above(all().map(|p| p.0).fold(0.0, f64::max));
        let top = step_above(all().map(|p| p.1).fold(0.0, f64::max));
        let x = |value: f64| LEFT + value / right * (WIDTH - LEFT - RIGHT);
        let y = |value: f64| HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM);
        let mut svg = String::new();
        // Writing to a string cannot fail.
        let _ = write!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
             <text x=\"{}\" y=\"22\" text-anchor=\"middle\" font-size=\"15\">{}</text>\n",
            WIDTH / 2.0,
            escape(&self.title)
        );
        for tick in 0..=5 {
            let (at_x, at_y) = (right * f64::from(tick) / 5.0, top * f64::from(tick) / 5.0);
            let _ = write!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{1:.1}\" y2=\"{1:.1}\" stroke=\"#ddd\"/>\n\
                 <text x=\"{2}\" y=\"{3:.1}\" text-anchor=\"end\">{4}</text>\n\
                 <text x=\"{5:.1}\" y=\"{6}\" text-anchor=\"middle\">{7}</text>\n",
                WIDTH - RIGHT,
                y(at_y),
                LEFT - 6.0,
                y(at_y) + 4.0,
                number(at_y),
                x(at_x),
                HEIGHT - BOTTOM + 18.0,
                number(at_x)
            );
        }
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
             <text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
            (LEFT + WIDTH - RIGHT) / 2.0,
            HEIGHT - 12.0,
            escape(&self.x),
            (TOP + HEIGHT - BOTTOM) / 2.0,
            escape(&self.y)
        );
        for (i, curve) in self.curves.iter().enumerate() {
            let colour = COLOURS[i % COLOURS.len()];
            let points: Vec<String> =
                curve.points.iter().map(|p| format!("{:.1},{:.1}", x(p.0), y(p.1))).collect();
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
                points.join(" ")
            );
            for p in &curve.points {
                let _ = writeln!(
                    svg,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>",
                    x(p.0),
                    y(p.1)
                );
            }
            let row = TOP + 8.0 + 18.0 * i as f64;
            let _ = write!(
                svg,
                "<rect x=\"{0}\" y=\"{1}\" width=\"12\" height=\"4\" fill=\"{colour}\"/>\n\
                 <text x=\"{2}\" y=\"{3}\">{4}</text>\n",
                WIDTH - 220.0,
                row,
                WIDTH - 202.0,
                row + 6.0,
                escape(&curve.name)
            );
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// A round number at or above a value.
fn step_above(value: f64) -> f64 {
    if !(value.is_finite() && value > 0.0) {
        return 1.0;
    }
    let unit = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0].iter().map(|n| n * unit).find(|n| *n >= value).unwrap_or(value)
}

fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        for (value, end) in [(0.0, 1.0), (0.7, 1.0), (1.2, 2.0), (23.0, 25.0), (44.0, 50.0)] {
            assert!((step_above(value) - end).abs() < 1e-9, "{value}: {}", step_above(value));
        }
    }

    #[test]
    fn a_plot_holds_its_points_and_escapes_its_names() {
        let points = vec![(0.0, 0.0), (10.0, 50.0)];
        let curves = vec![Curve { name: "a < b".into(), points }];
        let plot = Plot { title: "t".into(), x: "x".into(), y: "y".into(), curves };
        let svg = plot.svg();
        assert!(svg.contains("a &lt; b") && svg.contains("60.0,350.0 620.0,40.0"), "{svg}");
    }
}

//! Plots as SVG.

use super::{Curve, Plot, Style};
use crate::show::svg::{Drawing, document, escape};
use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
/// Palette for print and colour-blind readers (Okabe and Ito 2008).
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

impl Plot {
    /// Returns the plot as an SVG document.
    pub fn svg(&self) -> String {
        document(&[self.drawing()])
    }

    /// Returns the plot as a part of an SVG document.
    pub fn drawing(&self) -> Drawing {
        let [across, up] = self.axes();
        let x = |place: f64| LEFT + place * (WIDTH - LEFT - RIGHT);
        let y = |place: f64| HEIGHT - BOTTOM - place * (HEIGHT - TOP - BOTTOM);
        let mut svg = String::new();
        // Writing to a string cannot fail.
        let _ = write!(
            svg,
            "<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
             <g font-family=\"sans-serif\">\n\
             <text x=\"{}\" y=\"22\" text-anchor=\"middle\" font-size=\"15\">{}</text>\n",
            WIDTH / 2.0,
            escape(&self.title)
        );
        for (place, number) in up.ticks() {
            let _ = write!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{0}\" y1=\"{1:.1}\" y2=\"{1:.1}\" stroke=\"#ddd\"/>\n\
                 <text x=\"{2}\" y=\"{3:.1}\" text-anchor=\"end\">{number}</text>\n",
                WIDTH - RIGHT,
                y(place),
                LEFT - 6.0,
                y(place) + 4.0
            );
        }
        for (place, number) in across.ticks() {
            let (at, below) = (x(place), HEIGHT - BOTTOM + 18.0);
            let _ = writeln!(
                svg,
                "<text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"middle\">{number}</text>"
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
            let place = |p: &(f64, f64)| Some((x(across.place(p.0)?), y(up.place(p.1)?)));
            let places: Vec<(f64, f64)> = curve.points.iter().filter_map(place).collect();
            draw(curve, &places, i, &mut svg);
        }
        svg.push_str("</g>\n");
        Drawing { inside: svg, width: WIDTH as f32, height: HEIGHT as f32 }
    }
}

/// Draws a curve and its entry in the legend.
fn draw(curve: &Curve, places: &[(f64, f64)], number: usize, svg: &mut String) {
    let colour = COLOURS[number % COLOURS.len()];
    if curve.style == Style::Line {
        let points: Vec<String> = places.iter().map(|p| format!("{:.1},{:.1}", p.0, p.1)).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            points.join(" ")
        );
    }
    for (x, y) in places {
        let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
    }
    let row = TOP + 8.0 + 18.0 * number as f64;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_holds_its_points_and_escapes_its_names() {
        let points = vec![(0.0, 0.0), (10.0, 50.0)];
        let curve = Curve { name: "a < b".into(), points, ..Curve::default() };
        let mut plot = Plot { curves: vec![curve], ..Plot::default() };
        let svg = plot.svg();
        assert!(svg.contains("a &lt; b") && svg.contains("60.0,350.0 620.0,40.0"), "{svg}");
        plot.curves[0].style = Style::Dots;
        let svg = plot.svg();
        assert!(!svg.contains("polyline") && svg.matches("<circle").count() == 2, "{svg}");
    }
}

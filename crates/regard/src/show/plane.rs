//! Points in the plane and paths through them, as SVG.

use std::fmt::Write;

/// Side of the drawing area in pixels.
const SIDE: f64 = 480.0;
const MARGIN: f64 = 40.0;

/// A path through points.
pub struct Way {
    /// Indices of the points, from 0.
    pub places: Vec<u32>,
    /// Whether the path returns to its first point.
    pub closed: bool,
}

/// Points with the model's answer and the solution.
pub struct Plane {
    pub points: Vec<[f64; 2]>,
    /// Answer of the model.
    pub answer: Way,
    /// Exact solution, drawn below the answer.
    pub solution: Option<Way>,
}

impl Plane {
    /// Draws the points with their numbers, counted from 1; y increases upwards.
    pub fn svg(&self) -> String {
        let places: Vec<[f64; 2]> = self.points.iter().map(|point| self.place(*point)).collect();
        let mut inside = String::new();
        let solution = ("solution", "stroke=\"#bbb\" stroke-width=\"7\"", self.solution.as_ref());
        let answer = ("answer", "stroke=\"#1f4e9c\" stroke-width=\"2\"", Some(&self.answer));
        for (name, stroke, way) in [solution, answer] {
            if let Some(way) = way {
                let corner = |at: &u32| {
                    let [x, y] = places[*at as usize];
                    format!("{x:.1},{y:.1}")
                };
                let corners: Vec<String> = way.places.iter().map(corner).collect();
                let shape = if way.closed { "polygon" } else { "polyline" };
                let _ = writeln!(
                    inside,
                    "<{shape} fill=\"none\" stroke-linejoin=\"round\" {stroke} points=\"{}\">\
                     <title>{name}</title></{shape}>",
                    corners.join(" ")
                );
            }
        }
        for (i, [x, y]) in places.iter().enumerate() {
            let (tx, ty, name) = (x + 7.0, y - 7.0, i + 1);
            let _ = writeln!(
                inside,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>\
                 <text x=\"{tx:.1}\" y=\"{ty:.1}\">{name}</text>"
            );
        }
        let _ = writeln!(
            inside,
            "<text x=\"{MARGIN}\" y=\"{:.0}\">thin: answer · broad: exact solution</text>",
            SIDE + 2.0 * MARGIN - 10.0
        );
        let whole = SIDE + 2.0 * MARGIN;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" fill=\"#222\" \
             viewBox=\"0 0 {whole} {whole}\" width=\"{whole}\" height=\"{whole}\" \
             font-family=\"ui-monospace,Menlo,Consolas,monospace\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{inside}</svg>\n"
        )
    }

    /// Position of a point in the picture; each axis is scaled to the range of the points.
    fn place(&self, point: [f64; 2]) -> [f64; 2] {
        let along = |axis: usize| {
            let of = |all: fn(f64, f64) -> f64, from: f64| {
                self.points.iter().map(|point| point[axis]).fold(from, all)
            };
            let (low, high) = (of(f64::min, f64::INFINITY), of(f64::max, f64::NEG_INFINITY));
            if high > low { (point[axis] - low) / (high - low) } else { 0.5 }
        };
        [MARGIN + SIDE * along(0), MARGIN + SIDE * (1.0 - along(1))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_and_both_ways() {
        let way = |places: &[u32]| Way { places: places.to_vec(), closed: true };
        let points = vec![[0.0, 0.0], [2.0, 0.0], [2.0, 1e6]];
        let plane = Plane { points, answer: way(&[0, 1]), solution: Some(way(&[0, 1, 2])) };
        let text = plane.svg();
        assert_eq!(text.matches("<circle").count(), 3);
        assert!(text.contains("points=\"40.0,520.0 520.0,520.0\"><title>answer"), "{text}");
        assert!(text.contains("520.0,40.0\"><title>solution"), "{text}");
        let one = Plane { points: vec![[3.0, 3.0]], answer: way(&[0]), solution: None };
        assert!(!one.svg().contains("NaN"));
    }
}

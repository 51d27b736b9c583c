//! Graphs as SVG: nodes coloured by label, edges as wide as their weight.

use super::svg::escape;
use std::fmt::Write;

/// A node of the picture.
pub struct Node {
    /// Text above the node.
    pub name: String,
    /// Tooltip.
    pub about: String,
    /// Index of its colour.
    pub colour: usize,
    /// Distance from the central node, in edges.
    pub ring: usize,
    /// Size, from 0 to 1.
    pub weight: f32,
}

/// An edge between two nodes, by their indices.
pub struct Edge {
    /// Node that is attended to.
    pub from: usize,
    /// Node that attends.
    pub to: usize,
    /// Attention weight, from 0 to 1.
    pub weight: f32,
}

/// A point or a vector of the picture.
#[derive(Clone, Copy, Debug)]
struct Point {
    x: f64,
    y: f64,
}

const SIDE: f64 = 800.0;
const MARGIN: f64 = 40.0;
/// Palette for colour-blind readers (Okabe and Ito 2008).
const COLOURS: [&str; 8] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999"];

/// Draws a graph; `labels` are the names of the colours.
pub fn svg(title: &str, nodes: &[Node], edges: &[Edge], labels: &[String]) -> String {
    let places = lay_out(nodes, edges);
    let mut inside = String::new();
    let _ =
        writeln!(inside, "<text x=\"{MARGIN}\" y=\"24\" fill=\"#222\">{}</text>", escape(title));
    for edge in edges.iter().filter(|edge| edge.from != edge.to) {
        let (Point { x: x1, y: y1 }, Point { x: x2, y: y2 }) = (places[edge.from], places[edge.to]);
        let (wide, strong) = (0.5 + 6.0 * edge.weight, 0.15 + 0.85 * edge.weight);
        let _ = writeln!(
            inside,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#444\" \
             stroke-width=\"{wide:.2}\" stroke-opacity=\"{strong:.2}\"><title>{} → {}: {:.4}\
             </title></line>",
            escape(&nodes[edge.from].name),
            escape(&nodes[edge.to].name),
            edge.weight
        );
    }
    for (node, Point { x, y }) in nodes.iter().zip(&places) {
        let radius = 8.0 + 10.0 * node.weight;
        let colour = COLOURS[node.colour % COLOURS.len()];
        let _ = writeln!(
            inside,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" fill=\"{colour}\" \
             stroke=\"#222\"><title>{}</title></circle>\n<text x=\"{x:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\" font-size=\"10\" fill=\"#222\">{}</text>",
            escape(&node.about),
            y - f64::from(radius) - 3.0,
            escape(&node.name)
        );
    }
    for (at, label) in labels.iter().enumerate() {
        let y = SIDE + 20.0 + 20.0 * at as f64;
        let _ = writeln!(
            inside,
            "<circle cx=\"{MARGIN}\" cy=\"{:.1}\" r=\"6\" fill=\"{}\"/><text x=\"{:.1}\" \
             y=\"{y:.1}\" fill=\"#222\">{}</text>",
            y - 4.0,
            COLOURS[at % COLOURS.len()],
            MARGIN + 14.0,
            escape(label)
        );
    }
    let high = SIDE + 40.0 + 20.0 * labels.len() as f64;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 {SIDE:.0} \
         {high:.0}\" width=\"{SIDE:.0}\" height=\"{high:.0}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{inside}</svg>\n"
    )
}

/// Force-directed layout (Fruchterman and Reingold 1991), initialised with rings around the centre.
fn lay_out(nodes: &[Node], edges: &[Edge]) -> Vec<Point> {
    let count = nodes.len();
    let mut places: Vec<Point> = (0..count)
        .map(|i| {
            let angle = std::f64::consts::TAU * i as f64 / count.max(1) as f64;
            let far = nodes[i].ring as f64 + if count > 1 { 0.01 } else { 0.0 };
            Point { x: far * angle.cos(), y: far * angle.sin() }
        })
        .collect();
    let ideal = 1.0;
    let rounds = 300;
    for round in 0..rounds {
        let mut moves = vec![Point { x: 0.0, y: 0.0 }; count];
        for i in 0..count {
            for j in 0..i {
                let (direction, apart) = between(places[i], places[j]);
                let push = ideal * ideal / apart;
                pull(&mut moves, i, j, direction, push);
            }
        }
        for edge in edges.iter().filter(|edge| edge.from != edge.to) {
            let (direction, apart) = between(places[edge.from], places[edge.to]);
            pull(&mut moves, edge.from, edge.to, direction, -apart * apart / ideal);
        }
        let most = 0.5 * (1.0 - f64::from(round) / f64::from(rounds));
        for (place, Point { x: dx, y: dy }) in places.iter_mut().zip(moves) {
            let far = (dx * dx + dy * dy).sqrt().max(1e-9);
            let step = far.min(most) / far;
            *place = Point { x: place.x + dx * step, y: place.y + dy * step };
        }
    }
    let span = |of: fn(&Point) -> f64| {
        let all = || places.iter().map(of);
        (all().fold(f64::MAX, f64::min), all().fold(f64::MIN, f64::max))
    };
    let ((left, right), (top, bottom)) = (span(|p| p.x), span(|p| p.y));
    let scale = (SIDE - 2.0 * MARGIN - 20.0) / (right - left).max(bottom - top).max(1e-9);
    let middle = |x: f64, low: f64, high: f64| (x - (low + high) / 2.0) * scale + SIDE / 2.0;
    let drawn =
        |p: &Point| Point { x: middle(p.x, left, right), y: middle(p.y, top, bottom) + 10.0 };
    places.iter().map(drawn).collect()
}

/// Unit vector from the second point to the first, and their distance.
fn between(a: Point, b: Point) -> (Point, f64) {
    let (dx, dy) = (a.x - b.x, a.y - b.y);
    let apart = (dx * dx + dy * dy).sqrt().max(1e-3);
    (Point { x: dx / apart, y: dy / apart }, apart)
}

/// Adds a force along a direction to the move of `i`, and its opposite to that of `j`.
fn pull(moves: &mut [Point], i: usize, j: usize, direction: Point, force: f64) {
    let Point { x: dx, y: dy } = direction;
    moves[i] = Point { x: moves[i].x + dx * force, y: moves[i].y + dy * force };
    moves[j] = Point { x: moves[j].x - dx * force, y: moves[j].y - dy * force };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_stand_apart_within_the_picture() {
        let node = |i: usize| Node {
            name: i.to_string(),
            about: "<a>".into(),
            colour: i,
            ring: usize::from(i > 0),
            weight: 0.5,
        };
        let nodes: Vec<Node> = (0..6).map(node).collect();
        let edges: Vec<Edge> = (1..6).map(|from| Edge { from, to: 0, weight: 0.2 }).collect();
        let places = lay_out(&nodes, &edges);
        for (i, a) in places.iter().enumerate() {
            assert!((0.0..=SIDE + 20.0).contains(&a.x) && (0.0..=SIDE + 20.0).contains(&a.y));
            for b in &places[..i] {
                assert!(between(*a, *b).1 > 40.0, "{places:?}");
            }
        }
        let svg = svg("a < b", &nodes, &edges, &["one".into()]);
        assert!(svg.contains("a &lt; b") && svg.matches("<line").count() == 5);
        assert_eq!(lay_out(&nodes[..1], &[]).len(), 1);
    }
}

//! `regard attend --lesson`: output of lessons; `regard_tasks::lessons` computes them.

use super::{Flags, Global};
use crate::cli::write_json;
use crate::show::heatmap::{Map, columns_that_fit, gallery};
use crate::show::plot::{Curve, Plot, Style};
use crate::show::svg::drawing;
use crate::show::table::Table;
use crate::show::terminal;
use anyhow::Result;
use clap::ValueEnum;
use regard_tasks::lessons::pooling::{PoolingExperiment as Pooling, PoolingMethod, Sees, names};
use regard_tasks::regression::LeftOut;
use serde::Serialize;
use std::io::Write;

/// Available lessons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Lesson {
    /// From average pooling to attention: predict a noisy sine from all points, none, or near ones
    Pooling,
}

pub fn run(lesson: Lesson, flags: &Flags, global: &Global, out: &mut dyn Write) -> Result<()> {
    match lesson {
        Lesson::Pooling => pooling(flags, global, out),
    }
}

const ABOUT: &str = "\
50 points of y = 2 sin x + x^0.8 with noise of standard deviation 0.5. The task: predict y at x.
Pooling without a query predicts one value everywhere; a linear layer of x predicts a line.
Attention takes the mean of all y_i, weighted by the distance of x_i to x; its width is fixed or
learned.";

/// Methods whose curves are drawn, besides the points and the truth.
const DRAWN: [&str; 4] = [names::LEARNED, names::FIXED, "fully connected layer", names::AVERAGE];

fn pooling(flags: &Flags, global: &Global, out: &mut dyn Write) -> Result<()> {
    let lesson = Pooling::new(global.seed.unwrap_or(0))?;
    let (plot, most) = (plot(&lesson), terminal::width());
    if flags.pictures.wanted() {
        let tables = maps(&lesson, 1, 1);
        let maps: Vec<Map> = tables.iter().map(Cells::map).collect();
        let parts = [plot.drawing(), drawing(&maps)];
        let about: Vec<String> = ABOUT.lines().map(String::from).collect();
        flags.pictures.write_parts("From pooling to attention", &about, &parts)?;
    }
    if global.json {
        return write_json(out, &Document::new(&lesson));
    }
    writeln!(out, "{ABOUT}\n")?;
    let mut table = Table::new(["prediction", "input", "formula", "width", "error"]);
    for method in &lesson.methods {
        table.row([
            method.name.into(),
            seen(method.sees).into(),
            method.formula.into(),
            method.width.map_or("–".into(), |width| format!("{width:.3}")),
            format!("{:.4}", method.error),
        ]);
    }
    writeln!(out, "{}", table.render("", None))?;
    writeln!(out, "The error is the mean squared error against the noise-free truth at 50 x.\n")?;
    writeln!(out, "{}", plot.text(most))?;
    // Two maps side by side, if there is room for both.
    let label = ["0.0".to_string()];
    let fit = columns_that_fit(&label, most.saturating_sub(4) / 2);
    let tables = maps(&lesson, 2, lesson.keys.len().div_ceil(fit));
    let paint = terminal::paint(flags.color);
    write!(out, "{}", gallery(tables.iter().map(|t| t.map().draw(paint)).collect(), most))?;
    writeln!(out, "\nOther points: --seed N. As a picture: --svg FILE. All values: --json.")?;
    Ok(())
}

fn seen(sees: Sees) -> &'static str {
    match sees {
        Sees::Values => "points",
        Sees::Query => "query",
        Sees::Both => "both",
    }
}

fn plot(lesson: &Pooling) -> Plot {
    let curve = |name: &str, y: &[f32], style: Style, x: &[f32]| Curve {
        name: name.into(),
        points: x.iter().zip(y).map(|(x, y)| (f64::from(*x), f64::from(*y))).collect(),
        style,
    };
    let mut curves = vec![];
    for name in DRAWN {
        let said = &lesson.method(name).expect("the lesson has it").said;
        curves.push(curve(name, said, Style::Line, &lesson.queries));
    }
    curves.insert(1, curve("truth", &lesson.truth, Style::Line, &lesson.queries));
    curves.push(curve("points", &lesson.values, Style::Dots, &lesson.keys));
    Plot {
        title: "What is y at x?".into(),
        x: "x".into(),
        y: "y".into(),
        curves,
        ..Plot::default()
    }
}

/// A map that owns its labels and cells.
struct Cells {
    title: Vec<String>,
    rows: Vec<String>,
    columns: Vec<String>,
    cells: Vec<f32>,
}

impl Cells {
    fn map(&self) -> Map<'_> {
        let Cells { title, rows, columns, cells } = self;
        Map { title: title.clone(), rows, columns, cells }
    }
}

/// Attention weights of the fixed and the learned width: every `step`th query, summed over `group`
/// adjacent points.
fn maps(lesson: &Pooling, step: usize, group: usize) -> Vec<Cells> {
    let names = [names::FIXED, names::LEARNED];
    let methods = names.iter().filter_map(|name| lesson.method(name));
    methods.map(|method| map(lesson, method, step, group)).collect()
}

fn map(lesson: &Pooling, method: &PoolingMethod, step: usize, group: usize) -> Cells {
    let weights = method.weights.as_deref().unwrap_or_default();
    let rows = weights.chunks_exact(lesson.keys.len()).step_by(step);
    let cells = rows.flat_map(|row| row.chunks(group).map(|some| some.iter().sum())).collect();
    let number = |x: &f32| format!("{x:.1}");
    let together = match group {
        1 => "rows are x, columns the points".to_string(),
        _ => format!("rows are x, columns {group} points each"),
    };
    Cells {
        title: vec![method.name.into(), together],
        rows: lesson.queries.iter().step_by(step).map(number).collect(),
        columns: lesson.keys.iter().step_by(group).map(number).collect(),
        cells,
    }
}

/// The lesson, as `--json` prints it.
#[derive(Serialize)]
struct Document<'a> {
    lesson: &'static str,
    keys: &'a [f32],
    values: &'a [f32],
    queries: &'a [f32],
    truth: &'a [f32],
    methods: Vec<MethodRow<'a>>,
    learning: &'a [LeftOut],
    tried: &'a [LeftOut],
}

/// A prediction method, as `--json` prints it.
#[derive(Serialize)]
struct MethodRow<'a> {
    name: &'a str,
    formula: &'a str,
    sees: &'a str,
    width: Option<f32>,
    error: f64,
    said: &'a [f32],
    weights: Option<Vec<&'a [f32]>>,
}

impl Document<'_> {
    fn new(lesson: &Pooling) -> Document<'_> {
        let Pooling { keys, values, queries, truth, methods, learning, tried } = lesson;
        let methods = methods.iter().map(|method| MethodRow {
            name: method.name,
            formula: method.formula,
            sees: seen(method.sees),
            width: method.width,
            error: method.error,
            said: &method.said,
            weights: method.weights.as_ref().map(|w| w.chunks_exact(keys.len()).collect()),
        });
        let methods = methods.collect();
        Document { lesson: "pooling", keys, values, queries, truth, methods, learning, tried }
    }
}

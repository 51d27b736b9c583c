//! `regard point`: some of the points that are given, in an order: a hull, an order, a tour.

use super::{Global, Outcome, inputs, write_json};
use crate::files::{not_an_input, save_text};
use crate::hub::Hub;
use crate::models;
use crate::show::heatmap::{Map, columns_that_fit, gallery};
use crate::show::plane::{Plane, Way};
use crate::show::terminal::{self, When};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use regard_tasks::data::Lines;
use regard_tasks::decode::SearchParameters;
use regard_tasks::point::{Parameters, Pointed, Pointer, Problem, parse, problem};
use std::io::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  regard point '0 0  1 0  1 1  0 1  0.5 0.4'
  regard point --problem tsp '0.1 0.2  0.9 0.1  0.5 0.7  0.3 0.3' --svg tour.svg
  regard point --problem sort '0.7 0.1 0.4' --attend --model runs/sort-10
  regard point --model runs/hull-5 --file points.txt --json

A set of points is a line of numbers, x y x y …, for sort one number for each. What comes behind
the word output, as in files of Vinyals et al., is not read. Points are counted from 1. A set that
begins with a minus comes behind --, after all flags.

  hull  the corners of the convex hull, counter-clockwise, from the lowest number and back to it
  sort  the numbers, the smallest first
  tsp   a tour through all points, from the first and back to it

A model is trained for one problem (regard train hull-5, hull-10, sort-10, tsp-10) on points of the
unit square; other points are moved and scaled into it as a whole. It need not be right: with --json
solution is what an exact algorithm says, null where there are too many points for one, and right
tells whether they agree. --svg draws both.

With --json: {problem, answer, log_prob, solution, right}, and with --attend weights, a row for each
step: the end, then each point.

Of standard input, a line that gets no answer is told on standard error, gives an empty line (with
--json an object with error), and makes the exit code 1 at the end.";

/// Point at points: a convex hull, an order, a tour
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// The sets of points, each one argument; without them, the lines of standard input
    points: Vec<String>,
    /// What is asked: hull, sort or tsp [default: what the model was trained for, or hull]
    #[arg(long, value_name = "PROBLEM")]
    problem: Option<String>,
    /// A file with a set of points on each line
    #[arg(long, value_name = "FILE", conflicts_with = "points")]
    file: Option<PathBuf>,
    /// A model: a folder, or a name that `regard models` lists [default: for hull and tsp, the one
    /// of that name, which ships]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Answers that are followed at once; of tours, the shortest is taken [default: the model's own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    num_beams: Option<u16>,
    /// Draw where each step looked
    #[arg(long)]
    attend: bool,
    /// Draw the points of one set, the answer and the solution
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// When to use colours
    #[arg(long, value_enum, default_value_t = When::Auto)]
    color: When,
    #[command(flatten)]
    hub: Hub,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let asked = flags.problem.as_deref().map(problem).transpose().context("--problem")?;
    let wanted = asked.map(|problem| problem.name());
    let pointer = models::pointer(flags.model.as_deref(), wanted, &flags.hub)?;
    if let Some(asked) = asked.filter(|asked| asked.name() != pointer.problem().name()) {
        let (asked, known) = (asked.name(), pointer.problem().name());
        bail!("--problem: got {asked}, this model was trained for {known}");
    }
    if let (Some(svg), Some(file)) = (&flags.svg, &flags.file) {
        not_an_input("--svg", svg, &[file])?;
    }
    let given = match &flags.file {
        Some(path) => read(&inputs::file(path))?,
        None => flags.points.clone(),
    };
    let many = || anyhow!("--svg: draws one set of points, got more");
    if flags.svg.is_some() && given.len() > 1 {
        return Err(many());
    }
    let show = Show { pointer: &pointer, flags: &flags, json: global.json };
    let mut sets = 0;
    let answered = inputs::each(&given, global.json, out, &mut |line, out| {
        sets += 1;
        match flags.svg.is_some() && sets > 1 {
            true => Err(many().into()),
            false => show.answer(line, out),
        }
    });
    match &flags.file {
        Some(path) => answered.with_context(|| path.display().to_string()),
        None => answered,
    }
}

/// The sets of a file.
fn read(path: &PathBuf) -> Result<Vec<String>> {
    let lines = Lines::open(path)?;
    let lines: Vec<String> = lines.collect::<Result<_, _>>()?;
    let sets: Vec<String> = lines.into_iter().filter(|line| !line.trim().is_empty()).collect();
    if sets.is_empty() {
        bail!("--file: {} holds no points", path.display());
    }
    Ok(sets)
}

struct Show<'a> {
    pointer: &'a Pointer,
    flags: &'a Flags,
    json: bool,
}

impl Show<'_> {
    fn problem(&self) -> &'static dyn Problem {
        self.pointer.problem()
    }

    fn answer(&self, line: &str, out: &mut dyn Write) -> Result<(), inputs::Trouble> {
        let line = line.split("output").next().unwrap_or_default();
        let points = parse(line, self.problem())?;
        let search = SearchParameters {
            num_beams: self.flags.num_beams.map(usize::from),
            ..SearchParameters::default()
        };
        let parameters = Parameters { output_attentions: self.flags.attend, search };
        let options = parameters.search.over(self.pointer.defaults())?;
        let said = self.pointer.ask(&[&points], &options)?.remove(0);
        if let Some(path) = &self.flags.svg {
            let solution = self.pointer.solution(&points);
            let picture = self.picture(&points, &said.answer, solution.as_deref());
            save_text(path, &picture)?;
        }
        let response = self.pointer.response(&points, &said, &parameters);
        if self.json {
            return Ok(write_json(out, &response)?);
        }
        let numbers: Vec<String> = response.answer.iter().map(u32::to_string).collect();
        writeln!(out, "{}", numbers.join(" "))?;
        if self.flags.attend {
            self.draw(&said, points.len() / self.problem().width(), out)?;
        }
        Ok(())
    }

    fn draw(&self, said: &Pointed, count: usize, out: &mut dyn Write) -> Result<()> {
        let name = |at: u32| format!("{}", at + 1);
        let rows: Vec<String> =
            said.steps.iter().map(|at| name(*at)).chain(["end".into()]).collect();
        let columns: Vec<String> =
            std::iter::once("end".to_string()).chain((0..count as u32).map(name)).collect();
        // A search that was cut off has no last row.
        let rows = &rows[..said.weights.len().min(rows.len())];
        let most = terminal::width();
        let shown = columns_that_fit(rows, most).min(columns.len());
        let cells: Vec<f32> =
            said.weights[..rows.len()].iter().flat_map(|row| &row[..shown]).copied().collect();
        let title = vec!["each step, and where it looked".to_string()];
        let map = Map { title, rows, columns: &columns[..shown], cells: &cells };
        let picture = map.draw(terminal::paint(self.flags.color));
        write!(out, "{}", gallery(vec![picture], most))?;
        if shown < columns.len() {
            writeln!(out, "points 1 to {} of {count}, cut to the width", shown - 1)?;
        }
        Ok(())
    }

    /// Numbers that are no plane's are drawn over their places.
    fn picture(&self, points: &[f64], answer: &[u32], solution: Option<&[u32]>) -> String {
        let points = match self.problem().width() {
            1 => points.iter().enumerate().map(|(i, x)| [i as f64, *x]).collect(),
            _ => points.chunks_exact(2).map(|point| [point[0], point[1]]).collect(),
        };
        let way = |answer: &[u32]| Way { places: answer.to_vec(), closed: self.problem().closed() };
        Plane { points, answer: way(answer), solution: solution.map(way) }.svg()
    }
}

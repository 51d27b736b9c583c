//! `regard point`: pointer networks for convex hulls, sorting and tours.

use super::texts::TextSource;
use super::{Global, Outcome, inputs, write_json};
use crate::files::{expect_extension, not_an_input, save_text};
use crate::hub::Hub;
use crate::models;
use crate::show::heatmap::{Map, columns_that_fit, gallery};
use crate::show::plane::{Plane, Way};
use crate::show::terminal::{self, When};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use regard_tasks::data::Lines;
use regard_tasks::decode::SearchParameters;
use regard_tasks::point::{Parameters, PointPrediction, PointProblem, Pointer, parse, problem};
use std::io::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Solves small geometric problems with a pointer network: it selects some of the given points, in
order. A set of points is one argument or line: x y x y …, or for sort one value per point. Prints
the numbers of the points, counted from 1.

  hull  corners of the convex hull, counter-clockwise, from the lowest number and back to it
  sort  the values in ascending order
  tsp   a tour through all points, from the first and back to it

Examples:
  regard point '0 0  1 0  1 1  0 1  0.5 0.4'                            # built-in model `hull`
  regard point --problem tsp '0.1 0.2  0.9 0.1  0.5 0.7  0.3 0.3' --svg tour.svg
  regard point --attend --json '0 0  1 0  1 1  0 1  0.5 0.4'
  regard point --file points.txt                                        # your file
  regard point --problem sort '0.7 0.1 0.4' --model runs/sort-10        # regard train sort-10

If a set begins with a minus sign, write -- before it, after all flags. Text after the word
`output`, as in the files of Vinyals et al., is ignored.

A model is trained for one problem (regard train hull-5, hull-10, sort-10, tsp-10) on points in the
unit square; other points are shifted and scaled into it. Its answer may be wrong: --json also gives
the solution of an exact algorithm (null if there are too many points) and whether it is the same
(right). --svg draws both.

--json prints {problem, answer, log_prob, solution, right}, with --attend also weights: a row for
each step, a column for the end and each point.

If a line of standard input fails, the error goes to stderr, an empty line (or {\"error\": …} with
--json) is printed, and the exit code is 1.";

/// Find convex hulls, orders and tours with a pointer network
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Flags {
    /// Sets of points, one per argument [default: the lines of standard input]
    points: Vec<String>,
    /// Problem: `hull`, `sort` or `tsp` [default: the model's, or `hull`]
    #[arg(long, value_name = "PROBLEM")]
    problem: Option<String>,
    /// File with a set of points on each line
    #[arg(long, value_name = "FILE", conflicts_with = "points")]
    file: Option<PathBuf>,
    /// Model: a folder, or a name listed by `regard models` [default: `hull` or `tsp`, built in]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Number of beams; for `tsp`, prints the shortest tour among them [default: the model's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    num_beams: Option<u16>,
    /// Draw the attention of each step
    #[arg(long)]
    attend: bool,
    /// Write a picture of one set of points, the answer and the solution
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Use colours; `auto`: if stdout is a terminal and NO_COLOR is not set
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
        bail!("--problem: got {asked}, but this model was trained for {known}");
    }
    if let (Some(svg), Some(file)) = (&flags.svg, &flags.file) {
        not_an_input("--svg", svg, &[file])?;
        expect_extension("--svg", svg, &["svg"])?;
    }
    let given = match &flags.file {
        Some(path) => read(&inputs::file(path))?,
        None => flags.points.clone(),
    };
    let many = || anyhow!("--svg: got more than one set of points, need one");
    if flags.svg.is_some() && given.len() > 1 {
        return Err(many());
    }
    let show = Show { pointer: &pointer, flags: &flags, json: global.json };
    let mut sets = 0;
    let source = TextSource { given: &given, ..TextSource::default() };
    let answered = inputs::each(&source, global.json, out, &mut |line, out| {
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

/// Reads the sets of points of a file, one per line.
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
    fn problem(&self) -> &'static dyn PointProblem {
        self.pointer.problem()
    }

    fn answer(&self, line: &str, out: &mut dyn Write) -> Result<(), inputs::InputError> {
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

    fn draw(&self, said: &PointPrediction, count: usize, out: &mut dyn Write) -> Result<()> {
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
        let title = vec!["attention of each step".to_string()];
        let map = Map { title, rows, columns: &columns[..shown], cells: &cells };
        let picture = map.draw(terminal::paint(self.flags.color));
        write!(out, "{}", gallery(vec![picture], most))?;
        if shown < columns.len() {
            writeln!(out, "points 1 to {} of {count}, cut to the terminal", shown - 1)?;
        }
        Ok(())
    }

    /// Draws the points; for values without a second coordinate, x is their index.
    fn picture(&self, points: &[f64], answer: &[u32], solution: Option<&[u32]>) -> String {
        let points = match self.problem().width() {
            1 => points.iter().enumerate().map(|(i, x)| [i as f64, *x]).collect(),
            _ => points.chunks_exact(2).map(|point| [point[0], point[1]]).collect(),
        };
        let way = |answer: &[u32]| Way { places: answer.to_vec(), closed: self.problem().closed() };
        Plane { points, answer: way(answer), solution: solution.map(way) }.svg()
    }
}

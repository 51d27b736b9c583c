//! Output of layer comparisons; `regard_tasks::compare` computes them.

use super::{Flags, Global, Outcome, myself, write_json};
use crate::files::save_text;
use crate::machine;
use crate::show::plot::{Curve, Plot, Scale};
use crate::show::table::{Rows, wrap};
use crate::show::terminal;
use anyhow::{Context, Result};
use regard_kernels::{pool, simd};
use regard_tasks::compare::{
    self, COMPARISONS, CompareOptions, Comparison, ComparisonResult, Figure,
};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// All comparisons, as `--json` prints them.
#[derive(Serialize)]
struct Document {
    findings: Vec<ComparisonResult>,
    summary: Summary,
    machine: Machine,
    seconds: f64,
}

#[derive(Serialize)]
struct Summary {
    heading: Vec<String>,
    rows: Vec<Vec<String>>,
}

#[derive(Serialize)]
struct Machine {
    cpu: String,
    isa: &'static str,
    threads: usize,
}

/// Peak memory of a child process in bytes, as it reports it to the parent.
#[derive(Serialize, Deserialize)]
struct Peak {
    peak_memory: Option<u64>,
}

pub fn run(flags: &Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let chosen: Vec<&Comparison> = match flags.only.is_empty() {
        true => COMPARISONS.iter().collect(),
        false => {
            let found = flags.only.iter().map(|name| compare::find(name));
            found.collect::<Result<_, _>>().context("--only")?
        }
    };
    if let Some(folder) = &flags.svg {
        std::fs::create_dir_all(folder).with_context(|| format!("--svg {}", folder.display()))?;
    }
    let started = Instant::now();
    let peak: compare::ExternalProbe = &|name, length| peak_of(global, name, length);
    let options = CompareOptions {
        quick: flags.quick,
        seed: global.seed.unwrap_or(0),
        peak_memory: machine::peak_memory().is_some().then_some(peak),
    };
    let mut findings = vec![];
    for comparison in chosen {
        let found = comparison.measure(&options)?;
        if let Some(folder) = &flags.svg {
            draw(&found, folder)?;
        }
        if !global.json {
            tell(&found, out)?;
            // The next comparison takes long.
            out.flush()?;
        }
        findings.push(found);
    }
    let (heading, rows) = compare::summary(&findings);
    let seconds = started.elapsed().as_secs_f64();
    if global.json {
        let (cpu, isa, threads) = (machine::cpu(), simd::isa().name(), pool::threads());
        let (summary, machine) = (Summary { heading, rows }, Machine { cpu, isa, threads });
        write_json(out, &Document { findings, summary, machine, seconds })?;
        return Ok(Outcome::Positive);
    }
    // A single comparison has already printed its table.
    if rows.len() > 1 {
        writeln!(out, "RNN against self-attention, as measured here\n")?;
        writeln!(out, "{}", Rows { heading, rows }.render("  ", Some(terminal::width())))?;
    }
    let (cpu, isa, threads) = (machine::cpu(), simd::isa().name(), pool::threads());
    writeln!(out, "{cpu}; {isa}, {threads} threads; {seconds:.0} s")?;
    Ok(Outcome::Positive)
}

/// Measures the peak memory of a child process that runs one step, in bytes.
fn peak_of(global: &Global, name: &str, length: usize) -> Option<u64> {
    let text = myself(global, &["compare", "--probe", &format!("{name}:{length}")]).ok()?;
    serde_json::from_str::<Peak>(&text).ok()?.peak_memory
}

/// Runs one step and prints the peak memory.
pub fn probe(asked: &str, out: &mut dyn Write) -> Result<Outcome> {
    let parts = asked.rsplit_once(':');
    let parts = parts.and_then(|(name, length)| Some((name, length.parse::<usize>().ok()?)));
    let (name, length) =
        parts.filter(|(_, length)| (1..=1 << 20).contains(length)).with_context(|| {
            format!("--probe: got {asked:?}, need LAYER:LENGTH with a length of 1 to 1048576")
        })?;
    compare::probe(name, length).context("--probe")?;
    write_json(out, &Peak { peak_memory: machine::peak_memory() })?;
    Ok(Outcome::Positive)
}

fn plot(figure: &Figure) -> Plot {
    let scale = |logarithmic| if logarithmic { Scale::Logarithmic } else { Scale::Even };
    let curves = figure.lines.iter().map(|line| Curve {
        name: line.name.clone(),
        points: line.points.clone(),
        ..Curve::default()
    });
    Plot {
        title: figure.title.clone(),
        x: figure.x.clone(),
        y: figure.y.clone(),
        scales: figure.logarithmic.map(scale),
        curves: curves.collect(),
    }
}

fn draw(found: &ComparisonResult, folder: &Path) -> Result<()> {
    for figure in &found.figures {
        save_text(&folder.join(format!("{}.svg", figure.name)), &plot(figure).svg())?;
    }
    Ok(())
}

fn tell(found: &ComparisonResult, out: &mut dyn Write) -> Result<()> {
    let most = terminal::width();
    writeln!(out, "{}: {}\n", found.name, found.question)?;
    let table = Rows { heading: found.heading.clone(), rows: found.rows.clone() };
    write!(out, "{}", table.render("  ", Some(most)))?;
    for line in wrap(&found.method, most.saturating_sub(2).max(20)) {
        write!(out, "\n  {line}")?;
    }
    writeln!(out, "\n")?;
    for figure in &found.figures {
        writeln!(out, "{}", plot(figure).text(most))?;
    }
    Ok(())
}

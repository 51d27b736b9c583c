//! `regard bench regression`: speed of kernel regression, relative to its exponentials.

use super::super::{Global, Outcome, write_json};
use crate::machine;
use anyhow::{Context, Result};
use clap::Args;
use regard_kernels::gemm::exp_seconds;
use regard_kernels::rng::Stream;
use regard_kernels::{pool, simd};
use regard_tasks::metrics::Sample;
use regard_tasks::regression::{KernelRegression, RegressionData, RegressionKernel};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Measure Nadaraya–Watson regression with a Gaussian kernel
///
/// The regression needs points × queries exponentials. For comparison, that many exponentials alone
/// are timed too, in turns and on the same threads: a lower bound.
#[derive(Args)]
#[command(after_help = "\
Examples:
  regard bench regression --points 100000 --queries 10000
  regard bench regression --points 100000 --queries 10000 --threads 1 --json")]
pub struct Flags {
    /// Number of points (keys)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    points: u32,
    /// Number of queries
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    queries: u32,
    /// Width of the kernel; points and queries are in 0..5
    #[arg(long, value_name = "W", default_value_t = 0.3, allow_negative_numbers = true)]
    width: f32,
    /// Number of runs of each; the median is printed
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Write files with points, values, queries and predictions to this folder, as raw float32 in
    /// native byte order
    #[arg(long, value_name = "FOLDER")]
    save: Option<PathBuf>,
}

#[derive(Serialize)]
struct Findings {
    points: u32,
    queries: u32,
    pairs: u64,
    width: f32,
    median_ms: f64,
    min_ms: f64,
    /// Median milliseconds of the same number of exponentials alone.
    exp_median_ms: f64,
    exp_min_ms: f64,
    /// Ratio of the median times: regression over exponentials.
    ratio_to_exp: f64,
    pairs_per_second: f64,
    threads: usize,
    isa: &'static str,
    cpu: String,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let stream = Stream::new(global.seed.unwrap_or(0), 0, 0);
    let (n, m) = (u64::from(flags.points), u64::from(flags.queries));
    let keys: Vec<f32> = (0..n).map(|i| 5.0 * stream.uniform(i)).collect();
    let noise = |i: usize| 0.5 * stream.normal(n + m + i as u64);
    let values: Vec<f32> =
        (keys.iter().enumerate()).map(|(i, x)| 2.0 * x.sin() + x.powf(0.8) + noise(i)).collect();
    let queries: Vec<f32> = (n..n + m).map(|i| 5.0 * stream.uniform(i)).collect();
    let mut model = KernelRegression::fit(
        RegressionKernel::Gaussian,
        RegressionData::new(&keys, 1, &values, 1)?,
    )?;
    model.set_width(flags.width).context("--width")?;
    // The first run of each warms up caches and threads, and is not counted.
    let mut predictions = model.predict(&queries)?;
    exp_seconds(n * m);
    let (mut times, mut exponentials) = (vec![], vec![]);
    for _ in 0..flags.repeat {
        let start = Instant::now();
        predictions = model.predict(&queries)?;
        times.push(1e3 * start.elapsed().as_secs_f64());
        exponentials.push(1e3 * exp_seconds(n * m));
    }
    if let Some(folder) = &flags.save {
        let arrays = [
            ("points", &keys),
            ("values", &values),
            ("queries", &queries),
            ("predictions", &predictions),
        ];
        for (name, numbers) in arrays {
            save(&folder.join(name), numbers)?;
        }
    }
    let (time, exp) = (Sample::of(&times), Sample::of(&exponentials));
    let findings = Findings {
        points: flags.points,
        queries: flags.queries,
        pairs: n * m,
        width: flags.width,
        median_ms: time.median,
        min_ms: time.least,
        exp_median_ms: exp.median,
        exp_min_ms: exp.least,
        ratio_to_exp: time.median / exp.median,
        pairs_per_second: 1e3 * (n * m) as f64 / time.median,
        threads: pool::threads(),
        isa: simd::isa().name(),
        cpu: machine::cpu(),
    };
    if global.json {
        write_json(out, &findings)?;
    } else {
        tell(&findings, out)?;
    }
    Ok(Outcome::Positive)
}

fn save(path: &Path, numbers: &[f32]) -> Result<()> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_ne_bytes()).collect();
    Ok(regard_models::checkpoint::write_file(path, &bytes)?)
}

fn tell(findings: &Findings, out: &mut dyn Write) -> Result<()> {
    let Findings { points, queries, width, threads, isa, cpu, .. } = findings;
    writeln!(out, "regression  {points} points, {queries} queries, Gaussian of width {width}")?;
    let (median, min) = (findings.median_ms, findings.min_ms);
    let rate = findings.pairs_per_second / 1e9;
    writeln!(out, "time        median {median:.1} ms, min {min:.1} ms: {rate:.2} billion pairs/s")?;
    let (exp, least) = (findings.exp_median_ms, findings.exp_min_ms);
    writeln!(out, "exp alone   median {exp:.1} ms, min {least:.1} ms, for as many pairs")?;
    writeln!(out, "ratio       {:.2}", findings.ratio_to_exp)?;
    writeln!(out, "machine     {cpu}; {isa}, {threads} threads")?;
    Ok(())
}

//! `regard bench attention`: speed of one attention, relative to the machine's peak.

use super::super::{Global, Outcome, write_json};
use crate::choice::AttentionArgs;
use crate::problem::OwnedInputs;
use crate::{machine, yardstick};
use anyhow::Result;
use clap::Args;
use regard_kernels::attention::mask::{Mask, Rule};
use regard_kernels::attention::{Dims, Grid};
use regard_kernels::{pool, simd};
use regard_tasks::metrics::Sample;
use serde::Serialize;
use std::io::Write;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Measure one attention variant (score, mask, normaliser) on random inputs
///
/// GFLOP/s counts only matrix products over allowed query–key pairs: 4·D per pair forward, 10·D
/// backward (which recomputes the scores). Softmax, tanh and other work are not counted. The
/// machine's FMA peak and the rate of a matrix product are measured in the same run, after the
/// attention.
#[derive(Args)]
#[command(after_help = "\
Examples:
  regard bench attention --shape 1,8,2048,2048,64 --backward
  regard bench attention --shape 1,1,8192,8192,64 --mask 'window(127, 0)' --json
  regard bench attention --shape 32,1,30,30,256 --score additive --threads 1")]
pub struct Flags {
    /// Batch, heads, queries, keys, width of a head
    #[arg(long, value_name = "B,H,T,S,D")]
    shape: Shape,
    /// Also measure the backward pass
    #[arg(long)]
    backward: bool,
    /// Number of runs of each pass [default: at least 5, for half a second]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    repeat: Option<u32>,
    #[command(flatten)]
    choice: AttentionArgs,
}

#[derive(Clone, Copy)]
struct Shape([usize; 5]);

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Shape, String> {
        let need = "need B,H,T,S,D: five numbers from 1 to 16777215";
        let axes: Vec<usize> = (text.split(','))
            .map(|axis| axis.trim().parse().map_err(|_| format!("`{axis}` is no number; {need}")))
            .collect::<Result<_, _>>()?;
        match <[usize; 5]>::try_from(axes) {
            // The kernels' limit on queries and keys, used for all axes.
            Ok(axes) if axes.iter().all(|axis| (1..1 << 24).contains(axis)) => Ok(Shape(axes)),
            Ok(_) => Err(need.into()),
            Err(axes) => Err(format!("got {} numbers; {need}", axes.len())),
        }
    }
}

/// Times and rates of one direction.
#[derive(Serialize)]
struct Timing {
    runs: usize,
    median_ms: f64,
    min_ms: f64,
    median_gflops: f64,
    max_gflops: f64,
    /// Median rate in percent of the FMA peak.
    percent_of_peak: f64,
}

#[derive(Serialize)]
struct Findings {
    shape: [usize; 5],
    score: String,
    bias: Vec<String>,
    mask: String,
    normalize: String,
    /// Pairs of query and key allowed by the mask, over all batch rows and heads.
    allowed_pairs: u64,
    /// Pairs that the forward pass scored.
    scored_pairs: u64,
    forward: Timing,
    backward: Option<Timing>,
    fma_peak_gflops: f64,
    fma_peak_of_one_thread_gflops: f64,
    gemm_gflops: f64,
    /// Peak memory of the process, before the machine's peak was measured.
    peak_memory_bytes: Option<u64>,
    /// Bytes of inputs, output and gradients, contained in the peak memory.
    array_bytes: usize,
    threads: usize,
    isa: &'static str,
    cpu: String,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    let findings = measure(&flags, global)?;
    if global.json {
        write_json(out, &findings)?;
    } else {
        tell(&findings, out)?;
    }
    Ok(Outcome::Positive)
}

fn measure(flags: &Flags, global: &Global) -> Result<Findings> {
    let Shape([b, h, t, s, d]) = flags.shape;
    let dims = Dims { b, h, hk: h, t, s, d, dk: d, e: d };
    let attention = flags.choice.attention(global.seed.unwrap_or(0), None)?;
    let problem = OwnedInputs::random(&attention, dims, global.seed.unwrap_or(0))?;
    let grid = attention.check(&problem.inputs()?)?;
    let allowed = allowed_pairs(&attention.mask, &grid);
    let mut out = problem.room()?;
    // The first run warms up caches and threads, and is not counted.
    let saved = problem.forward(&attention, &mut out)?;
    let forward = times(flags.repeat, || problem.forward(&attention, &mut out).map(drop))?;
    let mut backward = None;
    let mut array_bytes = 4 * (problem.q.len() + problem.k.len() + problem.v.len() + out.len());
    if flags.backward {
        let mut grads = problem.gradient_room()?;
        let dout = problem.q.clone(); // E = D, so it is as large as the output
        array_bytes += 4 * (grads.iter().map(Vec::len).sum::<usize>() + dout.len());
        let mut step = || problem.backward(&attention, &out, &saved, &dout, &mut grads).map(drop);
        step()?;
        backward = Some(times(flags.repeat, step)?);
    }
    let peak_memory_bytes = machine::peak_memory();
    let best = yardstick::measure()?;
    let rated = |times: Vec<f64>, products: f64| {
        timing(times, products * 2.0 * allowed as f64 * d as f64, best.peak)
    };
    let AttentionArgs { score, bias, mask, normalize, .. } = &flags.choice;
    Ok(Findings {
        shape: flags.shape.0,
        score: score.clone(),
        bias: bias.clone(),
        mask: mask.clone(),
        normalize: normalize.clone(),
        allowed_pairs: allowed,
        scored_pairs: saved.pairs,
        forward: rated(forward, 2.0),
        backward: backward.map(|times| rated(times, 5.0)),
        fma_peak_gflops: best.peak,
        fma_peak_of_one_thread_gflops: best.peak_of_one,
        gemm_gflops: best.gemm,
        peak_memory_bytes,
        array_bytes,
        threads: pool::threads(),
        isa: simd::isa().name(),
        cpu: machine::cpu(),
    })
}

/// Seconds of each run, in order.
fn times(repeat: Option<u32>, mut run: impl FnMut() -> Result<()>) -> Result<Vec<f64>> {
    let started = Instant::now();
    let mut times = vec![];
    let more = |done: usize| match repeat {
        Some(repeat) => done < repeat as usize,
        None => done < 5 || (started.elapsed() < Duration::from_millis(500) && done < 100_000),
    };
    while more(times.len()) {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed().as_secs_f64());
    }
    Ok(times)
}

fn timing(times: Vec<f64>, flops: f64, peak: f64) -> Timing {
    let Sample { median, least: min, .. } = Sample::of(&times);
    Timing {
        runs: times.len(),
        median_ms: median * 1e3,
        min_ms: min * 1e3,
        median_gflops: flops / median / 1e9,
        max_gflops: flops / min / 1e9,
        percent_of_peak: flops / median / 1e7 / peak,
    }
}

/// Counts the cells of all score matrices that a mask allows.
fn allowed_pairs(mask: &Mask, grid: &Grid) -> u64 {
    let Dims { b, h, t, s, .. } = grid.dims;
    // Most masks are the same for every head.
    let (heads, times) = if mask.per_head() { (h, 1) } else { (1, h as u64) };
    let mut keys = vec![];
    let mut row = |b: usize, head: usize, i: usize| -> u64 {
        if let Some((low, high)) = mask.range(grid, b, i) {
            return (high.min(s as i64) - low.max(0)).max(0) as u64;
        }
        keys.clear();
        if mask.list(grid, b, i, &mut keys) {
            return keys.len() as u64;
        }
        (0..s).filter(|j| mask.allows(grid, b, head, i, *j)).count() as u64
    };
    let rows = (0..b).flat_map(|b| (0..heads).flat_map(move |h| (0..t).map(move |i| (b, h, i))));
    times * rows.map(|(b, h, i)| row(b, h, i)).sum::<u64>()
}

fn tell(findings: &Findings, out: &mut dyn Write) -> Result<()> {
    let [b, h, t, s, d] = findings.shape;
    let Findings { score, bias, mask, normalize, threads, isa, cpu, .. } = findings;
    let words = [std::slice::from_ref(score), bias].concat().join(" + ");
    writeln!(out, "attention  {words} | {mask} | {normalize}")?;
    writeln!(out, "shape      B {b}, H {h}, T {t}, S {s}, D {d}")?;
    let (allowed, scored) = (findings.allowed_pairs, findings.scored_pairs);
    let all = b as f64 * h as f64 * t as f64 * s as f64;
    writeln!(
        out,
        "pairs      {allowed} allowed ({:.1} % of all), {scored} scored",
        100.0 * allowed as f64 / all
    )?;
    let both = [("forward", Some(&findings.forward)), ("backward", findings.backward.as_ref())];
    for (name, timing) in both {
        let Some(timing) = timing else { continue };
        let Timing { runs, median_ms, min_ms, median_gflops, max_gflops, percent_of_peak } = timing;
        writeln!(
            out,
            "{name:9}  median {median_ms:.3} ms: {median_gflops:.1} GFLOP/s, {percent_of_peak:.0} % \
             of peak; min {min_ms:.3} ms: {max_gflops:.1} GFLOP/s; {runs} runs"
        )?;
    }
    let (peak, gemm) = (findings.fma_peak_gflops, findings.gemm_gflops);
    writeln!(out, "peak       {peak:.1} GFLOP/s of multiply-adds, {gemm:.1} of a matrix product")?;
    let gain = peak / findings.fma_peak_of_one_thread_gflops;
    if gain < 0.8 * *threads as f64 {
        writeln!(
            out,
            "           unreliable: {threads} threads reached {gain:.1} times the peak of one; \
             the machine is busy, or threads share a core"
        )?;
    }
    if let Some(bytes) = findings.peak_memory_bytes {
        let mebi = |bytes: f64| bytes / f64::from(1 << 20);
        let (all, arrays) = (mebi(bytes as f64), mebi(findings.array_bytes as f64));
        writeln!(out, "memory     {all:.1} MiB at most, {arrays:.1} MiB of it inputs and results")?;
    }
    writeln!(out, "machine    {cpu}; {isa}, {threads} threads")?;
    Ok(())
}

//! `regard attend FILE`: attention over queries, keys and values of a file.

use super::{Flags, Global, MOST_ROWS};
use crate::cli::write_json;
use crate::files::{Archive, Floats, save_npz};
use crate::problem::OwnedInputs;
use crate::show::heatmap::{Map, columns_that_fit, gallery};
use crate::show::{label, terminal};
use anyhow::{Context, Error, Result, bail};
use regard_kernels::attention::mask::Rule;
use regard_kernels::attention::{Attention, Dims, Grid, Param, SavedAttention};
use serde::Serialize;
use std::io::Write;
use std::ops::Range;
use std::path::Path;

pub fn run(flags: &Flags, path: &Path, global: &Global, out: &mut dyn Write) -> Result<()> {
    let archive = Archive::open(path)?;
    let dims = dims(&archive)?;
    archive.limit(most_numbers(&dims));
    let attention = flags.choice.attention(global.seed.unwrap_or(0), Some(&archive))?;
    archive.limit(usize::MAX);
    let problem = load(&archive, &attention, dims)?;
    let shown = Shown::new(flags, attention, problem, path)?;
    if let Some(to) = &flags.save {
        shown.save(flags, to)?;
    }
    if flags.pictures.wanted() {
        shown.picture(flags, path)?;
    }
    if global.json { shown.json(flags, path, out) } else { shown.draw(flags, path, out) }
}

/// Checks the shapes of queries, keys and values. Only headers are read, because a small compressed
/// file can hold very large arrays.
fn dims(archive: &Archive) -> Result<Dims> {
    let [q, k, v] = ["q", "k", "v"]
        .map(|name| four(&archive.shape_of_floats(name)?).with_context(|| archive.place(name)));
    Attention::dims(q?, k?, v?).with_context(|| archive.path().display().to_string())
}

/// Maximum number of elements of an array of a mask or bias: one per score, plus lists over queries
/// and keys.
fn most_numbers(dims: &Dims) -> usize {
    let Dims { b, h, t, s, .. } = *dims;
    let scores = [b, h, t, s].into_iter().fold(1usize, usize::saturating_mul);
    scores.saturating_add(b.saturating_mul(t.saturating_add(s))).saturating_add(2)
}

/// Reads the inputs and parameters of an attention, and checks their shapes.
fn load(archive: &Archive, attention: &Attention, dims: Dims) -> Result<OwnedInputs> {
    let check = || {
        let grid = Grid::new(dims, attention.positions.clone())?;
        attention.score.check(&grid)?;
        attention.mask.check(&grid)
    };
    check().with_context(|| archive.path().display().to_string())?;
    let [q, k, v] = ["q", "k", "v"].map(|name| Ok::<_, Error>(floats(archive, name)?.data));
    let (q, k, v) = (q?, k?, v?);
    let mut params = vec![];
    for Param { name, shape, .. } in attention.params(&dims) {
        let long = format!("params.{name}");
        let stored =
            if archive.has(&long) || ["q", "k", "v"].contains(&name) { &*long } else { name };
        let got = archive.shape(stored)?;
        // `[H, D]` is accepted for `[1, H, 1, D]`: axes of size 1 are ignored.
        let true_axes = |shape: &[usize]| -> Vec<usize> {
            shape.iter().copied().filter(|axis| *axis != 1).collect()
        };
        if true_axes(&got) != true_axes(&shape) {
            let place = archive.place(stored);
            bail!("{place}: got shape {got:?}, need {shape:?} (axes of size 1 are ignored)");
        }
        params.push((floats(archive, stored)?.data, shape));
    }
    Ok(OwnedInputs { dims, q, k, v, params })
}

fn floats(archive: &Archive, name: &str) -> Result<Floats> {
    let array = archive.floats(name)?;
    if let Some(kind) = &array.converted {
        // A note, so not on standard output.
        let place = archive.place(name);
        let _ = writeln!(std::io::stderr(), "regard: note: {place}: {kind}, converted to float32");
    }
    Ok(array)
}

/// Extends `[T, D]` and `[H, T, D]` to four axes.
fn four(shape: &[usize]) -> Result<[usize; 4]> {
    if !(2..=4).contains(&shape.len()) {
        bail!("got shape {shape:?}, need [B,H,T,D], [H,T,D] or [T,D]");
    }
    if shape.contains(&0) {
        bail!("got shape {shape:?}, need at least 1 along every axis");
    }
    let mut four = [1; 4];
    four[4 - shape.len()..].copy_from_slice(shape);
    Ok(four)
}

/// A computed attention, and the batch row and head to show.
struct Shown {
    attention: Attention,
    problem: OwnedInputs,
    out: Vec<f32>,
    saved: SavedAttention,
    batch: usize,
    head: usize,
}

impl Shown {
    fn new(
        flags: &Flags,
        attention: Attention,
        problem: OwnedInputs,
        path: &Path,
    ) -> Result<Shown> {
        let Dims { b, h, .. } = problem.dims;
        for (flag, got, most) in [("batch", flags.batch, b), ("head", flags.head.unwrap_or(0), h)] {
            if got >= most {
                bail!("--{flag}: got {got}, need 0 to {}", most - 1);
            }
        }
        let mut out = problem.room()?;
        let saved = problem.forward(&attention, &mut out);
        let saved = saved.with_context(|| path.display().to_string())?;
        let (batch, head) = (flags.batch, flags.head.unwrap_or(0));
        Ok(Shown { attention, problem, out, saved, batch, head })
    }

    /// Weights of the shown head, `[rows, S]`.
    fn weights(&self, rows: &Range<usize>) -> Result<Vec<f32>> {
        let all: Vec<usize> = rows.clone().collect();
        let weights = self.problem.weights(&self.attention, &self.saved, &[self.head], &all)?;
        let size = rows.len() * self.problem.dims.s;
        Ok(weights[self.batch * size..][..size].to_vec())
    }

    fn draw(&self, flags: &Flags, path: &Path, out: &mut dyn Write) -> Result<()> {
        let Dims { t, s, .. } = self.problem.dims;
        let rows = match flags.rows {
            Some(span) => span.of(t, "rows")?,
            None => 0..t.min(MOST_ROWS),
        };
        let names: Vec<String> = rows.clone().map(|i| i.to_string()).collect();
        let most = terminal::width();
        let fit = columns_that_fit(&names, most);
        let asked = flags.keys.map_or(Ok(0..s), |span| span.of(s, "keys"))?;
        let keys = asked.start..asked.end.min(asked.start + fit);
        let weights = self.weights(&rows)?;
        let cells: Vec<f32> =
            weights.chunks_exact(s).flat_map(|row| &row[keys.clone()]).copied().collect();
        let columns: Vec<String> = keys.clone().map(|j| j.to_string()).collect();
        let title = self.title(flags, path);
        let map = Map { title, rows: &names, columns: &columns, cells: &cells };
        write!(out, "{}", gallery(vec![map.draw(terminal::paint(flags.color))], most))?;
        if rows.len() < t && flags.rows.is_none() {
            writeln!(out, "queries {}:{} of {t}; --rows A:B shows others", rows.start, rows.end)?;
        }
        if keys.len() < asked.len() {
            let Range { start, end } = keys;
            writeln!(out, "keys {start}:{end} of {s}, cut to the width; --keys A:B shows others")?;
        }
        Ok(())
    }

    fn title(&self, flags: &Flags, path: &Path) -> Vec<String> {
        let Dims { b, h, .. } = self.problem.dims;
        let (file, batch, head) = (path.display().to_string(), self.batch, self.head);
        vec![
            format!("{} · batch {batch} of {b} · head {head} of {h}", label(&file, 60)),
            flags.choice.words(),
            "rows: queries · columns: keys".into(),
        ]
    }

    fn picture(&self, flags: &Flags, path: &Path) -> Result<()> {
        let Dims { t, s, .. } = self.problem.dims;
        let rows = flags.rows.map_or(Ok(0..t), |span| span.of(t, "rows"))?;
        let keys = flags.keys.map_or(Ok(0..s), |span| span.of(s, "keys"))?;
        let names = |range: &Range<usize>| -> Vec<String> {
            range.clone().map(|i| i.to_string()).collect()
        };
        let weights = self.weights(&rows)?;
        let cells: Vec<f32> =
            weights.chunks_exact(s).flat_map(|row| &row[keys.clone()]).copied().collect();
        let (rows, columns) = (names(&rows), names(&keys));
        let title = self.title(flags, path);
        let map = Map { title, rows: &rows, columns: &columns, cells: &cells };
        flags.pictures.write(&path.display().to_string(), &[], &[map])
    }

    fn json(&self, flags: &Flags, path: &Path, out: &mut dyn Write) -> Result<()> {
        let Dims { b, h, hk, t, s, d, e, .. } = self.problem.dims;
        let rows = flags.rows.map_or(Ok(0..t), |span| span.of(t, "rows"))?;
        let weights = self.weights(&rows)?;
        let most = s.min(5);
        let inputs = self.problem.inputs()?;
        let summary = self.attention.summarize(&inputs, &self.saved, most)?;
        let first = (self.batch * h + self.head) * t;
        let top_keys: Vec<Vec<TopKey>> = rows
            .clone()
            .map(|i| {
                let from = (first + i) * most;
                let pairs =
                    summary.top_keys[from..][..most].iter().zip(&summary.top_weights[from..]);
                let found = pairs.filter(|(key, _)| **key >= 0);
                found.map(|(key, weight)| TopKey { key: *key, weight: *weight }).collect()
            })
            .collect();
        let values = &self.out[(first + rows.start) * e..(first + rows.end) * e];
        let scale = self.attention.scale;
        let document = Document {
            file: path.display().to_string(),
            shape: Shape { b, h, hk, t, s, d, e },
            score: &flags.choice.score,
            bias: &flags.choice.bias,
            mask: &flags.choice.mask,
            normalize: &flags.choice.normalize,
            scale: scale.unwrap_or_else(|| self.attention.score.default_scale(&self.problem.dims)),
            batch: self.batch,
            head: self.head,
            rows: [rows.start, rows.end],
            weights: weights.chunks_exact(s).collect(),
            out: values.chunks_exact(e).collect(),
            entropy: &summary.entropy[first + rows.start..first + rows.end],
            top_keys,
        };
        write_json(out, &document)
    }

    fn save(&self, flags: &Flags, to: &Path) -> Result<()> {
        let Dims { b, h, t, s, .. } = self.problem.dims;
        let heads: Vec<usize> = flags.head.map_or_else(|| (0..h).collect(), |head| vec![head]);
        let rows = flags.rows.map_or(Ok(0..t), |span| span.of(t, "rows"))?;
        let rows: Vec<usize> = rows.collect();
        let weights = self.problem.weights(&self.attention, &self.saved, &heads, &rows)?;
        let shape = [b, heads.len(), rows.len(), s];
        let out = self.problem.shapes()[3];
        save_npz(to, &[("out", &self.out, &out), ("weights", &weights, &shape)])
    }
}

/// Attention of a file's queries, as `--json` prints it.
#[derive(Serialize)]
struct Document<'a> {
    file: String,
    shape: Shape,
    score: &'a str,
    bias: &'a [String],
    mask: &'a str,
    normalize: &'a str,
    scale: f32,
    batch: usize,
    head: usize,
    rows: [usize; 2],
    weights: Vec<&'a [f32]>,
    out: Vec<&'a [f32]>,
    entropy: &'a [f32],
    top_keys: Vec<Vec<TopKey>>,
}

#[derive(Serialize)]
struct Shape {
    #[serde(rename = "B")]
    b: usize,
    #[serde(rename = "H")]
    h: usize,
    #[serde(rename = "Hk")]
    hk: usize,
    #[serde(rename = "T")]
    t: usize,
    #[serde(rename = "S")]
    s: usize,
    #[serde(rename = "D")]
    d: usize,
    #[serde(rename = "E")]
    e: usize,
}

#[derive(Serialize)]
struct TopKey {
    key: i32,
    weight: f32,
}

//! `regard attend --demo`: four attention heads over the words of a sentence.
//!
//! No trained model is involved. A word is a vector of its spelling: each of its character 2- and
//! 3-grams adds +1 or −1 to a feature chosen by a hash (Weinberger et al. 2009, arXiv:0902.2206),
//! so words that share n-grams have a high cosine. The attention is computed by the kernels.

use super::{Flags, Global, MOST_ROWS};
use crate::choice::parse_mask;
use crate::cli::write_json;
use crate::problem::OwnedInputs;
use crate::show::heatmap::{Map, columns_that_fit, gallery};
use crate::show::terminal;
use anyhow::{Result, bail};
use regard_kernels::attention::bias::Gaussian;
use regard_kernels::attention::normalize::Entmax15;
use regard_kernels::attention::{Attention, Dims};
use serde::Serialize;
use std::io::Write;

const SENTENCE: &str = "They are watching the watchers who watch them .";

/// Dimension of a vector: with about twenty n-grams per word, collisions are rare.
const WIDTH: usize = 256;

/// Maximum number of words; a larger map would be unreadable.
const MOST_WORDS: usize = 4096;

const VECTORS: &str =
    "Each word is a vector of its hashed character 2- and 3-grams: spelling only, nothing learned.";

struct Head {
    name: &'static str,
    formula: &'static str,
    mask: &'static str,
    says: &'static str,
    scale: f32,
    /// Standard deviation of a Gaussian bias around the query's position; None: no bias.
    sigma: Option<f32>,
    sparse: bool,
}

/// Heads of the demonstration. Scales exceed 1/√D because the vectors have length 1.
const HEADS: [Head; 4] = [
    Head {
        name: "form",
        formula: "softmax(8 q·k)",
        mask: "!window(0, 0)",
        says: "words of similar spelling",
        scale: 8.0,
        sigma: None,
        sparse: false,
    },
    Head {
        name: "near",
        formula: "softmax(q·k − (j−i)²/8)",
        mask: "full",
        says: "neighbours, by a Gaussian bias",
        scale: 1.0,
        sigma: Some(2.0),
        sparse: false,
    },
    Head {
        name: "causal",
        formula: "softmax(4 q·k)",
        mask: "causal",
        says: "the word itself and earlier ones",
        scale: 4.0,
        sigma: None,
        sparse: false,
    },
    Head {
        name: "sparse",
        formula: "entmax15(8 q·k)",
        mask: "!window(0, 0)",
        says: "as head `form`, with sparse weights (entmax-1.5)",
        scale: 8.0,
        sigma: None,
        sparse: true,
    },
];

pub fn run(flags: &Flags, global: &Global, out: &mut dyn Write) -> Result<()> {
    let words = words(&flags.input)?;
    let vectors: Vec<f32> = words.iter().flat_map(|word| vector(word)).collect();
    let t = words.len();
    let dims = Dims { b: 1, h: 1, hk: 1, t, s: t, d: WIDTH, dk: WIDTH, e: WIDTH };
    let rows = match flags.rows {
        Some(span) => span.of(t, "rows")?,
        None if global.json => 0..t,
        None => 0..t.min(MOST_ROWS),
    };
    let asked: Vec<usize> = rows.clone().collect();
    let names = &words[rows.clone()];
    let most = terminal::width();
    let chosen = flags.keys.map_or(Ok(0..t), |span| span.of(t, "keys"))?;
    let keys = chosen.start..chosen.end.min(chosen.start + columns_that_fit(names, most));
    let (mut pictures, mut heads, mut wholes) = (vec![], vec![], vec![]);
    for head in &HEADS {
        let mut attention = Attention::dot().scale(head.scale).mask(parse_mask(head.mask, None)?);
        let mut params = vec![];
        if let Some(sigma) = head.sigma {
            attention = attention.bias(Gaussian { after: false });
            params.push(((0..t).map(|i| i as f32).collect(), [1, 1, 1, t]));
            params.push((vec![sigma], [1; 4]));
        }
        if head.sparse {
            attention = attention.normalize(Entmax15);
        }
        let [q, k, v] = [(); 3].map(|()| vectors.clone());
        let problem = OwnedInputs { dims, q, k, v, params };
        let saved = problem.forward(&attention, &mut problem.room()?)?;
        let weights = problem.weights(&attention, &saved, &[0], &asked)?;
        let title = vec![
            format!("{}: {}", head.name, head.says),
            format!("{} | {}", head.formula, head.mask),
        ];
        if flags.pictures.wanted() {
            let cells = weights.chunks_exact(t).flat_map(|row| &row[chosen.clone()]).copied();
            wholes.push((title.clone(), cells.collect::<Vec<f32>>()));
        }
        if global.json {
            heads.push(Seen {
                name: head.name,
                formula: head.formula,
                mask: head.mask,
                weights: weights.chunks_exact(t).map(<[f32]>::to_vec).collect(),
            });
            continue;
        }
        let cells: Vec<f32> =
            weights.chunks_exact(t).flat_map(|row| &row[keys.clone()]).copied().collect();
        let columns = &words[keys.clone()];
        let map = Map { title, rows: names, columns, cells: &cells };
        pictures.push(map.draw(terminal::paint(flags.color)));
    }
    let mut maps = vec![];
    for (title, cells) in &wholes {
        let columns = &words[chosen.clone()];
        maps.push(Map { title: title.clone(), rows: names, columns, cells });
    }
    let about = ["Rows are queries, columns are keys.".into(), VECTORS.into()];
    flags.pictures.write("Attention between words", &about, &maps)?;
    if global.json {
        let rows = [rows.start, rows.end];
        let document = Document { words, vectors: VECTORS, rows, heads };
        return write_json(out, &document);
    }
    writeln!(out, "Attention between words. Rows are queries, columns are keys.\n{VECTORS}\n")?;
    write!(out, "{}", gallery(pictures, most))?;
    if rows.len() < t && flags.rows.is_none() {
        writeln!(out, "queries {}:{} of {t}; --rows A:B shows others", rows.start, rows.end)?;
    }
    if keys.len() < chosen.len() {
        let (start, end) = (keys.start, keys.end);
        writeln!(out, "keys {start}:{end} of {t}, cut to the width; --keys A:B shows others")?;
    }
    writeln!(out, "\nAnother sentence: --demo TEXT. Your own q, k and v: regard attend FILE.npz.")?;
    Ok(())
}

/// The demonstration, as `--json` prints it.
#[derive(Serialize)]
struct Document {
    words: Vec<String>,
    vectors: &'static str,
    rows: [usize; 2],
    heads: Vec<Seen>,
}

/// Attention of a head.
#[derive(Serialize)]
struct Seen {
    name: &'static str,
    formula: &'static str,
    mask: &'static str,
    weights: Vec<Vec<f32>>,
}

fn words(input: &[String]) -> Result<Vec<String>> {
    let text = super::text(input)?.unwrap_or_else(|| SENTENCE.into());
    let words: Vec<String> = text.split_whitespace().map(String::from).collect();
    match words.len() {
        0 => bail!("attend --demo: got a text without words"),
        n if n > MOST_WORDS => bail!("attend --demo: got {n} words, need at most {MOST_WORDS}"),
        _ => Ok(words),
    }
}

/// Unit vector of the hashed n-grams of a word.
fn vector(word: &str) -> [f32; WIDTH] {
    let mut vector = [0f32; WIDTH];
    // Marks of the beginning and the end are part of the n-grams.
    let marked: Vec<char> = format!("^{}$", word.to_lowercase()).chars().collect();
    for group in marked.windows(2).chain(marked.windows(3)) {
        let hash = hash(group);
        vector[hash as usize % WIDTH] += if hash >> 63 == 0 { 1.0 } else { -1.0 };
    }
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x /= length);
    }
    vector
}

/// FNV-1a, and a multiplication that brings the last characters into the upper bits.
fn hash(group: &[char]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in group.iter().flat_map(|c| (*c as u32).to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_one_form_are_near() {
        let cosine =
            |x: &str, y: &str| -> f32 { vector(x).iter().zip(vector(y)).map(|(x, y)| x * y).sum() };
        assert!((cosine("watch", "Watch") - 1.0).abs() < 1e-5);
        assert!(cosine("watching", "watchers") > 0.4);
        assert!(cosine("watching", "who").abs() < 0.3);
        assert!(cosine(".", ".") > 0.99);
    }
}

//! `regard embed --words`, `--analogy` and `--similarity`: vectors of words, without a model.

use super::{Flags, Global, Outcome, write_json};
use crate::show::heatmap::{Map, gallery};
use crate::show::table::Table;
use crate::show::terminal::{self, When};
use anyhow::{Result, bail};
use regard_tasks::data::Vectors;
use regard_tasks::word_space::{Agreement, Near, WordSpace};
use serde_json::{Value, json};
use std::io::Write;

pub fn run(flags: &Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    if flags.model.is_some() || flags.normalize || flags.pooling.is_some() || !flags.text.is_empty()
    {
        bail!(
            "embed: --words, --nearest, --analogy, --one-hot and --similarity look up single words in \
             --vectors, so leave out TEXT, --model, --pooling and --normalize. The nearest words of a word: \
             regard embed --words king --nearest 5; the vector of a text: regard embed TEXT --model \
             MODEL"
        );
    }
    if flags.words.is_empty()
        && (flags.one_hot || flags.analogy.is_none() && flags.nearest.is_some())
    {
        bail!("embed: --nearest and --one-hot are about --words, and there are none");
    }
    let space = WordSpace::new(Vectors::named(&flags.vectors, None)?);
    let mut document = serde_json::Map::new();
    if flags.one_hot {
        one_hot(flags, global, &space, &mut document, out)?;
    } else if !flags.words.is_empty() {
        words(flags, global, &space, &mut document, out)?;
    }
    if let Some(asked) = &flags.analogy {
        let [a, b, c] = [0, 1, 2].map(|i| asked[i].as_str());
        let said = space.analogy([a, b, c], flags.nearest.unwrap_or(5))?;
        document.insert("analogy".into(), json!({ "asked": asked, "said": listed(&said) }));
        if !global.json {
            writeln!(out, "{a} is to {b} as {c} is to")?;
            tell(&said, out)?;
        }
    }
    if flags.similarity {
        agreements(global, &space, &mut document, out)?;
    }
    if global.json {
        write_json(out, &document)?;
    }
    Ok(Outcome::Positive)
}

type Document = serde_json::Map<String, Value>;

fn listed(near: &[Near]) -> Vec<Value> {
    near.iter().map(|near| json!({ "word": near.word, "cosine": near.cosine })).collect()
}

fn tell(near: &[Near], out: &mut dyn Write) -> Result<()> {
    for near in near {
        writeln!(out, "  {:.4}  {}", near.cosine, near.word)?;
    }
    Ok(())
}

/// Their vectors, or with --nearest their neighbours.
fn words(
    flags: &Flags,
    global: &Global,
    space: &WordSpace,
    document: &mut Document,
    out: &mut dyn Write,
) -> Result<()> {
    let mut all = vec![];
    for word in &flags.words {
        space.place(word)?;
        let vector = space.vectors().get(word).unwrap_or_default();
        let near = flags.nearest.map(|count| space.nearest(word, count)).transpose()?;
        let mut entry = json!({ "word": word, "embedding": vector });
        if let Some(near) = &near {
            entry["nearest"] = json!(listed(near));
        }
        all.push(entry);
        match near {
            _ if global.json => {}
            Some(near) => {
                writeln!(out, "{word}")?;
                tell(&near, out)?;
            }
            None => {
                let numbers: Vec<String> = vector.iter().map(|x| x.to_string()).collect();
                writeln!(out, "{}", numbers.join(" "))?;
            }
        }
    }
    document.insert("words".into(), json!(all));
    Ok(())
}

/// What a one-hot vector says of words beside what an embedding says.
fn one_hot(
    flags: &Flags,
    global: &Global,
    space: &WordSpace,
    document: &mut Document,
    out: &mut dyn Write,
) -> Result<()> {
    let words: Vec<&str> = flags.words.iter().map(String::as_str).collect();
    let places = words.iter().map(|word| space.place(word)).collect::<Result<Vec<_>, _>>()?;
    let (wide, cosines) = (space.vectors().words().len(), space.cosines(&words)?);
    let alike = |i: usize, j: usize| if places[i] == places[j] { 1.0 } else { 0.0 };
    let n = words.len();
    let hot: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| alike(i, j)).collect()).collect();
    let entry = |(word, place): (&&str, &usize)| json!({ "word": word, "place": place });
    document.insert(
        "one_hot".into(),
        json!({
            "width": wide,
            "places": words.iter().zip(&places).map(entry).collect::<Vec<_>>(),
            "cosine": hot, "embedding_width": space.vectors().width(),
            "embedding_cosine": cosines,
        }),
    );
    if global.json {
        return Ok(());
    }
    for (word, place) in words.iter().zip(&places) {
        writeln!(out, "{word}: 1 at place {place} of {wide}, 0 elsewhere")?;
    }
    writeln!(
        out,
        "\nOne-hot vectors of two words are always at a right angle, {:.3} apart: what words mean is\n\
         not in them. Embeddings of {} numbers put words that are used alike side by side.\n",
        2f64.sqrt(),
        space.vectors().width()
    )?;
    let names: Vec<String> = flags.words.clone();
    let cells = |of: &[Vec<f64>]| -> Vec<f32> { of.iter().flatten().map(|x| *x as f32).collect() };
    let maps = [("one-hot", cells(&hot)), ("embeddings", cells(&cosines))];
    let pictures = maps.iter().map(|(name, cells)| {
        let title = vec![format!("cosines of {name}")];
        Map { title, rows: &names, columns: &names, cells }.draw(terminal::paint(When::Auto))
    });
    write!(out, "{}", gallery(pictures.collect(), terminal::width()))?;
    Ok(())
}

/// How well the vectors agree with people, by every set.
fn agreements(
    global: &Global,
    space: &WordSpace,
    document: &mut Document,
    out: &mut dyn Write,
) -> Result<()> {
    let all = space.agreements()?;
    let entry = |one: &Agreement| {
        let Agreement { set, pairs, covered, spearman } = one;
        json!({ "set": set, "pairs": pairs, "covered": covered, "spearman": spearman })
    };
    document.insert("similarity".into(), json!(all.iter().map(entry).collect::<Vec<_>>()));
    if global.json {
        return Ok(());
    }
    let mut table = Table::new(["set", "pairs", "covered", "Spearman"]);
    for agreement in &all {
        let share = 100.0 * agreement.covered as f64 / agreement.pairs.max(1) as f64;
        table.row([
            agreement.set.clone(),
            agreement.pairs.to_string(),
            format!("{} ({share:.0} %)", agreement.covered),
            agreement.spearman.map_or("–".into(), |rho| format!("{rho:.3}")),
        ]);
    }
    write!(out, "{}", table.render("", None))?;
    Ok(())
}

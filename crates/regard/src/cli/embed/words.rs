//! `regard embed --words`, `--analogy` and `--similarity`: word vectors, without a model.

use super::{Flags, Global, Outcome};
use crate::cli::write_json;
use crate::show::heatmap::{Map, gallery};
use crate::show::table::Table;
use crate::show::terminal::{self, When};
use anyhow::{Result, bail};
use regard_tasks::data::Vectors;
use regard_tasks::word_space::{HumanAgreement, Near, WordSpace};
use serde::Serialize;
use std::io::Write;

pub fn run(flags: &Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    if flags.model.is_some() || flags.normalize || flags.pooling.is_some() || !flags.text.is_empty()
    {
        bail!(
            "embed: --words, --nearest, --analogy, --one-hot and --similarity look up single words \
             in --vectors, so leave out TEXT, --model, --pooling and --normalize. Nearest \
             neighbours of a word: regard embed --words king --nearest 5; the vector of a text: \
             regard embed TEXT --model MODEL"
        );
    }
    if flags.words.is_empty()
        && (flags.one_hot || flags.analogy.is_none() && flags.nearest.is_some())
    {
        bail!("embed: --nearest and --one-hot need --words WORD…");
    }
    let space = WordSpace::new(Vectors::named(&flags.vectors, None)?);
    let mut document = Document::default();
    if flags.one_hot {
        document.one_hot = Some(one_hot(flags, global, &space, out)?);
    } else if !flags.words.is_empty() {
        document.words = Some(words(flags, global, &space, out)?);
    }
    if let Some(asked) = &flags.analogy {
        let [a, b, c] = [0, 1, 2].map(|i| asked[i].as_str());
        let said = space.analogy([a, b, c], flags.nearest.unwrap_or(5))?;
        if !global.json {
            writeln!(out, "{a} is to {b} as {c} is to")?;
            tell(&said, out)?;
        }
        document.analogy = Some(Analogy { asked, said });
    }
    if flags.similarity {
        document.similarity = Some(agreements(global, &space, out)?);
    }
    if global.json {
        write_json(out, &document)?;
    }
    Ok(Outcome::Positive)
}

/// Neighbours, analogies and similarities of words, as `--json` prints them.
#[derive(Default, Serialize)]
struct Document<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    one_hot: Option<OneHot<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<Vec<Word<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    analogy: Option<Analogy<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<Vec<HumanAgreement>>,
}

#[derive(Serialize)]
struct OneHot<'a> {
    width: usize,
    places: Vec<WordIndex<'a>>,
    cosine: Vec<Vec<f64>>,
    embedding_width: usize,
    embedding_cosine: Vec<Vec<f64>>,
}

#[derive(Serialize)]
struct WordIndex<'a> {
    word: &'a str,
    place: usize,
}

#[derive(Serialize)]
struct Word<'a> {
    word: &'a str,
    embedding: &'a [f32],
    #[serde(skip_serializing_if = "Option::is_none")]
    nearest: Option<Vec<Near>>,
}

#[derive(Serialize)]
struct Analogy<'a> {
    asked: &'a [String],
    said: Vec<Near>,
}

fn tell(near: &[Near], out: &mut dyn Write) -> Result<()> {
    for near in near {
        writeln!(out, "  {:.4}  {}", near.cosine, near.word)?;
    }
    Ok(())
}

/// Looks up word vectors, or with --nearest their neighbours.
fn words<'a>(
    flags: &'a Flags,
    global: &Global,
    space: &'a WordSpace,
    out: &mut dyn Write,
) -> Result<Vec<Word<'a>>> {
    let mut all = vec![];
    for word in &flags.words {
        space.place(word)?;
        let embedding = space.vectors().get(word).unwrap_or_default();
        let nearest = flags.nearest.map(|count| space.nearest(word, count)).transpose()?;
        match &nearest {
            _ if global.json => {}
            Some(near) => {
                writeln!(out, "{word}")?;
                tell(near, out)?;
            }
            None => {
                let numbers: Vec<String> = embedding.iter().map(|x| x.to_string()).collect();
                writeln!(out, "{}", numbers.join(" "))?;
            }
        }
        all.push(Word { word, embedding, nearest });
    }
    Ok(all)
}

/// Compares one-hot vectors of words with their embeddings.
fn one_hot<'a>(
    flags: &'a Flags,
    global: &Global,
    space: &WordSpace,
    out: &mut dyn Write,
) -> Result<OneHot<'a>> {
    let words: Vec<&str> = flags.words.iter().map(String::as_str).collect();
    let places = words.iter().map(|word| space.place(word)).collect::<Result<Vec<_>, _>>()?;
    let (wide, cosines) = (space.vectors().words().len(), space.cosines(&words)?);
    let alike = |i: usize, j: usize| if places[i] == places[j] { 1.0 } else { 0.0 };
    let n = words.len();
    let hot: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| alike(i, j)).collect()).collect();
    let entry = |(&word, &place): (&&'a str, &usize)| WordIndex { word, place };
    let found = OneHot {
        width: wide,
        places: words.iter().zip(&places).map(entry).collect(),
        cosine: hot,
        embedding_width: space.vectors().width(),
        embedding_cosine: cosines,
    };
    if global.json {
        return Ok(found);
    }
    for WordIndex { word, place } in &found.places {
        writeln!(out, "{word}: 1 at index {place} of {wide}, 0 elsewhere")?;
    }
    writeln!(
        out,
        "\nOne-hot vectors of any two words are orthogonal, at distance {:.3}: they carry no\n\
         similarity. Embeddings of dimension {} put words of similar use close together.\n",
        2f64.sqrt(),
        found.embedding_width
    )?;
    let names = &flags.words;
    let maps = [("one-hot", &found.cosine), ("embeddings", &found.embedding_cosine)];
    let pictures = maps.map(|(name, cosines)| {
        let cells: Vec<f32> = cosines.iter().flatten().map(|x| *x as f32).collect();
        let title = vec![format!("cosine similarity, {name}")];
        Map { title, rows: names, columns: names, cells: &cells }.draw(terminal::paint(When::Auto))
    });
    write!(out, "{}", gallery(pictures.into(), terminal::width()))?;
    Ok(found)
}

/// Spearman correlation with human ratings, for each benchmark.
fn agreements(
    global: &Global,
    space: &WordSpace,
    out: &mut dyn Write,
) -> Result<Vec<HumanAgreement>> {
    let all = space.agreements()?;
    if global.json {
        return Ok(all);
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
    Ok(all)
}

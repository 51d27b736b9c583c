//! Where the embeddings of a file are kept, and whether they are still those of the file.

use super::Flags;
use crate::cli::inputs::{self, note};
use crate::cli::say::say as say_line;
use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use regard_tasks::embed::SentencePooling;
use regard_tasks::say;
use regard_tasks::search::{EXTENSION, Embeddings, FileTexts, Index, IndexFile, Searcher};
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time between two lines of progress, where there is no terminal.
const EVERY: Duration = Duration::from_secs(10);

/// Place of an index, and what is there.
pub struct Place {
    /// `None` if the index is not kept: the file is a pipe.
    path: Option<PathBuf>,
    found: IndexFile,
}

impl Place {
    /// Finds the index of a file.
    ///
    /// # Errors
    /// If something else is in its place.
    pub fn find(flags: &Flags) -> Result<Place> {
        let beside = || {
            // A pipe has no name to find its index by, and /dev/stdin another file each time.
            let file = inputs::file(&flags.file);
            let is_regular = fs::metadata(&file).is_ok_and(|it| it.is_file());
            let mut name = OsString::from(&flags.file);
            name.push(format!(".{EXTENSION}"));
            (is_regular && !file.starts_with("/dev")).then(|| PathBuf::from(name))
        };
        let path = flags.index.clone().or_else(beside);
        let found = path.as_deref().map_or(Ok(IndexFile::Absent), Index::open)?;
        Ok(Place { path, found })
    }

    /// Returns the embeddings of texts: those of the index, or new ones, which are then kept.
    pub fn embeddings(
        self,
        searcher: &Searcher,
        texts: &FileTexts,
        pooling: SentencePooling,
    ) -> Result<Embeddings> {
        let count = texts.texts.len();
        let Some(path) = self.path else { return embed(searcher, texts, pooling) };
        let origin = searcher.origin(texts, pooling)?;
        let shown = path.display();
        match self.found {
            IndexFile::Absent => {}
            IndexFile::Damaged(why) => note(&format!("{shown}: {why}; making it again")),
            IndexFile::Whole(index) => match index.stale(&origin, count) {
                None => return Ok(index.embeddings),
                Some(why) => note(&format!("{shown}: {why}; making it again")),
            },
        }
        // Before the texts are embedded, which may take long.
        let writable = probe(&path);
        if let Err(why) = &writable {
            note(&format!("{shown}: cannot be written: {why}; the embeddings are not cached"));
        }
        let began = Instant::now();
        let index = Index { origin, embeddings: embed(searcher, texts, pooling)? };
        if writable.is_ok() {
            let took = began.elapsed().as_secs_f64();
            match index.write(&path) {
                Ok(()) => note(&format!(
                    "embedded {} in {took:.1} s; kept in {shown}",
                    say::many(count, "text")
                )),
                Err(why) => note(&format!("{why}; the embeddings are not cached")),
            }
        }
        Ok(index.embeddings)
    }
}

/// Tries whether a file can be made in the folder of an index.
fn probe(path: &Path) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}.probe", std::process::id()));
    OpenOptions::new().write(true).create_new(true).open(&beside)?;
    fs::remove_file(beside)
}

/// Embeds texts, and shows the progress: a bar on a terminal, a line now and then elsewhere.
fn embed(searcher: &Searcher, texts: &FileTexts, pooling: SentencePooling) -> Result<Embeddings> {
    let bar = match io::stderr().is_terminal() {
        true => ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr()),
        false => ProgressBar::hidden(),
    };
    let style = ProgressStyle::with_template("embedding {bar:24} {pos}/{len} texts · {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let mut last = Instant::now();
    let all: Vec<&str> = texts.texts.iter().map(|text| text.text.as_str()).collect();
    let embeddings = searcher.embed(&all, pooling, &mut |done, of| {
        bar.set_length(of as u64);
        bar.set_position(done as u64);
        if bar.is_hidden() && last.elapsed() >= EVERY {
            last = Instant::now();
            say_line(format_args!(
                "regard: embedded {} of {}",
                say::count(done),
                say::many(of, "text")
            ));
        }
    });
    bar.finish_and_clear();
    Ok(embeddings?)
}

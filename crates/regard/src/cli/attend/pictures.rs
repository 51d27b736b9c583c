//! Maps as files: `--svg` and `--html`.

use crate::files::{not_an_input, save_text};
use crate::show::heatmap::Map;
use crate::show::html::html;
use crate::show::svg::{Drawing, document, drawing};
use anyhow::{Result, bail};
use clap::Args;
use std::path::{Path, PathBuf};

/// Cells that a browser can still draw.
const MOST_CELLS: usize = 1 << 16;

/// Where to put pictures.
#[derive(Args)]
pub struct Pictures {
    /// Write the map as a picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the map as a page of one file; the pointer shows the numbers
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Pictures {
    /// Whether any is asked for.
    pub fn wanted(&self) -> bool {
        self.svg.is_some() || self.html.is_some()
    }

    /// Refuses to replace what is read, and one picture by the other.
    pub fn check(&self, inputs: &[&Path]) -> Result<()> {
        if let Some(svg) = &self.svg {
            not_an_input("--svg", svg, inputs)?;
        }
        if let Some(html) = &self.html {
            not_an_input("--html", html, inputs)?;
        }
        match self.svg.is_some() && self.svg == self.html {
            true => bail!("--svg and --html name the same file"),
            false => Ok(()),
        }
    }

    /// Writes what is asked for.
    pub fn write(&self, heading: &str, about: &[String], maps: &[Map]) -> Result<()> {
        let cells: usize = maps.iter().map(|map| map.cells.len()).sum();
        if self.wanted() && cells > MOST_CELLS {
            bail!(
                "--svg and --html: got {cells} cells, need at most {MOST_CELLS}; --rows A:B and \
                 --keys A:B choose some"
            );
        }
        match self.wanted() {
            true => self.write_parts(heading, about, &[drawing(maps)]),
            false => Ok(()),
        }
    }

    /// Writes pictures of any kind, one below the other.
    pub fn write_parts(&self, heading: &str, about: &[String], parts: &[Drawing]) -> Result<()> {
        if let Some(path) = &self.svg {
            save_text(path, &document(parts))?;
        }
        if let Some(path) = &self.html {
            save_text(path, &html(heading, about, parts))?;
        }
        Ok(())
    }
}

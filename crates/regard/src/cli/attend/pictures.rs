//! Flags `--svg` and `--html`.

use crate::files::{expect_extension, not_an_input, save_text};
use crate::show::heatmap::Map;
use crate::show::html::html;
use crate::show::svg::{Drawing, document, drawing};
use anyhow::{Result, bail};
use clap::Args;
use std::path::{Path, PathBuf};

/// Maximum number of cells that a browser can draw.
const MOST_CELLS: usize = 1 << 16;

/// Output files of pictures.
#[derive(Args)]
pub struct Pictures {
    /// Write the map as an SVG picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the map as a self-contained HTML page that shows weights on hover
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Pictures {
    /// Whether a picture is requested.
    pub fn wanted(&self) -> bool {
        self.svg.is_some() || self.html.is_some()
    }

    /// Refuses to overwrite inputs, or one picture with the other.
    pub fn check(&self, inputs: &[&Path]) -> Result<()> {
        if self.svg.is_some() && self.svg == self.html {
            bail!("--svg and --html name the same file");
        }
        let files = [("--svg", &self.svg, &["svg"][..]), ("--html", &self.html, &["html", "htm"])];
        for (flag, file, known) in files {
            if let Some(file) = file {
                not_an_input(flag, file, inputs)?;
                expect_extension(flag, file, known)?;
            }
        }
        Ok(())
    }

    /// Writes the maps to the requested files.
    pub fn write(&self, heading: &str, about: &[String], maps: &[Map]) -> Result<()> {
        let cells: usize = maps.iter().map(|map| map.cells.len()).sum();
        if self.wanted() && cells > MOST_CELLS {
            bail!(
                "--svg and --html: got {cells} cells, need at most {MOST_CELLS}; choose some with \
                 --rows A:B and --keys A:B"
            );
        }
        match self.wanted() {
            true => self.write_parts(heading, about, &[drawing(maps)]),
            false => Ok(()),
        }
    }

    /// Writes drawings to the requested files, stacked vertically.
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

//! Citations between papers, as Planetoid has them.

use crate::data::Network;
use regard_models::Result;
use std::path::Path;

/// A graph of the set, by its name, from the plain text beside the published files.
pub fn planetoid(folder: &Path, name: &str) -> Result<Network> {
    let text = folder.join("derived-text");
    Network::read(&text.join(format!("{name}.nodes.tsv")), &text.join(format!("{name}.edges.tsv")))
}

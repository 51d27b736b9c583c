//! Tables where texts are expected: messages with the command that processes a column.

use super::inputs::{command_without, standard_input};
use super::say::quoted;
use super::texts::{BUFFER, open, trained_columns};
use anyhow::{Result, bail};
use regard_tasks::import::texts::{is_table_name, looks_like_table};
use std::io::Read;
use std::path::Path;

/// Refuses texts that are names of tables.
///
/// # Errors
/// With the command that processes the column that is probably the text.
pub fn refuse_tables(given: &[String], model: Option<&str>) -> Result<()> {
    let Some(table) = given.iter().find(|text| is_table_file(text)) else { return Ok(()) };
    let mut first = vec![];
    // A table that cannot be read is told when its column is.
    let opened =
        open(Path::new(table)).map(|file| file.take(BUFFER as u64).read_to_end(&mut first));
    let found = opened.ok().and_then(|_| looks_like_table(&first, &trained_columns(model), false));
    let column = found.map_or(String::new(), |found| format!(" --text {}", quoted(found.text)));
    let (command, table_quoted) = (command_without(given), quoted(table));
    bail!(
        "{table} is a table; need a text. To process a column of it: {command} --file \
         {table_quoted}{column}\nTo evaluate its rows: regard eval RUN --data {table_quoted}"
    )
}

/// Refuses the rows of a table that would be taken for one text, with the command for a column.
pub fn not_rows(text: &str, file: Option<&Path>, model: Option<&str>) -> Result<()> {
    let first = &text.as_bytes()[..text.len().min(BUFFER)];
    let Some(found) = looks_like_table(first, &trained_columns(model), false) else {
        return Ok(());
    };
    let name = file.map_or("standard input".into(), |file| file.display().to_string());
    let column = quoted(&found.text);
    let (read, whole) = match (file, standard_input()) {
        (Some(file), _) => (String::new(), quoted(file.display())),
        (None, Some(path)) => {
            let path = quoted(path.display());
            (format!(" --file - < {path}"), path)
        }
        (None, None) => (" --file - < FILE".to_string(), "FILE".to_string()),
    };
    let file = file.map(|file| file.display().to_string()).unwrap_or_default();
    let without = command_without(&["--file".into(), format!("--file={file}"), file]);
    bail!(
        "{name}: looks like a table, not like one text; its first line is {:?}\nTo process a column \
         of it: {} --text {column}{read}\nIf it is one text: {without} \"$(cat {whole})\"",
        found.first_line,
        command_without(&[])
    )
}

fn is_table_file(text: &str) -> bool {
    is_table_name(Path::new(text)) && Path::new(text).is_file()
}

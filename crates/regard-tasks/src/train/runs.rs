//! Runs below a folder, and the times of their last changes.

use super::state::{self, BEST, MODEL};
use super::{RunSummary, checkpoints, is_run, log, record};
use regard_models::{Error, Result};
use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Returns the runs below a folder, the last changed first: its subfolders that hold a run or runs
/// of several seeds, and those of its other subfolders.
///
/// # Errors
/// If the folder cannot be read.
pub fn runs(folder: &Path) -> Result<Vec<RunSummary>> {
    let mut all = vec![];
    for (name, path) in subfolders(folder).map_err(Error::io(folder))? {
        match RunSummary::of(&path) {
            Some(found) => all.push(found),
            // A link may lead back here.
            None if path.is_symlink() => {}
            None => {
                let inner = subfolders(&path).unwrap_or_default().into_iter();
                all.extend(inner.filter_map(|(inner, path)| {
                    Some(RunSummary { name: format!("{name}/{inner}"), ..RunSummary::of(&path)? })
                }));
            }
        }
    }
    all.sort_by_cached_key(|run| (Reverse(newest(&run.folder)), run.name.clone()));
    Ok(all)
}

/// Returns names and paths of the folders in a folder, without hidden ones.
fn subfolders(folder: &Path) -> std::io::Result<Vec<(String, PathBuf)>> {
    let entries = fs::read_dir(folder)?.flatten();
    let named = entries.map(|entry| (entry.file_name(), entry.path()));
    let named = named.map(|(name, path)| (name.to_string_lossy().into_owned(), path));
    Ok(named.filter(|(name, path)| !name.starts_with('.') && path.is_dir()).collect())
}

/// Returns the seeds of a folder's runs with several seeds, and their folders.
pub fn seed_folders(folder: &Path) -> Vec<(u64, PathBuf)> {
    let of_seed = |(name, path): (String, PathBuf)| {
        let seed: u64 = name.strip_prefix("seed-")?.parse().ok()?;
        is_run(&path).then_some((seed, path))
    };
    let all = subfolders(folder).unwrap_or_default().into_iter();
    let mut all: Vec<(u64, PathBuf)> = all.filter_map(of_seed).collect();
    all.sort();
    all
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

/// Whether a file or folder was not changed after another.
pub(super) fn is_older(one: &Path, other: &Path) -> bool {
    modified(one).zip(modified(other)).is_some_and(|(one, other)| one <= other)
}

/// Returns the time of the last change of a run, or of the last one of several seeds.
fn newest(run: &Path) -> Option<SystemTime> {
    let files = [record::RECIPE, record::RUN, log::METRICS_FILE, BEST, MODEL];
    let last = checkpoints(run).last().map(|step| state::folder_of(run, *step));
    let all = files.iter().map(|name| run.join(name)).chain(last);
    let own = all.filter_map(|path| modified(&path)).max();
    let seeds = || seed_folders(run).iter().filter_map(|(_, seed)| newest(seed)).max();
    own.or_else(seeds).or_else(|| modified(run))
}

/// Returns the time of the last change as `2025-01-31T12:00:00Z`.
pub(super) fn changed(run: &Path) -> Option<String> {
    utc(newest(run)?.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs())
}

/// Formats a number of seconds since 1970 as a date and time in UTC; `None` after the year 9999.
fn utc(seconds: u64) -> Option<String> {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March here, so that a leap day is the last day of a year. 719,468 days are
    // from 1 March of the year 0 to 1970; 146,097 are in 400 years.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let of_400 = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * of_400 + of_400 / 4 - of_400 / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + of_400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    let text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z");
    (year <= 9999).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // As `date -u -d @SECONDS +%FT%TZ` prints them.
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_210_096, "2024-02-29T12:34:56Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds).as_deref(), Some(date));
        }
        assert_eq!(utc(u64::MAX / 2), None);
    }
}

//! Stands in for downloads in a program that was built without the feature `hub`.

use super::cache::Repository;
use super::failure::HubFailure;
use super::settings::Settings;
use super::words::Commit;
use std::path::PathBuf;

/// A model on the Hub, which this program cannot reach.
pub struct Remote;

impl Remote {
    pub fn new(_: &Settings, _: &Repository) -> Remote {
        Remote
    }

    pub fn forget(&self) {}

    pub fn commit(&self, _: &str) -> Result<Commit, HubFailure> {
        Err(cannot())
    }

    pub fn file(&self, _: &Commit, _: &str) -> Result<Option<PathBuf>, HubFailure> {
        Err(cannot())
    }
}

fn cannot() -> HubFailure {
    let why = "this program was built without the feature `hub`, which downloads models";
    HubFailure::Unreachable(why.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What to do instead follows in the message of an unreachable Hub.
    #[test]
    fn the_reason_is_told_without_a_hint() {
        let HubFailure::Unreachable(why) = cannot() else { panic!("it cannot be reached") };
        assert!(why.contains("feature `hub`") && !why.contains("--model"), "{why}");
    }
}

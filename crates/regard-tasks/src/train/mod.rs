//! Training: one loop for every model.
//!
//! A task computes the loss of a batch ([`Learner`]); the loop does the rest: batches, schedule,
//! optimiser, evaluation, checkpoints. All randomness is a function of (seed, step), and a
//! checkpoint holds weights, the optimiser's moments and the position in the data, so that a run
//! that was killed and resumed is bit for bit the same as an uninterrupted one.

mod checksums;
mod history;
mod learner;
mod lock;
pub mod log;
mod lora;
mod options;
mod origin;
mod pace;
pub(crate) mod pretrained_embeddings;
mod record;
mod repeats;
mod run;
mod runs;
mod schedule;
mod start;
mod state;
mod summary;
pub(crate) mod trained;

pub use checksums::{CHECKSUMS, verify_checksums, write_checksums};
pub use history::{LoggedEvaluation, RunDetails};
pub use learner::{BatchLoss, Direction, Evaluation, Learner};
pub(crate) use lock::LOCK;
pub use lock::{Lock, check_unlocked};
pub use lora::Lora;
pub use options::TrainOptions;
pub use pace::{Pace, pace};
pub use record::{
    RECIPE, Record, SettingDifference, changed_data, check_data, differences, is_run, prepare,
    recorded, refuse, table,
};
pub use repeats::{Repeated, Repeats};
pub use run::{Event, Run, TrainOutcome};
pub use runs::{runs, seed_folders};
pub use schedule::{Schedule, ScheduleKind};
pub use start::{RunOptions, start};
pub use state::{
    Damage, RunState, best, check_folder, checkpoints, files, find, newest_whole, resolve,
};
pub use summary::{RunStatus, RunSummary};
pub use trained::{Objective, Trained};

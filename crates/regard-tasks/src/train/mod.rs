//! Training: one loop for every model.
//!
//! A task says what a batch costs ([`Learner`]); the loop does the rest: batches, schedule,
//! optimiser, evaluation, checkpoints. Everything random is a function of (seed, step), and a
//! checkpoint holds weights, the optimiser's moments and the place in the data, so that a run
//! that was killed and resumed is, bit for bit, the run that was not.

mod learner;
pub mod log;
mod options;
mod pace;
mod run;
mod schedule;
mod state;

pub use learner::{Better, Evaluation, Learner, Loss};
pub use options::Options;
pub use pace::{Pace, pace};
pub use run::{Event, Outcome, Run};
pub use schedule::{Curve, Schedule};
pub use state::{Place, best, check_folder, checkpoints, resolve};

//! Prints the errors of a model on bAbI, task by task, and how well its attention finds the
//! supporting sentences of the data.
//!
//! ```sh
//! REGARD_DATA=… cargo run -p regard-tasks --example babi -- runs/babi
//! ```

use regard_tasks::answer_story::{Corpus, StoryAnswerer, agreement, measure};
use regard_tasks::data::{Part, sets};
use std::error::Error;
use std::path::Path;

/// Questions per task whose attention is compared.
const LOOKED_AT: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let run = std::env::args().nth(1).ok_or("need the folder of a run or of a model")?;
    let listener = StoryAnswerer::load(Path::new(&run))?;
    let corpus = Corpus::read(&sets::find("babi-en-10k")?, None, 100)?;
    let tales = corpus.part(Part::Test);
    let report = measure(&listener, tales)?;
    println!("{:<30} {:>7} {:>10} {:>7}", "task", "error", "precision", "recall");
    for (marks, tales) in report.tasks.iter().zip(tales) {
        let name = format!("{} {}", marks.task, marks.name);
        let looks = agreement(&listener, std::slice::from_ref(tales), LOOKED_AT)?;
        let (precision, recall) = (looks.precision, looks.recall);
        println!("{name:<30} {:>6.1}% {precision:>9.1}% {recall:>6.1}%", marks.error);
    }
    let trained: Vec<usize> = corpus.train.iter().map(|tales| tales.task).collect();
    let learned = report.of(&trained);
    println!(
        "mean of the {} tasks that were learned {:.2} %, {} failed; of all {} {:.2} %",
        learned.tasks.len(),
        learned.mean_error,
        learned.failed,
        report.tasks.len(),
        report.mean_error
    );
    Ok(())
}

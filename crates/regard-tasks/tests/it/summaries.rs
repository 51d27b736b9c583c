//! Summaries: trained, generated, and copied where the vocabulary ends.

use crate::small::{Dice, Folder, trained};
use regard_models::ModelFiles;
use regard_tasks::data::{Part, sets};
use regard_tasks::evaluation::EvaluationData;
use regard_tasks::recipe::{self, Task};
use regard_tasks::summarize::{Recipe, Summarizer};
use regard_tasks::train::TrainOutcome;
use std::fs;
use std::path::Path;

/// Mails whose subject is the thing that they are about. Every thing is another word, so that no
/// vocabulary has those of the test part.
fn mails(folder: &Path) {
    let mut dice = Dice(5);
    let mut mail = |things: usize| {
        let thing = format!("thing{}", dice.below(things));
        let greeting = ["hello there", "dear all", "good morning"][dice.below(3)];
        let end = ["thanks", "see you", "bye now"][dice.below(3)];
        format!("{greeting} , this is about {thing} today . {end}\tabout {thing}\n")
    };
    for (name, count) in [("train", 400), ("valid", 20), ("test", 40)] {
        let text: String = (0..count).map(|_| mail(100_000)).collect();
        fs::write(folder.join(format!("{name}.tsv")), text).unwrap();
    }
}

fn recipe(folder: &Path, model: &str, steps: usize) -> Recipe {
    let text = format!(
        "name = 'small'\ntask = 'summarize'\nseed = 3\nvocabulary = 26\n[data]\nset = 'files'\n\
         folder = '{}'\n[model]\nmodel_type = 'pointer-generator'\nembedding_size = 16\n\
         hidden_size = 16\n{model}\n[train]\nsteps = {steps}\nbatch_tokens = 260\nlr = 1e-2\n\
         warmup = 10\nschedule = 'cosine'\neval_every = 60\nkeep = 2\n[decode]\nmax_length = 6\n\
         num_beams = 2",
        folder.display()
    );
    Recipe::from_table(recipe::parse(&text, &[], &|_| None).unwrap()).unwrap()
}

fn test(recipe: &Recipe, run: &Path, name: &str) -> f64 {
    let report = recipe
        .evaluate(&ModelFiles::from(run), &EvaluationData::Set { set: None, part: None })
        .unwrap();
    assert_eq!((report.asked, report.part), (40, Some(Part::Test)));
    report.marks.iter().find(|mark| mark.name == name).unwrap().value
}

#[test]
fn words_beyond_the_vocabulary_are_copied() {
    let (data, run) = (Folder::new("mails"), Folder::new("mails-runs"));
    mails(&data.0);
    let (copies, writes) = (run.0.join("copies"), run.0.join("writes"));
    let copying = recipe(&data.0, "", 180);
    trained(&copying, &copies, false, None);
    let plain = recipe(&data.0, "copy = false", 60);
    trained(&plain, &writes, false, None);
    let (ours, theirs) = (test(&copying, &copies, "rouge_l"), test(&plain, &writes, "rouge_l"));
    // A model that cannot generate the thing gets at most two thirds, for "about" alone.
    assert!(ours > 90.0 && theirs < 67.0, "copying {ours}, without {theirs}");
    assert_eq!(test(&plain, &writes, "new_words"), 0.0);
    assert!(test(&copying, &copies, "new_words") > 40.0);

    let summarizer = Summarizer::load(&copies).unwrap();
    let mail = "Dear all, this is about Kowalski today. bye now";
    let said = summarizer.summarize(&[mail], None, summarizer.defaults()).unwrap().remove(0);
    assert_eq!(said.text, "about kowalski");
    let [about, name] = &said.words[..] else { panic!("{said:?}") };
    assert!(about.known && !name.known && name.copied > 0.99, "{said:?}");
    assert!(summarizer.summarize(&["  "], None, summarizer.defaults()).is_err());
}

#[test]
fn a_run_that_is_resumed_is_the_run_that_was_not_stopped() {
    let (data, runs) = (Folder::new("mails-resumed"), Folder::new("mails-resumed-runs"));
    mails(&data.0);
    let recipe = recipe(&data.0, "dropout = 0.2", 12);
    let (whole, parts) = (runs.0.join("whole"), runs.0.join("parts"));
    trained(&recipe, &whole, false, None);
    let end = trained(&recipe, &parts, false, Some(5));
    assert!(matches!(end, TrainOutcome::Interrupted { step: 5 }));
    trained(&recipe, &parts, true, None);
    let weights = |run: &Path| fs::read(run.join("model/model.safetensors")).unwrap();
    assert!(weights(&whole) == weights(&parts));
}

#[test]
fn what_cannot_be_is_told() {
    let data = Folder::new("mails-wrong");
    mails(&data.0);
    let error = |recipe: Recipe| recipe.prepare().err().unwrap().to_string();
    assert!(error(recipe(&data.0, "copies = true", 1)).contains("copies"));
    fs::write(data.0.join("valid.tsv"), "a text without a summary\n").unwrap();
    let message = error(recipe(&data.0, "", 1));
    assert!(message.contains("valid.tsv") && message.contains("line 1"), "{message}");
    let mut other = recipe(&data.0, "", 1);
    other.data.set = "novels".into();
    assert!(error(other).contains("data.set: got \"novels\""));
    let mut other = recipe(&data.0, "", 1);
    other.data.max_words = 0;
    assert!(error(other).contains("data.max_words: got 0"));
}

#[test]
fn the_published_archive_has_its_parts() {
    let Ok(folder) = sets::find("aeslc") else {
        eprintln!("aeslc is not here: not tested");
        return;
    };
    let archive = folder.join("aeslc.tar");
    for (part, count, summaries) in
        [(Part::Train, 14_436, 1), (Part::Valid, 1_960, 4), (Part::Test, 1_906, 4)]
    {
        let all = regard_tasks::data::aeslc::read(&archive, part).unwrap();
        assert_eq!(all.len(), count, "{part:?}");
        assert!(all.iter().all(|each| each.summaries.len() == summaries), "{part:?}");
    }
}

#[test]
fn words_begin_with_vectors_of_others() {
    let data = Folder::new("mails-vectors");
    mails(&data.0);
    let file = data.0.join("vectors.txt");
    fs::write(&file, format!("about{}\n", " 0.25".repeat(16))).unwrap();
    let mut recipe = recipe(&data.0, "", 1);
    recipe.vectors = Some(file.display().to_string());
    let weights = recipe.prepare().unwrap().learner.network().weights();
    let (_, table) =
        weights.iter().find(|(name, _)| name.ends_with("embed_tokens.weight")).unwrap();
    let table = table.floats().unwrap();
    let rows = table.chunks_exact(16);
    assert_eq!(rows.filter(|row| row.iter().all(|x| *x == 0.25)).count(), 1);
}

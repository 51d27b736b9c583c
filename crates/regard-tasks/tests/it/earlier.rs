//! Runs that began when their task had another name.

use crate::resumed::left;
use crate::small::Folder;
use regard_tasks::recipe::{parse, task};
use regard_tasks::train::{Event, Outcome, RECIPE, Run, prepare, recorded};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

fn train(recipe: &str, folder: &Path, resume: bool, last: u64) -> regard_tasks::Result<Outcome> {
    let recipe = task(parse(recipe, &[], &|_| None).unwrap()).unwrap();
    let (mut prepared, record) = prepare(&*recipe, None)?;
    let mut watch = |event: Event| !matches!(event, Event::Step { step, .. } if step == last);
    let (options, seed) = (recipe.options(), recipe.seed());
    let run = Run { folder, options, seed, resume, record: &record, watch: &mut watch };
    run.train(&mut *prepared.learner)
}

#[test]
fn a_run_goes_on_whichever_name_its_task_had() {
    let folder = Folder::new("earlier");
    let text = folder.0.join("text.txt");
    fs::write(&text, "abcdefghijklmnopqrstuvwxyz\n".repeat(40)).unwrap();
    let recipe = |name: &str| {
        format!(
            "name = 'small'\ntask = '{name}'\nseed = 3\ncontext = 8\n[data]\ntrain = '{}'\n\
             set = 'files'\n[vocabulary]\nkind = 'char'\n[model]\nmodel_type = 'gpt2'\nn_embd = 8\n\
             n_layer = 1\nn_head = 1\n[train]\nsteps = 6\nbatch_tokens = 64\nlog_every = 1\n\
             eval_every = 3",
            text.display()
        )
    };
    let [whole, stopped] = ["whole", "stopped"].map(|name| folder.0.join(name));
    let done = train(&recipe("generate"), &whole, false, 0).unwrap();
    assert!(matches!(done, Outcome::Done { step: 6, .. }), "{done:?}");
    let end = train(&recipe("language"), &stopped, false, 3).unwrap();
    assert_eq!(end, Outcome::Interrupted { step: 3 });
    // As an earlier version wrote it.
    let written = fs::read_to_string(stopped.join(RECIPE)).unwrap();
    let earlier = written.replace("task = \"generate\"", "task = \"language\"");
    assert_ne!(earlier, written);
    fs::write(stopped.join(RECIPE), &earlier).unwrap();
    let hash = |text: &str| -> String {
        Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let notes = fs::read_to_string(stopped.join("run.json")).unwrap();
    let notes = notes.replace(&hash(&written), &hash(&earlier));
    fs::write(stopped.join("run.json"), notes).unwrap();
    assert_eq!(recorded(&stopped).unwrap()["task"].as_str(), Some("generate"));
    assert_eq!(train(&recipe("generate"), &stopped, true, 0).unwrap(), done);
    assert!(left(&stopped) == left(&whole), "another run came of it");
}

//! Runs that began when their task had another name.

use crate::resumed::left;
use crate::small::{Folder, trained};
use regard_tasks::recipe::{Task, parse, task};
use regard_tasks::train::{RECIPE, TrainOutcome, recorded};
use sha2::{Digest, Sha256};
use std::fs;

fn read(recipe: &str) -> Box<dyn Task> {
    task(parse(recipe, &[], &|_| None).unwrap()).unwrap()
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
    let done = trained(&*read(&recipe("generate")), &whole, false, None);
    assert!(matches!(done, TrainOutcome::Done { step: 6, .. }), "{done:?}");
    let end = trained(&*read(&recipe("language")), &stopped, false, Some(3));
    assert_eq!(end, TrainOutcome::Interrupted { step: 3 });
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
    assert_eq!(trained(&*read(&recipe("generate")), &stopped, true, None), done);
    assert!(left(&stopped) == left(&whole), "another run came of it");
}

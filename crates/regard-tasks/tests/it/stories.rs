//! Stories: one model is trained, saved, queried, and resumed.

use crate::small::{Folder, trained};
use regard_tasks::answer_story::{
    Corpus, Recipe, StoryAnswerer, StoryObjective, agreement, measure,
};
use regard_tasks::data::Part;
use regard_tasks::data::sets;
use regard_tasks::recipe::{self, Task};
use regard_tasks::train::{Learner, TrainOutcome};
use std::fmt::Write;
use std::fs;
use std::path::Path;

const PEOPLE: [&str; 3] = ["John", "Mary", "Sandra"];
const PLACES: [&str; 4] = ["garden", "hall", "kitchen", "office"];

/// A few stories in the manner of bAbI's first task: who went where, and where is one of them?
fn babi(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let write = |part: &str, stories: std::ops::Range<usize>| {
        let mut text = String::new();
        for story in stories {
            let mut last = [None; 3];
            for i in 0..4 {
                let (who, place) =
                    ((story * 7 + i * 5 + story / 3) % 3, (story * 3 + i * i + i) % 4);
                last[who] = Some((place, i + 1));
                writeln!(text, "{} {} went to the {}.", i + 1, PEOPLE[who], PLACES[place]).unwrap();
            }
            let who = (0..3).map(|i| (story + i) % 3).find(|who| last[*who].is_some()).unwrap();
            let (place, said) = last[who].unwrap();
            writeln!(text, "5 Where is {}? \t{}\t{said}", PEOPLE[who], PLACES[place]).unwrap();
        }
        fs::write(folder.join(format!("qa1_single-supporting-fact_{part}.txt")), text).unwrap();
    };
    write("train", 0..160);
    write("test", 160..200);
}

fn recipe(folder: &Path, model: &str) -> Recipe {
    let text = format!(
        "name = 'small'\ntask = 'answer-story'\nseed = 3\n[data]\nset = 'files'\nfolder = '{}'\n\
         valid = 200\n[model]\nhidden_size = 16\n{model}\n[train]\nsteps = 220\n\
         batch_tokens = 32\naccumulate = 1\nlr = 1e-2\nwarmup = 10\nschedule = 'cosine'\n\
         label_smoothing = 0.0\neval_every = 55\nkeep = 2",
        folder.display()
    );
    Recipe::from_table(recipe::parse(&text, &[], &|_| None).unwrap()).unwrap()
}

const STORY: &str = "model_type = 'story'\nnum_attention_heads = 2\nrepetitions = 2\nreach = 4";
const MEMORY: &str = "model_type = 'memn2n'\nhops = 2";

#[test]
fn stories_are_learned_and_asked_about() {
    let (data, run) = (Folder::new("stories-data"), Folder::new("stories-run"));
    babi(&data.0);
    for (name, model) in [("story", STORY), ("memn2n", MEMORY)] {
        let (recipe, run) = (recipe(&data.0, model), run.0.join(name));
        trained(&recipe, &run, false, None);
        let listener = StoryAnswerer::load(&run).unwrap();
        let corpus = recipe.data.read().unwrap();
        let report = measure(&listener, corpus.part(Part::Test)).unwrap();
        assert_eq!((report.tasks.len(), report.tasks[0].questions), (1, 40));
        assert_eq!(report.mean_error, report.tasks[0].error);
        assert!(report.mean_error <= 25.0, "{name}: {report:?}");
        assert_eq!(report.of(&[2]).tasks, []);
        let heard = listener
            .answer("where is Mary?", "Mary went to the hall. John went to the office.", 2)
            .unwrap();
        assert_eq!((heard.replies.len(), heard.replies[0].answer.as_str()), (2, "hall"), "{name}");
        assert!(heard.replies[0].score > heard.replies[1].score);
        let refused = |question: &str, story: &str| {
            listener.answer(question, story, 1).unwrap_err().to_string()
        };
        assert!(refused("Where is the sword?", "").contains("\"sword\" in"));
        assert!(refused("Where is Mary?", "Mary Mary Mary Mary Mary Mary.").contains("6 words"));
        assert!(refused("?", "").contains("no words"));
        let agreed = agreement(&listener, corpus.part(Part::Test), 20).unwrap();
        assert!((0.0..=100.0).contains(&agreed.recall) && agreed.precision <= 100.0, "{agreed:?}");
    }
}

#[test]
fn a_story_that_is_too_long_keeps_its_end() {
    let data = Folder::new("stories-long");
    babi(&data.0);
    let recipe = recipe(&data.0, &format!("{STORY}\nmax_sentences = 5"));
    let lesson = StoryObjective::new(&recipe, &recipe.data.read().unwrap()).unwrap();
    lesson.save(&data.0).unwrap();
    let listener = StoryAnswerer::load(&data.0).unwrap();
    let sentences: Vec<String> =
        (0..9).map(|i| format!("{} went to the {}.", PEOPLE[i % 3], PLACES[i % 4])).collect();
    let all = listener.answer("Where is John?", &sentences.join(" "), 4).unwrap();
    let end = listener.answer("Where is John?", &sentences[4..].join("\n"), 4).unwrap();
    assert_eq!(all.replies, end.replies);
    // Sentences are numbered from the beginning of the story.
    for (all, end) in all.support.iter().zip(&end.support) {
        assert_eq!((all.sentence, &all.text), (end.sentence + 4, &end.text));
        assert_eq!(all.text, sentences[all.sentence]);
    }
}

#[test]
fn a_run_that_was_stopped_is_the_run_that_was_not() {
    let (data, run) = (Folder::new("stories-resumed"), Folder::new("stories-resumed-run"));
    babi(&data.0);
    let mut recipe = recipe(&data.0, &format!("{STORY}\nattention_dropout = 0.1"));
    (recipe.train.steps, recipe.train.eval_every, recipe.train.accumulate) = (14, 5, 2);
    let (whole, stopped) = (run.0.join("whole"), run.0.join("stopped"));
    trained(&recipe, &whole, false, None);
    assert_eq!(trained(&recipe, &stopped, false, Some(8)), TrainOutcome::Interrupted { step: 8 });
    trained(&recipe, &stopped, true, None);
    for file in ["model/model.safetensors", "checkpoint-14/optimizer.safetensors"] {
        let read = |run: &Path| fs::read(run.join(file)).unwrap();
        assert!(read(&whole) == read(&stopped), "{file}");
    }
}

#[test]
fn what_cannot_be_is_told() {
    let data = Folder::new("stories-bad");
    babi(&data.0);
    let error = |change: &dyn Fn(&mut Recipe)| {
        let mut recipe = recipe(&data.0, STORY);
        change(&mut recipe);
        recipe.prepare().err().unwrap().to_string()
    };
    assert!(error(&|r| r.data.set = "squad".into()).contains("data.set: got \"squad\""));
    assert!(error(&|r| r.data.folder = None).contains("data.folder"));
    assert!(error(&|r| r.data.valid = 0).contains("data.valid: got 0"));
    assert!(error(&|r| r.data.tasks = Some(vec![21])).contains("data.tasks: got 21"));
    assert!(error(&|r| r.data.tasks = Some(vec![2])).contains("holds no training file"));
    assert!(error(&|r| r.model = "story".into()).contains("model: need a table"));
    assert!(error(&|r| r.model["hiden_size"] = 3.into()).contains("no such key: hiden_size"));
    assert!(error(&|r| r.model["repetitions"] = 0.into()).contains("repetitions: got 0"));
    assert!(error(&|r| r.model["max_words"] = 2.into()).contains("no training question is usable"));
}

/// Test files are not trained on, and a tenth of each task is held out.
#[test]
fn parts_of_babi() {
    let Ok(folder) = sets::find("babi-en-10k") else {
        return regard_fuzz::skip(&format!("no babi-en-10k, see {}", sets::VARIABLE));
    };
    let corpus = Corpus::read(&folder, Some(&[1, 3, 17]), 100).unwrap();
    let numbers = |part: Part| corpus.part(part).iter().map(|t| t.task).collect::<Vec<_>>();
    assert_eq!((numbers(Part::Train), numbers(Part::Test)), (vec![1, 17], vec![1, 3, 17]));
    for (train, valid) in corpus.train.iter().zip(&corpus.valid) {
        let (train, valid) = (train.stories.len(), valid.stories.len());
        assert!((7..13).contains(&(100 * valid / (train + valid))), "{valid} of {train}");
    }
}

#[test]
fn a_model_of_stories_begins_with_vectors() {
    let folder = Folder::new("stories-vectors");
    babi(&folder.0);
    let file = folder.0.join("vectors.txt");
    let row = |x: f32| vec![x.to_string(); 16].join(" ");
    fs::write(&file, format!("garden {}\nhorse {}\n", row(1.5), row(2.5))).unwrap();
    let mut recipe = recipe(&folder.0, STORY);
    recipe.vectors = Some(file.display().to_string());
    let weights = recipe.prepare().unwrap().learner.network().weights();
    let (_, table) = weights.iter().find(|(name, _)| name.ends_with("words.weight")).unwrap();
    let table = table.floats().unwrap();
    let given = table.chunks(16).filter(|row| row.iter().all(|x| *x == 1.5)).count();
    assert_eq!(given, 1);
    recipe.vectors = Some("word3vec".into());
    assert!(recipe.prepare().err().unwrap().to_string().contains("need a file or glove-subset"));
}

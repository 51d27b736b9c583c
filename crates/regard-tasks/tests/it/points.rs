//! Pointer networks: generated or read points, training, prediction and resumption.

use crate::small::{Folder, trained};
use regard_models::ModelFiles;
use regard_tasks::evaluation::EvaluationData;
use regard_tasks::point::{Pointer, Recipe};
use regard_tasks::recipe::{self, Task};
use regard_tasks::train::TrainOutcome;
use std::fs;
use std::path::Path;

fn recipe(problem: &str, data: &str, model: &str, steps: usize) -> Recipe {
    let text = format!(
        "name = 'small'\ntask = 'point'\nseed = 3\n[data]\nproblem = '{problem}'\n{data}\n\
         [model]\nmodel_type = 'pointer-network'\nhidden_size = 32\nnum_attention_heads = 2\n\
         intermediate_size = 48\nencoder_layers = 1\ndecoder_layers = 1\n{model}\n[train]\n\
         steps = {steps}\nbatch_tokens = 160\nlr = 5e-3\nwarmup = 10\nschedule = 'cosine'\n\
         eval_every = 50\nkeep = 2\n[decode]\nnum_beams = 2"
    );
    Recipe::from_table(recipe::parse(&text, &[], &|_| None).unwrap()).unwrap()
}

fn test(recipe: &Recipe, run: &Path, name: &str) -> f64 {
    let on = EvaluationData::Set { set: None, part: None };
    let report = recipe.evaluate(&ModelFiles::from(run), &on).unwrap();
    report.marks.iter().find(|mark| mark.name == name).unwrap().value
}

const DRAWN: &str = "set = 'drawn'\npoints = [4, 4]\ntrain = 5000\nvalid = 20\ntest = 200";

#[test]
fn numbers_are_put_in_order_by_either_kind() {
    let run = Folder::new("points-sort");
    for kind in ["transformer", "lstm"] {
        let model = format!("encoder = '{kind}'");
        let (recipe, run) = (recipe("sort", DRAWN, &model, 150), run.0.join(kind));
        trained(&recipe, &run, false, None);
        let right = test(&recipe, &run, "accuracy");
        // One in twenty-four is right by chance.
        assert!(right >= 55.0, "{kind}: {right} % in order");
        let pointer = Pointer::load(&run).unwrap();
        let said = pointer.ask(&[&[0.9, 0.1, 0.5]], pointer.defaults()).unwrap().remove(0);
        assert_eq!(said.answer, [1, 2, 0], "{kind}");
        assert_eq!(said.weights.len(), 4);
        assert!(said.weights.iter().all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-5));
    }
}

#[test]
fn tours_go_through_every_point_and_are_not_much_too_long() {
    let run = Folder::new("points-tsp");
    let data = "set = 'drawn'\npoints = [4, 6]\ntrain = 5000\nvalid = 20\ntest = 100";
    let recipe = recipe("tsp", data, "", 80);
    trained(&recipe, &run.0, false, None);
    let gap = test(&recipe, &run.0, "gap");
    assert!((0.0..15.0).contains(&gap), "{gap} % longer than the shortest");
    let pointer = Pointer::load(&run.0).unwrap();
    let set: Vec<f64> = (0..18).map(|i| f64::from((i * 7 + i * i) % 19)).collect();
    let mut said = pointer.ask(&[&set], pointer.defaults()).unwrap().remove(0).answer;
    said.sort_unstable();
    assert_eq!(said, (0..9).collect::<Vec<_>>(), "of more points than were learned from");
}

#[test]
fn hulls_of_files_are_learned_and_a_run_goes_on_as_if_it_had_not_stopped() {
    let (data, runs) = (Folder::new("points-files"), Folder::new("points-hull"));
    let triangle = |i: usize| {
        let x = |k: usize| ((i * 31 + k * 17) % 23) as f64 / 23.0;
        // A point within a triangle, at a varying index.
        let corners = [[0.0, x(1) / 9.0], [1.0, x(2) / 9.0], [x(3) / 2.0 + 0.25, 1.0]];
        let middle = [0, 1].map(|axis| corners.iter().map(|c| c[axis]).sum::<f64>() / 3.0);
        let mut all = corners.to_vec();
        all.insert(i % 4, middle);
        let numbers: Vec<String> = all.iter().flatten().map(|x| format!("{x:.6}")).collect();
        let hull: Vec<usize> = (1..=4).filter(|place| place - 1 != i % 4).collect();
        let [a, b, c] = hull[..] else { panic!("three corners") };
        format!("{} output {a} {b} {c} {a}\n", numbers.join(" "))
    };
    for (name, range) in [("train", 0..300), ("valid", 300..320), ("test", 320..400)] {
        let text: String = range.map(triangle).collect();
        fs::write(data.0.join(format!("{name}.txt")), text).unwrap();
    }
    let files = format!("set = 'files'\nfolder = '{}'", data.0.display());
    let recipe = recipe("hull", &files, "", 60);
    let (whole, parts) = (runs.0.join("whole"), runs.0.join("parts"));
    trained(&recipe, &whole, false, None);
    let end = trained(&recipe, &parts, false, Some(23));
    assert!(matches!(end, TrainOutcome::Interrupted { step: 23 }));
    trained(&recipe, &parts, true, None);
    let weights = |run: &Path| fs::read(run.join("model/model.safetensors")).unwrap();
    assert!(weights(&whole) == weights(&parts), "resumed is never stopped");
    let right = test(&recipe, &whole, "accuracy");
    assert!(right >= 90.0, "{right} %");
    let report = recipe
        .evaluate(&ModelFiles::from(&whole), &EvaluationData::File(data.0.join("test.txt")))
        .unwrap();
    assert_eq!((report.asked, report.marks[0].value), (80, right));
}

#[test]
fn what_is_wrong_in_a_file_is_told_with_its_line() {
    let data = Folder::new("points-wrong");
    let good = "0.1 0.2 0.9 0.1 0.5 0.7 output 1 2 3 1\n";
    let rows = [
        (format!("{good}\n0.1 0.2 0.9 0.1 0.5 0.7 output 1 2 4 1\n"), "line 3: got \"4\""),
        (format!("{good}0.1 nan 0.9 0.1 0.5 0.7 output 1 2 3 1\n"), "line 2: number 2: got NaN"),
        (String::new(), "holds no points"),
    ];
    let files = format!("set = 'files'\nfolder = '{}'", data.0.display());
    for (text, says) in rows {
        fs::write(data.0.join("train.txt"), text).unwrap();
        fs::write(data.0.join("valid.txt"), good).unwrap();
        let error = recipe("hull", &files, "", 1).prepare().err().unwrap().to_string();
        assert!(error.contains("train.txt") && error.contains(says), "{error}");
    }
    let rows = [
        ("set = 'drawn'\npoints = [2, 5]", "data.points: got 2 to 5, hull needs"),
        ("set = 'drawn'\npoints = [9, 5]", "data.points: got 9 to 5"),
        ("set = 'nowhere'", "data.set: got \"nowhere\""),
        ("set = 'files'", "data.folder"),
        ("set = 'drawn'\nvalid = 0", "data.valid"),
    ];
    for (data, says) in rows {
        let error = recipe("hull", data, "", 1).prepare().err().unwrap().to_string();
        assert!(error.contains(says), "{data}: {error}");
    }
    let error = recipe("tsp", "set = 'drawn'\npoints = [5, 20]", "", 1).prepare().err().unwrap();
    assert!(error.to_string().contains("2 to 13"), "{error}");
    let error = recipe("knot", DRAWN, "", 1).prepare().err().unwrap().to_string();
    assert!(error.contains("hull, sort, tsp"), "{error}");
}

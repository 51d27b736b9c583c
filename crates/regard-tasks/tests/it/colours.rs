//! Colour images: written, read, learned from, and told apart in other formats.

use crate::small::{Folder, trained};
use regard_models::{ModelFiles, checkpoint};
use regard_tasks::classify_image::{
    Corpus, FILE, ImageClassifier, Images, LabelledImages, Processor, Recipe, measure,
};
use regard_tasks::data::{Image, Part, idx};
use regard_tasks::evaluation::EvaluationData;
use regard_tasks::recipe::{self, Task};
use regard_tasks::train::TrainOutcome;
use std::fs;
use std::path::Path;

const SIDE: usize = 8;

/// A red or blue square somewhere on grey noise. Both colours have the same grey and the same sum
/// of channels, so that nothing but the colour tells the classes apart.
fn square(class: usize, seed: usize) -> Image {
    let (top, left, dark) = (seed % 5, seed / 5 % 5, (seed * 7 % 90) as u8);
    let pixel = |at: usize| {
        let inside = |first: usize, place: usize| (first..first + 4).contains(&place);
        match inside(top, at / SIDE) && inside(left, at % SIDE) {
            false => [((at * 31 + seed * 17) % 150) as u8; 3],
            true if class == 0 => [dark + 164, dark, dark],
            true => [dark, dark + 64, dark + 100],
        }
    };
    Image { size: [SIDE; 2], channels: 3, pixels: (0..SIDE * SIDE).flat_map(pixel).collect() }
}

fn seed(part: &str) -> usize {
    part.bytes().map(usize::from).sum()
}

/// The images of a part: pairs of a red and a blue square that are the same in grey.
fn squares(part: &str, count: usize) -> Vec<Image> {
    (0..count).map(|i| square(i % 2, seed(part) + i / 2)).collect()
}

/// Writes the files of a part, whose labels are those of red and of blue.
fn write(folder: &Path, part: &str, count: usize, labels: [usize; 2]) {
    let pixels: Vec<u8> = squares(part, count).into_iter().flat_map(|one| one.pixels).collect();
    let images = folder.join(format!("{part}-images-idx4-ubyte"));
    idx::write(&images, &[count, SIDE, SIDE, 3], &pixels).unwrap();
    let labels: Vec<usize> = (0..count).map(|i| labels[i % 2]).collect();
    idx::write_labels(&folder.join(format!("{part}-labels-idx1-ubyte")), &labels).unwrap();
}

fn recipe(folder: &Path, more: &str, model: &str) -> Recipe {
    let text = format!(
        "name = 'small'\ntask = 'classify-image'\nseed = 3\n[data]\nset = 'files'\nfolder = '{}'\n\
         {more}\n[model]\n{model}\nhidden_size = 16\nnum_hidden_layers = 1\n\
         num_attention_heads = 2\nintermediate_size = 16\ninitializer_range = 0.2\n\
         [augment]\nshift = 1\nflip = true\nerase = 0.1\n\
         [train]\nsteps = 80\nbatch_tokens = 20\nlr = 1e-2\nwarmup = 5\nlog_every = 20\n\
         eval_every = 40\nlabel_smoothing = 0.0",
        folder.display()
    );
    Recipe::from_table(recipe::parse(&text, &[], &|_| None).unwrap()).unwrap()
}

#[test]
fn only_colour_tells_the_squares_apart() {
    for seed in 0..200 {
        let [red, blue] = [0, 1].map(|class| square(class, seed));
        assert_ne!(red, blue);
        assert_eq!(red.with_channels(1).unwrap(), blue.with_channels(1).unwrap());
        let sum = |image: &Image| image.pixels.iter().map(|x| u64::from(*x)).sum::<u64>();
        assert_eq!(sum(&red), sum(&blue));
    }
}

#[test]
fn red_and_blue_are_learned_and_told_apart_in_other_files() {
    let patches = "model_type = 'vit'\npatch_size = 4";
    let stem = "model_type = 'vision_transformer'\nstem_channels = [6]\nstem_halving = 'max'\n\
                patch_size = 2\npooling = 'mean'";
    // More classes than a byte has values, in the second case.
    for (name, model, labels) in [("patches", patches, [0, 1]), ("stem", stem, [300, 0])] {
        let folder = Folder::new(&format!("colours-{name}"));
        for (part, count) in [("train", 120), ("valid", 40), ("t10k", 50)] {
            write(&folder.0, part, count, labels);
        }
        let (recipe, run) = (recipe(&folder.0, "", model), folder.0.join("run"));
        let done = trained(&recipe, &run, false, None);
        assert!(matches!(done, TrainOutcome::Done { step: 80, .. }), "{name}: {done:?}");
        let files = ModelFiles::from(&run);
        let all = EvaluationData::Set { set: None, part: Some(Part::Test) };
        let file = EvaluationData::File(folder.0.join("t10k-images-idx4-ubyte"));
        for on in [all, file] {
            let report = recipe.evaluate(&files, &on).unwrap();
            let accuracy = report.marks.iter().find(|mark| mark.name == "accuracy").unwrap().value;
            assert!(report.asked == 50 && accuracy >= 96.0, "{name}: {report:?}");
        }
        let config = checkpoint::read_config(&run.join("model")).unwrap();
        assert_eq!(config["num_channels"], 3);
        assert_eq!(config["id2label"].as_object().unwrap().len(), labels[0].max(labels[1]) + 1);

        // The saved model sees the same in a PNG, which another reader prepares.
        let viewer = ImageClassifier::load(&run).unwrap();
        let saved: Processor =
            serde_json::from_slice(&fs::read(run.join("model").join(FILE)).unwrap()).unwrap();
        assert_eq!((saved.image_mean.len(), saved.image_std.len()), (3, 3));
        let held = Images::read(&folder.0.join("t10k-images-idx4-ubyte")).unwrap();
        assert_eq!(held.len(), 50);
        let mut right = 0;
        for (i, image) in squares("t10k", 50).iter().enumerate() {
            let png = folder.0.join("one.png");
            image.write_png(&png).unwrap();
            let read = Image::read(&png).unwrap();
            assert_eq!((&read, held.get(i).as_ref()), (image, Some(image)));
            let said = viewer.classify(&[viewer.prepare(&read).unwrap()]).unwrap();
            right += usize::from(said[0][0].label == labels[i % 2].to_string());
        }
        let pile = LabelledImages::beside_labels(&folder.0.join("t10k-images-idx4-ubyte")).unwrap();
        let accuracy = measure(&viewer, &pile).unwrap().accuracy;
        assert_eq!(right, (accuracy / 2.0).round() as usize, "{name}");
    }
}

#[test]
fn a_file_for_validation_is_the_validation_part() {
    let folder = Folder::new("colours-valid");
    for (part, count) in [("train", 12), ("t10k", 4)] {
        write(&folder.0, part, count, [0, 1]);
    }
    let held_out = Corpus::read(&folder.0, Some(4)).unwrap();
    assert_eq!([held_out.train.len(), held_out.valid.len(), held_out.test.len()], [8, 4, 4]);
    assert_eq!(held_out.valid.pixels(0), square(0, seed("train") + 4).pixels);
    assert_eq!(held_out.files[0], held_out.files[1]);
    // Without a file, there are 5000 by default.
    let told = Corpus::read(&folder.0, None).unwrap_err().to_string();
    assert!(told.contains("data.valid: got 5000, need 1 to 11"), "{told}");

    write(&folder.0, "valid", 6, [0, 257]);
    let corpus = Corpus::read(&folder.0, None).unwrap();
    assert_eq!([corpus.train.len(), corpus.valid.len(), corpus.test.len()], [12, 6, 4]);
    assert_eq!((corpus.valid.channels, corpus.valid.size), (3, [SIDE; 2]));
    let wanted: Vec<u8> = squares("valid", 6).into_iter().flat_map(|one| one.pixels).collect();
    assert_eq!(corpus.valid.pixels, wanted);
    assert_eq!((&corpus.valid.labels[..2], corpus.classes()), (&[0, 257][..], 258));
    assert_eq!(corpus.files[1], "valid-images-idx4-ubyte");

    // A number too is one too many.
    let told = Corpus::read(&folder.0, Some(4)).unwrap_err().to_string();
    for part in ["data.valid is 4", "valid-images-idx4-ubyte"] {
        assert!(told.contains(part), "{told}");
    }
    let recipe = recipe(&folder.0, "valid = 4", "model_type = 'vit'\npatch_size = 4");
    assert_eq!(recipe.prepare().err().unwrap().to_string(), told);
}

#[test]
fn files_that_do_not_fit_each_other_are_told() {
    let folder = Folder::new("colours-refused");
    let at = |name: &str| folder.0.join(name);
    let told = || Corpus::read(&folder.0, Some(2)).unwrap_err().to_string();
    assert!(told().contains("no file train-images-idx3-ubyte or, in colour, train-images-idx4-"));
    for part in ["train", "t10k"] {
        write(&folder.0, part, 6, [0, 1]);
    }
    // The number of axes decides, and a last one of 1 is grey.
    let grey = vec![7; 6 * SIDE * SIDE];
    idx::write(&at("t10k-images-idx4-ubyte"), &[6, SIDE, SIDE, 1], &grey).unwrap();
    let message = told();
    for part in ["t10k-images-idx4-ubyte: got images of 8×8 pixels", "need 8×8 pixels in colour"]
    {
        assert!(message.contains(part), "{message}");
    }
    idx::write(&at("t10k-images-idx4-ubyte"), &[3, SIDE, SIDE, 2], &grey).unwrap();
    assert!(told().contains("got a shape of [3, 8, 8, 2], need [images, rows, columns], or"));
    idx::write(&at("t10k-images-idx3-ubyte"), &[6, SIDE, SIDE], &grey).unwrap();
    assert!(told().contains("holds t10k-images-idx3-ubyte and t10k-images-idx4-ubyte"));
    write(&folder.0, "t10k", 6, [0, 1]);
    fs::remove_file(at("t10k-images-idx3-ubyte")).unwrap();
    Corpus::read(&folder.0, Some(2)).unwrap();
    // Labels alone are no validation part.
    idx::write_labels(&at("valid-labels-idx1-ubyte"), &[0, 1]).unwrap();
    let told = Corpus::read(&folder.0, None).unwrap_err().to_string();
    assert!(told.contains("there is no file valid-images-idx3-ubyte"), "{told}");
    let told = LabelledImages::beside_labels(&at("images")).unwrap_err().to_string();
    assert!(told.contains("images-idx3 or images-idx4"), "{told}");
}

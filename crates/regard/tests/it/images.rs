//! Images through the program: a tiny recipe learns, is measured, is asked, and shows where it
//! looked.

use crate::program::{fails, folder, json, regard};
use regard_tasks::data::idx::to_bytes;
use regard_tasks::data::{Image, idx};
use std::fs;
use std::path::{Path, PathBuf};

pub const SIDE: usize = 12;

/// Bars that lie, bars that stand, crosses and rings, each somewhere else.
fn image(class: usize, seed: usize) -> Vec<u8> {
    let (top, left) = (2 + seed % 3, 2 + seed / 3 % 3);
    let inside = |row: usize, column: usize| match class {
        0 => row == 2,
        1 => column == 2,
        2 => row == column || row + column == 4,
        _ => row == 0 || column == 0 || row == 4 || column == 4,
    };
    let pixel = |at: usize| {
        let (row, column) = ((at / SIDE).wrapping_sub(top), (at % SIDE).wrapping_sub(left));
        let noise = (at * 31 + seed * 17) % 40;
        let lit = row < 5 && column < 5 && inside(row, column);
        (noise + if lit { 200 } else { 0 }) as u8
    };
    (0..SIDE * SIDE).map(pixel).collect()
}

/// The four files, and where they are.
pub fn data(test: &str) -> PathBuf {
    let folder = folder(test);
    for (part, count) in [("train", 240), ("t10k", 48)] {
        let of = |i: usize| (i % 4, i * 7 + usize::from(part == "t10k"));
        let pixels: Vec<u8> = (0..count).flat_map(|i| image(of(i).0, of(i).1)).collect();
        let labels: Vec<u8> = (0..count).map(|i| of(i).0 as u8).collect();
        let write = |name: &str, bytes: Vec<u8>| {
            fs::write(folder.join(format!("{part}-{name}-ubyte")), bytes).unwrap();
        };
        write("images-idx3", to_bytes(&[count, SIDE, SIDE], &pixels));
        write("labels-idx1", to_bytes(&[count], &labels));
    }
    folder
}

pub fn recipe(folder: &Path, more: &str) -> String {
    let text = format!(
        "name = 'tiny'\ntask = 'image'\nseed = 5\n[data]\nset = 'files'\nfolder = '{}'\n\
         valid = 40\nlabels = ['lying', 'standing', 'cross', 'ring']\n\
         [model]\nmodel_type = 'vision_transformer'\nstem_channels = [8]\npatch_size = 2\n\
         hidden_size = 16\nnum_hidden_layers = 2\nnum_attention_heads = 2\n\
         intermediate_size = 32\ninitializer_range = 0.2\npooling = 'mean'\n{more}\
         [augment]\nshift = 1\n\
         [train]\nsteps = 150\nbatch_tokens = 20\nlr = 5e-3\nwarmup = 10\nschedule = 'cosine'\n\
         label_smoothing = 0.0\neval_every = 75\nkeep = 1\n",
        folder.display()
    );
    let path = folder.join("tiny.toml");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_string()
}

#[test]
fn a_tiny_recipe_learns_and_says_what_it_sees_and_where_it_looked() {
    let data = data("images-learn");
    let (recipe, run) = (recipe(&data, ""), data.join("run"));
    let run = run.to_str().unwrap();
    let trained = regard(&["train", &recipe, "--out", run, "--threads", "1"]);
    assert_eq!(trained.code, 0, "{}", trained.err);
    for part in [
        "/train-images-idx3-ubyte: 200 images of 12×12 pixels",
        &format!("valid  the last 40 images of {}/train-images-idx3-ubyte: ", data.display()),
        "/t10k-images-idx3-ubyte: 48 images",
        "4 classes: lying (50), standing (50), cross (50), ring (50)",
    ] {
        assert!(trained.err.contains(part), "{part}: {}", trained.err);
    }
    let report = json(&["eval", "--model", run, "--json"]);
    let accuracy = report["accuracy"].as_f64().unwrap_or_else(|| panic!("{report}"));
    assert!(accuracy >= 90.0, "{report}");

    // All images of a file, in their order.
    let test = data.join("t10k-images-idx3-ubyte");
    let test = test.to_str().unwrap();
    let text = regard(&["classify", "--image", test, "--model", run]).out;
    assert_eq!(text.lines().count(), 48);
    let right = (0..)
        .zip(text.lines())
        .filter(|(i, line)| line.starts_with(["lying", "standing", "cross", "ring"][i % 4]));
    assert!((right.count() as f64 / 48.0 * 100.0 - accuracy).abs() < 1e-9, "{text}");

    // One of them, by its number and as a picture of its own.
    let one = json(&[
        "classify", "--image", test, "--index", "2", "--top-k", "3", "--json", "--model", run,
    ]);
    assert_eq!((one["label"].as_str(), one["index"].as_u64()), (Some("cross"), Some(2)));
    assert_eq!(one["labels"].as_array().unwrap().len(), 3);
    let pixels = idx::read(test).unwrap().data[2 * SIDE * SIDE..3 * SIDE * SIDE].to_vec();
    let picture = Image { size: [SIDE, SIDE], channels: 1, pixels };
    let png = data.join("cross.png");
    picture.write_png(&png).unwrap();
    let png = png.to_str().unwrap();
    let said = regard(&["classify", "--image", png, "--model", run]).out;
    assert!(said.starts_with("cross\t"), "{said}");

    // Where it looked: all patches together make 1, since all of them speak.
    let drawn = data.join("looked.png");
    let drawn = drawn.to_str().unwrap();
    for (head, of) in [(None, "rollout"), (Some("1.1"), "1.1")] {
        let mut args =
            vec!["classify", "--image", png, "--attention", drawn, "--json", "--model", run];
        args.extend(head.into_iter().flat_map(|head| ["--head", head]));
        let said = json(&args);
        assert_eq!(said["attention"]["of"], of);
        let rows = said["attention"]["weights"].as_array().unwrap();
        assert_eq!(rows.len(), 3);
        let all = rows.iter().flat_map(|row| row.as_array().unwrap());
        let sum: f64 = all.map(|x| x.as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{sum}");
        let picture = Image::read(drawn).unwrap();
        assert!(picture.size[0] >= 448 && picture.channels == 3);
        fs::remove_file(drawn).unwrap();
    }
    let refused = |more: &[&str], says: &[&str]| {
        fails(&[&["classify", "--model", run, "--image", test], more].concat(), says);
    };
    refused(&["--attention", drawn], &["--attention: got 48 images", "--index"]);
    refused(&["--index", "99"], &["--index: got 99", "t10k-images"]);
    let one = ["--index", "0", "--attention", drawn, "--head"];
    refused(&[&one[..], &["2.0"]].concat(), &["--head", "got 2.0", "layers 0 to 1"]);
    refused(&[&one[..], &["first"]].concat(), &["need LAYER.HEAD"]);
    refused(&["--head", "0.0"], &["--attention"]);
    fails(&["classify", "a text", "--model", run, "--image", test], &["--image", "cannot be used"]);
    fails(&["classify", "--image", test, "--model", "en-fr"], &["en-fr translates"]);
    // Files that are no images, by their names.
    let broken = data.join("broken.png");
    fs::write(&broken, &fs::read(png).unwrap()[..60]).unwrap();
    fails(
        &["classify", "--model", run, "--image", broken.to_str().unwrap()],
        &["broken.png", "byte"],
    );
    let labels = data.join("t10k-labels-idx1-ubyte");
    let wanted = ["t10k-labels", "need [images, rows, columns]"];
    fails(&["classify", "--model", run, "--image", labels.to_str().unwrap()], &wanted);
    // A model of texts does not look at images, nor this one read texts.
    fails(&["classify", "--model", "en-fr", "--image", png], &["translates"]);
    fails(
        &["classify", "--model", run, "a text"],
        &["classifies images", "regard classify --image"],
    );
}

#[test]
fn data_and_keys_that_cannot_be_are_told() {
    let data = data("images-refuse");
    let out = data.join("run");
    let train = |recipe: &str, more: &[&str], says: &[&str]| {
        let ran = regard(&[&["train", recipe, "--out", out.to_str().unwrap()][..], more].concat());
        assert_eq!(ran.code, 2, "{more:?}: {}", ran.err);
        assert!(says.iter().all(|part| ran.err.contains(part)), "{more:?}: {}", ran.err);
    };
    let whole = recipe(&data, "");
    train(&whole, &["--set", "data.valid=240"], &["data.valid: got 240, need 1 to 239"]);
    train(&whole, &["--set", "augment.shift=12"], &["augment.shift: got 12"]);
    train(&whole, &["--set", "augment.erase=2"], &["augment.erase: got 2"]);
    train(
        &whole,
        &["--set", "model.patch_size=9"],
        &["patch_size: got [9, 9], need at most [6, 6]"],
    );
    train(&whole, &["--set", "data.labels=['one']"], &["data.labels: got 1 names, need 4"]);
    train(&whole, &["--set", "data.set=mnist"], &["data.set: got \"mnist\"", "fashion-mnist"]);
    let misspelt = recipe(&data, "poolling = 'mean'\n");
    train(&misspelt, &[], &["no such key: poolling", "pooling"]);
    let whole = recipe(&data, "");
    let images = data.join("train-images-idx3-ubyte");
    let bytes = fs::read(&images).unwrap();
    fs::write(&images, &bytes[..1000]).unwrap();
    train(&whole, &[], &["train-images-idx3-ubyte", "byte 1000: the file ends after 984 of"]);
    fs::write(&images, to_bytes(&[3, SIDE, SIDE], &bytes[16..16 + 3 * SIDE * SIDE])).unwrap();
    train(&whole, &[], &["train-labels-idx1-ubyte", "need [3]"]);
    fs::remove_file(&images).unwrap();
    train(&whole, &[], &["there is no file train-images-idx3-ubyte"]);
}

/// A ring of one of two colours, which are the same in grey.
fn ring(class: usize, seed: usize) -> Image {
    let colour = |grey: u8| match (grey >= 200, class) {
        (false, _) => [grey; 3],
        (true, 0) => [grey - 36, grey - 200, grey - 200],
        (true, _) => [grey - 200, grey - 136, grey - 100],
    };
    let pixels = image(3, seed).into_iter().flat_map(colour).collect();
    Image { size: [SIDE, SIDE], channels: 3, pixels }
}

#[test]
fn colours_are_learned_from_files_of_four_axes_and_told_apart_in_a_png() {
    let data = folder("images-colour");
    for (part, count) in [("train", 160), ("valid", 40), ("t10k", 40)] {
        let one = |i: usize| ring(i % 2, i / 2 * 7 + part.len()).pixels;
        let pixels: Vec<u8> = (0..count).flat_map(one).collect();
        let images = data.join(format!("{part}-images-idx4-ubyte"));
        idx::write(&images, &[count, SIDE, SIDE, 3], &pixels).unwrap();
        let labels: Vec<usize> = (0..count).map(|i| i % 2).collect();
        idx::write_labels(&data.join(format!("{part}-labels-idx1-ubyte")), &labels).unwrap();
    }
    let both = recipe(&data, "");
    let run = data.join("run");
    let run = run.to_str().unwrap();
    // The recipe holds out images of the training file, and there is a file of them.
    let refused = regard(&["train", &both, "--out", run]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    for part in ["data.valid is 40", "valid-images-idx4-ubyte"] {
        assert!(refused.err.contains(part), "{}", refused.err);
    }
    let text = fs::read_to_string(&both).unwrap();
    let named = text.replace("'lying', 'standing', 'cross', 'ring'", "'red', 'blue'");
    fs::write(&both, named.replace("valid = 40\n", "")).unwrap();
    let trained = regard(&["train", &both, "--out", run, "--threads", "1"]);
    assert_eq!(trained.code, 0, "{}", trained.err);
    for part in [
        "/train-images-idx4-ubyte: 160 images of 12×12 pixels in colour",
        &format!("valid  {}/valid-images-idx4-ubyte: 40 images", data.display()),
        "2 classes: red (80), blue (80)",
    ] {
        assert!(trained.err.contains(part), "{part}: {}", trained.err);
    }
    let report = json(&["eval", "--model", run, "--json"]);
    assert!(report["accuracy"].as_f64().unwrap() >= 95.0, "{report}");

    let test = data.join("t10k-images-idx4-ubyte");
    let test = test.to_str().unwrap();
    let text = regard(&["classify", "--image", test, "--model", run]).out;
    let right =
        (0..).zip(text.lines()).filter(|(i, line)| line.starts_with(["red", "blue"][i % 2]));
    assert!(right.count() >= 38, "{text}");
    // Other sizes are resized, and grey becomes colour.
    let drawn = data.join("looked.png");
    for (class, name) in [(0, "red\t"), (1, "blue\t")] {
        let (png, one) = (data.join("ring.png"), ring(class, 11));
        one.write_png(&png).unwrap();
        let png = png.to_str().unwrap();
        let said = regard(&["classify", "--image", png, "--model", run]).out;
        assert!(said.starts_with(name), "{said}");
        let double = |at: usize| one.pixels[(at / 72 / 2 * SIDE + at % 72 / 6) * 3 + at % 3];
        let pixels = (0..4 * SIDE * SIDE * 3).map(double).collect();
        Image { size: [2 * SIDE; 2], channels: 3, pixels }.write_png(Path::new(png)).unwrap();
        let said = regard(&["classify", "--image", png, "--model", run]).out;
        assert!(said.starts_with(name), "{said}");
        let look = ["classify", "--image", png, "--model", run, "--attention"];
        assert_eq!(regard(&[&look[..], &[drawn.to_str().unwrap()]].concat()).code, 0);
        one.with_channels(1).unwrap().write_png(Path::new(png)).unwrap();
        let said = regard(&["classify", "--image", png, "--model", run]);
        assert!(said.code == 0 && said.out.contains('\t'), "{}", said.err);
    }
    // A model of colours is not measured on grey images.
    let grey = data.join("grey-images-idx3-ubyte");
    idx::write(&grey, &[2, SIDE, SIDE], &[7; 2 * SIDE * SIDE]).unwrap();
    idx::write_labels(&data.join("grey-labels-idx1-ubyte"), &[0, 1]).unwrap();
    fails(
        &["eval", "--model", run, "--data", grey.to_str().unwrap()],
        &["got images of 12×12 pixels, the model takes 12×12 pixels of 3 channels"],
    );
}

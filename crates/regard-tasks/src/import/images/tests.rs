use super::*;
use crate::classify_image::Corpus;
use crate::import::prepared::prepare;
use crate::import::{self, Import};
use std::path::PathBuf;

/// Makes a folder, calls `check` on it, and removes it.
fn with_folder(name: &str, check: impl FnOnce(&Path)) {
    let folder = std::env::temp_dir().join(format!("regard-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    check(&folder);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Writes an image of one grey, or of one colour.
fn paint(path: PathBuf, size: [usize; 2], pixel: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let pixels = pixel.repeat(size[0] * size[1]);
    Image { size, channels: pixel.len(), pixels }.write_png(&path).unwrap();
}

fn check(data: &Path) -> (Option<Import>, String) {
    let mut request = Request::new("classify-image");
    request.data = vec![data.to_path_buf()];
    let (import, findings) = import::read(&request).unwrap();
    (import, findings.text())
}

#[test]
fn folders_are_labels_and_written_images_are_the_same() {
    with_folder("images-folders", |folder| {
        for i in 0..30u8 {
            paint(folder.join(format!("data/cat/{i:02}.png")), [20, 20], &[i]);
            paint(folder.join(format!("data/dog/{i:02}.PNG")), [20, 20], &[100 + i]);
        }
        let (import, told) = check(&folder.join("data"));
        assert_eq!(told, "");
        let import = import.unwrap();
        let said = import.summary.join("\n");
        for part in [
            "data: a folder for each label",
            "60 images: size 20×20; grey: no image has colour",
            "2 labels in the training part: cat 24, dog 24",
            "48 train, 6 valid, 6 test (split by seed 0)",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!((import.parts, import.size.units, import.size.longest), ([48, 6, 6], 48, 20));
        let out = folder.join("out");
        import.write(&out).unwrap();
        let keys = import.recipe_keys(&out);
        assert_eq!(keys["data"]["folder"].as_str(), out.to_str());
        assert_eq!(keys["data"]["labels"].as_array().unwrap().len(), 2);
        let about = prepare(&import, include_str!("../../../presets/classify-image.toml"), &out);
        assert!(about.contains("48 training and 6 validation images"), "{about}");
        let corpus = Corpus::read(&out, None).unwrap();
        let mut seen = vec![];
        for (part, count) in [(&corpus.train, 48), (&corpus.valid, 6), (&corpus.test, 6)] {
            assert_eq!((part.len(), part.size, part.channels), (count, [20, 20], 1));
            for at in 0..part.len() {
                let grey = part.pixels(at)[0];
                assert!(part.pixels(at).iter().all(|pixel| *pixel == grey));
                assert_eq!(part.labels[at], usize::from(grey >= 100));
                seen.push(grey);
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..30).chain(100..130).collect::<Vec<u8>>());
    });
}

#[test]
fn parts_that_are_folders_are_used_and_colours_are_kept() {
    with_folder("images-parts", |folder| {
        for i in 0..12u8 {
            paint(folder.join(format!("train/1/{i}.png")), [10, 12], &[i, 0, 0]);
            paint(folder.join(format!("train/10/{i}.png")), [40, 30], &[7 * i; 1]);
            paint(folder.join(format!("train/2/{i}.png")), [10, 12], &[i; 3]);
        }
        paint(folder.join("val/1/a.png"), [30, 30], &[200, 0, 0]);
        paint(folder.join("test/10/a.png"), [30, 30], &[201]);
        // Also in the training part, at the same size.
        paint(folder.join("test/2/b.png"), [10, 12], &[3; 3]);
        std::fs::create_dir_all(folder.join("test/1")).unwrap();
        let (import, told) = check(folder);
        let import = import.unwrap_or_else(|| panic!("{told}"));
        assert!(told.contains("test/1: has no PNG or JPEG files"), "{told}");
        assert!(told.contains("train/2/3.png: is the same as"), "{told}");
        assert_eq!(import.parts, [35, 1, 2]);
        let said = import.summary.join("\n");
        let sizes = "sizes 12×10 to 30×40, resized to 16×16; in colour: 12 of them have colour";
        assert!(said.contains(sizes), "{said}");
        let labels = import.keys["data"]["labels"].as_array().unwrap();
        assert_eq!(
            labels.iter().map(|l| l.as_str().unwrap()).collect::<Vec<_>>(),
            ["1", "2", "10"]
        );
        let out = folder.join("out");
        import.write(&out).unwrap();
        let about = prepare(&import, include_str!("../../../presets/classify-image.toml"), &out);
        assert!(about.contains("35 training and 1 validation images"), "{about}");
        let corpus = Corpus::read(&out, None).unwrap();
        assert_eq!((corpus.train.channels, corpus.train.size), (3, [16, 16]));
        assert_eq!(
            (corpus.valid.pixels(0)[..3].to_vec(), corpus.valid.labels[0]),
            (vec![200, 0, 0], 0)
        );
        assert_eq!(corpus.test.labels, [2, 1]);
    });
}

#[test]
fn tables_name_images_beside_them() {
    with_folder("images-table", |folder| {
        let mut rows = "id,photo,kind,note\n".to_string();
        for i in 0..40u8 {
            paint(folder.join(format!("p/{i}.png")), [8, 8], &[i]);
            rows += &format!("{i},p/{i}.png,{},x\n", ["a", "b"][usize::from(i % 2)]);
        }
        let table = folder.join("t.csv");
        std::fs::write(&table, &rows).unwrap();
        let (import, told) = check(&table);
        assert!(import.is_none());
        assert!(told.contains("cannot tell which column is the label"), "{told}");
        let mut request = Request::new("classify-image");
        (request.data, request.image_size) = (vec![folder.to_path_buf()], Some(12));
        request.columns.label = Some("kind".into());
        let (import, findings) = import::read(&request).unwrap();
        let import = import.unwrap_or_else(|| panic!("{}", findings.text()));
        let said = import.summary.join("\n");
        assert!(said.contains("image: column 'photo', label: column 'kind'"), "{said}");
        assert!(said.contains("size 8×8, resized to 12×12"), "{said}");
        request.image_size = Some(30);
        let error = import::read(&request).err().unwrap().to_string();
        assert!(error.contains("--image-size: got 30, need a multiple of 4"), "{error}");
        // A list without a header.
        std::fs::write(
            &table,
            rows.lines()
                .skip(1)
                .map(|line| {
                    let cells: Vec<&str> = line.split(',').collect();
                    format!("{},{}\n", cells[1], cells[2])
                })
                .collect::<String>(),
        )
        .unwrap();
        let (import, told) = check(&table);
        let said = import.unwrap_or_else(|| panic!("{told}")).summary.join("\n");
        assert!(said.contains("image: column 1, label: column 2, no header"), "{said}");
    });
}

/// Every defect is named with its file or line at once, and nothing is imported.
#[test]
fn defects_are_named_with_their_files() {
    with_folder("images-defects", |folder| {
        for i in 0..10u8 {
            paint(folder.join(format!("a/{i}.png")), [20, 20], &[i]);
            paint(folder.join(format!("b/{i}.png")), [20, 20], &[i + 50]);
        }
        let whole = std::fs::read(folder.join("a/0.png")).unwrap();
        std::fs::write(folder.join("a/cut.png"), &whole[..whole.len() / 2]).unwrap();
        std::fs::write(folder.join("b/text.jpg"), "no image").unwrap();
        std::fs::write(folder.join("b/notes.txt"), "x").unwrap();
        std::fs::copy(folder.join("a/3.png"), folder.join("b/twin.png")).unwrap();
        std::fs::create_dir(folder.join("empty")).unwrap();
        paint(folder.join("one/only.png"), [20, 20], &[99]);
        let (import, told) = check(folder);
        assert!(import.is_none());
        for part in [
            "error: unreadable image (2)",
            "a/cut.png: ",
            "b/text.jpg: is a text, need a PNG",
            "error: empty folder (1)",
            "/empty: has no PNG or JPEG files",
            "warning: not an image (1)",
            "b/notes.txt: is not read",
            "one/only.png: the label \"one\" has one example",
            "b/twin.png: \"b\", but the same contents have \"a\" in",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        let table = folder.join("t.tsv");
        std::fs::write(&table, "path\tlabel\na/1.png\tx\na/none.png\tx\nb/1.png\t\na/cut.png\ty\n")
            .unwrap();
        let (import, told) = check(&table);
        assert!(import.is_none());
        for part in [
            "a/none.png does not exist; paths are relative",
            "line 4: the label is empty",
            "t.tsv: line 5: ",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert!(told.contains("line 3: ") && told.contains("cut.png: "), "{told}");
        let mut request = Request::new("classify-image");
        request.data = vec![folder.join("empty")];
        let error = import::read(&request).err().unwrap().to_string();
        assert!(error.contains("need a sub-folder of PNG or JPEG files for each label"), "{error}");
    });
}

/// Names of folders and cells of tables are checked alike, and a label of the run is one.
#[test]
fn labels_that_are_missing_values_elsewhere_are_checked_in_training() {
    with_folder("images-missing", |folder| {
        for i in 0..30u8 {
            paint(folder.join(format!("data/None/{i:02}.png")), [20, 20], &[i]);
            paint(folder.join(format!("data/dog/{i:02}.png")), [20, 20], &[100 + i]);
        }
        let (import, told) = check(&folder.join("data"));
        assert!(told.contains("the label \"None\" has 30 examples"), "{told}");
        let run = folder.join("run");
        import.unwrap().write(&run.join(import::DATA)).unwrap();
        let trained = import::TrainedImport::of_run(&run).unwrap().unwrap();
        let table = folder.join("one.csv");
        std::fs::write(&table, "path,label\ndata/None/00.png,None\n").unwrap();
        let mut request = Request::new("classify-image");
        request.data = vec![table];
        request.purpose = import::Purpose::Evaluate(trained);
        let (import, findings) = import::read(&request).unwrap();
        assert_eq!(import.map(|import| import.parts[2]), Some(1), "{}", findings.text());
        paint(folder.join("data/nan/0.png"), [20, 20], &[200]);
        let (import, told) = check(&folder.join("data"));
        assert!(import.is_none() && told.contains("the label is \"nan\", which"), "{told}");
    });
}

#[test]
fn the_size_is_in_the_header() {
    with_folder("images-header", |folder| {
        paint(folder.join("a.png"), [30, 70], &[1, 2, 3]);
        assert_eq!(dimensions(&folder.join("a.png")), Some([70, 30]));
        let mut bytes = vec![];
        let encoder = image::codecs::jpeg::JpegEncoder::new(&mut bytes);
        let kind = image::ExtendedColorType::L8;
        image::ImageEncoder::write_image(encoder, &[9; 40 * 20], 40, 20, kind).unwrap();
        let path = folder.join("b.jpg");
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(dimensions(&path), Some([40, 20]));
        for cut in 0..bytes.len().min(200) {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            assert!(matches!(dimensions(&path), None | Some([40, 20])), "{cut}");
        }
        assert_eq!(chosen_side(&[vec![], vec![], vec![]]), 16);
    });
}

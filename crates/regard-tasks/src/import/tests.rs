//! Requests that are refused, tasks that follow from the files, and files of the parts.

use super::importers::task_of;
use super::*;
use crate::data::Part;

#[test]
fn flags_of_other_tasks_are_refused() {
    let mut request = Request::new("generate");
    request.columns.label = Some("x".into());
    let error = read(&request).err().unwrap().to_string();
    assert!(error.contains("--label does not apply to generate"), "{error}");
    let error = read(&Request::new("clasify")).err().unwrap().to_string();
    assert!(error.contains("did you mean 'classify'?"), "{error}");
    assert!(read(&Request::new("classify")).err().unwrap().to_string().contains("--data"));
}

#[test]
fn a_file_in_two_parts_is_refused() {
    crate::data::scratch::with_file("a.txt", b"some text\n", |path| {
        let mut request = Request::new("generate");
        (request.data, request.valid) = (vec![path.into()], vec![path.into()]);
        let error = read(&request).err().unwrap().to_string();
        assert!(error.contains("a.txt: it is given as --data and as --valid"), "{error}");
        (request.data, request.valid) = (vec![path.into(), path.into()], vec![]);
        let error = read(&request).err().unwrap().to_string();
        assert!(error.contains("--data names it twice"), "{error}");
    });
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_refused_before_it_is_opened() {
    let mut request = Request::new("classify");
    request.data = vec!["/dev/zero".into()];
    let error = read(&request).err().unwrap().to_string();
    assert!(error.contains("/dev/zero: is neither a file nor a folder"), "{error}");
}

#[test]
fn a_table_of_files_is_no_table_of_texts() {
    let task = |name: &str, text: &str| {
        crate::data::scratch::with_file(name, text.as_bytes(), |path| {
            let mut request = Request::new("classify");
            request.data = vec![path.into()];
            task_of(&request).to_string()
        })
    };
    for (name, text, wanted) in [
        ("a.csv", "image,label\nimg/1.png,cat\nimg/2.PNG,dog\n", "classify-image"),
        ("b.jsonl", "{\"f\": \"a.wav\"}\n{\"f\": \"b.wav\", \"l\": 1}\n", "recognize"),
        ("c.csv", "text,label\nsee a.png,x\nb,y\n", "classify"),
        ("d.csv", "text,label\n", "classify"),
    ] {
        assert_eq!(task(name, text), wanted, "{name}");
    }
}

/// A run of texts does not become one of images because a folder holds a picture.
#[test]
fn a_run_is_evaluated_as_its_own_task() {
    crate::data::scratch::with_file("a.csv", b"image,label\n1.png,a\n2.png,b\n", |path| {
        let mut request = Request::new("classify");
        request.data = vec![path.into()];
        assert_eq!(task_of(&request), "classify-image");
        request.purpose = Purpose::Evaluate(TrainedImport::default());
        assert_eq!(task_of(&request), "classify");
    });
}

#[test]
fn folders_stand_for_their_parts() {
    let folder = std::env::temp_dir().join(format!("regard-parts-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["train.csv", "dev.csv", "test.csv", "notes.md"] {
        std::fs::write(folder.join(name), "x").unwrap();
    }
    let mut request = Request::new("classify");
    request.data = vec![folder.clone()];
    let files = PartFiles::find(&request, &table::is_table, &mut Findings::new(false)).unwrap();
    assert_eq!(files.of(Part::Valid), [folder.join("dev.csv")]);
    assert_eq!((files.train.len(), files.test.len()), (1, 1));
    request.test = vec![folder.join("test.csv")];
    let error = PartFiles::find(&request, &table::is_table, &mut Findings::new(false))
        .unwrap_err()
        .to_string();
    assert!(error.contains("--test names a file"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn files_in_no_part_are_noted() {
    let folder = std::env::temp_dir().join(format!("regard-unread-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let rows: String = (0..40).map(|i| format!("text {i},{}\n", i % 2)).collect();
    let write = |name: &str| {
        std::fs::write(folder.join(name), format!("text,label\n{rows}")).unwrap();
    };
    ["train.csv", "train_2.csv", "test-set.csv"].into_iter().for_each(write);
    let mut request = Request::new("classify");
    request.data = vec![folder.clone()];
    let (import, findings) = super::read(&request).unwrap();
    let told = findings.text();
    for name in ["train_2.csv: is not read", "test-set.csv: is not read"] {
        assert!(told.contains(name), "{name}: {told}");
    }
    let summary = import.unwrap().summary.join("\n");
    assert!(summary.contains("files: train.csv"), "{summary}");
    write("train.csv.gz");
    let error = super::read(&request).err().unwrap().to_string();
    assert!(error.contains("train.csv.gz: is there with and without .gz"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn longer_names_of_parts_are_understood() {
    let folder = std::env::temp_dir().join(format!("regard-longer-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str| std::fs::write(folder.join(name), "x").unwrap();
    ["test-drive.csv", "other.csv"].into_iter().for_each(write);
    let mut request = Request::new("classify");
    request.data = vec![folder.clone()];
    let files = PartFiles::find(&request, &table::is_table, &mut Findings::new(false)).unwrap();
    assert_eq!((files.train.len(), files.test.len()), (2, 0), "no training part is named");
    ["train-v1.1.csv", "x_y-ud-dev.csv"].into_iter().for_each(write);
    let files = PartFiles::find(&request, &table::is_table, &mut Findings::new(false)).unwrap();
    assert_eq!(files.train, [folder.join("train-v1.1.csv")]);
    assert_eq!(files.valid, [folder.join("x_y-ud-dev.csv")]);
    assert_eq!(files.test, [folder.join("test-drive.csv")]);
    std::fs::remove_dir_all(&folder).unwrap();
}

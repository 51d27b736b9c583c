use super::*;
use crate::data::pairs::Group;
use crate::import::{self, Import};
use crate::{summarize, translate};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder with files that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Folder {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("regard-import-pairs-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        files.iter().for_each(|(name, text)| std::fs::write(folder.join(name), text).unwrap());
        Folder(folder)
    }

    fn request(&self, task: &str, names: &[&str]) -> Request {
        let mut request = Request::new(task);
        request.data = match names {
            [] => vec![self.0.clone()],
            names => names.iter().map(|name| self.0.join(name)).collect(),
        };
        request
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

fn check(request: &Request) -> (Option<Import>, String) {
    let (import, findings) = import::read(request).unwrap();
    (import, findings.text())
}

fn one(task: &str, name: &str, text: &str) -> (Option<Import>, String) {
    let folder = Folder::new(&[(name, text)]);
    check(&folder.request(task, &[name]))
}

/// Imports, writes, and reads with the reader of recipes.
fn written(request: &Request) -> (translate::Corpus, translate::Data) {
    let (import, told) = check(request);
    let import = import.unwrap_or_else(|| panic!("{told}"));
    let out = request.data[0].parent().unwrap().join("out");
    import.write(&out).unwrap();
    let data: translate::Data = import.recipe_keys(&out)["data"].clone().try_into().unwrap();
    let corpus = data.read().unwrap();
    std::fs::remove_dir_all(out).unwrap();
    (corpus, data)
}

/// All pairs of a corpus, sorted.
fn sorted(corpus: &translate::Corpus) -> Vec<(String, String)> {
    let held = corpus.valid.iter().chain(&corpus.test);
    let held = held.map(|Group { source, targets }| (source.clone(), targets[0].clone()));
    let train = corpus.train.iter().map(|pair| (pair.source.clone(), pair.target.clone()));
    let mut all: Vec<(String, String)> = train.chain(held).collect();
    all.sort();
    all
}

fn rows(count: usize, between: &str) -> String {
    (0..count).map(|i| format!("Sentence {i}.{between}Satz Nummer {i}.\n")).collect()
}

#[test]
fn all_formats_give_the_same_pairs() {
    let quoted: String =
        (0..30).map(|i| format!("\"Sentence\n{i}.\",{i},Satz Nummer {i}.\n")).collect();
    let object = |i: usize, keys: [&str; 2]| {
        let [from, to] = keys;
        format!("{{\"{from}\": \"Sentence {i}.\", \"{to}\": \"Satz\\tNummer {i}.\"}}")
    };
    let lines: String = (0..30).map(|i| object(i, ["source", "target"]) + "\n").collect();
    let array: Vec<String> = (0..30).map(|i| object(i, ["input", "output"])).collect();
    let nested: String =
        (0..30).map(|i| format!("{{\"translation\": {}}}\n", object(i, ["en", "de"]))).collect();
    let credit: String = (0..30)
        .map(|i| format!("Sentence {i}.\tSatz Nummer {i}.\tCC-BY 2.0 (France) #{i}\n"))
        .collect();
    let (english, german): (String, String) =
        (0..30).map(|i| (format!("Sentence {i}.\n"), format!("Satz Nummer {i}.\r\n"))).collect();
    let folder = Folder::new(&[
        ("plain.tsv", &rows(30, "\t")),
        ("header.tsv", &format!("English\tdeutsch\n{}", rows(30, "\t"))),
        ("other.csv", &format!("source text,id,target text\n{quoted}")),
        ("lines.jsonl", &lines),
        ("array.json", &format!("[{}]", array.join(",\n"))),
        ("nested.jsonl", &nested),
        ("fra.txt", &credit),
        ("train.en", &english),
        ("train.de", &german),
        ("one.txt", &english),
        ("other.txt", &german),
    ]);
    let wanted: Vec<(String, String)> = {
        let mut all: Vec<_> =
            (0..30).map(|i| (format!("Sentence {i}."), format!("Satz Nummer {i}."))).collect();
        all.sort();
        all
    };
    let none = [None, None];
    let english = [Some("en"), Some("de")];
    for (names, asked, ends) in [
        ("plain.tsv", none, ["src", "tgt"]),
        ("header.tsv", none, ["en", "de"]),
        ("header.tsv", [None, Some("2")], ["en", "de"]),
        ("other.csv", none, ["src", "tgt"]),
        ("lines.jsonl", none, ["src", "tgt"]),
        ("array.json", none, ["src", "tgt"]),
        ("nested.jsonl", english, ["en", "de"]),
        ("fra.txt", none, ["src", "tgt"]),
        ("train.en train.de", none, ["en", "de"]),
        ("train.de train.en", [Some("English"), None], ["en", "de"]),
        ("one.txt other.txt", none, ["src", "tgt"]),
    ] {
        let mut request = folder.request("translate", &names.split(' ').collect::<Vec<_>>());
        let [source, target] = asked.map(|one: Option<&str>| one.map(str::to_string));
        (request.columns.source, request.columns.target) = (source, target);
        let (corpus, data) = written(&request);
        assert_eq!(sorted(&corpus), wanted, "{names:?}");
        assert_eq!([data.source.as_str(), &data.target], ends, "{names:?}");
        assert_eq!((corpus.train.len(), corpus.valid.len(), corpus.test.len()), (24, 3, 3));
        assert_eq!((data.set.as_str(), data.max_tokens), ("files", 64));
    }
    let mut back = folder.request("translate", &["fra.txt"]);
    (back.columns.source, back.columns.target) = (Some("2".into()), Some("1".into()));
    assert_eq!(sorted(&written(&back).0)[0].1, "Sentence 0.");
}

#[test]
fn columns_and_split_are_said() {
    let (import, told) = one("translate", "fra.txt", &rows(50, "\t").replace('\n', "\tCC-BY 2\n"));
    assert_eq!(told, "");
    let said = import.unwrap().summary.join("\n");
    for part in [
        "source: column 1, target: column 2 (no header); first: 'Sentence 0.' → 'Satz Nummer 0.'",
        "column 3, an attribution, is ignored",
        "40 train, 5 valid, 5 test (split by seed 0)",
        "mean length: source 2.0 words, target 3.0 words",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // Sources with several targets stay together.
    let twice = rows(30, "\t") + &rows(30, "\t").replace("Satz", "Phrase");
    let (import, _) = one("translate", "a.tsv", &twice);
    assert_eq!(import.unwrap().parts, [48, 6, 6]);
}

#[test]
fn defects_are_named_with_their_lines() {
    let good = rows(30, "\t");
    for (task, name, text, wanted) in [
        ("translate", "a.tsv", format!("{good}only one\n"), "line 31: has 1 column"),
        ("translate", "b.tsv", format!("{good}one\t \n"), "line 31: the target is empty"),
        (
            "translate",
            "c.tsv",
            format!("source\ttarget\n\tx\n{good}"),
            "line 2: the source is empty",
        ),
        ("translate", "d.tsv", good.replace('\n', "\tthird\n"), "such as --source 1 --target 2"),
        ("translate", "e.tsv", "a line\nanother\n".into(), "--data train.en --data train.fr"),
        (
            "translate",
            "f.jsonl",
            "{\"en\": \"a\", \"fr\": \"b\"}\n".into(),
            "can both be the source: choose one, such as --source en",
        ),
        (
            "translate",
            "g.tsv",
            good.replace("Satz Nummer", "Sentence"),
            "the same text in 24 of 24",
        ),
        ("translate", "h.tsv", "a\tb\nc\td\n".into(), "no example is left for the validation part"),
        (
            "translate",
            "i.tsv",
            "en\tfr\tde\na\tb\tc\n".into(),
            "'en' and 'fr' can both be the source",
        ),
        ("summarize", "j.tsv", format!("text\tsummary\n{good}"), "--source summary --target text"),
        ("summarize", "k.tsv", good.clone(), "likely swapped; --source 2 --target 1"),
        (
            "summarize",
            "l.csv",
            "text,document,summary\na b,c d,e\n".into(),
            "'text' and 'document' can both be the source: choose one, such as --source text",
        ),
    ] {
        let (import, told) = one(task, name, &text);
        assert!(import.is_none() && told.contains(wanted), "{name}: {wanted}: {told}");
    }
}

#[test]
fn lines_of_parallel_files_must_belong_together() {
    let (english, german) = (rows(20, " "), rows(20, " Auf Deutsch: "));
    for (one, other, wanted) in [
        (english.clone(), german.clone() + "mehr\n", "train.de: has 21 lines, and"),
        (
            english.clone() + "\n\n",
            german.replacen("Sentence 3. Auf Deutsch: Satz Nummer 3.", "", 1),
            "train.de: line 4: is empty, and the same line of",
        ),
    ] {
        let folder = Folder::new(&[("train.en", &one), ("train.de", &other)]);
        let (import, told) = check(&folder.request("translate", &["train.de", "train.en"]));
        assert!(import.is_none() && told.contains(wanted), "{wanted}: {told}");
    }
    let (one, other) = (english + "\nend\nlast\n", german + "Ende\n\nletzter\n");
    let skip = Folder::new(&[("train.en", &one), ("train.de", &other)]);
    let mut request = skip.request("translate", &[]);
    let (import, told) = check(&request);
    assert!(import.is_none());
    assert!(
        told.contains("train.en: line 21: is empty") && told.contains("train.de: line 22"),
        "{told}"
    );
    request.skip_bad = true;
    let (import, told) = check(&request);
    let import = import.unwrap_or_else(|| panic!("{told}"));
    let said = import.summary.join("\n");
    assert!(said.contains("source: *.de, target: *.en (--source en turns it around)"), "{said}");
    assert!(said.contains("2 rows left out (--skip-bad)"), "{said}");
}

#[test]
fn folders_have_parts() {
    let part = |from: usize, word: &str| -> String {
        (from..from + 5).map(|i| format!("{word} {i}\n")).collect()
    };
    let mut files = vec![];
    for (at, name) in ["train", "val", "test"].into_iter().enumerate() {
        for (end, word) in [("en", "word"), ("fr", "mot"), ("de", "Wort")] {
            files.push((format!("{name}.{end}"), part(10 * at, word)));
        }
    }
    let files: Vec<(&str, &str)> =
        files.iter().map(|(name, text)| (&name[..], &text[..])).collect();
    let folder = Folder::new(&files);
    let mut request = folder.request("translate", &[]);
    let error = import::read(&request).err().unwrap().to_string();
    assert!(
        error.contains("end in de, en, fr") && error.contains("--source and --target"),
        "{error}"
    );
    (request.columns.source, request.columns.target) = (Some("fr".into()), Some("en".into()));
    let (import, told) = check(&request);
    let import = import.unwrap_or_else(|| panic!("{told}"));
    assert_eq!(import.parts, [5, 5, 5]);
    request.columns.target = Some("it".into());
    let error = import::read(&request).err().unwrap().to_string();
    assert!(error.contains("--target: no file of --data ends in .it"), "{error}");
}

#[test]
fn summaries_are_read_as_they_were_written() {
    let long =
        |i: usize| format!("This is the long text number {i} , of \"ten\" words . ").repeat(5);
    let text: String = (0..40)
        .map(|i| format!("\"{}\",{i},\"On {i}\nand\tso\"\n", long(i).replace('"', "\"\"")))
        .collect();
    let folder = Folder::new(&[("mail.csv", &format!("body,id,subject\n{text}"))]);
    let (import, told) = check(&folder.request("summarize", &["mail.csv"]));
    let import = import.unwrap_or_else(|| panic!("{told}"));
    assert!(import.summary[0].starts_with("source: column 'body', target: column 'subject'"));
    let out = folder.0.join("out");
    import.write(&out).unwrap();
    let keys = import.recipe_keys(&out);
    let data: summarize::Data = keys["data"].clone().try_into().unwrap();
    assert_eq!((data.max_words, data.max_summary), (70, 8));
    assert_eq!(keys["decode"]["max_length"].as_integer(), Some(10));
    let mut all = vec![];
    for (part, count) in [
        (crate::data::Part::Train, 32),
        (crate::data::Part::Valid, 4),
        (crate::data::Part::Test, 4),
    ] {
        let read = data.read(part).unwrap();
        assert_eq!(read.len(), count);
        all.extend(read);
    }
    for i in 0..40 {
        let wanted = format!("On {i} and so");
        let found = all.iter().find(|mail| mail.summaries == [wanted.clone()]).unwrap();
        assert_eq!(found.text, long(i).trim());
    }
}

#[test]
fn warnings_do_not_stop() {
    let mut text = rows(30, "\t");
    text += &format!("{}\tkurz\n", "long ".repeat(300));
    let folder = Folder::new(&[("a.tsv", &text), ("t.tsv", "Sentence 7.\tanders\n")]);
    let mut request = folder.request("translate", &["a.tsv"]);
    request.test = vec![folder.0.join("t.tsv")];
    let (import, told) = check(&request);
    for part in [
        "line 31: the source has 300 words",
        "line 8: its source is also on line 1 of",
        "t.tsv in the test part; left out",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(import.unwrap().parts[2], 1);
    let odd: String = (0..30).map(|i| format!("a b c d e f g h {i}\tx{i}\n")).collect();
    assert!(one("translate", "b.tsv", &odd).1.contains("do they belong together?"));
}

#[test]
fn a_column_of_numbers_is_no_source() {
    let text: String = (0..30).map(|i| format!("{i}\tSentence {i}.\tSatz {i}.\n")).collect();
    let folder = Folder::new(&[("a.tsv", &text), ("b.tsv", &format!("id\ten\tde\n{text}"))]);
    let mut request = folder.request("translate", &["a.tsv"]);
    request.columns.source = Some("1".into());
    request.columns.target = Some("3".into());
    let (import, told) = check(&request);
    assert!(import.is_none(), "{told}");
    assert!(told.contains("the source, column 1, is nothing but numbers, such as \"0\""), "{told}");
    assert!(told.contains("such as --source 2;"), "{told}");
    request.data = vec![folder.0.join("b.tsv")];
    let (import, told) = check(&request);
    assert!(import.is_none() && told.contains("if these numbers are meant, --source id"), "{told}");
    request.columns.source = Some("id".into());
    let (import, told) = check(&request);
    assert!(import.is_some() && told.contains("it was named"), "{told}");
}

/// Another guess for the validation part could turn the translation around.
#[test]
fn other_parts_have_the_columns_of_the_training_part() {
    let text: String = (0..30).map(|i| format!("{i}\tSatz {i}.\tSentence {i}.\n")).collect();
    let train = format!("id\tde\ten\n{text}");
    for (valid, wanted) in [
        ("en\tde\nNew one.\tNeu eins.\nNew two.\tNeu zwei.\n", None),
        ("New one.\tNeu eins.\nNew two.\tNeu zwei.\n", Some("\"de\", \"en\", and this one lacks")),
        ("source\ttarget\nNew one.\tNeu eins.\n", Some("--source, --target; the first row is")),
    ] {
        let folder = Folder::new(&[("t.tsv", &train), ("v.tsv", valid)]);
        let mut request = folder.request("translate", &["t.tsv"]);
        request.valid = vec![folder.0.join("v.tsv")];
        let (import, told) = check(&request);
        assert_eq!(import.is_some(), wanted.is_none(), "{valid}: {told}");
        assert!(wanted.is_none_or(|wanted| told.contains(wanted)), "{valid}: {told}");
    }
}

/// A header in a language that is not known is no training pair.
#[test]
fn a_first_row_of_unknown_names_is_told() {
    let texts: String =
        (0..30).map(|i| format!("Das ist Satz {i}.\tThis is sentence {i}.\n")).collect();
    let long: String = (0..30)
        .map(|i| format!("Nummer {i} war heute sehr spät da,Nummer {i} zu spät\n"))
        .collect();
    let chinese: String =
        (0..30).map(|i| format!("这是一个很长的句子{i}\tThis is sentence {i}.\n")).collect();
    let words: String = (0..30).map(|i| format!("Wort{i}\tword{i}\n")).collect();
    let turned: String = long
        .lines()
        .map(|line| line.split(',').rev().collect::<Vec<_>>().join(",") + "\n")
        .collect();
    for (task, name, text, wanted) in [
        (
            "translate",
            "a.tsv",
            format!("deutsch\tenglisch\n{texts}"),
            Some("--source deutsch --target englisch"),
        ),
        (
            "summarize",
            "b.csv",
            format!("Bericht,Kurze Fassung\n{long}"),
            Some("--source Bericht --target 'Kurze Fassung'"),
        ),
        (
            "summarize",
            "c.csv",
            format!("Kurzfassung,Bericht\n{turned}"),
            Some("--source Bericht --target Kurzfassung"),
        ),
        ("translate", "d.tsv", format!("汉语\t英语\n{chinese}"), Some("--source 汉语")),
        // Examples, and a dictionary.
        ("translate", "e.tsv", format!("Hallo!\tHello!\n{texts}"), None),
        ("translate", "f.tsv", texts.clone(), None),
        ("translate", "g.tsv", format!("这是第一个很长的句子\tWell then\n{chinese}"), None),
        ("translate", "h.tsv", format!("Haus\thouse\n{words}"), None),
    ] {
        let (import, told) = one(task, name, &text);
        match wanted {
            None => assert!(import.is_some() && !told.contains("error"), "{name}: {told}"),
            Some(wanted) => {
                assert!(import.is_none(), "{name}: {told}");
                for part in ["error: header (1)", wanted, "--no-header"] {
                    assert!(told.contains(part), "{name}: {part}: {told}");
                }
            }
        }
    }
    let folder = Folder::new(&[("a.tsv", &format!("deutsch\tenglisch\n{texts}"))]);
    let mut request = folder.request("translate", &["a.tsv"]);
    (request.columns.source, request.columns.target) =
        (Some("deutsch".into()), Some("englisch".into()));
    assert_eq!(check(&request).0.unwrap().parts.iter().sum::<usize>(), 30);
    let mut request = folder.request("translate", &["a.tsv"]);
    request.header = Some(false);
    assert_eq!(check(&request).0.unwrap().parts.iter().sum::<usize>(), 31);
}

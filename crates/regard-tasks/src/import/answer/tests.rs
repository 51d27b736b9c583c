use super::*;
use crate::data::Squad;
use crate::data::scratch::with_file;
use crate::import::{self, Import};
use crate::reader::Data;
use serde_json::Value as Json;

fn check(name: &str, text: &str) -> (Option<Import>, String) {
    with_file(name, text.as_bytes(), |path| {
        let mut request = Request::new("answer");
        request.data = vec![path.to_path_buf()];
        let (import, findings) = import::read(&request).unwrap();
        (import, findings.text())
    })
}

/// A question with its context and its answers, as the reader of recipes gives it.
type Found = (String, String, Vec<(String, usize)>);

/// Questions of all parts, sorted.
fn written(import: &Import) -> Vec<Found> {
    let thread = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "");
    let folder =
        std::env::temp_dir().join(format!("regard-import-answer-{}-{thread}", std::process::id()));
    import.write(&folder).unwrap();
    let data: Data = import.recipe_keys(&folder)["data"].clone().try_into().unwrap();
    let mut all = vec![];
    for (path, count) in [&data.train, &data.valid, &data.test].into_iter().zip(import.parts) {
        let squad = Squad::read(path.as_ref().unwrap()).unwrap();
        assert_eq!(squad.misplaced(), 0);
        let before = all.len();
        for (context, question) in squad.articles.iter().flat_map(|article| article.questions()) {
            assert_eq!(question.impossible, question.answers.is_empty());
            let answers = question.answers.iter().map(|a| (a.text.clone(), a.start));
            all.push((context.to_string(), question.text.clone(), answers.collect()));
        }
        assert_eq!(all.len() - before, count);
    }
    std::fs::remove_dir_all(folder).unwrap();
    all.sort();
    all
}

fn context(i: usize) -> String {
    format!("À Köln, number {i} sells cafés.")
}

fn squad(rows: usize) -> Json {
    let paragraph = |i: usize| {
        json!({"context": context(i), "qas": [
            {"id": format!("a{i}"), "question": "Where?", "answers": [
                {"text": "Köln", "answer_start": 2}, {"text": "À Köln", "answer_start": 0}]},
            {"id": format!("b{i}"), "question": "Who?", "is_impossible": true, "answers": [],
             "plausible_answers": [{"text": "Köln", "answer_start": 2}]},
        ]})
    };
    let paragraphs: Vec<Json> = (0..rows).map(paragraph).collect();
    json!({"version": "v2.0", "data": [{"title": "Cafés", "paragraphs": paragraphs}]})
}

/// JSON lines, a row for each question.
fn lines(rows: usize, first: impl Fn(usize) -> Json, second: impl Fn(usize) -> Json) -> String {
    let row = |i: usize| {
        let mut both = String::new();
        for (question, mut value) in [("Where?", first(i)), ("Who?", second(i))] {
            value["context"] = context(i).into();
            value["question"] = question.into();
            both += &format!("{value}\n");
        }
        both
    };
    (0..rows).map(row).collect()
}

#[test]
fn all_formats_give_the_same_questions() {
    let mut wanted: Vec<Found> = vec![];
    for i in 0..20 {
        let answers = vec![("Köln".to_string(), 2), ("À Köln".to_string(), 0)];
        wanted.push((context(i), "Where?".into(), answers));
        wanted.push((context(i), "Who?".into(), vec![]));
    }
    wanted.sort();
    let lists = |_| json!({"answers": {"text": ["Köln", "À Köln"], "answer_start": [2, 0]}});
    let empty = |_| json!({"answers": {"text": [], "answer_start": []}});
    let texts = |i: usize| json!({"id": i, "answers": ["Köln", "À Köln"]});
    let none = |_| json!({"answer": null});
    let flat = lines(20, lists, none);
    let rows: Vec<Json> = flat.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (name, text) in [
        ("a.json", squad(20).to_string()),
        ("b.json", serde_json::to_string_pretty(&squad(20)).unwrap()),
        ("c.jsonl", lines(20, lists, empty)),
        ("d.jsonl", lines(20, texts, none)),
        ("e.json", flat),
        ("f.json", Json::Array(rows.clone()).to_string()),
        ("g.json", json!({"data": rows}).to_string()),
    ] {
        let (import, told) = check(name, &text);
        let import = import.unwrap_or_else(|| panic!("{name}: {told}"));
        assert_eq!(import.parts, [32, 4, 4], "{name}");
        assert_eq!(written(&import), wanted, "{name}");
        let said = import.summary.join("\n");
        for part in [
            "first: 'Where?' → 'Köln'",
            "questions: 32 train, 4 valid, 4 test (split by paragraphs and by seed 0)",
            "16 paragraphs in the training part, mean length of text and question: 7 words",
            "16 questions of the training part without an answer",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}

#[test]
fn many_articles_stay_together() {
    let article = |i: usize| {
        let paragraph = |j: usize| {
            json!({"context": format!("Text {i}.{j} says yes."), "qas": [
                {"id": format!("{i}-{j}"), "question": "What?",
                 "answers": [{"text": "yes", "answer_start": format!("Text {i}.{j} says ").len()}]}]})
        };
        json!({"title": format!("T{i}"), "paragraphs": (0..4).map(paragraph).collect::<Vec<_>>()})
    };
    let all: Vec<Json> = (0..30).map(article).collect();
    let (import, told) = check("a.json", &json!({"version": "1.1", "data": all}).to_string());
    let import = import.unwrap_or_else(|| panic!("{told}"));
    assert_eq!(import.parts, [96, 12, 12]);
    assert!(import.summary[1].contains("by articles"), "{:?}", import.summary);
    assert_eq!(written(&import).len(), 120);
}

#[test]
fn defects_are_named_with_their_lines() {
    let pretty = |whole: Json| serde_json::to_string_pretty(&whole).unwrap();
    let with = |pointer: &str, value: Json| {
        let mut whole = squad(10);
        *whole.pointer_mut(pointer).unwrap() = value;
        pretty(whole)
    };
    let first = "/data/0/paragraphs/0/qas/0";
    // Line of the id of the first question: keys are sorted.
    let text = pretty(squad(10));
    let line = 1 + text.lines().position(|line| line.contains("\"a0\"")).unwrap();
    let row = |value: &str| {
        let good = lines(10, |_| json!({"answer": "Köln"}), |_| json!({"answer": "number"}));
        format!("{good}{{\"context\": \"One, two, Two.\", {value}}}\n")
    };
    for (name, text, wanted) in [
        (
            "a.json",
            with(&format!("{first}/answers/0/answer_start"), json!(3)),
            format!(
                "line {line}: question \"a0\": at answer_start 3 is \"öln,\", the answer is \"Köln\": the answer is at 2"
            ),
        ),
        (
            "b.json",
            with(&format!("{first}/answers/0"), json!({"text": "cafés", "answer_start": 25})),
            "the answer is at 23".into(),
        ),
        (
            "c.json",
            with(&format!("{first}/answers/0"), json!({"text": "Bonn", "answer_start": 2})),
            "the context does not have the answer".into(),
        ),
        (
            "d.json",
            with(&format!("{first}/question"), json!(" ")),
            format!("line {line}: question \"a0\": the question is empty"),
        ),
        (
            "e.json",
            with(&format!("{first}/id"), json!("b0")),
            "question \"b0\": its id is also in line".into(),
        ),
        (
            "f.json",
            with(&format!("{first}/answers"), json!([])),
            "set \"is_impossible\": true".into(),
        ),
        (
            "g.json",
            with("/data/0/paragraphs/0/qas/1/answers", json!(["Köln"])),
            "is_impossible is true, and it has".into(),
        ),
        (
            "h.json",
            with("/data/0/paragraphs/3", json!({"context": "x"})),
            "data[0].paragraphs[3] has no \"qas\"".into(),
        ),
        ("i.json", text[..text.len() - 3].to_string(), "is not JSON: EOF".into()),
        (
            "j.jsonl",
            row("\"question\": \"Q?\", \"answer\": \"three\""),
            "line 21: the context does not have the answer \"three\"".into(),
        ),
        (
            "k.jsonl",
            row("\"question\": \"Q?\", \"answer\": \"ONE\""),
            "only with other capital letters".into(),
        ),
        (
            "l.jsonl",
            row("\"question\": \"\", \"answer\": \"One\""),
            "line 21: the question is empty".into(),
        ),
        ("m.jsonl", row("\"question\": \"Q?\""), "line 21: has no \"answers\"".into()),
        (
            "n.jsonl",
            row("\"question\": \"Q?\", \"answer\": \"two\", \"answer_start\": -1"),
            "answer_start -1 is not a place".into(),
        ),
        ("o.jsonl", row("\"question\": \"Q?\", \"answer\": 3"), "is no text, no list".into()),
        ("p.jsonl", "{\"question\": \"Q?\"}\n".into(), "line 1: has no \"context\"".into()),
        (
            "q.jsonl",
            lines(10, |_| json!({"answer": ""}), |_| json!({"answer": null})),
            "no question of the training part has an answer".into(),
        ),
    ] {
        let (import, told) = check(name, &text);
        assert!(import.is_none() && told.contains(&wanted), "{name}: {wanted}: {told}");
    }
}

#[test]
fn the_first_of_several_places_is_taken_and_said() {
    let mut text = lines(10, |_| json!({"answer": "Köln"}), |_| json!({"answer": "number"}));
    text += "{\"context\": \"Äh, one and one.\", \"question\": \"Q?\", \"answer\": \"one\"}\n";
    let (import, told) = check("a.jsonl", &text);
    let found = written(&import.unwrap_or_else(|| panic!("{told}")));
    assert!(told.contains("line 21: \"one\" occurs 2 times; the first is taken"), "{told}");
    let one = found.iter().find(|(context, ..)| context.starts_with("Äh")).unwrap();
    assert_eq!(one.2, [("one".to_string(), 4)]);
}

/// The same questions in a table, in JSON lines with other names, and in JSON lines.
#[test]
fn tables_and_other_names_hold_the_same_questions() {
    let all = |row: &dyn Fn(usize) -> String| -> String { (0..20).map(row).collect() };
    let plain = |[context, question, answer]: [&str; 3]| {
        all(&|i| {
            let row =
                json!({context: super::tests::context(i), question: "Where?", answer: "Köln"});
            format!("{row}\n")
        })
    };
    let chosen = |name: &str, text: &str, columns: [&str; 3]| {
        with_file(name, text.as_bytes(), |path| {
            let mut request = Request::new("answer");
            request.data = vec![path.to_path_buf()];
            let [context, question, answer] =
                columns.map(|name| Some(name.to_string()).filter(|name| !name.is_empty()));
            request.columns.context = context;
            request.columns.question = question;
            request.columns.answer = answer;
            let (import, findings) = import::read(&request).unwrap();
            (import, findings.text())
        })
    };
    let (import, told) = chosen("a.jsonl", &plain(["context", "question", "answer"]), [""; 3]);
    let wanted = written(&import.unwrap_or_else(|| panic!("{told}")));
    assert_eq!(wanted.len(), 20);
    let names = ["absatz", "frage", "antwort"];
    let rows =
        |header: &str| format!("{header}{}", all(&|i| format!("{};Where?;Köln\n", context(i))));
    for (name, text, columns) in [
        ("b.jsonl", plain(names), names),
        ("c.csv", rows("Passage;Question;Answer\n"), [""; 3]),
        ("d.csv", rows("absatz;frage;antwort\n"), names),
        ("e.csv", rows(""), ["1", "2", "3"]),
        ("f.tsv", rows("context;question;answer\n").replace(';', "\t"), [""; 3]),
    ] {
        let (import, told) = chosen(name, &text, columns);
        assert_eq!(written(&import.unwrap_or_else(|| panic!("{name}: {told}"))), wanted, "{name}");
    }
    for (name, text, columns, says) in [
        ("g.jsonl", plain(names), [""; 3], "has no \"context\"; its keys are absatz, "),
        (
            "h.jsonl",
            plain(names),
            ["absatz", "frge", ""],
            "--question: has no \"frge\"; did you mean",
        ),
        ("i.csv", rows("absatz;frage;antwort\n"), [""; 3], "--question frage --answer antwort"),
        (
            "j.jsonl",
            "{\"context\": \"In Köln.\", \"question\": 5, \"answer\": \"Köln\"}\n".into(),
            [""; 3],
            "line 1: \"question\" is a number, 5; need a text",
        ),
    ] {
        let (import, told) = chosen(name, &text, columns);
        assert!(import.is_none() && told.contains(says), "{name}: {told}");
    }
}

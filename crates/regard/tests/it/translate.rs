//! `regard translate`, with texts and with lines.

use crate::program::{command, fails, folder, json, piped, regard};
use crate::tiny::{BLIND, LEARNED, TRANSFORMER, model};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Output, Stdio};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn objects(output: &Output) -> Vec<Value> {
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const LINES: [&str; 9] = [
    "They are watching.",
    "",
    "Where are you?  I am hungry.",
    "   ",
    "🙂 的 👩‍👩‍👧 e\u{301}\u{200b}",
    "Go on!",
    "</s> <pad> <unk>",
    "a\tb",
    "They are watching.",
];

#[test]
fn references_are_not_replaced_by_translations() {
    let here = folder("eval-save");
    let data = here.join("pairs.tsv");
    std::fs::write(&data, "Hello.\tBonjour.\n").unwrap();
    let name = data.to_str().unwrap();
    let same = here.join("../eval-save/pairs.tsv");
    let args = ["eval", "--model", "en-fr", "--data", name, "--save", same.to_str().unwrap()];
    fails(&args, &["--save", "pairs.tsv", "--data"]);
    assert_eq!(std::fs::read_to_string(&data).unwrap(), "Hello.\tBonjour.\n");
}

#[test]
fn a_line_comes_out_for_each_line_whatever_the_batch() {
    let model = model("translate_lines", TRANSFORMER);
    let input = LINES.join("\n");
    let all = piped(&["translate", "--model", &model], input.as_bytes());
    assert_eq!(all.status.code(), Some(0), "{}", text(&all.stderr));
    // Two of the lines have signs that such a small vocabulary lacks, and a model that has learned
    // nothing does not know when to end; nothing else is said.
    let told = text(&all.stderr);
    assert_eq!(told.matches("note: the model does not know").count(), 2, "{told}");
    assert_eq!(told.matches("reached the length limit").count(), 1, "{told}");
    assert_eq!(told.lines().count(), 3, "{told}");
    let out = text(&all.stdout);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), LINES.len());
    assert_eq!((lines[1], lines[3]), ("", ""), "what has no words stays empty");
    assert_eq!(lines[0], lines[8]);
    for (source, line) in LINES.iter().zip(&lines) {
        let alone = regard(&["translate", "--model", &model, "--", source]);
        assert_eq!(alone.out.trim_end_matches('\n'), *line, "{source:?}");
    }
    for batch in ["1", "2", "3"] {
        let args = ["translate", "--model", &model, "--batch", batch, "--threads", "1"];
        assert_eq!(text(&piped(&args, input.as_bytes()).stdout), out, "batch {batch}");
    }
    assert!(piped(&["translate", "--model", &model], b"").stdout.is_empty());
}

#[test]
fn an_answer_comes_before_the_next_question() {
    let model = model("translate_answer", TRANSFORMER);
    let mut child = command(&["translate", "--model", &model]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for question in ["Go on!", "Where are you?"] {
        writeln!(stdin, "{question}").unwrap();
        assert!(!answers.next().unwrap().unwrap().is_empty());
    }
    drop(stdin);
    assert!(answers.next().is_none() && child.wait().unwrap().success());
}

#[test]
fn what_is_not_utf8_is_told_and_the_rest_goes_on() {
    let model = model("translate_utf8", TRANSFORMER);
    let input = b"Go on!\nbad \xff\xfe line\r\nGo on!\r\n\xc3";
    let ran = piped(&["translate", "--model", &model], input);
    assert_eq!(ran.status.code(), Some(1));
    let (out, err) = (text(&ran.stdout), text(&ran.stderr));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 4, "{out}");
    assert_eq!((lines[1], lines[3]), ("", ""));
    assert!(lines[0] == lines[2] && !lines[0].is_empty(), "{out}");
    assert!(err.contains("line 2: not UTF-8 at byte 5") && err.contains("line 4"), "{err}");
    let ran = piped(&["translate", "--model", &model, "--json"], input);
    let objects = objects(&ran);
    assert_eq!(objects.len(), 4);
    assert!(objects[1]["error"].as_str().unwrap().contains("line 2"), "{}", objects[1]);
    assert_eq!(objects[1]["translation_text"], "");
}

#[test]
fn long_lines_are_translated_in_pieces() {
    let long = format!("{}\nGo on!\n", "They are watching the cat . ".repeat(1000));
    let endless = model("translate_endless", TRANSFORMER);
    let ran = piped(&["translate", "--model", &endless, "--num-beams", "1"], long.as_bytes());
    let err = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(0), "{err}");
    assert!(err.contains("line 1: ") && err.contains("1000 pieces"), "{err}");
    assert!(!err.contains("line 2"), "{err}");
    assert_eq!(text(&ran.stdout).lines().count(), 2);
    let table = model("translate_table", LEARNED);
    let ran = piped(&["translate", "--model", &table, "--max-length", "500"], long.as_bytes());
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let err = text(&ran.stderr);
    assert!(err.contains("exceed the model's limit of 24"), "{err}");
    assert!(err.contains("line 1: ") && !err.contains("line 2"), "{err}");
    assert_eq!(text(&ran.stdout).lines().count(), 2);
    let prefix = ["--target-prefix", "Ils", "--model", &table];
    let ran = piped(&[&["translate"], &prefix[..]].concat(), long.as_bytes());
    assert!(text(&ran.stdout).lines().all(|line| line.starts_with("Ils")));
}

/// Tokens and pieces in the note about a line that was split.
fn cut(err: &str) -> (usize, usize) {
    let number = |before: &str| -> usize {
        let (_, rest) = err.split_once(before).unwrap_or_else(|| panic!("no {before:?}: {err}"));
        rest.split(' ').next().unwrap().parse().unwrap_or_else(|e| panic!("{e}: {err}"))
    };
    (number("line 1: "), number("translated in "))
}

/// One line of 12,000 words: there are more pieces and not longer ones, so that it takes time with
/// its length alone, and nothing of it is lost.
#[test]
fn a_line_of_many_words_is_translated_whole() {
    let quick = ["translate", "--num-beams", "1", "--max-length", "16"];
    let pieces = |sentences: usize| {
        let line = vec!["They are watching."; sentences].join(" ");
        let ran = piped(&quick, line.as_bytes());
        let (out, err) = (text(&ran.stdout), text(&ran.stderr));
        assert_eq!((ran.status.code(), out.lines().count()), (Some(0), 1), "{err}");
        assert_eq!(out.matches("regardent").count(), sentences, "{}", &out[..100.min(out.len())]);
        assert!(err.contains("limit of 512"), "{err}");
        cut(&err)
    };
    let (tokens, count) = pieces(1000);
    assert!(count == 1000 && tokens <= 8 * count, "{tokens} tokens in {count} pieces");
    let (more, count) = pieces(4000);
    assert!(count == 4000 && more.abs_diff(4 * tokens) <= 4, "{more} tokens in {count} pieces");
    // Words without an end are cut where the model has no more room: pieces are not longer than
    // that, and not much shorter than half of it.
    let ran = piped(&quick, "cat ".repeat(3000).as_bytes());
    let (out, err) = (text(&ran.stdout), text(&ran.stderr));
    assert_eq!((ran.status.code(), out.lines().count()), (Some(0), 1), "{err}");
    let (tokens, count) = cut(&err);
    assert!(tokens >= 3000 && tokens <= 512 * count, "{tokens} tokens in {count} pieces");
    assert!(tokens >= 200 * count, "{tokens} tokens in {count} pieces");
    // Where it looked is not told of a text in pieces; the lines after it are translated.
    let lines = format!("{}\nThey are watching.\n", "They are watching. ".repeat(300));
    let ran = piped(&["translate", "--align", "hard"], lines.as_bytes());
    assert_eq!(ran.status.code(), Some(1));
    assert_eq!(text(&ran.stdout).lines().map(str::is_empty).collect::<Vec<_>>(), [true, false]);
    assert!(text(&ran.stderr).contains("at most 512 tokens at a time"), "{}", text(&ran.stderr));
}

#[test]
fn many_lines_stream() {
    let model = model("translate_many", TRANSFORMER);
    let one = "Go on!\nWhere are you?\n\n";
    let ran = piped(
        &["translate", "--model", &model, "--max-length", "3", "--num-beams", "1"],
        one.repeat(1500).as_bytes(),
    );
    assert_eq!(ran.status.code(), Some(0));
    let out = text(&ran.stdout);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 4500);
    assert!(lines.chunks(3).all(|three| three == &lines[..3]), "order is kept");
}

#[test]
fn json_has_what_pipelines_have_and_more() {
    let model = model("translate_json", TRANSFORMER);
    let object = json(&["translate", "--model", &model, "--json", "They are watching."]);
    let plain = regard(&["translate", "--model", &model, "They are watching."]);
    assert_eq!(object["translation_text"].as_str().unwrap(), plain.out.trim_end_matches('\n'));
    let list =
        |key: &str| object[key].as_array().unwrap_or_else(|| panic!("{key}: {object}")).len();
    assert!(object["score"].as_f64().unwrap() < 0.0);
    assert_eq!(list("tokens"), list("token_scores"));
    assert!(list("source_tokens") >= 4);
    for absent in ["attention", "alignment", "alternatives", "error"] {
        assert!(object.get(absent).is_none(), "{absent}");
    }
    let sum: f64 =
        object["token_scores"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).sum();
    let all = object["log_prob"].as_f64().unwrap();
    assert!(all <= sum + 1e-4, "the end has its own: {all} and {sum}");

    let three = ["--num-beams", "4", "--num-return-sequences", "3", "They are watching."];
    let args = [&["translate", "--model", &model, "--json"], &three[..]].concat();
    let object = json(&args);
    let others = object["alternatives"].as_array().unwrap();
    assert_eq!(others.len(), 2);
    assert!(others.iter().all(|other| other["score"].as_f64() <= object["score"].as_f64()));
    let ran = regard(&[&["translate", "--model", &model], &three[..]].concat());
    assert_eq!(ran.out.lines().count(), 3, "{}", ran.out);
}

#[test]
fn alignments_are_on_words() {
    let model = model("translate_align", TRANSFORMER);
    let base = ["translate", "--model", &model, "They are watching."];
    let with = |more: &[&'static str]| [&base, more].concat();
    let object = json(&with(&["--align", "soft", "--json"]));
    assert_eq!(object["source_words"], serde_json::json!(["They", "are", "watching", "."]));
    let words = object["words"].as_array().unwrap();
    let matrix: Vec<Vec<f64>> = serde_json::from_value(object["attention"].clone()).unwrap();
    assert_eq!(matrix.len(), words.len());
    for row in &matrix {
        let sum: f64 = row.iter().sum();
        assert!(row.len() == 4 && sum > 0.0 && sum <= 1.0 + 1e-5, "{row:?}");
    }
    assert_eq!(object["word_scores"].as_array().unwrap().len(), words.len());
    // The link of a word is the largest weight of its row.
    let pharaoh = object["alignment"].as_str().unwrap();
    for link in pharaoh.split(' ') {
        let (source, target) = link.split_once('-').unwrap();
        let (source, target): (usize, usize) = (source.parse().unwrap(), target.parse().unwrap());
        assert!(matrix[target].iter().all(|w| *w <= matrix[target][source]), "{link}");
    }
    assert_eq!(pharaoh.split(' ').count(), words.len());

    let ran = regard(&with(&["--align", "pharaoh"]));
    assert_eq!(ran.out.lines().nth(1).unwrap().trim(), pharaoh);
    let ran = regard(&with(&["--align", "hard"]));
    assert_eq!(ran.out.lines().nth(1).unwrap().split_whitespace().count(), words.len());
    let columns = piped(
        &["translate", "--model", &model, "--scores", "--align", "pharaoh"],
        b"They are watching.\n\n",
    );
    let out = text(&columns.stdout);
    let lines: Vec<Vec<&str>> = out.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!((lines[0].len(), lines[1].len()), (4, 4), "{out}");
    assert_eq!(lines[0][3], pharaoh);
    assert!(lines[0][1].parse::<f64>().unwrap() < 0.0);

    let ran = regard(&with(&["--attend"]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let drawn = ran.out.lines().filter(|line| line.contains('│')).count();
    assert_eq!(drawn, words.len(), "{}", ran.out);
    assert!(ran.out.contains('█') && !ran.out.contains('\x1b'), "{}", ran.out);
    assert!(!regard(&base).out.contains('│'), "no map in a pipe");
}

#[test]
fn a_model_without_attention_translates_but_cannot_tell() {
    let model = model("translate_blind", BLIND);
    assert_eq!(regard(&["translate", "--model", &model, "Go on!"]).code, 0);
    assert_eq!(regard(&["translate", "--model", &model, "--scores", "Go on!"]).code, 0);
    for (flags, says) in [
        (&["--attend"][..], "returns no attention weights"),
        (&["--align", "hard"][..], "returns no attention weights"),
        (&["--coverage-penalty", "1"][..], "returns no attention weights"),
    ] {
        let args = [&["translate", "--model", &model], flags, &["Go on!"]].concat();
        fails(&args, &[says]);
    }
}

#[test]
fn samples_follow_the_seed_and_not_the_batch() {
    let model = model("translate_sample", TRANSFORMER);
    let sample = |seed: &str, batch: &str| {
        let args = ["translate", "--model", &model, "--do-sample", "--num-beams", "1"];
        let more = ["--seed", seed, "--batch", batch, "--top-k", "0"];
        text(&piped(&[&args[..], &more].concat(), "Go on!\n".repeat(5).as_bytes()).stdout)
    };
    let out = sample("1", "5");
    assert_eq!(sample("1", "1"), out);
    assert_ne!(sample("2", "5"), out);
    let lines: std::collections::HashSet<&str> = out.lines().collect();
    assert!(lines.len() > 1, "each line draws for itself: {out}");
}

/// The pieces of a long text are sentences that are drawn each for itself.
#[test]
fn pieces_of_a_text_are_sampled_apart() {
    let model = model("translate_sample_pieces", TRANSFORMER);
    let line = "They are watching the cat . ".repeat(100);
    let sample = |batch: &str| {
        let args = ["translate", "--model", &model, "--do-sample", "--num-beams", "1", "--json"];
        let more = ["--seed", "1", "--batch", batch, "--top-k", "0"];
        let ran = piped(&[&args[..], &more].concat(), line.as_bytes());
        assert_eq!(cut(&text(&ran.stderr)).1, 100);
        objects(&ran).remove(0)
    };
    let found = sample("32");
    let tokens = found["tokens"].as_array().unwrap();
    let mut chunks = tokens.chunks(tokens.len() / 100);
    let first = chunks.next().unwrap();
    assert!(!chunks.all(|chunk| chunk == first), "100 times the same: {first:?}");
    assert_eq!(sample("7")["tokens"], found["tokens"]);
}

#[test]
fn a_prefix_is_what_translations_begin_with() {
    let model = model("translate_prefix", TRANSFORMER);
    let ran = regard(&["translate", "--model", &model, "--target-prefix", "Le chat", "Go on!"]);
    assert!(ran.out.starts_with("Le chat"), "{}", ran.out);
    let ran = regard(&["translate", "--model", &model, "--replace-unknowns", "Go 🙂 on!"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[test]
fn what_cannot_be_is_an_error_that_says_what_can() {
    let model = model("translate_wrong", TRANSFORMER);
    let fail = |flags: &[&str], says: &[&str]| {
        fails(&[&["translate", "Go on!", "--model", &model], flags].concat(), says)
    };
    fail(&["--num-beams", "0"], &["num_beams", "1 to 1024"]);
    fail(&["--num-return-sequences", "3"], &["num_return_sequences", "at most num_beams"]);
    fail(&["--early-stopping", "maybe"], &["early", "never"]);
    fail(&["--temperature", "-0.5"], &["temperature", "above 0"]);
    fail(&["--max-length", "1"], &["max_length"]);
    fail(&["--align", "sideways"], &["hard, soft, pharaoh"]);
    fails(&["translate", "--model", "no-such-model", "x"], &["no-such-model"]);
    fails(&["translate", "--model", &format!("{model}/.."), "--attend"], &["pass TEXT"]);
    fails(&["translate", "--model", env!("CARGO_TARGET_TMPDIR"), "x"], &["holds no model"]);
}

/// The model that ships is the one that is taken, and knows the sentence of the lecture notes.
#[test]
fn what_ships_translates() {
    let ran = regard(&["translate", "They are watching.", "--align", "hard"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.starts_with("Ils regardent"), "{}", ran.out);
    let named = regard(&["translate", "They are watching.", "--align", "hard", "--model", "en-fr"]);
    assert_eq!(named.out, ran.out);
}

//! Compares metrics of labels, entities, answers and correlations with golden scores made by
//! `fixtures/make/measures.py`.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;

use super::spans::{Rules, SpanSums, ThresholdedAnswer, best_threshold};
use super::*;

fn load<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let path = format!("{}/../../fixtures/measures/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn near(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() <= 1e-9, "{what}: {found} {expected}");
}

fn same(found: PrecisionRecall, expected: [f64; 3], what: &str) {
    near(found.precision, expected[0], what);
    near(found.recall, expected[1], what);
    near(found.f1, expected[2], what);
}

#[derive(Deserialize)]
struct Labels {
    classes: usize,
    said: String,
    right: String,
    accuracy: f64,
    each: Vec<[f64; 3]>,
    mean: [f64; 3],
    matthews: f64,
    table: Vec<Vec<u64>>,
}

#[test]
fn labels_are_counted_as_scikit_learn_does() {
    let rows: Vec<Labels> = load("classification");
    assert!(rows.len() >= 100, "only {} rows", rows.len());
    for row in rows {
        // In two parts, which are merged.
        let mut parts = [Confusion::new(row.classes), Confusion::new(row.classes)];
        for (i, (said, right)) in row.said.bytes().zip(row.right.bytes()).enumerate() {
            parts[i % 2].add(usize::from(said - b'0'), usize::from(right - b'0'));
        }
        let [mut table, other] = parts;
        table.merge(&other);
        near(table.accuracy(), row.accuracy, &row.said);
        near(table.matthews(), row.matthews, &row.said);
        same(table.macro_mean(), row.mean, &row.said);
        for (right, (scores, counts)) in row.each.iter().zip(&row.table).enumerate() {
            same(table.of(right), *scores, &row.said);
            let found: Vec<u64> = (0..row.classes).map(|said| table.count(said, right)).collect();
            assert_eq!(found, *counts, "{}", row.said);
        }
    }
}

#[derive(Deserialize)]
struct Sentences {
    mode: String,
    said: String,
    right: String,
    scores: Option<EntityScores>,
}

#[derive(Deserialize)]
struct EntityScores {
    kinds: Vec<(String, f64, f64, f64, u64)>,
    micro: [f64; 3],
    #[serde(rename = "macro")]
    mean: [f64; 3],
}

#[test]
fn entities_are_those_of_seqeval() {
    let rows: Vec<Sentences> = load("entities");
    assert!(rows.len() >= 200, "only {} rows", rows.len());
    let mut refused = 0;
    for Sentences { mode, said, right, scores } in &rows {
        let scheme = match mode.as_str() {
            "lenient" => Scheme::Lenient,
            "iob2" => Scheme::Iob2,
            _ => Scheme::Iobes,
        };
        let mut entities = Entities::new(scheme);
        let tags = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let mut added = Ok(());
        for (said, right) in said.split('\n').zip(right.split('\n')) {
            let mut sentence = Entities::new(scheme);
            added = added.and_then(|()| sentence.add(&tags(said), &tags(right)));
            entities.merge(&sentence);
        }
        let Some(scores) = scores else {
            refused += 1;
            assert!(added.is_err(), "{mode} {said} | {right}");
            continue;
        };
        added.unwrap_or_else(|e| panic!("{mode} {said} | {right}: {e}"));
        let what = format!("{mode} {said} | {right}");
        let found: Vec<_> = entities.by_kind().collect();
        assert_eq!(found.len(), scores.kinds.len(), "{what} {found:?}");
        for ((kind, found, right), expected) in found.iter().zip(&scores.kinds) {
            assert_eq!((*kind, *right), (expected.0.as_str(), expected.4), "{what}");
            same(*found, [expected.1, expected.2, expected.3], &what);
        }
        same(entities.micro(), scores.micro, &what);
        same(entities.macro_mean(), scores.mean, &what);
    }
    assert!(refused >= 5, "only {refused} rows are refused");
}

#[derive(Deserialize)]
struct Questions {
    rows: Vec<Answered>,
    totals: HashMap<String, Vec<f64>>,
}

#[derive(Deserialize)]
struct Answered {
    said: String,
    answers: Vec<String>,
    no_answer: f64,
    v1: (u8, f64),
    v2: (u8, f64),
}

#[test]
fn answers_are_scored_as_squad_does() {
    let corpora: Vec<Questions> = load("spans");
    assert!(corpora.iter().map(|corpus| corpus.rows.len()).sum::<usize>() >= 200);
    for Questions { rows, totals } in &corpora {
        let mut scores = Vec::new();
        for (rules, version) in [(Rules::Version1, "v1"), (Rules::Version2, "v2")] {
            let mut spans = SpanMetrics::new(rules);
            scores.clear();
            for row in rows {
                let mut one = SpanMetrics::new(rules);
                let found = one.add(&row.said, &row.answers);
                spans.merge(&one);
                let (exact, f1) = if rules == Rules::Version1 { row.v1 } else { row.v2 };
                let what = format!("{version} {:?} {:?}", row.said, row.answers);
                assert_eq!(u8::from(found.exact), exact, "{what}");
                near(found.f1, f1, &what);
                scores.push(found);
            }
            let check = |sums: SpanSums, part: &str| {
                let expected = &totals[&format!("{version}_{part}")];
                near(sums.mean_exact(), expected[0], part);
                near(sums.mean_f1(), expected[1], part);
                assert_eq!(sums.questions as f64, expected[2]);
            };
            check(spans.all(), "all");
            check(spans.answered, "has");
            check(spans.unanswered, "none");
        }
        for (name, score) in [
            ("best_exact", (|s: &SpanScore| f64::from(u8::from(s.exact))) as fn(&SpanScore) -> f64),
            ("best_f1", |s: &SpanScore| s.f1),
        ] {
            let doubted = rows.iter().zip(&scores).map(|(row, found)| ThresholdedAnswer {
                no_answer: row.no_answer,
                score: score(found),
                says: !row.said.is_empty(),
                answered: !row.answers.is_empty(),
            });
            let (threshold, mean) = best_threshold(&doubted.collect::<Vec<_>>());
            near(threshold, totals[name][0], name);
            near(mean, totals[name][1], name);
        }
    }
}

#[derive(Deserialize)]
struct Numbers {
    x: Vec<f64>,
    y: Vec<f64>,
    pearson: Option<f64>,
    spearman: Option<f64>,
}

#[test]
fn correlations_are_those_of_scipy() {
    let rows: Vec<Numbers> = load("correlation");
    assert!(rows.len() >= 100, "only {} rows", rows.len());
    for row in rows {
        let mut pairs = Correlation::new();
        row.x.iter().zip(&row.y).for_each(|(x, y)| pairs.add(*x, *y));
        for (found, expected) in [(pairs.pearson(), row.pearson), (pairs.spearman(), row.spearman)]
        {
            assert_eq!(found.is_some(), expected.is_some(), "{:?} {:?}", row.x, row.y);
            near(found.unwrap_or(0.0), expected.unwrap_or(0.0), "a correlation");
        }
    }
}

//! Points as text: `x1 y1 x2 y2 … output i1 i2 … i1`, indices counted from 1, as in the files of
//! Vinyals et al. 2015. A line is a set of points.

use super::{Instance, PointProblem};
use crate::data::Lines;
use regard_models::{Error, Result};
use std::path::Path;

/// Keyword between points and answer.
const OUTPUT: &str = "output";

/// Largest absolute value, so that squares are finite too.
const LARGEST: f64 = 1e100;

/// Reads the sets of a file with their answers. Errors name file and line.
pub fn read(path: &Path, problem: &dyn PointProblem) -> Result<Vec<Instance>> {
    let mut lines = Lines::open(path)?;
    let mut all = vec![];
    while let Some(line) = lines.next().transpose()? {
        if line.trim().is_empty() {
            continue;
        }
        let instance = instance(&line, problem).map_err(|message| lines.error(message))?;
        all.push(instance);
    }
    if all.is_empty() {
        return Err(Error::file(path, "holds no points"));
    }
    Ok(all)
}

fn instance(line: &str, problem: &dyn PointProblem) -> Result<Instance, String> {
    let mut halves = line.splitn(2, OUTPUT);
    let (Some(points), Some(answer)) = (halves.next(), halves.next()) else {
        return Err(format!(
            "need numbers, the word {OUTPUT:?} and indices, such as \
                            0.1 0.2 0.9 0.1 0.5 0.7 output 1 2 3 1"
        ));
    };
    let points = numbers(points, problem)?;
    let count = points.len() / problem.width();
    let mut answer = places(answer, count)?;
    if problem.closed() {
        match answer[..] {
            [first, .., last] if first == last => answer.pop(),
            _ => return Err("the answer does not end where it begins".into()),
        };
    }
    if let Some(at) = (0..answer.len()).find(|i| answer[..*i].contains(&answer[*i])) {
        return Err(format!("point {} is twice in the answer", answer[at] + 1));
    }
    let whole = problem.choice() == regard_models::pointer::SelectionRule::All;
    if whole && answer.len() != count {
        return Err(format!("the answer has {} of {count} points, needs all", answer.len()));
    }
    if answer.is_empty() {
        return Err("the answer has no points".into());
    }
    Ok(Instance { answer: problem.learned(&points, &answer), points })
}

/// Parses the points of a line without an answer: numbers separated by spaces or commas.
pub fn parse(line: &str, problem: &dyn PointProblem) -> Result<Vec<f64>> {
    numbers(line, problem).map_err(Error::Invalid)
}

fn numbers(text: &str, problem: &dyn PointProblem) -> Result<Vec<f64>, String> {
    let words = text.split(|c: char| c.is_whitespace() || ",;()[]".contains(c));
    let mut all = vec![];
    for word in words.filter(|word| !word.is_empty()) {
        match word.parse::<f64>() {
            Ok(x) => all.push(x),
            Err(_) => return Err(format!("number {}: got {word:?}, need a number", all.len() + 1)),
        }
    }
    check(&all, problem)?;
    Ok(all)
}

/// Checks that these numbers are valid points of a problem.
pub(super) fn check(all: &[f64], problem: &dyn PointProblem) -> Result<(), String> {
    if let Some(at) = all.iter().position(|x| x.is_nan() || x.abs() > LARGEST) {
        return Err(format!("number {}: got {}, need a finite number", at + 1, all[at]));
    }
    let (width, sizes) = (problem.width(), problem.sizes());
    if !all.len().is_multiple_of(width) {
        return Err(format!("got {} numbers, need a multiple of {width}", all.len()));
    }
    let count = all.len() / width;
    if !sizes.contains(&count) {
        return Err(format!(
            "got {count} points, {} needs {} to {}",
            problem.name(),
            sizes.start(),
            sizes.end()
        ));
    }
    Ok(())
}

fn places(text: &str, count: usize) -> Result<Vec<u32>, String> {
    let place = |word: &str| match word.parse::<usize>() {
        Ok(place) if (1..=count).contains(&place) => Ok(place as u32 - 1),
        _ => Err(format!("got {word:?} in the answer, need an index from 1 to {count}")),
    };
    text.split_whitespace().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::super::problem;
    use super::*;

    const FOUR: &str = "0.1 0.2 0.9 0.1 0.5 0.7 0.5 0.3";

    #[test]
    fn lines_of_the_paper() {
        let hull = problem("hull").unwrap();
        let read = instance(&format!("{FOUR} output 1 2 3 1 "), hull).unwrap();
        assert_eq!((read.points.len(), read.answer), (8, vec![0, 1, 2]));
        let read = instance(&format!("{FOUR} output 2 3 1 2"), hull).unwrap();
        assert_eq!(read.answer, [0, 1, 2], "from the left, whatever it began with");
        let sort = problem("sort").unwrap();
        assert_eq!(instance("0.5 0.1 output 2 1", sort).unwrap().answer, [1, 0]);
    }

    #[test]
    fn what_is_wrong_is_told() {
        let hull = problem("hull").unwrap();
        let rows = [
            (FOUR.to_string(), "the word \"output\""),
            (format!("{FOUR} 0.5 output 1 2 3 1"), "got 9 numbers, need a multiple of 2"),
            (
                format!("{FOUR} output 1 2 5 1"),
                "got \"5\" in the answer, need an index from 1 to 4",
            ),
            (format!("{FOUR} output 0 1 2 0"), "got \"0\""),
            (format!("{FOUR} output 1 2 3"), "does not end where it begins"),
            (format!("{FOUR} output 1 2 1 3 1"), "point 1 is twice"),
            (format!("{FOUR} output"), "does not end where it begins"),
            (format!("{FOUR} x 0.2 output 1 2 3 1"), "number 9: got \"x\", need a number"),
            (format!("{FOUR} NaN 0.2 output 1 2 3 1"), "number 9: got NaN, need a finite number"),
            (format!("{FOUR} 1e999 0.2 output 1 2 3 1"), "got inf, need a finite number"),
            ("0 0 1 1 output 1 2 1".to_string(), "got 2 points, hull needs 3"),
        ];
        for (line, wanted) in rows {
            let message = instance(&line, hull).unwrap_err();
            assert!(message.contains(wanted), "{line}: {message}");
        }
        let tsp = problem("tsp").unwrap();
        assert!(
            instance(&format!("{FOUR} output 1 2 3 1"), tsp).unwrap_err().contains("needs all")
        );
    }
}

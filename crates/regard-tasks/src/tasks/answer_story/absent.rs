//! Answers that have nothing to do with the story: a model chooses one of its answers even if the
//! question is about somebody whom the story does not mention.
//!
//! On the 210,000 questions of the bAbI tasks, none of these notes is made.

use crate::say;
use std::collections::HashSet;

/// Words of English questions that name nobody and nothing.
const RELATIONS: &str = "a above afraid after an and are at before below bigger carrying color \
    colour did do does east fit for from gave get give go going had has have he how in inside is it \
    left many north objects of on or received right she south than the then there they to was west \
    what when where which who why will with you";

/// Answers that no story contains: truth values, numbers and directions.
const FREE: &str = "e maybe n no none nothing one s three two w yes";

/// Answers to questions such as "Is John in the kitchen?", whose place need not be in the story.
const TRUTH: [&str; 3] = ["yes", "no", "maybe"];

/// Returns why an answer is a guess: what the question is about, or the answer, is not in the
/// story. `None` if there is no such reason.
pub(super) fn absent(question: &str, story: &str, answer: &str) -> Option<String> {
    let told: HashSet<String> = words(story).map(str::to_lowercase).collect();
    let is_told = |word: &str| forms(&word.to_lowercase()).iter().any(|form| told.contains(form));
    let among = |list: &str, word: &str| list.split(' ').any(|each| each == word.to_lowercase());
    let is_english = words(question).next().is_some_and(|word| among(RELATIONS, word));
    if !is_english {
        return None;
    }
    // Of a question for yes or no, only the subject, which comes first.
    let most = if TRUTH.contains(&answer) { 1 } else { usize::MAX };
    let named = words(question).filter(|word| !among(RELATIONS, word)).take(most);
    let missing: Vec<String> =
        named.filter(|word| !is_told(word)).map(|word| format!("{word:?}")).collect();
    if !missing.is_empty() {
        let (is, names) = (if missing.len() == 1 { "is" } else { "are" }, say::list(&missing, 4));
        return Some(format!(
            "{names} of the question {is} not in the story: the answer is a guess"
        ));
    }
    // Where somebody will go follows from what he wants; the place need not be mentioned.
    let is_future = words(question).any(|word| word.eq_ignore_ascii_case("will"));
    let is_free = |word: &str| among(FREE, word) || is_told(word);
    let is_known = is_future || words(answer).all(is_free);
    (!is_known).then(|| format!("the answer {answer:?} is not in the story: it is a guess"))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_between = |c: char| !(c.is_alphanumeric() || c == '\'' || c == '-');
    text.split(is_between).filter(|word| !word.is_empty())
}

/// A word and its plural.
fn forms(word: &str) -> Vec<String> {
    let mut forms = vec![word.to_string(), format!("{word}s")];
    forms.extend(word.strip_suffix('f').map(|stem| format!("{stem}ves")));
    forms.extend(word.strip_suffix("ouse").map(|stem| format!("{stem}ice")));
    forms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::sets;

    #[test]
    fn what_is_not_in_the_story_is_named() {
        let story = "John took the milk. John went to the hallway.";
        let note = |question: &str, answer: &str| absent(question, story, answer);
        assert_eq!(note("Where is John?", "hallway"), None);
        assert_eq!(note("Where is the milk?", "hallway"), None);
        let told = note("Where is Mary?", "hallway").unwrap();
        assert_eq!(told, "\"Mary\" of the question is not in the story: the answer is a guess");
        let told = note("Where is john?", "kitchen").unwrap();
        assert_eq!(told, "the answer \"kitchen\" is not in the story: it is a guess");
        let told = note("What did Mary give to Fred?", "milk").unwrap();
        assert!(told.starts_with("\"Mary\", \"Fred\" of the question are"), "{told}");
        // Answers that are not words of a story.
        assert_eq!(note("Is John in the kitchen?", "no"), None);
        assert!(note("Is Mary in the hallway?", "no").is_some());
        assert_eq!(note("How many objects is John carrying?", "one"), None);
        assert_eq!(note("How do you go from the milk to the hallway?", "n,w"), None);
        assert_eq!(note("Where will John go?", "kitchen"), None);
        assert!(note("What is John carrying?", "milk,apple").is_some());
        let animals = "Wolves are afraid of mice. Gertrude is a wolf.";
        assert_eq!(absent("What is Gertrude afraid of?", animals, "mouse"), None);
    }

    #[test]
    fn no_question_of_babi_is_noted() {
        let Ok(folder) = sets::find("babi-en-10k") else {
            return regard_fuzz::skip("babi-en-10k is not in REGARD_DATA");
        };
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if !path.to_string_lossy().ends_with("_test.txt") {
                continue;
            }
            let mut story = String::new();
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                let (number, rest) = line.split_once(' ').unwrap();
                if number == "1" {
                    story.clear();
                }
                match rest.split('\t').collect::<Vec<_>>()[..] {
                    [question, answer, _] => {
                        assert_eq!(absent(question, &story, answer), None, "{story}{question}");
                    }
                    _ => story += &format!("{rest} "),
                }
            }
        }
    }
}

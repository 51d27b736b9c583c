//! Helpers for messages: short lists, suggestions for misspelt names, readable numbers.

/// Returns the first `most` characters of a text on one line, with "…" if it was cut.
pub fn short(text: &str, most: usize) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

/// Shortens a message to about a screen by cutting out its middle.
pub fn message(text: &str) -> String {
    const FIRST: usize = 750;
    const LAST: usize = 200;
    let length = text.chars().count();
    if length <= FIRST + LAST {
        return text.to_string();
    }
    let first: String = text.chars().take(FIRST).collect();
    let last: String = text.chars().skip(length - LAST).collect();
    format!("{first} … {last}")
}

/// Joins the first `most` items of a list, each shortened, and gives the number of the others.
pub fn list<S: AsRef<str>>(items: &[S], most: usize) -> String {
    let some: Vec<String> = items.iter().take(most).map(|item| short(item.as_ref(), 40)).collect();
    let more = items.len().saturating_sub(most);
    match more {
        0 => some.join(", "),
        more => format!("{} … and {} more", some.join(", "), count(more)),
    }
}

/// Joins items of a list as far as they fit into a line of a message, and gives the number of the
/// others.
pub fn list_in_line<S: AsRef<str>>(items: &[S]) -> String {
    const MOST: usize = 12;
    const WIDTH: usize = 80;
    let mut width = 0;
    let fits = |item: &&S| {
        width += item.as_ref().chars().count().min(40) + 2;
        width <= WIDTH
    };
    // A single other one takes as much room as its number.
    let count = items.iter().take_while(fits).count().clamp(1, MOST);
    list(items, if count + 1 == items.len() { items.len() } else { count })
}

/// Formats a number with commas between thousands.
pub fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number with a noun in singular or plural: "1 text", "2,000 texts".
pub fn many(number: usize, thing: &str) -> String {
    let things = match thing.strip_suffix('y') {
        _ if number == 1 => thing.to_string(),
        Some(root) => format!("{root}ies"),
        None if thing.ends_with('s') => format!("{thing}es"),
        None => format!("{thing}s"),
    };
    format!("{} {things}", count(number))
}

/// Returns the name closest to `asked`, if one is close enough to be a misspelling.
pub fn near<'a>(asked: &str, names: &[&'a str]) -> Option<&'a str> {
    let asked = asked.to_lowercase();
    let length = asked.chars().count();
    let ranked = names.iter().map(|name| (distance(&asked, &name.to_lowercase()), *name));
    let best = ranked.min_by_key(|(distance, _)| *distance);
    let begun = || {
        let mut begin = names.iter().filter(|name| length >= 3 && name.starts_with(&asked));
        begin.next().copied()
    };
    best.filter(|(distance, _)| *distance <= (length / 3).max(1)).map(|best| best.1).or_else(begun)
}

/// Returns "did you mean 'multi30k'? ", or an empty string if no name is close.
pub fn did_you_mean(asked: &str, names: &[&str]) -> String {
    near(asked, names).map_or(String::new(), |name| format!("did you mean '{name}'? "))
}

/// Builds the error message for a key whose value must be one of a few names.
pub fn unknown(key: &str, got: &str, known: &[&str]) -> String {
    let got_short = short(got, 100);
    let mean = did_you_mean(got, known);
    format!("{key}: got {got_short:?}, need {}. {mean}", or(known)).trim_end().to_string()
}

/// Joins names: "a, b or c".
fn or(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => only.to_string(),
        [some @ .., last] => format!("{} or {last}", some.join(", ")),
    }
}

/// Quotes a command-line argument for a shell, if it needs quotes.
pub fn quoted(word: impl std::fmt::Display) -> String {
    let word = word.to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Computes the edit distance with transpositions: insertions, deletions, substitutions and swaps
/// of adjacent characters.
pub fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    // Names are never that long, and the cost is quadratic.
    if from.len().max(to.len()) > 200 {
        return usize::MAX;
    }
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    for i in 1..=from.len() {
        let mut row = vec![i; to.len() + 1];
        for j in 1..=to.len() {
            let same = from[i - 1] == to[j - 1];
            row[j] = (rows[i - 1][j] + 1)
                .min(row[j - 1] + 1)
                .min(rows[i - 1][j - 1] + usize::from(!same));
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                row[j] = row[j].min(rows[i - 2][j - 2] + 1);
            }
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (from, to, wanted) in [
            ("", "", 0),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("transfomer", "transformer", 1),
            ("trian", "train", 1),
            ("日本", "日木", 1),
        ] {
            assert_eq!(distance(from, to), wanted, "{from} {to}");
            assert_eq!(distance(to, from), wanted, "{to} {from}");
        }
    }

    #[test]
    fn a_near_name_is_told_and_a_far_one_is_not() {
        let names = ["multi30k-transformer", "multi30k-rnn", "cora-gat"];
        assert_eq!(near("multi30k-transfomer", &names), Some("multi30k-transformer"));
        assert_eq!(near("Cora-Gat", &names), Some("cora-gat"));
        assert_eq!(near("cora", &names), Some("cora-gat"));
        assert_eq!(near("zzzz", &names), None);
        assert_eq!(near("", &names), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_shell_reads_the_same_word() {
        for word in ["runs/x", "my runs/x", "it's", "", "$HOME", "a;b", "模型"] {
            let script = format!("printf %s {}", quoted(word));
            let ran = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(ran.stdout).unwrap(), word);
        }
    }

    #[test]
    fn lists_stay_short() {
        assert_eq!(list(&["a", "b"], 2), "a, b");
        assert_eq!(list(&["a", "b", "c"], 2), "a, b … and 1 more");
        let labels: Vec<String> = (0..708).map(|i| format!("label {i}")).collect();
        let line = list_in_line(&labels);
        assert!(line.ends_with(" … and 700 more") && line.chars().count() < 100, "{line}");
        assert_eq!(list_in_line(&["a"; 13]).matches('a').count(), 13);
        assert_eq!(list_in_line(&["a"; 14]).matches("a,").count(), 11);
        let long = "x".repeat(1000);
        assert!(list_in_line(&vec![long.clone(); 9]).chars().count() < 100);
        assert!(list(&vec![long; 5000], 5).chars().count() < 300);
        assert_eq!((count(0), count(999), count(1000)), ("0".into(), "999".into(), "1,000".into()));
        assert_eq!(count(1234567), "1,234,567");
        assert_eq!(short("a\nb", 5), "a b");
        assert_eq!(many(2, "story"), "2 stories");
        assert_eq!(many(3, "class"), "3 classes");
        assert_eq!(message("short"), "short");
        assert!(message(&"é".repeat(700_000)).chars().count() < 1000);
    }
}

//! Parser of mask expressions: `causal & window(127, 0) | !prefix(3)`.
//!
//! ```text
//! mask  = all ('|' all)*
//! all   = one ('&' one)*
//! one   = '!' one | '(' mask ')' | name [ '(' [ argument (',' argument)* ] ')' ]
//! ```
//!
//! Names are those of the catalogue. Arguments are integers, or names of arrays of the input file:
//! `lengths(3, 4)`, `lengths(lens)`, `dense(allowed)`.

use crate::files::Archive;
use crate::show::label;
use anyhow::{Context, Result, anyhow, bail};
use regard_kernels::attention::mask::*;

/// Limits on nesting and number of masks, so that no expression overflows the stack.
const DEEPEST: usize = 64;
const LONGEST: usize = 256;

/// Parses a mask; errors name the column.
pub fn parse(text: &str, arrays: Option<&Archive>) -> Result<Mask> {
    let mut parser = Parser { text: text.chars().collect(), at: 0, rules: 0, arrays };
    let parsed = parser.either(0).and_then(|mask| match parser.peek() {
        None => Ok(mask),
        Some(c) => Err(parser.fail(parser.at, format!("got `{c}`, need &, | or the end"))),
    });
    parsed.map_err(|Fault { column, cause }| {
        let place = format!("at column {}", column + 1);
        // Longer lines would wrap, so no pointer is drawn.
        match text.chars().count() {
            0..=100 => {
                let shown = label(text, usize::MAX);
                let pointer = " ".repeat(column);
                anyhow!("{cause:#}, {place}\n  {shown}\n  {pointer}^")
            }
            _ => anyhow!("{cause:#}, {place}"),
        }
    })
}

struct Fault {
    column: usize,
    cause: anyhow::Error,
}

type Parsed<T> = std::result::Result<T, Fault>;

enum Argument {
    Number(i64),
    Array(String),
}

struct Parser<'a> {
    text: Vec<char>,
    at: usize,
    rules: usize,
    arrays: Option<&'a Archive>,
}

impl Parser<'_> {
    fn fail(&self, column: usize, message: String) -> Fault {
        Fault { column, cause: anyhow!(message) }
    }

    /// Skips spaces and returns the next character.
    fn peek(&mut self) -> Option<char> {
        while self.text.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn take(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        self.at += usize::from(found);
        found
    }

    fn either(&mut self, depth: usize) -> Parsed<Mask> {
        let mut mask = self.all(depth)?;
        while self.take('|') {
            mask = mask | self.all(depth)?;
        }
        Ok(mask)
    }

    fn all(&mut self, depth: usize) -> Parsed<Mask> {
        let mut mask = self.one(depth)?;
        while self.take('&') {
            mask = mask & self.one(depth)?;
        }
        Ok(mask)
    }

    fn one(&mut self, depth: usize) -> Parsed<Mask> {
        if depth > DEEPEST || self.rules > LONGEST {
            let most = format!("more than {LONGEST} masks, or {DEEPEST} inside each other");
            return Err(self.fail(self.at, most));
        }
        if self.take('!') {
            return Ok(!self.one(depth + 1)?);
        }
        if self.take('(') {
            let open = self.at - 1;
            let mask = self.either(depth + 1)?;
            return match (self.take(')'), self.peek()) {
                (true, _) => Ok(mask),
                (false, None) => Err(self.fail(open, "`(` without its `)`".into())),
                (false, Some(c)) => Err(self.fail(self.at, format!("got `{c}`, need &, | or `)`"))),
            };
        }
        self.rules += 1;
        let found = self.peek();
        let start = self.at;
        let name = self.word(|c| c.is_alphanumeric() || c == '_');
        if name.is_empty() {
            let found = found.map_or("the end".into(), |c| format!("`{c}`"));
            return Err(self.fail(start, format!("got {found}, need the name of a mask")));
        }
        let arguments = self.arguments()?;
        rule(&name, &arguments, self.arrays).map_err(|cause| Fault { column: start, cause })
    }

    fn word(&mut self, part: impl Fn(char) -> bool) -> String {
        let rest = self.text[self.at..].iter().copied();
        let word: String = rest.take_while(|c| part(*c)).collect();
        self.at += word.chars().count();
        word
    }

    fn arguments(&mut self) -> Parsed<Vec<Argument>> {
        let mut arguments = vec![];
        if !self.take('(') || self.take(')') {
            return Ok(arguments);
        }
        loop {
            self.peek();
            let start = self.at;
            let word = self.word(|c| c.is_alphanumeric() || "_.-/".contains(c));
            if word.is_empty() {
                return Err(self.fail(start, "an argument is missing".into()));
            }
            let number = word.starts_with(|c: char| c == '-' || c.is_ascii_digit());
            arguments.push(match (number, word.parse()) {
                (true, Ok(number)) => Argument::Number(number),
                (true, Err(_)) => {
                    return Err(self.fail(start, format!("`{word}` is not an integer")));
                }
                (false, _) => Argument::Array(word),
            });
            if self.take(')') {
                return Ok(arguments);
            }
            if !self.take(',') {
                return Err(self.fail(self.at, "need `,` or `)` after an argument".into()));
            }
        }
    }
}

/// Constructs a mask of the catalogue from its arguments.
fn rule(name: &str, arguments: &[Argument], arrays: Option<&Archive>) -> Result<Mask> {
    let given = Given { name, arguments, arrays };
    Ok(match name {
        "full" => given.exactly::<0>("full").map(|_| full())?,
        "causal" => given.exactly::<0>("causal").map(|_| causal())?,
        "window" => given.exactly("window(left, right)").map(|[l, r]| window(l, r))?,
        "expanded" => given
            .exactly("expanded(left, right, stride)")
            .map(|[left, right, stride]| expanded(left, right, stride))?,
        "prefix" => given.exactly("prefix(n)").map(|[n]| prefix(n))?,
        "lengths" => match given.list(arguments, "lengths(3, 4, …) or an array [B] or [B,T]")? {
            (lens, 2) => lengths_per_query(&lens),
            (lens, _) => lengths(&lens),
        },
        "global_tokens" => {
            let (list, _) = given.list(arguments, "global_tokens(0, 5, …) or an array")?;
            let index = |x: &i64| {
                usize::try_from(*x)
                    .map_err(|_| anyhow!("global_tokens: got {x}, need indices of 0 or more"))
            };
            global_tokens(&list.iter().map(index).collect::<Result<Vec<_>>>()?)
        }
        "segments" => segments(&given.list(arguments, "segments(0, 0, 1, …) or an array")?.0),
        "permutation" => {
            let (strict, order) = match arguments.split_last() {
                Some((Argument::Array(last), rest)) if last == "strict" => (true, rest),
                _ => (false, arguments),
            };
            let usage = "permutation(2, 0, 1, …) or an array, with an optional `strict` at the end";
            permutation(&given.list(order, usage)?.0, strict)
        }
        "around" => match arguments {
            [Argument::Array(centres), Argument::Number(width)] => {
                let width = usize::try_from(*width)
                    .map_err(|_| anyhow!("around: got the width {width}, need 0 or more"))?;
                around(&given.file()?.floats(centres)?.data, width)
            }
            _ => bail!("need around(centres, width) with the name of an array [B,T]"),
        },
        "edges" => match arguments {
            [Argument::Array(indptr), Argument::Array(indices)] => {
                let indptr = given.file()?.integers(indptr)?;
                edges(&indptr.data, &given.file()?.integers(indices)?.data)
            }
            _ => bail!("need edges(indptr, indices) with the names of two arrays"),
        },
        "dense" => match arguments {
            [Argument::Array(allowed)] => {
                let allowed = given.file()?.integers(allowed)?;
                let cells: Vec<bool> = allowed.data.iter().map(|x| *x != 0).collect();
                if allowed.shape.len() == 4 { dense_per_head(cells) } else { dense(cells) }
            }
            _ => bail!("need dense(allowed) with the name of an array [T,S] or [B,H,T,S]"),
        },
        _ => bail!("unknown mask: {}", super::unknown("mask", name)),
    })
}

struct Given<'a> {
    name: &'a str,
    arguments: &'a [Argument],
    arrays: Option<&'a Archive>,
}

impl Given<'_> {
    fn file(&self) -> Result<&Archive> {
        self.arrays.with_context(|| super::needs_file(self.name))
    }

    /// Returns exactly `N` integers, 0 or more.
    fn exactly<const N: usize>(&self, usage: &str) -> Result<[usize; N]> {
        if self.arguments.len() != N {
            bail!("got {} arguments, need {usage}", self.arguments.len());
        }
        let mut numbers = [0; N];
        for (to, argument) in numbers.iter_mut().zip(self.arguments) {
            *to = match argument {
                Argument::Number(n) => u32::try_from(*n)
                    .with_context(|| format!("got {n}, need {usage} from 0 to {}", u32::MAX))?
                    as usize,
                Argument::Array(name) => bail!("got `{name}`, need {usage} with integers"),
            };
        }
        Ok(numbers)
    }

    /// Returns integers or one array of them, and its number of axes.
    fn list(&self, arguments: &[Argument], usage: &str) -> Result<(Vec<i64>, usize)> {
        if let [Argument::Array(name)] = arguments {
            let array = self.file()?.integers(name)?;
            return Ok((array.data, array.shape.len()));
        }
        let number = |argument: &Argument| match argument {
            Argument::Number(n) => Ok(*n),
            Argument::Array(name) => bail!("got `{name}` among integers, need {usage}"),
        };
        if arguments.is_empty() {
            bail!("got no arguments, need {usage}");
        }
        Ok((arguments.iter().map(number).collect::<Result<_>>()?, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_mean_what_they_say() {
        let rows = [
            ("full", full()),
            (" causal ( ) ", causal()),
            ("causal & window(127, 0) | !prefix(3)", (causal() & window(127, 0)) | !prefix(3)),
            ("causal & (window(1,2) | !!full)", causal() & (window(1, 2) | !!full())),
            ("!causal & full", !causal() & full()),
            ("full | causal & full", full() | (causal() & full())),
            ("expanded(1, 2, 3)", expanded(1, 2, 3)),
            ("global_tokens(5, 0)", global_tokens(&[0, 5])),
            ("lengths(3, 4)", lengths(&[3, 4])),
            ("segments(0, 0, 1)", segments(&[0, 0, 1])),
            ("permutation(2, 0, 1)", permutation(&[2, 0, 1], false)),
            ("permutation(2, 0, 1, strict)", permutation(&[2, 0, 1], true)),
        ];
        for (text, want) in rows {
            let got = parse(text, None).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(format!("{got:?}"), format!("{want:?}"), "{text}");
        }
    }

    #[test]
    fn errors_point_at_the_column() {
        let rows = [
            ("", 1, "got the end, need the name of a mask"),
            ("casual", 1, "need one of: full, causal"),
            ("causal & casual", 10, "unknown mask"),
            ("causal &", 9, "the end"),
            ("causal window(1, 2)", 8, "need &, | or the end"),
            ("(causal", 1, "without its `)`"),
            ("(causal]", 8, "`]`"),
            ("window(1)", 1, "need window(left, right)"),
            ("window(-1, 0)", 1, "got -1"),
            ("window(99999999999, 0)", 1, "need window(left, right) from 0"),
            ("window(99999999999999999999, 0)", 8, "not an integer"),
            ("window(1x, 0)", 8, "not an integer"),
            ("window(1,", 10, "an argument is missing"),
            ("window(1 2)", 10, "need `,` or `)`"),
            ("global_tokens(-3)", 1, "got -3, need indices of 0 or more"),
            ("dense(x)", 1, "only in `regard attend FILE`"),
            ("lengths(1, x)", 1, "among integers"),
            ("lengths", 1, "no arguments"),
            ("&", 1, "got `&`, need the name of a mask"),
        ];
        for (text, column, message) in rows {
            let error = format!("{:#}", parse(text, None).expect_err(text));
            assert!(error.contains(&format!("at column {column}\n")), "{text}: {error}");
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn no_expression_exhausts_the_stack() {
        for text in ["!".repeat(100_000), "(".repeat(100_000), "full&".repeat(100_000)] {
            assert!(parse(&text, None).is_err());
        }
    }
}

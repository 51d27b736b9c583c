//! Regular expressions: checked, and written as grammars.

use super::UNWRITABLE;
use crate::{Error, Result};
use regex_syntax::hir::{Capture, Class, ClassUnicode, Hir, HirKind, Look, Repetition};
use regex_syntax::{ParserBuilder, ast};

/// Longest pattern, in bytes. It is parsed before its size is known: two bytes may be a class of
/// hundreds of ranges.
const LONGEST: usize = 8 << 10;
/// Most characters and classes that a pattern has once its repetitions are written out.
const LARGEST: u64 = 100_000;
/// Most ranges that all classes have together; what is repeated counts once. The grammar spells
/// each of them, and to read one takes about 300 bytes.
const RANGES: usize = 200_000;

/// Checks a pattern of a JSON schema.
///
/// # Errors
/// As [`grammar`].
pub fn check(name: &str, pattern: &str) -> Result<()> {
    parse(name, pattern).map(|_| ())
}

/// Writes a pattern as a grammar of llguidance. Only characters of `alphabet` occur in it. If
/// `first`, a space before the text is not part of it.
///
/// # Errors
/// If the pattern is invalid, with the place; if it is too large, or has what is not supported.
pub fn grammar(pattern: &str, alphabet: Option<&ClassUnicode>, first: bool) -> Result<String> {
    let hir = parse("regex", pattern)?;
    // An alphabet with gaps makes more ranges of a class.
    check_ranges("regex", &hir, alphabet)?;
    let hir = within(hir, alphabet);
    if matches_nothing(&hir) {
        return Err(Error::invalid(format!("regex: {UNWRITABLE}")));
    }
    let text = escaped(&hir.to_string());
    let start = match first {
        true => "\" \" TEXT | ( TEXT & /(?s:[^ ].*)?/ )",
        false => "TEXT",
    };
    Ok(format!("start: START\nSTART: {start}\nTEXT: /(?:{text})/\n"))
}

fn parse(name: &str, pattern: &str) -> Result<Hir> {
    let wrong = |problem: String| Error::invalid(format!("{name}: {problem}"));
    if pattern.len() > LONGEST {
        let got = pattern.len();
        return Err(wrong(format!("the pattern has {got} bytes, need at most {LONGEST}")));
    }
    let hir = ParserBuilder::new().utf8(true).build().parse(pattern).map_err(|e| {
        let (at, problem): (&ast::Span, String) = match &e {
            regex_syntax::Error::Parse(e) => (e.span(), e.kind().to_string()),
            regex_syntax::Error::Translate(e) => (e.span(), e.kind().to_string()),
            other => return wrong(other.to_string()),
        };
        let place = pattern.get(..at.start.offset).map_or(0, |before| before.chars().count());
        wrong(format!("{problem}, at character {} of {pattern:?}", place + 1))
    })?;
    if let Some(look) = hir.properties().look_set().iter().find(|look| !anchor(*look)) {
        return Err(wrong(format!("{} is not supported: got {pattern:?}", look_name(look))));
    }
    let size = size(&hir);
    if size > LARGEST {
        return Err(wrong(format!(
            "the pattern is too large: with its repetitions written out it has {size} characters, \
             need at most {LARGEST}"
        )));
    }
    check_ranges(name, &hir, None)?;
    Ok(hir)
}

/// Checks the number of ranges of all classes.
fn check_ranges(name: &str, hir: &Hir, alphabet: Option<&ClassUnicode>) -> Result<()> {
    match ranges(hir, alphabet) {
        count if count > RANGES => Err(Error::invalid(format!(
            "{name}: the pattern is too large: its classes have {count} ranges of characters, need \
             at most {RANGES}; \\w has about 800, [0-9A-Za-z_] has 4"
        ))),
        _ => Ok(()),
    }
}

fn anchor(look: Look) -> bool {
    matches!(look, Look::Start | Look::End)
}

fn look_name(look: Look) -> &'static str {
    match look {
        Look::StartLF | Look::StartCRLF | Look::EndLF | Look::EndCRLF => "a line's ^ or $",
        _ => "a word boundary",
    }
}

/// Number of characters and classes with the repetitions written out.
fn size(hir: &Hir) -> u64 {
    let all = |parts: &[Hir]| parts.iter().map(size).fold(0, u64::saturating_add);
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 0,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(_) => 1,
        HirKind::Repetition(Repetition { min, max, sub, .. }) => {
            size(sub).saturating_mul(u64::from(max.unwrap_or(*min).max(1)))
        }
        HirKind::Capture(capture) => size(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => all(parts),
    }
}

/// Number of ranges of the classes, with the characters of an alphabet only.
fn ranges(hir: &Hir, alphabet: Option<&ClassUnicode>) -> usize {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) => 0,
        HirKind::Class(Class::Unicode(class)) => match alphabet {
            Some(_) => narrowed(class.clone(), alphabet).ranges().len(),
            None => class.ranges().len(),
        },
        HirKind::Class(Class::Bytes(class)) => class.ranges().len(),
        HirKind::Repetition(repetition) => ranges(&repetition.sub, alphabet),
        HirKind::Capture(capture) => ranges(&capture.sub, alphabet),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(|part| ranges(part, alphabet)).sum()
        }
    }
}

/// Leaves out the characters that an alphabet lacks.
fn narrowed(mut class: ClassUnicode, alphabet: Option<&ClassUnicode>) -> ClassUnicode {
    if let Some(alphabet) = alphabet {
        class.intersect(alphabet);
    }
    class
}

/// Leaves out what has other characters than those of an alphabet.
fn within(hir: Hir, alphabet: Option<&ClassUnicode>) -> Hir {
    let each = |parts: Vec<Hir>| parts.into_iter().map(|part| within(part, alphabet)).collect();
    let class = |class: ClassUnicode| Hir::class(Class::Unicode(narrowed(class, alphabet)));
    let known = |c: char| {
        alphabet.is_none_or(|all| all.iter().any(|range| range.start() <= c && c <= range.end()))
    };
    match hir.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Look(look) => Hir::look(look),
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) if text.chars().all(known) => Hir::literal(literal.0),
            _ => Hir::fail(),
        },
        HirKind::Class(Class::Unicode(of)) => class(of),
        HirKind::Class(Class::Bytes(of)) => of.to_unicode_class().map_or_else(Hir::fail, class),
        HirKind::Repetition(repetition) => {
            // In a group: `(?:a+)?` would be printed as `a+?`.
            let sub = Box::new(within(*repetition.sub, alphabet));
            let group = Box::new(Hir::capture(Capture { index: 1, name: None, sub }));
            Hir::repetition(Repetition { sub: group, ..repetition })
        }
        HirKind::Capture(capture) => within(*capture.sub, alphabet),
        HirKind::Concat(parts) => Hir::concat(each(parts)),
        HirKind::Alternation(parts) => Hir::alternation(each(parts)),
    }
}

/// Whether no text matches, but for anchors in its middle.
fn matches_nothing(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) => false,
        HirKind::Class(class) => class.is_empty(),
        HirKind::Repetition(repetition) => repetition.min > 0 && matches_nothing(&repetition.sub),
        HirKind::Capture(capture) => matches_nothing(&capture.sub),
        HirKind::Concat(parts) => parts.iter().any(matches_nothing),
        HirKind::Alternation(parts) => parts.iter().all(matches_nothing),
    }
}

/// Escapes what cannot stand between slashes on a line.
fn escaped(pattern: &str) -> String {
    let mut text = String::with_capacity(pattern.len());
    for c in pattern.chars() {
        match c {
            '/' => text.push_str("\\/"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            c => text.push(c),
        }
    }
    text
}

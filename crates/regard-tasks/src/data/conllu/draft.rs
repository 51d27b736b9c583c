//! A sentence of CoNLL-U, line by line.

use super::{Contraction, Sentence, Word};

/// Largest number of words of a sentence, which is held in memory as a whole.
const MOST_WORDS: usize = 1 << 16;

/// A partially read sentence. Errors are messages; the reader adds the line.
#[derive(Default)]
pub(super) struct Draft {
    id: Option<String>,
    text: Option<String>,
    words: Vec<Word>,
    contractions: Vec<Contraction>,
    unwritten: usize,
    /// Whether no space follows, for each word and for each contraction.
    joined: Vec<bool>,
    joined_contractions: Vec<bool>,
}

impl Draft {
    /// Whether no word was read yet.
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Reads a comment without its `#`.
    pub(super) fn comment(&mut self, comment: &str) -> Result<(), String> {
        if !self.words.is_empty() {
            return Err("a comment within a sentence; comments come before the words".into());
        }
        if let Some((key, value)) = comment.split_once('=') {
            match key.trim() {
                "sent_id" => self.id = Some(value.trim().to_owned()),
                "text" => self.text = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads a line of columns.
    pub(super) fn line(&mut self, line: &str) -> Result<(), String> {
        let columns: Vec<&str> = line.split('\t').collect();
        let &[id, form, _, universal, specific, _, head, relation, _, misc] = columns.as_slice()
        else {
            return Err(format!("has {} columns with tabs between them, not 10", columns.len()));
        };
        if form.is_empty() {
            return Err("the word is empty".into());
        }
        let joined = misc.split('|').any(|feature| feature == "SpaceAfter=No");
        if let Some((first, last)) = id.split_once('-') {
            return self.contraction(id, number(first)?, number(last)?, form, joined);
        }
        if let Some((after, count)) = id.split_once('.') {
            if number(after)? != self.words.len() || number(count)? == 0 {
                return Err(format!("the node {id} comes after word {}", self.words.len()));
            }
            self.unwritten += 1;
            return Ok(());
        }
        if number(id)? != self.words.len() + 1 {
            return Err(format!("word {id} comes after word {}", self.words.len()));
        }
        if self.words.len() == MOST_WORDS {
            return Err(format!("a sentence of more than {MOST_WORDS} words"));
        }
        let some = |text: &str| (text != "_").then(|| text.to_owned());
        self.words.push(Word {
            form: form.to_owned(),
            universal: universal.to_owned(),
            specific: some(specific),
            head: if head == "_" { None } else { Some(number(head)?) },
            relation: some(relation),
            place: None,
        });
        self.joined.push(joined);
        Ok(())
    }

    fn contraction(
        &mut self,
        id: &str,
        first: usize,
        last: usize,
        form: &str,
        joined: bool,
    ) -> Result<(), String> {
        let free = self.contractions.last().map_or(0, |before| before.words.end);
        if first != self.words.len() + 1 || first <= free || last < first {
            return Err(format!("the range {id} comes after word {}", self.words.len()));
        }
        let words = first - 1..last;
        self.contractions.push(Contraction { form: form.to_owned(), words, place: None });
        self.joined_contractions.push(joined);
        Ok(())
    }

    /// Checks the whole sentence and locates its words in its text.
    pub(super) fn finish(mut self) -> Result<Sentence, String> {
        let words = self.words.len();
        if let Some(range) = self.contractions.iter().find(|range| range.words.end > words) {
            return Err(format!("{:?} covers words that do not exist", range.form));
        }
        for (i, word) in self.words.iter().enumerate() {
            if let Some(head) = word.head.filter(|&head| head > words || head == i + 1) {
                return Err(format!("word {} of {words} has word {head} as its head", i + 1));
            }
        }
        self.find_places();
        let Draft { id, text, words, contractions, unwritten, .. } = self;
        Ok(Sentence { id, text, words, contractions, unwritten })
    }

    /// Locates the words in the text, in order. From the first word that does not match, no word
    /// has a position: a guess would put the labels on wrong words.
    fn find_places(&mut self) {
        let Some(text) = self.text.take() else { return };
        let (mut at, mut i) = (0, 0);
        let mut ranges = self.contractions.iter_mut().zip(&self.joined_contractions).peekable();
        while i < self.words.len() {
            let range = ranges.next_if(|(range, _)| range.words.start == i);
            let (form, joined) = match &range {
                Some((range, joined)) => (range.form.as_str(), **joined),
                None => (self.words[i].form.as_str(), self.joined[i]),
            };
            if !text[at..].starts_with(form) {
                break;
            }
            let place = at..at + form.len();
            at = place.end;
            match range {
                Some((range, _)) => {
                    let words = &mut self.words[range.words.clone()];
                    let together: String = words.iter().map(|word| word.form.as_str()).collect();
                    if together == text[place.clone()] {
                        let mut start = place.start;
                        for word in words {
                            word.place = Some(start..start + word.form.len());
                            start += word.form.len();
                        }
                    }
                    i = range.words.end;
                    range.place = Some(place);
                }
                None => {
                    self.words[i].place = Some(place);
                    i += 1;
                }
            }
            if !joined {
                at = text.len() - text[at..].trim_start().len();
            }
        }
        self.text = Some(text);
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number"))
}

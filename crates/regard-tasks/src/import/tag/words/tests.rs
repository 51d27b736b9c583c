use super::*;

/// Lines and words of the sentences of columns, or messages.
fn read(text: &str) -> Vec<(u64, Result<Vec<String>, String>)> {
    let (file, column) = (Path::new("a.conll"), WordColumn::default());
    let all = WordSentences::new(text.as_bytes(), file, WordFormat::Columns, column).unwrap();
    let forms = |sentence: Sentence| sentence.words.into_iter().map(|word| word.form).collect();
    all.map(|read| read.unwrap()).map(|read| (read.line, read.sentence.map(forms))).collect()
}

fn words(line: u64, forms: &str) -> (u64, Result<Vec<String>, String>) {
    (line, Ok(forms.split(' ').map(String::from).collect()))
}

#[test]
fn comments_are_no_words() {
    // A block of comments alone, as a licence, has no columns.
    let text = "# by A and B\n# version 1\n\nDogs NOUN\nbark VERB\n";
    assert_eq!(read(text), [words(4, "Dogs bark")]);
    let text =
        "# number one\n# id two\nDogs NOUN\n\n# three and four\nCats NOUN\n\n# five six seven\n";
    assert_eq!(read(text), [words(3, "Dogs"), words(6, "Cats")]);
    // Comments with as many columns as the words.
    let text = "# id 1 domain=en\nDogs _ _ O\n\n# id 2 domain=en\nCats _ _ O\n";
    assert_eq!(read(text), [words(2, "Dogs"), words(5, "Cats")]);
    let text = "# sent_id = 1\nDogs _ _ O\n\n# sent_id = 2\nCats _ _ O\n";
    assert_eq!(read(text), [words(2, "Dogs"), words(5, "Cats")]);
    assert!(read("# only\n\n# comments\n").is_empty());
}

#[test]
fn words_of_a_treebank_need_no_heads() {
    for head in ["1", "9", "root", "", "-1"] {
        let text = format!("1\tDogs\t_\tNOUN\t_\t_\t{head}\t_\t_\t_\n");
        let (file, column) = (Path::new("a.conllu"), WordColumn::default());
        let all = WordSentences::new(text.as_bytes(), file, WordFormat::ConllU, column).unwrap();
        let found: Vec<WordSentence> = all.collect::<Result<_>>().unwrap();
        assert_eq!(found[0].sentence.as_ref().map(|read| read.words.len()), Ok(1), "{head:?}");
    }
}

#[test]
fn a_sentence_may_begin_with_the_word_hash() {
    assert_eq!(read("# SYM\n1 NUM\n\n# SYM\n2 NUM\n"), [words(1, "# 1"), words(4, "# 2")]);
    assert_eq!(read("# by A and B\n# SYM\n1 NUM\n"), [words(2, "# 1")]);
    assert_eq!(read("#\tSYM\n1\tNUM\n"), [words(1, "# 1")]);
}

#[test]
fn a_problem_has_its_line_and_the_next_sentence_is_read() {
    let wrong = "has 1 column, the first line has 2".to_string();
    let found = read("They PRON\nsleep\n\nDogs NOUN\n");
    assert_eq!(found, [(2, Err(wrong)), words(4, "Dogs")]);
    let bytes: &[u8] = b"Dogs NOUN\n\nCats\xff NOUN\nsleep VERB\n\nThey PRON\n";
    let (file, column) = (Path::new("a.conll"), WordColumn::default());
    let all = WordSentences::new(bytes, file, WordFormat::Columns, column).unwrap();
    let found: Vec<WordSentence> = all.collect::<Result<_>>().unwrap();
    assert_eq!(found.iter().map(|read| read.line).collect::<Vec<_>>(), [1, 3, 6]);
    let message = found[1].sentence.clone().unwrap_err();
    assert!(message.starts_with("not UTF-8 at byte 5"), "{message}");
    // A column that no sentence has is an error of the file.
    let column = WordColumn { asked: Some("3"), ..WordColumn::default() };
    let mut all = WordSentences::new(&b"a b\n"[..], file, WordFormat::Columns, column).unwrap();
    let error = all.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("--text: there is no column \"3\""), "{error}");
}

use super::*;

fn format(text: &str) -> Option<WordFormat> {
    let (name, labels) = (Path::new("standard input"), [".".to_string(), "PER".to_string()]);
    let mut reader = text.as_bytes();
    let (found, taken) = WordFormat::look(name, &mut reader, &labels).unwrap();
    assert_eq!([taken.as_slice(), reader].concat(), text.as_bytes());
    // The same in pieces of any size.
    for size in [1, 2, 7, 64] {
        let mut pieces = io::BufReader::with_capacity(size, text.as_bytes());
        let (again, bytes) = WordFormat::look(name, &mut pieces, &labels).unwrap();
        assert_eq!((again, bytes), (found, taken.clone()), "{size}: {text}");
    }
    // A part that decides has decided as the whole does.
    for end in 0..text.len() {
        let part = &text.as_bytes()[..end];
        if WordFormat::is_decided(name, part, &labels) {
            assert_eq!(WordFormat::recognise(name, part, &labels), found, "{end}: {text}");
        }
    }
    found
}

#[test]
fn texts_are_no_words() {
    for text in [
        "",
        "\n\n",
        "Yes\nNo\nMaybe\n",
        "Good morning\nHello there\nThank you\n",
        // Tokenised sentences.
        "I agree .\nYou win .\nWe lost .\n",
        "I agree\t.\nYou win\t.\nWe lost\t.\n",
        "Go !\nRun !\nStop !\n",
        "Go .\nRun .\nStop .\n",
        "buy AAPL now\nsell TSLA now\nhold MSFT now\n",
        "buy AAPL\nsell TSLA\nhold MSFT\n",
        "iPhone X review\nModel X review\nMalcolm X review\n",
        "take I-95 north\ntake I-80 west\ntake I-5 south\n",
        "GO AWAY\nHELP ME\nOH NO\n",
        "* *\n* *\n* *\n",
        "Dogs NOUN\nbark VERB\n",
    ] {
        assert_eq!(format(text), None, "{text}");
    }
}

#[test]
fn words_have_labels() {
    for text in [
        "They PRP\nsleep VBP\n. .\n\nDogs NNS\nbark VBP\n",
        "They PRP\nsleep VBP\n? .",
        "Dogs NOUN\nbark VERB\n\nCats NOUN\nsleep VERB\n",
        "Er PPER\nschlief VVFIN\n. $.\n",
        "buy\tVVIMP\nsell\tVVIMP\nhold\tVVIMP\n",
        "( -LRB-\nso ABC\n) -RRB-\n",
        "He O\nsleeps O\nthere O\n",
        "Ann PER\nsees O\nBo PER\n",
        "They PRP B-NP\nca MD B-VP\nn't RB I-VP\n",
        "-DOCSTART- -X- O O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n. . O O\n",
        "word tag\nDogs X1\nbark X2\n. .\n",
        "# id 1\nDogs _ _ B-X\nbark _ _ O\nnow _ _ O\n",
    ] {
        assert_eq!(format(text), Some(WordFormat::Columns), "{text}");
    }
    let line = "# text = Go\n1\tGo\t_\t_\t_\t_\t_\t_\t_\t_\n";
    assert_eq!(format(line), Some(WordFormat::ConllU));
}

#[test]
fn a_name_is_trusted() {
    let of = |name: &str| WordFormat::recognise(Path::new(name), b"Go .\nRun .\n", &[]);
    for end in ENDS {
        assert!(of(&format!("a.{end}")).is_some(), "{end}");
    }
    assert_eq!((of("a.txt"), of("a.conll.gz")), (None, Some(WordFormat::Columns)));
}

#[test]
fn no_more_is_read_than_tells_the_format() {
    let taken = |text: &str| {
        let (name, mut reader) = (Path::new(""), text.as_bytes());
        WordFormat::look(name, &mut reader, &[]).unwrap().1.len()
    };
    assert_eq!(taken("They are watching.\nSo are we.\n"), "They are watching.\n".len());
    let sentence = "He PRON\nis AUX\nold ADJ\n\n";
    assert_eq!(taken(&sentence.repeat(9)), sentence.len());
    assert_eq!(taken(&"x".repeat(1 << 20)), MOST);
}

//! The readers on the real data sets, where they are on this machine, with exact counts.

use regard_tasks::data::babi;
use regard_tasks::data::conllu::Sentences;
use regard_tasks::data::documents::DocumentBoundary;
use regard_tasks::data::labelled::Sentiment;
use regard_tasks::data::squad::Article;
use regard_tasks::data::{
    Characters, Documents, LabelledTexts, Part, Split, Squad, Vectors, sets, similarity,
};
use regard_tasks::metrics::Correlation;
use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

const PARTS: [Part; 3] = [Part::Train, Part::Valid, Part::Test];

/// Folder of a set; prints a line and returns none if it is missing.
fn folder(name: &str) -> Option<PathBuf> {
    let folder = sets::find(name).ok();
    if folder.is_none() {
        regard_fuzz::skip(&format!("the data set {name} is not on this machine"));
    }
    folder
}

#[test]
fn ewt_has_its_words_and_tags() {
    let Some(folder) = folder("ud-english-ewt") else { return };
    let wanted = [
        (12_544, 204_577, 2_614, 37, 17, 49),
        (2_001, 25_147, 359, 4, 17, 49),
        (2_077, 25_094, 354, 2, 17, 48),
    ];
    for (part, wanted) in PARTS.into_iter().zip(wanted) {
        let mut found = (0, 0, 0, 0, 0, 0);
        let (mut universal, mut specific) = (BTreeSet::new(), BTreeSet::new());
        for sentence in Sentences::open_part(&folder, part).unwrap() {
            let sentence = sentence.unwrap();
            let text = sentence.text.as_deref().unwrap();
            for contraction in &sentence.contractions {
                assert_eq!(&text[contraction.place.clone().unwrap()], contraction.form);
            }
            for (i, word) in sentence.words.iter().enumerate() {
                let place = word.place.clone();
                let together = sentence.contractions.iter().any(|c| c.words.contains(&i));
                assert!(place.is_some() || together, "{text}: {}", word.form);
                assert!(place.is_none_or(|place| text[place] == word.form));
                universal.insert(word.universal.clone());
                specific.extend(word.specific.clone());
            }
            assert_eq!(sentence.words.iter().filter(|word| word.head == Some(0)).count(), 1);
            found.0 += 1;
            found.1 += sentence.words.len();
            found.2 += sentence.contractions.len();
            found.3 += sentence.unwritten;
        }
        (found.4, found.5) = (universal.len(), specific.len());
        assert_eq!(found, wanted, "{part:?}");
    }
}

#[test]
fn sentiment_has_its_labels() {
    let Some(folder) = folder("sst2") else { return };
    for (form, wanted) in [
        (Sentiment::Phrases, [[26_786, 33_828], [2_994, 3_741], [428, 444]]),
        (Sentiment::Sentences, [[3_310, 3_610], [428, 444], [912, 909]]),
    ] {
        for (part, wanted) in PARTS.into_iter().zip(wanted) {
            let texts = LabelledTexts::sentiment(&folder, form, part).unwrap();
            assert_eq!(texts.counts(), wanted, "{form:?} {part:?}");
        }
    }
}

#[test]
fn squad_has_its_answers_and_holds_out_articles() {
    let Some(folder) = folder("squad") else { return };
    let squad = Squad::read(folder.join("dev-v1.1.json")).unwrap();
    assert_eq!((squad.version.as_str(), squad.articles.len()), ("1.1", 48));
    assert_eq!(squad.articles.iter().map(|a| a.paragraphs.len()).sum::<usize>(), 2_067);
    let questions: Vec<_> = squad.articles.iter().flat_map(|a| a.questions()).collect();
    let answers: usize = questions.iter().map(|(_, question)| question.answers.len()).sum();
    assert_eq!((questions.len(), answers, squad.misplaced()), (10_570, 34_726, 0));
    let parts = PARTS.map(|part| squad.part(part));
    let asked =
        |articles: &[Article]| articles.iter().map(|a| a.questions().count()).sum::<usize>();
    assert_eq!(parts.map(<[Article]>::len), [34, 4, 10]);
    assert_eq!(parts.map(asked), [7_628, 954, 1_988]);
    let titles: HashSet<&str> = squad.articles.iter().map(|article| &*article.title).collect();
    assert_eq!(titles.len(), 48, "no article is in two parts under one name");
    let first = |part: &[Article]| part[0].title.clone();
    assert_eq!(first(parts[1]), "Doctor_Who");
    assert_eq!(first(parts[2]), "Intergovernmental_Panel_on_Climate_Change");
}

#[test]
fn babi_has_its_questions() {
    let Some(folder) = folder("babi-en-10k") else { return };
    let tasks = babi::present(&folder, Part::Train);
    assert_eq!((tasks.len(), tasks.contains(&3)), (19, false));
    assert_eq!(babi::present(&folder, Part::Test).len(), 20);
    for (part, questions, lists, paths) in
        [(Part::Train, 10_000, 637, 10_000), (Part::Test, 1_000, 67, 1_000)]
    {
        for task in babi::present(&folder, part) {
            let stories = babi::read(babi::file(&folder, task, part).unwrap()).unwrap();
            let asked: Vec<_> = stories.iter().flat_map(|story| story.asked()).collect();
            assert_eq!(asked.len(), questions, "{task}");
            assert!(asked.iter().all(|(facts, q)| !facts.is_empty() && !q.support.is_empty()));
            let long = asked.iter().filter(|(_, question)| question.answers.len() > 1).count();
            let wanted = if task == 8 {
                lists
            } else if task == 19 {
                paths
            } else {
                0
            };
            assert_eq!(long, wanted, "{task}");
        }
    }
}

#[test]
fn wikitext_has_its_articles() {
    let Some(folder) = folder("wikitext-2") else { return };
    for (file, wanted) in [("valid.txt", 60), ("test.txt", 60), ("raw/wiki.test.raw", 62)] {
        let documents = Documents::open(&[folder.join(file)], DocumentBoundary::WikiText).unwrap();
        let documents: Vec<_> = documents.map(Result::unwrap).collect();
        assert_eq!(documents.len(), wanted, "{file}");
        assert!(documents.iter().all(|d| d.title.is_some() && !d.lines.is_empty()), "{file}");
    }
    let files = [folder.join("valid.txt"), folder.join("test.txt")];
    let split = Split { valid: 100, test: 100 };
    let count = |part| {
        Documents::open(&files, DocumentBoundary::WikiText).unwrap().of_part(split, part).count()
    };
    let [train, valid, test] = PARTS.map(count);
    assert_eq!(train + valid + test, 120);
    assert!(valid > 3 && test > 3, "{valid} {test}");
}

#[test]
fn shakespeare_is_cut_where_nanogpt_cuts_it() {
    let Some(folder) = folder("tinyshakespeare") else { return };
    let parts = Characters::read(folder.join("input.txt")).unwrap();
    assert_eq!((parts.train.len(), parts.valid.len()), (1_003_854, 111_540));
    assert_eq!(parts.alphabet().len(), 65);
}

/// The vectors, the pairs and the correlation together, beside scipy on the same files.
#[test]
fn glove_is_as_like_people_as_scipy_says() {
    let (Some(glove), Some(pairs)) = (folder("glove-subset"), folder("word-similarity")) else {
        return;
    };
    let file = glove.join("glove.6B.100d.top20k.txt");
    let vectors = Vectors::read(&file, None).unwrap();
    assert_eq!((vectors.words().len(), vectors.width()), (20_000, 100));
    let keep = HashSet::from(["tiger".to_owned(), "cat".to_owned()]);
    let few = Vectors::read(&file, Some(&keep)).unwrap();
    assert_eq!(few.words().len(), 2);
    assert_eq!(few.get("tiger"), vectors.get("tiger"));
    for (name, all, covered, wanted) in [
        ("EN-WS-353-ALL", 353, 324, 0.5655914501032031),
        ("EN-SIMLEX-999", 999, 937, 0.30403147182958473),
        ("EN-MEN-TR-3k", 3_000, 2_333, 0.7168237417688528),
    ] {
        let pairs = similarity::read(pairs.join(format!("{name}.txt"))).unwrap();
        assert_eq!(pairs.len(), all);
        let mut correlation = Correlation::new();
        for pair in &pairs {
            let [first, second] = pair.words.each_ref().map(|word| word.to_lowercase());
            if let Some(cosine) = vectors.cosine(&first, &second) {
                correlation.add(cosine, pair.score);
            }
        }
        assert_eq!(correlation.count(), covered, "{name}");
        let found = correlation.spearman().unwrap();
        // scipy had the cosines in single precision, which may swap two ranks.
        assert!((found - wanted).abs() < 1e-4, "{name}: {found} {wanted}");
    }
}

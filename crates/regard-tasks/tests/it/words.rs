//! Word-level models: tokenisation, character ids, and small training tasks.

use crate::lessons::train;
use crate::small::Folder;
use regard_models::BuiltIn;
use regard_models::checkpoint::Precision;
use regard_models::text::Head;
use regard_tasks::data::conllu::Sentences;
use regard_tasks::data::{Part, sets};
use regard_tasks::reader::TextEncoder;
use regard_tasks::recipe;
use regard_tasks::tag::Grouping;
use regard_tasks::text::{Tokenizer, Train, VocabularyKind};
use std::collections::HashSet;
use std::fs;
use std::path::Path;

fn treebank(lines: &[&str]) -> Tokenizer {
    Train { lowercase: true, ..Train::new(VocabularyKind::Treebank, 400) }.run(lines).unwrap()
}

#[test]
fn every_token_is_spelled_as_it_is_written() {
    let tokenizer = treebank(&["She sees the sea.", "The sea sees her."]);
    let alphabet = tokenizer.alphabet().unwrap();
    let text = "The SEAS, see";
    let encoding = tokenizer.encode(text).unwrap();
    assert_eq!(encoding.tokens, ["the", "<unk>", "<unk>", "<unk>"]);
    let spelled: Vec<Vec<u32>> =
        ["The", "SEAS", ",", "see"].iter().map(|word| alphabet.spell(word)).collect();
    assert_eq!(encoding.letters, spelled);
    // Pre-split words stay as they are, whatever they look like.
    let words = tokenizer.encode_words(&["The", "SEAS", ",", "see"]).unwrap();
    assert_eq!((&words.ids, &words.letters), (&encoding.ids, &encoding.letters));
    let odd = tokenizer.encode_words(&["don't", "a b", ""]).unwrap();
    assert_eq!((odd.len(), odd.offsets), (3, vec![(0, 5), (6, 9), (10, 10)]));
    // A special token's name is a word like others.
    assert_eq!(tokenizer.encode_words(&["<pad>"]).unwrap().ids, [3]);
    // A truncated text keeps its character ids.
    let part = tokenizer.encode_within(text, None, 2).unwrap();
    assert_eq!(part.letters, spelled[..2]);
    let pieces = Train::new(VocabularyKind::Bpe, 60).run(["some text"]).unwrap();
    assert!(pieces.encode_words(&["some"]).unwrap_err().to_string().contains("treebank"));
    assert!(pieces.encode("some").unwrap().letters.is_empty());
}

#[test]
fn an_alphabet_is_saved_with_its_tokenizer() {
    let folder = Folder::new("words-saved");
    let tokenizer = treebank(&["She sees the sea.", "The sea sees her."]);
    tokenizer.save(&folder.0).unwrap();
    let again = Tokenizer::load(&folder.0).unwrap();
    let text = "She doesn't see.";
    assert_eq!(again.encode(text).unwrap(), tokenizer.encode(text).unwrap());
    assert_eq!(again.alphabet(), tokenizer.alphabet());
}

#[test]
fn words_that_others_know_come_behind() {
    let known = ["sea", "wave", "tide"].map(String::from);
    let train = Train { min_frequency: 2, ..Train::new(VocabularyKind::Treebank, 8) };
    let tokenizer = train.run_beside(["the sea the sea rare"], &known).unwrap();
    let rows: Vec<String> = (4..8).map(|id| tokenizer.token(id).unwrap()).collect();
    assert_eq!(
        (rows, tokenizer.size()),
        (["sea", "the", "wave", "tide"].map(String::from).into(), 8)
    );
}

/// Texts that could make matching quadratic.
#[test]
fn nothing_takes_for_ever() {
    let tokenizer = treebank(&["a"]);
    for part in ["a.", "a@", "a@b.", "1.", "1-", "-a", "'", "n't", "www.", "a'b", "!?", "e-e", "."]
    {
        let text = part.repeat(30_000);
        let encoding = tokenizer.encode(&text).unwrap();
        // All of it is there, in order, once.
        let mut at = 0;
        for (from, to) in encoding.offsets {
            assert_eq!(from, at, "{part}");
            at = to;
        }
        assert_eq!(at, text.len(), "{part}");
    }
}

/// Number of words that the splitter and a treebank have in common, on the treebank's raw texts.
#[test]
fn the_splitter_agrees_with_a_treebank() {
    let Ok(folder) = sets::find("ud-english-ewt") else {
        return regard_fuzz::skip(&format!("{} has no ud-english-ewt", sets::VARIABLE));
    };
    let tokenizer = treebank(&["a"]);
    let (mut both, mut ours, mut theirs) = (0, 0, 0);
    for sentence in Sentences::open_part(folder, Part::Valid).unwrap() {
        let sentence = sentence.unwrap();
        let Some(text) = &sentence.text else { continue };
        let found = tokenizer.encode(text).unwrap().offsets;
        let places = sentence.words.iter().filter_map(|word| word.place.clone());
        let places: HashSet<(usize, usize)> = places.map(|p| (p.start, p.end)).collect();
        both += found.iter().filter(|place| places.contains(place)).count();
        ours += found.len();
        theirs += sentence.words.len();
    }
    let f1 = 200.0 * both as f64 / (ours + theirs) as f64;
    println!("F1 of words: {f1:.3} %");
    assert!(f1 >= 99.0, "{f1}");
}

fn recipe(task: &str, folder: &Path, ends: &str, model: &str, vocabulary: &str) -> String {
    let data = |part: &str| folder.join(format!("{part}.{ends}")).display().to_string();
    format!(
        "name = 'lesson'\ntask = '{task}'\nseed = 2\n[data]\nset = 'files'\ntrain = '{}'\nvalid = \
         '{}'\nmax_tokens = 48\n[model]\n{model}\n[vocabulary]\nkind = 'treebank'\nsize = 200\n\
         lowercase = true\n{vocabulary}\n[train]\nsteps = 60\nbatch_tokens = 256\nlr = 1e-2\n\
         warmup = 5\nschedule = 'cosine'\nlabel_smoothing = 0.0\neval_every = 60\n",
        data("train"),
        data("valid"),
    )
}

/// Unseen words are tagged by their endings and capitals.
#[test]
fn unknown_words_are_told_by_their_letters() {
    let folder = Folder::new("words-tag");
    let stems = ["bor", "kat", "mil", "ron", "sud", "tev", "wim", "zal", "dop", "fen"];
    let sentence = |i: usize| {
        let (a, b) = (stems[i % 10], stems[(i * 7 + i / 10) % 10]);
        let name = format!("{}{}", a[..1].to_uppercase(), &a[1..]);
        let words = [(name, "NAME"), (format!("{b}ed"), "VERB"), (format!("{a}ly"), "ADV")];
        let row = |(n, (form, tag)): (usize, &(String, &str))| {
            format!("{}\t{form}\t_\t{tag}\t_\t_\t0\troot\t_\t_\n", n + 1)
        };
        let text: Vec<&str> = words.iter().map(|(form, _)| form.as_str()).collect();
        let rows: String = words.iter().enumerate().map(row).collect();
        format!("# text = {}\n{rows}\n", text.join(" "))
    };
    let text: String = (0..100).map(sentence).collect();
    fs::write(folder.0.join("train.conllu"), &text).unwrap();
    fs::write(folder.0.join("valid.conllu"), &text).unwrap();
    let model = "model_type = 'bilstm'\nembedding_size = 8\nhidden_size = 16\nword_dropout = 0.5\n\
                 characters = { kind = 'cnn', embedding_size = 8, widths = [3], channels = 16 }";
    let run = folder.0.join("run");
    let accuracy = train(&run, &recipe("tag", &folder.0, "conllu", model, ""));
    assert!(accuracy > 99.0, "{accuracy}");
    let reader = TextEncoder::load(&run, Head::Tokens).unwrap();
    let tags = |text: &str| -> Vec<String> {
        let words = reader.tag(&[text], Grouping::Words).unwrap().remove(0);
        words.into_iter().map(|word| word.entity_group).collect()
    };
    assert_eq!(tags("Gub hopped nely"), ["NAME", "VERB", "ADV"]);
    let words = vec![vec!["Gub", "hopped", "nely"], vec![], vec!["Lum"]];
    let given = reader.tag_words(&words).unwrap();
    let given: Vec<Vec<&str>> =
        given.iter().map(|tags| tags.iter().map(|(tag, _)| tag.as_str()).collect()).collect();
    assert_eq!(given, [vec!["NAME", "VERB", "ADV"], vec![], vec!["NAME"]]);
    assert!(reader.tag(&[" "], Grouping::Words).unwrap()[0].is_empty());
}

/// A model is unchanged after its folder was written, bundled into a program, and read there.
#[test]
fn a_model_can_be_a_part_of_a_program() {
    let folder = Folder::new("words-embedded");
    lines(&folder.0);
    let model = "model_type = 'bilstm'\nembedding_size = 4\nhidden_size = 4\n\
                 characters = { kind = 'lstm', hidden_size = 3 }";
    let text = recipe("classify", &folder.0, "tsv", model, "");
    let run = folder.0.join("run");
    train(&run, &text.replace("steps = 60", "steps = 2"));
    let reader = TextEncoder::load(&run, Head::Sequence).unwrap();
    let saved = folder.0.join("saved");
    reader.save(&saved, Precision::Single).unwrap();
    let names = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"];
    let files = names.map(|name| {
        let bytes: &'static [u8] = fs::read(saved.join(name)).unwrap().leak();
        (name, bytes)
    });
    let built_in = BuiltIn { name: "words", files: files.to_vec().leak() };
    let text = [("the unseen house", None)];
    let again = TextEncoder::load(built_in, Head::Sequence).unwrap();
    assert_eq!(again.classify(&text).unwrap(), reader.classify(&text).unwrap());
    assert!(TextEncoder::load(built_in, Head::Tokens).is_err());
}

fn lines(folder: &Path) {
    let words = ["tree", "house", "river", "stone", "cloud", "road"];
    let line = |i: usize| {
        let (a, b) = (words[i % 6], words[(i / 6 + 1) % 6]);
        let (good, label) = if i.is_multiple_of(2) { ("lovely", 1) } else { ("dreadful", 0) };
        format!("the {a} and a {good} {b}\t{label}\n")
    };
    let text: String = (0..36).map(line).collect();
    fs::write(folder.join("train.tsv"), &text).unwrap();
    fs::write(folder.join("valid.tsv"), &text).unwrap();
}

#[test]
fn the_word_that_decides_weighs_most() {
    let folder = Folder::new("words-classify");
    lines(&folder.0);
    for model in ["bilstm", "cnn"] {
        let model = format!(
            "model_type = '{model}'\nembedding_size = 12\nhidden_size = 12\nwidths = [1]\n\
             channels = 16\nattention_size = 8"
        );
        let run = folder.0.join(&model[14..20]);
        let accuracy = train(&run, &recipe("classify", &folder.0, "tsv", &model, ""));
        assert!(accuracy > 99.0, "{accuracy}");
        let reader = TextEncoder::load(&run, Head::Sequence).unwrap();
        let text = "The river and a dreadful road";
        let weights = reader.weigh(text).unwrap().unwrap();
        assert_eq!(weights.len(), 6);
        assert!((weights.iter().map(|w| w.weight).sum::<f64>() - 1.0).abs() < 1e-5);
        assert_eq!(reader.classify(&[(text, None)]).unwrap()[0][0].label, "0");
        if model.contains("cnn") {
            let heaviest = weights.iter().max_by(|a, b| a.weight.total_cmp(&b.weight)).unwrap();
            assert_eq!((heaviest.word.as_str(), heaviest.start), ("dreadful", 16), "{weights:?}");
        }
    }
}

#[test]
fn vectors_are_what_words_begin_with() {
    let folder = Folder::new("words-vectors");
    lines(&folder.0);
    let file = folder.0.join("vectors.txt");
    fs::write(&file, "lovely 1 2 3 4\nawful 5 6 7 8\n").unwrap();
    let model = "model_type = 'cnn'\nembedding_size = 4\nfrozen_embeddings = true\nwidths = [1]";
    let vectors = format!("vectors = '{}'", file.display());
    let text = recipe("classify", &folder.0, "tsv", model, &vectors);
    let prepare = |text: &str| {
        let recipe = recipe::task(toml::from_str(text).unwrap()).unwrap();
        recipe.prepare().map_err(|e| e.to_string())
    };
    let about = prepare(&text).unwrap().about;
    assert!(about.contains("(2 with vectors, 14 without)"), "{about}");
    let run = folder.0.join("run");
    train(&run, &text);
    // The vectors stayed, and a word that was not in the training data has one.
    let reader = TextEncoder::load(&run, Head::Sequence).unwrap();
    let weights = regard_models::checkpoint::read_weights(&run.join("model")).unwrap();
    let table = weights["words.embed_tokens.weight"].floats().unwrap();
    let row = |word: &str| {
        let id = reader.tokenizer().id(word).unwrap() as usize;
        table[4 * id..4 * id + 4].to_vec()
    };
    assert_eq!((row("lovely"), row("awful")), (vec![1., 2., 3., 4.], vec![5., 6., 7., 8.]));
    let wide = text.replace("embedding_size = 4", "embedding_size = 5");
    assert!(prepare(&wide).err().unwrap().contains("got a width of 4, the model's table has 5"));
    let nowhere = text.replace(&vectors, "vectors = 'word3vec'");
    assert!(prepare(&nowhere).err().unwrap().contains("need a file or glove-subset"));
    let other = text.replace(&vectors, "vectors = 'squad'");
    assert!(prepare(&other).err().unwrap().contains("need glove-subset"));
    let letters = text
        .replace("'treebank'", "'word'")
        .replace("widths = [1]", "widths = [1]\nalphabet_size = 9\ncharacters = { kind = 'cnn' }");
    assert!(prepare(&letters).err().unwrap().contains("kind = \"treebank\""));
}

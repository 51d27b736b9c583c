//! Accuracy of word-level models on the test parts: part-of-speech tags of gold words, sentiment of
//! sentences.
//!
//! ```sh
//! REGARD_DATA=… cargo run -p regard-tasks --example measure_words -- tag FOLDER test
//! REGARD_DATA=… cargo run -p regard-tasks --example measure_words -- classify FOLDER test
//! ```

use regard_models::text::Head;
use regard_models::{Error, Result};
use regard_tasks::data::conllu::{Sentence, Sentences};
use regard_tasks::data::labelled::{LabelledTexts, Sentiment};
use regard_tasks::data::{Part, sets};
use regard_tasks::reader::TextEncoder;
use std::path::Path;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [task, folder, part] = &arguments[..] else {
        return Err(Error::invalid("need: tag or classify, a folder, and dev or test"));
    };
    let part = match part.as_str() {
        "dev" => Part::Valid,
        "test" => Part::Test,
        other => return Err(Error::invalid(format!("got {other:?}, need dev or test"))),
    };
    match task.as_str() {
        "tag" => tag(Path::new(folder), part),
        "classify" => classify(Path::new(folder), part),
        other => Err(Error::invalid(format!("got {other:?}, need tag or classify"))),
    }
}

fn tag(folder: &Path, part: Part) -> Result<()> {
    let reader = TextEncoder::load(folder, Head::Tokens)?;
    let read = Sentences::open_part(sets::find("ud-english-ewt")?, part)?;
    let sentences: Vec<Sentence> = read.collect::<Result<_>>()?;
    let words: Vec<Vec<&str>> =
        sentences.iter().map(|s| s.words.iter().map(|w| w.form.as_str()).collect()).collect();
    let (mut right, mut all, mut strange, mut strange_right) = (0, 0, 0, 0);
    for (sentence, tags) in sentences.iter().zip(reader.tag_words(&words)?) {
        let forms: Vec<&str> = sentence.words.iter().map(|w| w.form.as_str()).collect();
        let encoding = reader.tokenizer().encode_words(&forms)?;
        let unknown = reader.tokenizer().special().unk;
        all += sentence.words.len();
        for (i, (word, (tag, _))) in sentence.words.iter().zip(&tags).enumerate() {
            let good = usize::from(word.universal == *tag);
            right += good;
            if Some(encoding.ids[i]) == unknown {
                strange += 1;
                strange_right += good;
            }
        }
    }
    println!("{right} of {all} words: {:.2} %", 100.0 * right as f64 / all as f64);
    let share = 100.0 * f64::from(strange_right as u32) / f64::from(strange as u32);
    println!("{strange_right} of {strange} out-of-vocabulary words: {share:.2} %");
    Ok(())
}

fn classify(folder: &Path, part: Part) -> Result<()> {
    let reader = TextEncoder::load(folder, Head::Sequence)?;
    let texts = LabelledTexts::sentiment(sets::find("sst2")?, Sentiment::Sentences, part)?;
    let pairs: Vec<(&str, Option<&str>)> =
        texts.examples.iter().map(|e| (e.text.as_str(), None)).collect();
    let said = reader.classify(&pairs)?;
    let good = |(said, example): (&Vec<regard_tasks::classify::Label>, &_)| {
        let example: &regard_tasks::data::LabelledText = example;
        said[0].label == texts.labels[example.label]
    };
    let right = said.iter().zip(&texts.examples).filter(|pair| good(*pair)).count();
    let all = texts.examples.len();
    println!("{right} of {all} sentences: {:.2} %", 100.0 * right as f64 / all as f64);
    Ok(())
}

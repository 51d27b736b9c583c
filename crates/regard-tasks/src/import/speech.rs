//! Recordings with one label or a transcript each, from folders or tables.

use super::examples::{check_known, check_parts, divide};
use super::findings::Findings;
use super::media::{self, Example, Found, Item, Media};
use super::reading::{Reading, part_told};
use super::{ColumnNames, DataSize, Draft, Request, is_unspaced, split_line, units};
use crate::audio::wav;
use crate::data::sets;
use crate::say;
use regard_models::{Error, Result, checkpoint};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use toml::{Table as Keys, Value};

const RECORDINGS: Media = Media {
    thing: "recording",
    other: "not a WAV file",
    ends: &["wav", "wave"],
    formats: "WAV",
    text: "text",
    empty: "empty text",
    path_names: &[
        "file",
        "path",
        "audio",
        "wav",
        "filename",
        "file_name",
        "audio_path",
        "recording",
    ],
    text_names: &["text", "transcript", "sentence", "transcription", "label", "class", "word"],
};

/// Seconds above which a recording is long, and below which it is refused.
const LONG: f64 = 60.0;
const SHORT: f64 = 0.05;
/// Largest magnitude of a silent recording: 60 dB below full scale.
const SILENT: f32 = 1e-3;
/// Most characters per second of a transcript that CTC can learn: one per frame of 20 ms.
const FRAMES: f64 = 50.0;
/// Recordings per label, on average, from which texts are labels.
const PER_LABEL: usize = 4;
/// Most words of a label, and most characters where words are not separated by spaces.
const WORDS: usize = 3;
const CHARACTERS: usize = 6;

/// A recording that was read.
struct Heard {
    seconds: f64,
    rate: u32,
    /// Largest magnitude of a sample.
    peak: f32,
}

/// Reads the recordings of a request.
pub(super) fn read(request: &Request, findings: &mut Findings) -> Result<Option<Draft>> {
    if request.columns.text.is_some() && request.columns.label.is_some() {
        return Err(Error::invalid(
            "--text names a column of transcripts, --label one of labels: leave one of them out",
        ));
    }
    let request = &recorded(request);
    let Some(Found { parts, held, by_folder, told, reading, chosen, test: given_test }) =
        media::find(request, &RECORDINGS, findings)?
    else {
        return Ok(None);
    };
    let [train, valid, test] = parts.map(|items| heard(items, findings));
    if train.is_empty() {
        return Ok(None);
    }
    if let Some(like) = request.like() {
        let summary = Vec::from_iter([told].into_iter().chain(chosen.map(part_told)));
        let draft = whole(train, like, summary, findings);
        return Ok(Some(Draft { chosen, ..draft }));
    }
    let (labelled, why) = has_labels(request, by_folder, &train);
    match labelled {
        true => media::check_labels(&train, findings),
        false => fast_speech([&train, &valid, &test], findings),
    }
    media::contradictions([&train, &valid, &test], findings);
    let all = divide([train, valid, test], labelled, held, request.seed, findings);
    if labelled {
        check_known(&all, findings);
    }
    check_parts(&all, 2, held, findings);
    let sizes = all.each_ref().map(Vec::len);
    let rate = rate(&all);
    let mut summary = vec![told, why];
    summary.extend(sounds_told(&all, rate));
    summary.push(format!(
        "{}; speakers are unknown, so a speaker can be in several parts",
        split_line(sizes, held, request.seed)
    ));
    summary.push("the recordings are not copied: the lists name their files".into());
    if findings.skipped() > 0 {
        summary.push(format!("{} left out (--skip-bad)", say::many(findings.skipped(), "file")));
    }
    let tenths: Vec<usize> =
        all[0].iter().map(|one| (one.content.seconds * 10.0) as usize).collect();
    let size = DataSize {
        examples: sizes[0],
        units: tenths.iter().sum(),
        longest: tenths.iter().copied().max().unwrap_or(0),
        labels: if labelled { media::counted(&all[0]).len() } else { 0 },
        unspaced: false,
    };
    let counted = media::counted(&all[0]);
    let names_of_labels: Vec<String> = match labelled {
        true => counted.iter().map(|(label, _)| label.to_string()).collect(),
        false => vec![],
    };
    let names = [("train", "train.tsv"), ("valid", "valid.tsv"), ("test", "test.tsv")];
    let lists: Vec<_> = names.into_iter().zip(all.iter().map(|part| list(part))).collect();
    let lists: Vec<_> = lists.into_iter().filter(|(_, list)| !list.is_empty()).collect();
    let files = lists.iter().map(|(name, _)| *name).collect();
    let write = move |folder: &Path| {
        let mut each = lists.iter();
        each.try_for_each(|((_, name), list)| {
            checkpoint::write_file(&folder.join(name), list.as_bytes())
        })
    };
    Ok(Some(Draft {
        places: Default::default(),
        task: "recognize",
        summary,
        parts: sizes,
        size,
        keys: keys(labelled, rate),
        files,
        write: Box::new(write),
        reading: described(reading, names_of_labels),
        chosen: None,
        test: given_test,
    }))
}

/// Describes how recordings were read: the column of labels or of transcripts has that role.
fn described(mut reading: Reading, labels: Vec<String>) -> Reading {
    if let Some(column) = reading.columns.remove(RECORDINGS.text) {
        let role = if labels.is_empty() { "text" } else { "label" };
        reading.columns.insert(role.into(), column);
    }
    reading.with_labels(labels)
}

/// Request to evaluate a run: --text and --label both name the one column that the run reads.
fn recorded(request: &Request) -> Request {
    let mut request = request.clone();
    let Some(has_labels) = request.like().map(|like| !like.labels.is_empty()) else {
        return request;
    };
    let ColumnNames { text, label, .. } = &mut request.columns;
    let one = label.take().or(text.take());
    *(if has_labels { label } else { text }) = one;
    request
}

/// Recordings that a model is evaluated on, without those whose labels it does not know.
fn whole(
    mut all: Vec<Example<Heard>>,
    like: &Reading,
    mut summary: Vec<String>,
    findings: &mut Findings,
) -> Draft {
    let kind = if like.labels.is_empty() { "transcript" } else { "label" };
    if !like.labels.is_empty() {
        all = media::known_only(all, like, findings);
    }
    summary.push(format!("{}, one {kind} each", say::many(all.len(), "recording")));
    if findings.skipped() > 0 {
        summary.push(format!("{} left out (--skip-bad)", say::many(findings.skipped(), "file")));
    }
    let (count, file, list) = (all.len(), "test.tsv", list(&all));
    let write = move |folder: &Path| checkpoint::write_file(&folder.join(file), list.as_bytes());
    Draft::to_evaluate("recognize", summary, count, file, Box::new(write))
}

/// Reads recordings; those that cannot be used are noted and left out.
fn heard(items: Vec<Item>, findings: &mut Findings) -> Vec<Example<Heard>> {
    let read = |item: &Item| -> Result<(String, Heard), String> {
        let sound = wav::read(&item.path).map_err(|error| media::plain(&error, &item.path))?;
        let mut digest = Sha256::new();
        digest.update(sound.rate.to_le_bytes());
        sound.samples.iter().for_each(|x| digest.update(x.to_le_bytes()));
        let peak = sound.samples.iter().fold(0.0f32, |peak, x| peak.max(x.abs()));
        let heard = Heard { seconds: sound.seconds(), rate: sound.rate, peak };
        Ok((sets::hex(&digest.finalize()), heard))
    };
    let done = media::in_parallel(&items, &read);
    let mut all = vec![];
    for (item, done) in items.into_iter().zip(done) {
        match done {
            Ok((key, content)) => {
                if !noted(&item, &content, findings) {
                    all.push(Example { item, key, content });
                }
            }
            Err(mut message) => {
                if message.contains("is not a WAV file") {
                    message += ". Convert it, for example with ffmpeg -i IN -c:a pcm_s16le OUT.wav";
                }
                findings.row("unreadable recording", item.place(), item.tell(&message));
            }
        }
    }
    all
}

/// Notes problems of a recording; returns whether it cannot be used.
fn noted(item: &Item, heard: &Heard, findings: &mut Findings) -> bool {
    let seconds = heard.seconds;
    let absolute = std::path::absolute(&item.path).unwrap_or_else(|_| item.path.clone());
    let listable = absolute.to_str().is_some_and(|path| !path.contains(['\t', '\n', '\r']));
    if seconds < SHORT {
        let message = format!("has {seconds:.3} s, need at least {SHORT} s");
        findings.row("short recording", item.place(), item.tell(&message));
    } else if !listable {
        let message = "its path is not UTF-8, or has a tab or a line end, which no list can hold";
        findings.row("path", item.place(), item.tell(message));
    }
    if seconds > LONG {
        let message =
            format!("has {seconds:.0} s; recordings of up to {LONG:.0} s are usual: cut it");
        findings.warn("long recording", item.place(), item.tell(&message));
    }
    if heard.peak < SILENT {
        findings.warn("silence", item.place(), item.tell("is silent"));
    }
    seconds < SHORT || !listable
}

/// Whether texts are labels and not transcripts, and a sentence that says why.
fn has_labels(request: &Request, by_folder: bool, train: &[Example<Heard>]) -> (bool, String) {
    let counts = media::counted(train);
    let texts = || counts.iter().map(|(text, _)| *text);
    let unspaced = is_unspaced(texts());
    let longest = texts().map(|text| units(text, unspaced)).max().unwrap_or(0);
    let short = longest <= if unspaced { CHARACTERS } else { WORDS };
    let labelled = match (&request.columns.label, &request.columns.text) {
        (Some(_), _) => true,
        (_, Some(_)) => false,
        _ => by_folder || (short && train.len() >= PER_LABEL * counts.len()),
    };
    let different = say::count(counts.len());
    let recordings = say::many(train.len(), "recording");
    let told = match labelled {
        true => {
            let names: Vec<&str> = texts().collect();
            let flag = if by_folder { "" } else { " (--text COLUMN: transcripts)" };
            format!(
                "one label per recording: {different} in {recordings}: {}{flag}",
                say::list(&names, 10)
            )
        }
        false => {
            let letters: BTreeSet<char> = texts().flat_map(str::chars).collect();
            format!(
                "transcripts, spelled character by character (CTC): {different} different texts in \
                 {recordings}, {} (--label COLUMN: one label per recording)",
                say::many(letters.len(), "character")
            )
        }
    };
    (labelled, told)
}

/// Notes transcripts that are longer than their recordings.
fn fast_speech(all: [&Vec<Example<Heard>>; 3], findings: &mut Findings) {
    for Example { item, content, .. } in all.into_iter().flatten() {
        let letters = item.text.chars().count();
        if letters as f64 > FRAMES * content.seconds {
            let message = format!(
                "has {:.1} s for {letters} characters, more than {FRAMES} a second: nothing is \
                 learned from it; is this its text?",
                content.seconds
            );
            findings.warn("text longer than the sound", item.place(), item.tell(&message));
        }
    }
}

/// Sampling rate of the features: that of 8 and 16 kHz which most recordings reach.
fn rate(all: &[Vec<Example<Heard>>; 3]) -> u32 {
    let total = all.iter().map(Vec::len).sum::<usize>();
    let high = all.iter().flatten().filter(|one| one.content.rate >= 16000).count();
    if 2 * high > total { 16000 } else { 8000 }
}

/// Sentences about durations and sampling rates.
fn sounds_told(all: &[Vec<Example<Heard>>; 3], rate: u32) -> Vec<String> {
    let seconds = || all.iter().flatten().map(|one| one.content.seconds);
    let mut rates: BTreeMap<u32, usize> = BTreeMap::new();
    for one in all.iter().flatten() {
        *rates.entry(one.content.rate).or_default() += 1;
    }
    let each: Vec<String> = match rates.len() {
        1 => rates.keys().map(|each| format!("{each} Hz")).collect(),
        _ => {
            let one = |(each, count): (&u32, &usize)| format!("{each} Hz ({})", say::count(*count));
            rates.iter().map(one).collect()
        }
    };
    let same = rates.keys().all(|each| *each == rate);
    let then = if same { String::new() } else { format!(", resampled to {rate} Hz") };
    let shortest = seconds().fold(f64::INFINITY, f64::min);
    vec![
        format!(
            "{:.1} minutes of sound, {shortest:.1} to {:.1} s each",
            seconds().sum::<f64>() / 60.0,
            seconds().fold(0.0, f64::max)
        ),
        format!("sampled at {}{then}", say::list(&each, 5)),
    ]
}

/// Keys of the recipe: windows of 25 ms every 10 ms.
fn keys(labelled: bool, rate: u32) -> Keys {
    let number = |(key, value): (&str, u32)| (key.to_string(), Value::Integer(i64::from(value)));
    let window = rate / 40;
    let features = [
        ("sampling_rate", rate),
        ("feature_size", if rate == 8000 { 40 } else { 64 }),
        ("n_fft", window.next_power_of_two()),
        ("win_length", window),
        ("hop_length", rate / 100),
    ];
    let mut features = Keys::from_iter(features.map(number));
    // Hum of the mains is below it, speech above.
    features.insert("f_min".into(), Value::Float(60.0));
    let head = Value::String(if labelled { "labels" } else { "ctc" }.into());
    Keys::from_iter([
        ("features".to_string(), Value::Table(features)),
        ("model".into(), Value::Table(Keys::from_iter([("head".into(), head)]))),
        // Recordings of the user are whole sentences: nothing is joined to them.
        ("data".into(), Value::Table(Keys::from_iter([("join".into(), Value::Integer(1))]))),
    ])
}

/// A list of recordings: a line with the file, a tab and the text for each.
fn list(part: &[Example<Heard>]) -> String {
    let mut text = String::new();
    for Example { item, .. } in part {
        let path = std::path::absolute(&item.path).unwrap_or_else(|_| item.path.clone());
        text += &format!("{}\t{}\n", path.display(), item.text);
    }
    text
}

#[cfg(test)]
mod tests;

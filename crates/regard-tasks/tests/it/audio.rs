//! Audio features against torchaudio and librosa: values from `fixtures/make/audio.py`.

use regard_tasks::audio::cepstrum::{Cosines, Framing, Loudness, mfcc};
use regard_tasks::audio::mel::{Bands, FilterBank, Height, MelScale};
use regard_tasks::audio::resample;
use regard_tasks::audio::spectrum::{Ends, Frames};
use serde_json::Value;

fn read(name: &str) -> Vec<Value> {
    let path = format!("{}/../../fixtures/audio/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str(&text).unwrap()
}

/// The test signal of the script.
fn sound(n: u64) -> Vec<f32> {
    let sample = |i: u64| {
        let (x, noise) = (i as f64, (i * 7919 % 1009) as f64 / 1009.0 - 0.5);
        (0.4 * (0.05 * x).sin() + 0.3 * (0.0001 * x * x).sin() + 0.1 * noise) as f32
    };
    (0..n).map(sample).collect()
}

fn close(case: &str, got: &[f32], want: &Value, limit: f64) {
    let want = want.as_array().unwrap();
    assert_eq!(got.len(), want.len(), "{case}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let want = want.as_f64().unwrap();
        let error = (f64::from(*got) - want).abs() / want.abs().max(1.0);
        assert!(error < limit, "{case}: at {i} got {got}, want {want}");
    }
}

#[test]
fn rates_are_changed_as_torchaudio_does() {
    let cases = read("resample");
    assert_eq!(cases.len(), 6);
    for case in cases {
        let [from, to, n] = ["from", "to", "n"].map(|key| case[key].as_u64().unwrap());
        let got = resample(&sound(n), from as u32, to as u32);
        close(&format!("{from} to {to}"), &got, &case["y"], 1e-4);
    }
}

/// Parameters of a case.
struct Asked {
    frames: Frames,
    ends: Ends,
    bank: FilterBank,
    name: String,
}

fn asked(case: &Value) -> Asked {
    let size = |key: &str| case[key].as_u64().unwrap() as usize;
    let word = |key: &str| case[key].as_str().unwrap();
    let frames = Frames::new(size("n_fft"), size("win"), size("hop"));
    let bands = Bands {
        count: size("bands"),
        low: case["low"].as_f64().unwrap(),
        high: case["high"].as_f64().unwrap(),
        scale: if word("scale") == "htk" { MelScale::Htk } else { MelScale::Slaney },
        height: if word("height") == "one" { Height::One } else { Height::Slaney },
    };
    let ends = match word("ends") {
        "silence" => Ends::Silence,
        "mirror" => Ends::Mirror,
        _ => Ends::Inside,
    };
    let name = ["by", "ends", "scale", "height"].map(word).join(" ");
    Asked { bank: FilterBank::new(&bands, frames.bins(), 8000), frames, ends, name }
}

/// Every third row, as in the script, after a check of their number.
fn thirds(rows: &[f32], width: usize, case: &Value) -> Vec<f32> {
    assert_eq!(rows.len() / width, case["frames"].as_u64().unwrap() as usize);
    rows.chunks(width).step_by(3).flatten().copied().collect()
}

#[test]
fn mel_bands_are_those_of_librosa_and_torchaudio() {
    let cases = read("mel");
    assert_eq!(cases.len(), 16);
    for case in cases {
        let Asked { frames, ends, bank, name } = asked(&case);
        let mut rows = bank.apply(&frames.power(&sound(2400), ends));
        Loudness::Log { offset: 1e-6 }.apply(&mut rows);
        let rows = thirds(&rows, case["bands"].as_u64().unwrap() as usize, &case["log"]);
        close(&name, &rows, &case["log"]["data"], 1e-3);
    }
}

#[test]
fn cepstra_are_those_of_librosa_and_torchaudio() {
    let cases = read("mfcc");
    assert_eq!(cases.len(), 3);
    for case in cases {
        let Asked { frames, ends, bank, name } = asked(&case);
        let count = case["coefficients"].as_u64().unwrap() as usize;
        let cosines = Cosines::new(case["bands"].as_u64().unwrap() as usize, count);
        let loudness = match case["loudness"].as_str().unwrap() {
            "log" => Loudness::Log { offset: 1e-6 },
            _ => Loudness::Decibels { range: 80.0 },
        };
        let rows = mfcc(&sound(2400), Framing { frames: &frames, ends }, &bank, loudness, &cosines);
        close(&name, &thirds(&rows, count, &case["mfcc"]), &case["mfcc"]["data"], 1e-3);
    }
}

use super::*;
use crate::audio::{Preprocessor, Sound};
use crate::data::recordings;
use crate::import::prepared::prepare;
use crate::import::{self, Import};
use std::path::PathBuf;

fn with_folder(name: &str, check: impl FnOnce(&Path)) {
    let folder = std::env::temp_dir().join(format!("regard-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    check(&folder);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Writes a tone.
fn record(path: PathBuf, rate: u32, seconds: f32, pitch: f32) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let wave = |i: usize| (i as f32 / rate as f32 * pitch).sin() * 0.5;
    let samples = (0..(rate as f32 * seconds) as usize).map(wave).collect();
    std::fs::write(path, wav::encode(&Sound { samples, rate })).unwrap();
}

fn check(data: &Path) -> (Option<Import>, String) {
    let mut request = Request::new("recognize");
    request.data = vec![data.to_path_buf()];
    let (import, findings) = import::read(&request).unwrap();
    (import, findings.text())
}

fn preprocessor(import: &Import) -> Preprocessor {
    let features: Preprocessor = import.keys["features"].clone().try_into().unwrap();
    features.check().unwrap();
    features
}

#[test]
fn folders_are_labels_and_lists_name_the_files() {
    with_folder("speech-folders", |folder| {
        for i in 0..30 {
            record(folder.join(format!("yes/{i}.wav")), 8000, 0.2, 500.0 + i as f32);
            record(folder.join(format!("no/{i}.wav")), 8000, 0.3, 900.0 + i as f32);
        }
        std::fs::create_dir(folder.join("_noise_")).unwrap();
        let (import, told) = check(folder);
        assert!(told.contains("_noise_: is not read"), "{told}");
        let import = import.unwrap_or_else(|| panic!("{told}"));
        assert_eq!(import.parts, [48, 6, 6]);
        let said = import.summary.join("\n");
        for part in [
            "a folder for each label",
            "one label per recording: 2 in 60 recordings: no, yes",
            "minutes of sound, 0.2 to 0.3 s each",
            "sampled at 8000 Hz\n",
            "48 train, 6 valid, 6 test (split by seed 0); speakers are unknown",
            "the recordings are not copied",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!((import.size.units, import.size.longest, import.size.labels), (120, 3, 2));
        assert_eq!(import.keys["model"]["head"].as_str(), Some("labels"));
        let features = preprocessor(&import);
        assert_eq!((features.n_fft, features.win_length, features.hop_length), (256, 200, 80));
        assert_eq!((features.sampling_rate, features.feature_size), (8000, 40));
        let out = folder.join("out");
        import.write(&out).unwrap();
        let about = prepare(&import, include_str!("../../../presets/recognize.toml"), &out);
        assert!(about.contains("48 training and 6 validation recordings, 2 labels"), "{about}");
        let mut all = vec![];
        for (name, count) in [("train", 48), ("valid", 6), ("test", 6)] {
            let list = recordings::list(out.join(format!("{name}.tsv"))).unwrap();
            assert_eq!(list.len(), count);
            all.extend(list);
        }
        for one in &all {
            assert!(one.path.is_absolute() && one.path.is_file(), "{one:?}");
            assert_eq!(
                one.path.parent().unwrap().file_name().unwrap().to_str(),
                Some(&one.text[..])
            );
        }
        let different: BTreeSet<_> = all.iter().map(|one| &one.path).collect();
        assert_eq!(different.len(), 60);
    });
}

#[test]
fn transcripts_and_labels_are_told_apart() {
    with_folder("speech-tables", |folder| {
        let (mut long, mut few) = ("path\tsentence\tspeaker\n".to_string(), String::new());
        for i in 0..40 {
            record(folder.join(format!("{i}.wav")), 44100, 1.0, 500.0 + i as f32);
            long += &format!("{i}.wav\tThis  is sentence {i}\tann\n");
            few += &format!("{i}.wav\t{}\n", ["turn left", "stop"][i % 2]);
        }
        let (long_path, few_path) = (folder.join("long.tsv"), folder.join("few.txt"));
        std::fs::write(&long_path, long).unwrap();
        std::fs::write(&few_path, few).unwrap();
        let (import, told) = check(&long_path);
        let import = import.unwrap_or_else(|| panic!("{told}"));
        assert_eq!(told, "");
        let said = import.summary.join("\n");
        for part in [
            "recording: column 'path', text: column 'sentence'",
            "transcripts, spelled character by character (CTC): 40 different texts",
            "sampled at 44100 Hz, resampled to 16000 Hz",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!((import.parts, import.size.labels), ([32, 4, 4], 0));
        assert_eq!(import.keys["model"]["head"].as_str(), Some("ctc"));
        let features = preprocessor(&import);
        assert_eq!((features.n_fft, features.win_length, features.hop_length), (512, 400, 160));
        assert_eq!((features.sampling_rate, features.feature_size), (16000, 64));
        let out = folder.join("out");
        import.write(&out).unwrap();
        let about = prepare(&import, include_str!("../../../presets/recognize.toml"), &out);
        assert!(about.contains("32 training and 4 validation recordings"), "{about}");
        let list = recordings::list(out.join("valid.tsv")).unwrap();
        assert!(list[0].text.starts_with("This is sentence "), "{list:?}");
        let (import, told) = check(&few_path);
        let import = import.unwrap_or_else(|| panic!("{told}"));
        let said = import.summary.join("\n");
        assert!(said.contains("one label per recording: 2 in 40 recordings: stop, turn left"));
        assert!(said.contains("recording: column 1, text: column 2, no header"), "{said}");
        // The flags decide.
        let mut request = Request::new("recognize");
        request.data = vec![few_path];
        request.columns.text = Some("2".into());
        let import = import::read(&request).unwrap().0.unwrap();
        assert_eq!(import.keys["model"]["head"].as_str(), Some("ctc"));
        request.columns.label = Some("2".into());
        assert!(import::read(&request).err().unwrap().to_string().contains("leave one"));
    });
}

/// Every defect is named with its file and line at once, and nothing is imported.
#[test]
fn defects_are_named_with_their_lines() {
    with_folder("speech-defects", |folder| {
        let mut table = "file,text\n".to_string();
        for i in 0..20 {
            record(folder.join(format!("{i}.wav")), 8000, 0.5, 500.0 + i as f32);
            table += &format!("{i}.wav,say {i}\n");
        }
        let whole = std::fs::read(folder.join("0.wav")).unwrap();
        std::fs::write(folder.join("cut.wav"), &whole[..whole.len() - 100]).unwrap();
        std::fs::write(folder.join("song.mp3"), "ID3 and more of that").unwrap();
        record(folder.join("click.wav"), 8000, 0.02, 500.0);
        record(folder.join("long.wav"), 1000, 61.0, 500.0);
        record(folder.join("quiet.wav"), 8000, 0.5, 0.0);
        table += "cut.wav,a\nsong.mp3,b\nclick.wav,c\nnone.wav,d\n1.wav,\n";
        table += &format!("long.wav,x\nquiet.wav,y\n3.wav,{}\n", "too long ".repeat(9));
        let path = folder.join("t.csv");
        std::fs::write(&path, table).unwrap();
        let (import, told) = check(&path);
        assert!(import.is_none());
        for part in [
            "line 22: ",
            "cut.wav: is cut off",
            "line 23: ",
            "song.mp3: is not a WAV file",
            "ffmpeg",
            "line 24: ",
            "click.wav: has 0.020 s, need at least 0.05 s",
            "line 25: ",
            "none.wav does not exist",
            "line 26: the text is empty",
            "warning: long recording (1)",
            "long.wav: has 61 s",
            "quiet.wav: is silent",
            "line 29: ",
            "has 0.5 s for 80 characters",
            "warning: same contents, different labels (1)",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        let mut request = Request::new("recognize");
        (request.data, request.skip_bad) = (vec![path], true);
        let (import, findings) = import::read(&request).unwrap();
        assert_eq!(findings.skipped(), 5);
        assert_eq!(import.unwrap().parts.iter().sum::<usize>(), 23);
    });
}

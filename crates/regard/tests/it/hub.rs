//! Models of the Hugging Face Hub: downloaded from a Hub of our own, and found again.

use crate::program::{Ran, command, finish, folder};
use crate::shelf::{COMMITS, Manners, Shelf};
use regard_models::checkpoint::{self, Precision};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const MODEL: &str = "someone/tiny-model";
const TEXT: &str = "They are watching the cat.";

/// A golden model of `fixtures/make/reading.py`.
fn golden() -> PathBuf {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/reading");
    all.join("BertForSequenceClassification")
}

/// The program in an environment of its own: where models are kept, and where they come from.
struct World {
    home: PathBuf,
    endpoint: String,
    variables: Vec<(&'static str, String)>,
}

impl World {
    fn new(test: &str, shelf: &Shelf) -> World {
        World { home: folder(test), endpoint: shelf.address.clone(), variables: vec![] }
    }

    fn with(mut self, name: &'static str, value: &str) -> World {
        self.variables.push((name, value.to_string()));
        self
    }

    fn run(&self, args: &[&str]) -> Ran {
        let mut command = command(args);
        for name in [
            "HF_TOKEN",
            "HF_HUB_CACHE",
            "HF_HUB_OFFLINE",
            "HF_TOKEN_PATH",
            "HF_HUB_DOWNLOAD_TIMEOUT",
            "http_proxy",
            "HTTP_PROXY",
            "https_proxy",
            "HTTPS_PROXY",
            "all_proxy",
            "ALL_PROXY",
        ] {
            command.env_remove(name);
        }
        command.env("HF_HOME", &self.home).env("HF_ENDPOINT", &self.endpoint);
        self.variables.iter().for_each(|(name, value)| _ = command.env(name, value));
        finish(command)
    }

    /// What it says of a text, and it must.
    fn label(&self, args: &[&str]) -> Value {
        let ran = self.run(&[&["classify", TEXT, "--json", "--model"], args].concat());
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
        serde_json::from_str(&ran.out).unwrap()
    }

    /// How it refuses, and it must, saying all of these.
    fn refuses(&self, args: &[&str], says: &[&str]) {
        let ran = self.run(&[&["classify", TEXT, "--model"], args].concat());
        assert_eq!(ran.code, 2, "{args:?}: {}{}", ran.out, ran.err);
        for part in says {
            assert!(ran.err.contains(part), "{args:?} should say {part:?}: {}", ran.err);
        }
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
    }

    fn repository(&self) -> PathBuf {
        self.home.join("hub").join("models--someone--tiny-model")
    }

    fn snapshot(&self, commit: &str) -> PathBuf {
        self.repository().join("snapshots").join(commit)
    }
}

/// The same model with other weights.
fn other_weights(test: &str) -> PathBuf {
    let to = folder(test);
    for entry in fs::read_dir(golden()).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
    let path = to.join(checkpoint::WEIGHTS);
    let mut weights = checkpoint::read_arrays(&path).unwrap();
    let array = weights.get_mut("classifier.bias").expect("a head for labels");
    array.change(|all| all.iter_mut().enumerate().for_each(|(i, x)| *x += i as f32));
    checkpoint::write_arrays(&path, &weights, Precision::Single).unwrap();
    to
}

#[test]
fn a_model_is_downloaded_once_and_is_the_model() {
    let shelf = Shelf::new();
    shelf.put(MODEL, COMMITS[0], &golden());
    shelf.put_file(MODEL, COMMITS[0], "tf_model.h5", vec![0; 100]);
    let world = World::new("hub_download", &shelf);
    let wanted = world.label(&[golden().to_str().unwrap()]);
    assert!(shelf.asked().is_empty(), "a folder needs no network");
    assert_eq!(world.label(&[MODEL]), wanted);
    let asked = shelf.asked();
    for needed in ["config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"] {
        assert!(asked.iter().any(|path| path.contains(needed)), "{needed}: {asked:?}");
    }
    // What it does not need is left where it is.
    for other in ["tf_model.h5", "pytorch_model.bin", "said.json", "spiece.model"] {
        assert!(!asked.iter().any(|path| path.contains(other)), "{other}: {asked:?}");
    }
    // All files are of the commit that the branch was, and the layout is that of Python's.
    let first = format!("/{MODEL}/resolve/main/config.json 0-0");
    assert_eq!(asked[0], first);
    let pinned = format!("/{MODEL}/resolve/{}/", COMMITS[0]);
    assert!(asked[1..].iter().all(|path| path.starts_with(&pinned)), "{asked:?}");
    let refs = world.repository().join("refs");
    assert_eq!(fs::read_to_string(refs.join("main")).unwrap(), COMMITS[0]);
    assert_eq!(fs::read_dir(refs).unwrap().count(), 1, "one name, that of the branch");
    let weights = world.snapshot(COMMITS[0]).join("model.safetensors");
    assert_eq!(fs::read(&weights).unwrap(), fs::read(golden().join("model.safetensors")).unwrap());
    #[cfg(unix)]
    assert!(fs::read_link(&weights).unwrap().starts_with("../../blobs"));
    assert_eq!(world.label(&[MODEL]), wanted);
    assert_eq!(shelf.asked(), [""; 0], "what is here is not asked for again");
}

#[test]
fn without_a_network_only_what_is_here_is_used() {
    let shelf = Shelf::new();
    shelf.put(MODEL, COMMITS[0], &golden());
    let world = World::new("hub_offline", &shelf);
    world.refuses(&[MODEL, "--offline"], &["--model", MODEL, "--offline", "HF_HOME", "--fetch"]);
    let told = World::new("hub_offline_told", &shelf).with("HF_HUB_OFFLINE", "1");
    told.refuses(&[MODEL], &[MODEL, "HF_HUB_OFFLINE"]);
    assert!(shelf.asked().is_empty(), "offline means offline");
    let wanted = world.label(&[MODEL]);
    shelf.asked();
    assert_eq!(world.label(&[MODEL, "--offline"]), wanted);
    assert!(shelf.asked().is_empty());
    // A Hub that cannot be reached is told for what is not here.
    let mut alone = World::new("hub_alone", &shelf);
    alone.endpoint = "http://127.0.0.1:9".into();
    alone.refuses(&[MODEL], &[MODEL, "http://127.0.0.1:9 cannot be reached", "--model FOLDER"]);
    alone.endpoint = "ftp://somewhere".into();
    alone.refuses(&[MODEL], &["HF_ENDPOINT", "ftp://somewhere"]);
}

/// Files as Python's `huggingface_hub` leaves them behind when only a model was loaded: no notes
/// of files that are not there.
#[test]
fn what_python_downloaded_is_found() {
    let shelf = Shelf::new();
    let mut world = World::new("hub_python", &shelf);
    let (blobs, snapshot) = (world.repository().join("blobs"), world.snapshot(COMMITS[1]));
    let refs = world.repository().join("refs");
    [&blobs, &snapshot, &refs].iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
    fs::write(refs.join("main"), COMMITS[1]).unwrap();
    for (i, name) in ["config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"]
        .iter()
        .enumerate()
    {
        let blob = format!("{i:040x}");
        fs::copy(golden().join(name), blobs.join(&blob)).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(format!("../../blobs/{blob}"), snapshot.join(name)).unwrap();
        #[cfg(not(unix))]
        fs::copy(blobs.join(&blob), snapshot.join(name)).unwrap();
    }
    let wanted = world.label(&[golden().to_str().unwrap()]);
    assert_eq!(world.label(&[MODEL, "--offline"]), wanted);
    assert_eq!(world.label(&[MODEL, "--offline", "--revision", COMMITS[1]]), wanted);
    // Nobody can be asked whether there is more, and what is here is enough.
    world.endpoint = "http://127.0.0.1:9".into();
    assert_eq!(world.label(&[MODEL]), wanted);
    // Weights alone are not: the rest is asked for, of the commit that is here.
    world.endpoint = shelf.address.clone();
    shelf.put(MODEL, COMMITS[1], &golden());
    fs::remove_file(snapshot.join("vocab.txt")).unwrap();
    world.refuses(&[MODEL, "--offline"], &["not complete"]);
    assert_eq!(world.label(&[MODEL]), wanted);
    let asked = shelf.asked();
    assert!(asked.iter().all(|path| path.contains(COMMITS[1])), "{asked:?}");
    assert!(!asked.iter().any(|path| path.contains("safetensors")), "{asked:?}");
    assert_eq!(world.label(&[MODEL]), wanted);
    assert!(shelf.asked().is_empty(), "what is not there was noted");
}

#[test]
fn a_model_has_revisions() {
    let shelf = Shelf::new();
    shelf.put(MODEL, COMMITS[0], &golden());
    let other = other_weights("hub_revision_weights");
    shelf.put(MODEL, COMMITS[1], &other);
    shelf.name("refs/pr/2", COMMITS[1]);
    let world = World::new("hub_revision", &shelf);
    let old = world.label(&[MODEL]);
    let new = world.label(&[MODEL, "--revision", "refs/pr/2"]);
    assert_eq!(new, world.label(&[other.to_str().unwrap()]));
    assert_ne!(old, new);
    for (revision, wanted) in [("main", &old), ("refs/pr/2", &new), (COMMITS[1], &new)] {
        assert_eq!(&world.label(&[MODEL, "--offline", "--revision", revision]), wanted);
    }
    world.refuses(&[MODEL, "--revision", "v9"], &["v9", MODEL]);
    world.refuses(&[MODEL, "--revision", "../x"], &["--revision", "../x"]);
    let local = golden();
    world.refuses(&[local.to_str().unwrap(), "--revision", "main"], &["on this machine"]);
    // A branch stays what it was, until it is asked to move.
    shelf.name("main", COMMITS[1]);
    assert_eq!(world.label(&[MODEL]), old);
    let ran = world.run(&["models", MODEL, "--fetch", "--json"]);
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((told["commit"].as_str(), ran.code), (Some(COMMITS[1]), 0), "{}", ran.err);
    assert_eq!(world.label(&[MODEL]), new);
}

#[test]
fn what_cannot_be_had_is_told() {
    let shelf = Shelf::new();
    shelf.put(MODEL, COMMITS[0], &golden());
    let world = World::new("hub_refused", &shelf);
    world.refuses(&["someone/nothing"], &["someone/nothing", "no such model", &shelf.address]);
    // A name alone may have been meant for one that ships.
    shelf.asked();
    world.refuses(&["en-rf"], &["no model \"en-rf\"", "did you mean 'en-fr'?", "en-fr-bahdanau"]);
    world.refuses(&["nope"], &["no model \"nope\"", "built-in models: ", "owner/name"]);
    assert!(shelf.asked().is_empty(), "the Hub is not asked for a name that can be no id");
    // Those of the first years have no owner.
    world.refuses(&["gpt2"], &["gpt2", "no such model"]);
    assert!(!shelf.asked().is_empty());
    assert!(!world.home.join("hub").exists(), "nothing is left of what is not there");
    world.refuses(&["some one"], &["en-fr", "sentence-transformers/all-MiniLM-L6-v2"]);
    world.refuses(&["runs/none"], &["no folder runs/none"]);
    shelf.put_file("someone/flax", COMMITS[0], "config.json", b"{}".to_vec());
    world.refuses(&["someone/flax"], &["no vocabulary in a supported format", "spiece.model"]);
    shelf.put_file("someone/flax", COMMITS[1], "config.json", b"{}".to_vec());
    shelf.put_file("someone/flax", COMMITS[1], "vocab.txt", b"[UNK]".to_vec());
    shelf.name("main", COMMITS[1]);
    world.refuses(&["someone/flax"], &["no weights in a supported format", "pytorch_model.bin"]);
    shelf.name("main", COMMITS[0]);

    shelf.behave(Manners { token: Some(("secret", 401)), ..Manners::default() });
    world.refuses(&[MODEL], &[MODEL, "401", "set HF_TOKEN"]);
    shelf.behave(Manners { token: Some(("secret", 403)), ..Manners::default() });
    let wrong = World::new("hub_wrong", &shelf).with("HF_TOKEN", "guess");
    wrong.refuses(&[MODEL], &[MODEL, "403", "HF_TOKEN", "terms"]);
    assert!(!wrong.run(&["classify", TEXT, "--model", MODEL]).err.contains("guess"));
    World::new("hub_right", &shelf).with("HF_TOKEN", "secret").label(&[MODEL]);
    // The file that `hf auth login` writes is for huggingface.co, and this is another server.
    shelf.authorized();
    let saved = World::new("hub_saved", &shelf);
    fs::write(saved.home.join("token"), "secret\n").unwrap();
    saved.refuses(&[MODEL], &[MODEL, "403", "saved token was not sent", "set HF_TOKEN"]);
    assert!(shelf.authorized().iter().all(Option::is_none), "the saved token went elsewhere");
}

/// Every file below a folder.
fn all_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = vec![];
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        match fs::symlink_metadata(&path).unwrap().is_dir() {
            true => files.extend(all_files(&path)),
            false => files.push(path),
        }
    }
    files
}

/// Whoever answers chooses the etag and the commit, which become parts of paths.
#[test]
fn a_server_does_not_choose_what_is_written() {
    let shelf = Shelf::new();
    shelf.put(MODEL, COMMITS[0], &golden());
    let outside = folder("hub_hostile_outside");
    let victim = outside.join("victim.txt");
    fs::write(&victim, "precious").unwrap();
    let absolute = format!("\"{}\"", victim.display());
    let absent = format!("\"{}\"", outside.join("new.txt").display());
    let etags = [
        &absolute,
        &absent,
        "\"../../../../hub_hostile_outside/victim.txt\"",
        "\"../../../../hub_hostile_outside/new.txt\"",
        "..",
        "\"\"",
        "a/b",
        "a.part",
        &"a".repeat(300),
    ];
    for etag in etags {
        let world = World::new("hub_hostile", &shelf);
        shelf.behave(Manners { etag: Some(etag.to_string()), ..Manners::default() });
        world.refuses(&[MODEL], &[MODEL, "etag", "Nothing was written"]);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{etag}");
        assert_eq!(all_files(&outside).len(), 1, "{etag}");
        assert!(all_files(&world.home).is_empty(), "{etag}");
    }
    for commit in ["../../../../hub_hostile_outside", "", "a/b", &"1".repeat(300)] {
        let world = World::new("hub_hostile", &shelf);
        shelf.behave(Manners { commit: Some(commit.to_string()), ..Manners::default() });
        world.refuses(&[MODEL], &[MODEL, "commit"]);
        assert!(all_files(&world.home).is_empty(), "{commit}");
    }
    // A small file that is not small is refused before it comes.
    let world = World::new("hub_hostile", &shelf);
    shelf.behave(Manners { size: Some(("vocab.txt", (1 << 28) + 1)), ..Manners::default() });
    world.refuses(&[MODEL], &["vocab.txt", "268435457 bytes", "at most 268435456"]);
}

#[test]
fn a_download_is_compared_with_its_checksum() {
    let shelf = Shelf::new();
    shelf.put(MODEL, COMMITS[0], &golden());
    for name in ["model.safetensors", "config.json"] {
        let world = World::new("hub_spoiled", &shelf);
        shelf.behave(Manners { spoiled: Some(name), ..Manners::default() });
        world.refuses(&[MODEL], &[MODEL, name, "checksum", "removed"]);
        assert!(!world.snapshot(COMMITS[0]).join(name).exists(), "{name}");
        let left = all_files(&world.repository().join("blobs"));
        assert!(!left.iter().any(|path| path.extension().is_some_and(|e| e == "part")), "{left:?}");
        // The right file is taken when it comes.
        shelf.behave(Manners::default());
        world.label(&[MODEL]);
    }
    // A part that is not of this file: the download begins again, and the result is right.
    let world = World::new("hub_spoiled_part", &shelf);
    let wanted = world.label(&[MODEL]);
    let link = world.snapshot(COMMITS[0]).join("model.safetensors");
    let contents = fs::canonicalize(&link).unwrap();
    fs::remove_file(&link).unwrap();
    fs::remove_file(&contents).unwrap();
    fs::write(contents.with_extension("part"), [7; 1000]).unwrap();
    assert_eq!(world.label(&[MODEL]), wanted);
}

/// Large files are on another server than the one that knows of them.
#[test]
fn a_token_stays_with_its_server() {
    let (shelf, other) = (Shelf::new(), Shelf::new());
    for shelf in [&shelf, &other] {
        shelf.put(MODEL, COMMITS[0], &golden());
    }
    let to = Some(("model.safetensors", other.address.clone()));
    let token = Some(("secret", 401));
    shelf.behave(Manners { elsewhere: to.clone(), token, ..Manners::default() });
    let world = World::new("hub_redirected", &shelf).with("HF_TOKEN", "secret");
    let wanted = world.label(&[golden().to_str().unwrap()]);
    assert_eq!(world.label(&[MODEL]), wanted);
    assert!(shelf.authorized().iter().all(|said| said.as_deref() == Some("Bearer secret")));
    let said = other.authorized();
    assert!(!said.is_empty() && said.iter().all(Option::is_none), "{said:?}");
    // What the other server gives is compared with what the first one says of it.
    other.behave(Manners { spoiled: Some("model.safetensors"), ..Manners::default() });
    let world = World::new("hub_redirected_spoiled", &shelf).with("HF_TOKEN", "secret");
    world.refuses(&[MODEL], &["model.safetensors", "checksum"]);
    // A server that sends everybody on and on.
    let around = Some(("model.safetensors", shelf.address.clone()));
    shelf.behave(Manners { elsewhere: around, ..Manners::default() });
    World::new("hub_around", &shelf).refuses(&[MODEL], &["redirects"]);
    let nowhere = Some(("model.safetensors", "file://".to_string()));
    shelf.behave(Manners { elsewhere: nowhere, ..Manners::default() });
    World::new("hub_file", &shelf).refuses(&[MODEL], &["file://", "not followed"]);
}

/// A token is not sent unencrypted over a network.
#[test]
fn a_token_is_not_sent_unencrypted() {
    let shelf = Shelf::new();
    let mut world = World::new("hub_unencrypted", &shelf).with("HF_TOKEN", "secret");
    let token = Some(("secret", 401));
    shelf.behave(Manners { token, ..Manners::default() });
    // All of 127.x is this machine, but 0.0.0.0 is not a loopback address: connections to it
    // reach the server all the same.
    world.endpoint = shelf.address.replace("127.0.0.1", "0.0.0.0");
    world.refuses(&[MODEL], &["HF_TOKEN was not sent", "https://"]);
    let said = shelf.authorized();
    assert!(!said.is_empty() && said.iter().all(Option::is_none), "{said:?}");
}

#[test]
fn a_download_that_breaks_off_goes_on() {
    for (test, no_ranges) in [("hub_broken", false), ("hub_broken_whole", true)] {
        let shelf = Shelf::new();
        shelf.put(MODEL, COMMITS[0], &golden());
        let world = World::new(test, &shelf);
        shelf.behave(Manners { cut: Some(("model.safetensors", 1000)), ..Manners::default() });
        world.refuses(&[MODEL], &[MODEL, "broke off", "again"]);
        // Nothing looks whole: no weights under their name, and the branch is no commit yet.
        assert!(world.snapshot(COMMITS[0]).join("config.json").exists());
        assert!(!world.snapshot(COMMITS[0]).join("model.safetensors").exists());
        assert!(!world.repository().join("refs/main").exists());
        world.refuses(&[MODEL, "--offline"], &["not complete"]);
        shelf.asked();
        shelf.behave(Manners { no_ranges, ..Manners::default() });
        let found = world.label(&[MODEL]);
        let goes_on = |path: &String| path.contains("safetensors") && path.ends_with("000-");
        assert!(shelf.asked().iter().any(goes_on), "what came is not asked for again");
        assert_eq!(found, world.label(&[golden().to_str().unwrap()]));
    }
}

/// A server that stops in the middle of a file, and keeps the connection.
#[test]
fn a_server_that_falls_silent_is_not_waited_for() {
    let shelf = Shelf::new();
    shelf.put(MODEL, COMMITS[0], &golden());
    let world = World::new("hub_silent", &shelf).with("HF_HUB_DOWNLOAD_TIMEOUT", "2");
    let cut = Some(("model.safetensors", 1000));
    shelf.behave(Manners { cut, silent: true, ..Manners::default() });
    world.refuses(&[MODEL], &[MODEL, "broke off", "no data for 2 s", "again"]);
    // What came is kept.
    shelf.behave(Manners::default());
    world.label(&[MODEL]);
    let wrong = World::new("hub_impatient", &shelf).with("HF_HUB_DOWNLOAD_TIMEOUT", "soon");
    wrong.refuses(&[MODEL], &["HF_HUB_DOWNLOAD_TIMEOUT", "soon", "seconds"]);
}

/// A cache of before a file was looked for: whatever the server says of that one, what is here
/// still works.
#[test]
fn what_is_enough_needs_no_server() {
    let shelf = Shelf::new();
    shelf.put(MODEL, COMMITS[0], &golden());
    let world = World::new("hub_enough", &shelf);
    let wanted = world.label(&[MODEL]);
    let absent = world.repository().join(".no_exist").join(COMMITS[0]).join("modules.json");
    let link = world.snapshot(COMMITS[0]).join("modules.json");
    let modules = json!([{ "path": "1_Pooling", "type": "sentence_transformers.models.Pooling" }]);
    let modules = modules.to_string().into_bytes();
    let forget = || _ = fs::remove_file(&absent);
    let file = "modules.json";
    for status in [401, 403, 429, 500, 503] {
        forget();
        shelf.behave(Manners { status: Some((file, status)), ..Manners::default() });
        assert_eq!(world.label(&[MODEL]), wanted, "{status}");
        let ran = world.run(&["classify", TEXT, "--model", MODEL]);
        let told = ["warning", &status.to_string(), "cache"].map(|part| ran.err.contains(part));
        assert_eq!((ran.code, told), (0, [true; 3]), "{}", ran.err);
        assert!(!absent.exists(), "{status}: nobody said that there is none");
    }
    // A connection that breaks.
    shelf.put_file(MODEL, COMMITS[0], file, modules);
    shelf.behave(Manners { cut: Some((file, 5)), ..Manners::default() });
    assert_eq!(world.label(&[MODEL]), wanted);
    // A file that somebody changed is no reason to go on.
    shelf.behave(Manners { spoiled: Some(file), ..Manners::default() });
    world.refuses(&[MODEL], &[file, "checksum", "removed"]);
    // The list of modules comes, and their settings do not.
    shelf.behave(Manners { status: Some(("config.json", 503)), ..Manners::default() });
    assert_eq!(world.label(&[MODEL]), wanted);
    assert!(!link.exists(), "a list of modules without their settings is of no use");
}

/// A program may be killed when the last byte has come and the file has no name yet.
#[test]
fn a_download_that_broke_off_at_its_end_is_made_again() {
    let shelf = Shelf::new();
    shelf.put(MODEL, COMMITS[0], &golden());
    let world = World::new("hub_broken_late", &shelf);
    let wanted = world.label(&[MODEL]);
    let link = world.snapshot(COMMITS[0]).join("model.safetensors");
    let contents = fs::canonicalize(&link).unwrap();
    for extra in [&b""[..], b"and more"] {
        let part = contents.with_extension("part");
        fs::remove_file(&link).unwrap();
        fs::rename(&contents, &part).unwrap();
        let bytes = [&fs::read(&part).unwrap(), extra].concat();
        fs::write(&part, bytes).unwrap();
        assert_eq!(world.label(&[MODEL]), wanted);
        assert!(!part.exists());
    }
}

#[test]
fn weights_may_be_in_shards() {
    let shelf = Shelf::new();
    let to = folder("hub_shards_model");
    let weights = checkpoint::read_arrays(&golden().join("model.safetensors")).unwrap();
    let (mut parts, mut map) = ([checkpoint::Arrays::new(), checkpoint::Arrays::new()], json!({}));
    let names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
    for (i, (name, array)) in weights.into_iter().enumerate() {
        map[&name] = json!(names[i % 2]);
        parts[i % 2].insert(name, array);
    }
    for (part, name) in parts.iter().zip(names) {
        checkpoint::write_arrays(&to.join(name), part, Precision::Single).unwrap();
    }
    let index = json!({ "metadata": {}, "weight_map": map }).to_string();
    fs::write(to.join("model.safetensors.index.json"), &index).unwrap();
    for name in ["config.json", "vocab.txt", "tokenizer_config.json"] {
        fs::copy(golden().join(name), to.join(name)).unwrap();
    }
    shelf.put(MODEL, COMMITS[0], &to);
    let world = World::new("hub_shards", &shelf);
    let wanted = world.label(&[golden().to_str().unwrap()]);
    assert_eq!(world.label(&[MODEL]), wanted);
    assert_eq!(world.label(&[MODEL, "--offline"]), wanted);
    // A shard that is gone is a model that is not whole.
    fs::remove_file(world.snapshot(COMMITS[0]).join(names[1])).unwrap();
    world.refuses(&[MODEL, "--offline"], &["not complete"]);
    assert_eq!(world.label(&[MODEL]), wanted);
    // An index that would have files written elsewhere is refused.
    let evil = index.replace(names[1], "../../../evil.safetensors");
    for name in ["config.json", "vocab.txt"] {
        shelf.put_file(MODEL, COMMITS[1], name, fs::read(to.join(name)).unwrap());
    }
    let at = "model.safetensors.index.json";
    shelf.put_file(MODEL, COMMITS[1], at, evil.into_bytes());
    shelf.name("evil", COMMITS[1]);
    world.refuses(&[MODEL, "--revision", "evil"], &["outside its folder", "evil.safetensors"]);
}

#[test]
fn a_name_is_told_what_it_stands_for() {
    let shelf = Shelf::new();
    shelf.put(MODEL, COMMITS[0], &golden());
    let world = World::new("hub_models", &shelf);
    let told = |args: &[&str], code: i32| -> Value {
        let ran = world.run(&[&["models"], args, &["--json"]].concat());
        assert_eq!(ran.code, code, "{args:?}: {}", ran.err);
        serde_json::from_str(&ran.out).unwrap()
    };
    let shipped = told(&["en-fr"], 0);
    assert_eq!(shipped["kind"], "ships");
    assert!(shipped["files"].as_array().unwrap().len() >= 4 && shipped["config"].is_object());
    let local = told(&[golden().to_str().unwrap()], 0);
    assert_eq!(
        (&local["kind"], &local["config"]["model_type"]),
        (&json!("folder"), &json!("bert"))
    );
    let absent = told(&[MODEL], 1);
    assert_eq!((&absent["kind"], &absent["id"]), (&json!("hub"), &json!(MODEL)));
    assert!(absent.get("folder").is_none() && shelf.asked().is_empty(), "nothing is downloaded");
    assert!(world.run(&["models", MODEL]).out.contains("--fetch"));
    let here = told(&[MODEL, "--fetch"], 0);
    assert_eq!(here, told(&[MODEL], 0));
    assert_eq!(here["commit"], COMMITS[0]);
    assert_eq!(Path::new(here["folder"].as_str().unwrap()), world.snapshot(COMMITS[0]));
    let files = here["files"].as_array().unwrap();
    let sizes: u64 = files.iter().map(|file| file["bytes"].as_u64().unwrap()).sum();
    assert_eq!(here["bytes"], sizes);
    let weights = fs::metadata(golden().join("model.safetensors")).unwrap().len();
    assert!(files.contains(&json!({ "name": "model.safetensors", "bytes": weights })), "{files:?}");
    let text = world.run(&["models", MODEL]).out;
    for part in [COMMITS[0], "BertForSequenceClassification", "vocab.txt", "kB"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(world.run(&["models", "en-fr", "--fetch"]).code, 2);
}

#[test]
fn a_recipe_begins_with_a_model_of_the_hub() {
    let shelf = Shelf::new();
    shelf.put(MODEL, COMMITS[0], &golden());
    let world = World::new("hub_recipe", &shelf);
    let texts = "the cat sat\tgood\nbob is in london\tbad\n".repeat(4);
    for name in ["train.tsv", "valid.tsv"] {
        fs::write(world.home.join(name), &texts).unwrap();
    }
    let at = |name: &str| world.home.join(name).display().to_string();
    let recipe = format!(
        "name = 'tuned'\ntask = 'classify'\nfrom = '{MODEL}'\n[data]\nset = 'files'\n\
         train = '{}'\nvalid = '{}'\nmax_tokens = 20\n[train]\nsteps = 2\neval_every = 2\n",
        at("train.tsv"),
        at("valid.tsv")
    );
    fs::write(world.home.join("tuned.toml"), recipe).unwrap();
    let train = |more: &[&str]| {
        let (recipe, run) = (at("tuned.toml"), at("run"));
        world.run(&[&["train", &recipe, "--out", &run], more].concat())
    };
    let ran = train(&["--offline"]);
    assert!(ran.code == 2 && ran.err.contains("from: ") && ran.err.contains(MODEL), "{}", ran.err);
    let ran = train(&[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    // What is written down is the name, and the commit that it was.
    let written = fs::read_to_string(world.home.join("run/recipe.toml")).unwrap();
    assert!(written.contains(&format!("from = \"{MODEL}\"")), "{written}");
    assert!(written.contains(&format!("revision = \"{}\"", COMMITS[0])), "{written}");
    let label = world.label(&[&at("run")]);
    assert!(["good", "bad"].contains(&label["label"].as_str().unwrap()), "{label}");
}

//! `regard data` and `regard recipes`.

use crate::program::{Ran, command, fails, finish, folder, json, regard};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

/// Answers every request with these bytes, or that there is nothing; its address.
fn serve(answer: Option<&'static [u8]>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/mirror", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let (status, body) = match answer {
                Some(body) => ("200 OK", body),
                None => ("404 Not Found", &b"nothing"[..]),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(&[head.as_bytes(), body].concat());
        }
    });
    address
}

fn fetch(set: &str, mirror: &str, data: &Path) -> Ran {
    let mut command = command(&["data", set, "--fetch"]);
    command.env("REGARD_DATA", data).env("REGARD_DATA_SOURCE", mirror);
    // A proxy would be asked for this machine's own address.
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env_remove(name);
    }
    finish(command)
}

fn can_download() -> bool {
    let there = |program: &&str| Command::new(program).arg("--version").output().is_ok();
    let can = ["curl", "wget"].iter().any(there);
    if !can {
        regard_fuzz::skip("neither curl nor wget is here");
    }
    can
}

/// The files in a folder.
fn files(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn sets_are_listed_and_shown() {
    let rows = json(&["data", "--json"]);
    let names: Vec<&str> =
        rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"multi30k") && names.contains(&"cmudict"), "{names:?}");
    let ran = regard(&["data"]);
    assert_eq!(ran.out.lines().count(), names.len() + 1, "a pipe gets a line a row");
    assert!(ran.out.contains("CC BY 2.0") && ran.out.contains("MB"), "{}", ran.out);

    let home = folder("data_show");
    let set = home.join("tinyshakespeare");
    let show = |args: &[&str]| {
        let mut command = command(args);
        command.env("REGARD_DATA", &home).env("HOME", &home).env_remove("XDG_DATA_HOME");
        finish(command)
    };
    let ran = show(&["data", "tinyshakespeare"]);
    assert_eq!(ran.code, 1, "it is not here");
    for part in ["public domain", "Karpathy", "missing", "--fetch", "not on this machine"] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    std::fs::create_dir_all(&set).unwrap();
    std::fs::write(set.join("input.txt"), "First Citizen").unwrap();
    let ran = show(&["data", "tinyshakespeare", "--json"]);
    assert_eq!(ran.code, 1, "it is another text");
    let object: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(object["files"][0]["state"], "differs");
    assert_eq!(object["found"], set.to_str().unwrap());
    // Of a set that changes, another file is no mistake.
    std::fs::create_dir_all(home.join("tatoeba-cmn-eng")).unwrap();
    std::fs::write(home.join("tatoeba-cmn-eng/cmn.txt"), "Hi.\t嗨。\n").unwrap();
    let ran = show(&["data", "tatoeba-cmn-eng"]);
    assert!(ran.code == 0 && ran.out.contains("no error"), "{}", ran.out);
    // A folder of many files is whole if it has as many.
    std::fs::create_dir_all(home.join("fsdd/recordings")).unwrap();
    std::fs::write(home.join("fsdd/README.md"), "digits").unwrap();
    std::fs::write(home.join("fsdd/recordings/0_a_0.wav"), "").unwrap();
    let ran = show(&["data", "fsdd"]);
    assert!(ran.code == 1 && ran.out.contains("1 of 3000 files"), "{}", ran.out);
    fails(&["data", "multi31k"], &["multi31k", "multi30k"]);
    fails(&["data", "--fetch"], &["NAME"]);
}

#[test]
fn a_set_is_downloaded_and_checked() {
    if !can_download() {
        return;
    }
    let home = folder("data_fetch");
    let mirror = serve(Some("Hi.\t嗨。\n".as_bytes()));
    let ran = fetch("tatoeba-cmn-eng", &mirror, &home);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let set = home.join("tatoeba-cmn-eng");
    assert_eq!(std::fs::read_to_string(set.join("cmn.txt")).unwrap(), "Hi.\t嗨。\n");
    assert!(ran.err.contains("differs from the known version"), "{}", ran.err);
    assert_eq!(files(&set), ["cmn.txt"]);
    let again = fetch("tatoeba-cmn-eng", &mirror, &home);
    assert!(again.err.contains("nothing is missing"), "{}", again.err);
    // Of a set that does not change, another file is refused, and nothing is left of it.
    let ran = fetch("squad", &mirror, &home);
    assert_eq!(ran.code, 2, "{}", ran.out);
    for part in [
        "dev-v1.1.json",
        "not the known file",
        "95aa6a52d5d6a735563366753ca50492a658031da74f301ac5238b03966972c9",
        "CC BY-SA 4.0",
    ] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    assert!(!home.join("squad").exists());
}

#[test]
fn a_download_that_fails_says_what_to_do() {
    let home = folder("data_fetch_fails");
    if can_download() {
        let ran = fetch("squad", &serve(None), &home);
        assert_eq!(ran.code, 2);
        let into = home.join("squad");
        for part in ["could not get", "404", "dev-v1.1.json", into.to_str().unwrap()] {
            assert!(ran.err.contains(part), "{part}: {}", ran.err);
        }
        assert!(!into.exists(), "an empty folder would look like the set");
    }
    let mut poor = command(&["data", "squad", "--fetch"]);
    poor.env("REGARD_DATA", &home).env("PATH", &home).env_remove("REGARD_DATA_SOURCE");
    let ran = finish(poor);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("neither curl nor wget"), "{}", ran.err);
    assert!(ran.err.contains("https://rajpurkar.github.io"), "{}", ran.err);
    let mut by_hand = command(&["data", "glove-subset", "--fetch"]);
    by_hand.env("REGARD_DATA", &home).env_remove("REGARD_DATA_SOURCE");
    let ran = finish(by_hand);
    assert!(ran.code == 2 && ran.err.contains("To get it by hand:\n  what:"), "{}", ran.err);
    let ran = fetch("squad", "file:///etc", &home);
    assert!(ran.code == 2 && ran.err.contains("REGARD_DATA_SOURCE"), "{}", ran.err);
}

#[test]
fn recipes_are_listed_and_have_names() {
    let rows = json(&["recipes", "--json"]);
    let rows = rows.as_array().unwrap();
    for row in rows {
        for key in ["name", "task", "data", "metric", "published", "log"] {
            assert!(row[key].is_string(), "{key}: {row}");
        }
        assert!(row["seed"].is_u64() && row.get("ours").is_some(), "{row}");
        assert!(row.get("minutes").is_some());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes");
    for row in rows {
        let log = row["log"].as_str().unwrap();
        assert!(log.is_empty() || root.join(log).is_file(), "{row}: there is no such log");
        assert_eq!(row["ours"].is_null(), log.is_empty(), "{row}: a number has a log");
    }
    let one = regard(&["recipes", "cora-gat"]).out;
    assert!(one.contains("published") && one.contains("recipes/logs/cora-gat"), "{one}");
    fails(&["recipes", "no-such"], &["no-such"]);
    let ran = regard(&["recipes"]);
    assert_eq!(ran.out.lines().count(), rows.len() + 1);
    let name = rows[0]["name"].as_str().unwrap();
    let dumped =
        json(&["train", name, "--dump-config", "--json", "--set", "train.steps=9", "--seed", "5"]);
    assert_eq!((&dumped["train"]["steps"], &dumped["seed"]), (&9.into(), &5.into()));
    let toml = regard(&["train", name, "--dump-config"]).out;
    let path = folder("recipes").join("mine.toml");
    std::fs::write(&path, &toml).unwrap();
    assert_eq!(regard(&["train", path.to_str().unwrap(), "--dump-config"]).out, toml);
    fails(&["train", "no-such-recipe"], &["no-such-recipe", "`regard recipes` lists all"]);
    fails(&["eval", "no-such.toml"], &["no-such.toml", "No such file"]);
}

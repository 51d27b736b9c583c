//! A Hub for tests: a thread that answers as huggingface.co does for a few small models.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The commits of every model here.
pub const COMMITS: [&str; 2] =
    ["1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"];

/// How it behaves.
#[derive(Clone, Default)]
pub struct Manners {
    /// Whoever has not this token is refused with the status.
    pub token: Option<(&'static str, u16)>,
    /// Of this file, connections end after so many bytes of an answer.
    pub cut: Option<(&'static str, usize)>,
    /// Whether a part of a file that is not its beginning can be asked for.
    pub no_ranges: bool,
}

/// What can be had, and what was asked for.
#[derive(Default)]
struct State {
    /// By model and commit, then by name.
    files: HashMap<(String, String), HashMap<String, Vec<u8>>>,
    /// The commit of a branch or tag of every model.
    names: HashMap<String, String>,
    manners: Manners,
    /// The path of each request, with its range.
    asked: Vec<String>,
}

pub struct Shelf {
    pub address: String,
    state: Arc<Mutex<State>>,
}

impl Shelf {
    pub fn new() -> Shelf {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State::default()));
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = answer(stream, &shared);
            }
        });
        let shelf = Shelf { address, state };
        shelf.name("main", COMMITS[0]);
        shelf
    }

    /// Puts the files of a folder there, as a commit of a model.
    pub fn put(&self, model: &str, commit: &str, folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            self.put_file(model, commit, name, std::fs::read(&path).unwrap());
        }
    }

    pub fn put_file(&self, model: &str, commit: &str, name: &str, bytes: Vec<u8>) {
        let mut state = self.state.lock().unwrap();
        let key = (model.to_string(), commit.to_string());
        state.files.entry(key).or_default().insert(name.to_string(), bytes);
    }

    /// Lets a branch or tag be a commit.
    pub fn name(&self, revision: &str, commit: &str) {
        let mut state = self.state.lock().unwrap();
        state.names.insert(revision.to_string(), commit.to_string());
    }

    pub fn behave(&self, manners: Manners) {
        self.state.lock().unwrap().manners = manners;
    }

    /// What was asked for since the last time, once each, in order.
    pub fn asked(&self) -> Vec<String> {
        let mut asked = std::mem::take(&mut self.state.lock().unwrap().asked);
        asked.dedup();
        asked
    }
}

struct Request {
    path: String,
    range: Option<(usize, Option<usize>)>,
    authorization: Option<String>,
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let first = lines.next()?.ok()?;
    let path = first.split(' ').nth(1)?.to_string();
    let mut request = Request { path, range: None, authorization: None };
    for line in lines {
        let line = line.ok()?;
        let Some((name, value)) = line.split_once(':') else { break };
        match name.to_lowercase().as_str() {
            "range" => {
                let (from, to) = value.trim().strip_prefix("bytes=")?.split_once('-')?;
                request.range = Some((from.parse().ok()?, to.parse().ok()));
            }
            "authorization" => request.authorization = Some(value.trim().to_string()),
            _ => {}
        }
    }
    Some(request)
}

fn answer(mut stream: TcpStream, state: &Mutex<State>) -> Option<()> {
    let request = read(&stream)?;
    let (status, head, body, cut) = said(&request, &mut state.lock().unwrap());
    let head = format!(
        "HTTP/1.1 {status}\r\n{head}Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(&body[..body.len().min(cut)]).ok()
}

/// The status, headers, the body, and after how many bytes of it the line goes dead.
fn said(request: &Request, state: &mut State) -> (String, String, Vec<u8>, usize) {
    let nothing = |status: &str| (status.to_string(), String::new(), vec![], usize::MAX);
    let range = request.range.map_or(String::new(), |(from, to)| {
        format!(" {from}-{}", to.map_or(String::new(), |to| to.to_string()))
    });
    state.asked.push(format!("{}{range}", request.path));
    if let Some((token, status)) = state.manners.token
        && request.authorization.as_deref() != Some(&format!("Bearer {token}"))
    {
        return nothing(&format!("{status} Refused"));
    }
    let Some((model, rest)) = request.path[1..].split_once("/resolve/") else {
        return nothing("404 Not Found");
    };
    // The file has no slash in it; the revision may.
    let Some((revision, name)) = rest.rsplit_once('/') else { return nothing("404 Not Found") };
    let revision = revision.replace("%2F", "/");
    let commit = state.names.get(&revision).unwrap_or(&revision).clone();
    let files = state.files.get(&(model.to_string(), commit.clone()));
    let Some(bytes) = files.and_then(|files| files.get(name)) else {
        return nothing("404 Not Found");
    };
    let sum = bytes.iter().fold(0u64, |sum, byte| sum.wrapping_mul(31) + u64::from(*byte));
    let mut head = format!("ETag: \"{sum:016x}{name}\"\r\nx-repo-commit: {commit}\r\n");
    let cut = state.manners.cut.filter(|(cut, _)| *cut == name).map_or(usize::MAX, |(_, n)| n);
    match request.range {
        Some((from, None)) if from > 0 && state.manners.no_ranges => {
            ("200 OK".into(), head, bytes.clone(), cut)
        }
        Some((from, _)) if from >= bytes.len() => nothing("416 Range Not Satisfiable"),
        Some((from, to)) => {
            let end = to.map_or(bytes.len(), |to| (to + 1).min(bytes.len()));
            head += &format!("Content-Range: bytes {from}-{}/{}\r\n", end - 1, bytes.len());
            ("206 Partial Content".into(), head, bytes[from..end].to_vec(), cut)
        }
        None => ("200 OK".into(), head, bytes.clone(), cut),
    }
}

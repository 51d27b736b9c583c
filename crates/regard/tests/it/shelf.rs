//! A Hub for tests: a thread that answers as huggingface.co does for a few small models.

use sha2::{Digest, Sha256};
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
    /// They do not end: nothing more comes.
    pub silent: bool,
    /// Whoever asks for this file gets this status.
    pub status: Option<(&'static str, u16)>,
    /// Whether a part of a file that is not its beginning can be asked for.
    pub no_ranges: bool,
    /// Etag sent for every file instead of its own.
    pub etag: Option<String>,
    /// Commit sent for every file instead of its own.
    pub commit: Option<String>,
    /// The last byte of this file is another one.
    pub spoiled: Option<&'static str>,
    /// Whoever asks for this file is sent to this address, with what was asked for at its end.
    pub elsewhere: Option<(&'static str, String)>,
    /// Announces and sends this many bytes of this file, whatever its size.
    pub size: Option<(&'static str, usize)>,
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
    /// The `Authorization` of each request.
    authorized: Vec<Option<String>>,
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

    /// The `Authorization` of each request since the last time.
    pub fn authorized(&self) -> Vec<Option<String>> {
        std::mem::take(&mut self.state.lock().unwrap().authorized)
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
    stream.write_all(&body[..body.len().min(cut)]).ok()?;
    if cut < body.len() && state.lock().unwrap().manners.silent {
        // Far longer than whoever asks is patient.
        std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_secs(20));
            drop(stream);
        });
    }
    Some(())
}

/// The etag that the Hub gives a file: SHA-256 for weights, git's name for all others.
fn etag_of(name: &str, bytes: &[u8]) -> String {
    if name.ends_with(".safetensors") || name.ends_with(".bin") {
        let sum: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        return format!("\"{sum}\"");
    }
    let blob = [format!("blob {}\0", bytes.len()).as_bytes(), bytes].concat();
    // Proxies make strong etags weak.
    format!("W/\"{}\"", sha1_smol::Sha1::from(blob).digest())
}

/// The status, headers, the body, and after how many bytes of it the line goes dead.
fn said(request: &Request, state: &mut State) -> (String, String, Vec<u8>, usize) {
    let nothing = |status: &str| (status.to_string(), String::new(), vec![], usize::MAX);
    let range = request.range.map_or(String::new(), |(from, to)| {
        format!(" {from}-{}", to.map_or(String::new(), |to| to.to_string()))
    });
    state.asked.push(format!("{}{range}", request.path));
    state.authorized.push(request.authorization.clone());
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
    if let Some((_, status)) = state.manners.status.filter(|(file, _)| *file == name) {
        return nothing(&format!("{status} Refused"));
    }
    let revision = revision.replace("%2F", "/");
    let commit = state.names.get(&revision).unwrap_or(&revision).clone();
    let files = state.files.get(&(model.to_string(), commit.clone()));
    let Some(bytes) = files.and_then(|files| files.get(name)) else {
        return nothing("404 Not Found");
    };
    let manners = state.manners.clone();
    let etag = manners.etag.unwrap_or_else(|| etag_of(name, bytes));
    let commit = manners.commit.unwrap_or(commit);
    let mut head = format!("ETag: {etag}\r\nx-repo-commit: {commit}\r\n");
    if let Some((_, to)) = manners.elsewhere.filter(|(file, _)| *file == name) {
        // As the Hub does for large files: it says what the file is, and where it is.
        let linked = format!("x-linked-etag: {etag}\r\n");
        head = head + &linked + &format!("Location: {to}{}\r\n", request.path);
        return ("302 Found".into(), head, vec![], usize::MAX);
    }
    let mut bytes = bytes.clone();
    if manners.spoiled == Some(name) {
        *bytes.last_mut().unwrap() ^= 1;
    }
    if let Some((_, size)) = manners.size.filter(|(file, _)| *file == name) {
        bytes.resize(size, b' ');
    }
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

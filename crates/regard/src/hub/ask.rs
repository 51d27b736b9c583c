//! Requests to the Hub: redirects are followed here, one by one, so that the token goes to the
//! endpoint and to no other server.

use super::failure::Failure;
use super::origin::{self, Origin};
use super::settings::{Settings, Token};
use super::words::{Commit, Etag, FileName, quoted};
use std::time::Duration;
use ureq::http::{Response, header};
use ureq::{Agent, Body};

/// Redirects of one request at most.
const REDIRECTS: usize = 8;

/// Who asks, and where.
pub struct Client<'a> {
    agent: Agent,
    settings: &'a Settings,
    endpoint: Option<Origin>,
}

/// Metadata of a file from response headers.
#[derive(Debug)]
pub struct Facts {
    pub commit: Commit,
    pub etag: Etag,
    /// Bytes.
    pub size: u64,
}

/// An answer, and what the endpoint said on the way to it.
struct Answer {
    response: Response<Body>,
    /// The headers of the endpoint's own last answer, before another server was asked.
    own: ureq::http::HeaderMap,
}

impl Client<'_> {
    pub fn new(settings: &Settings) -> Client<'_> {
        let agent = Agent::config_builder()
            .max_redirects(0)
            .http_status_as_error(false)
            .timeout_connect(Some(settings.patience))
            .timeout_recv_response(Some(settings.patience))
            // A body may take hours, but not without a byte.
            .timeout_per_read(Some(settings.patience))
            .user_agent(format!("regard/{}", env!("CARGO_PKG_VERSION")))
            // Sizes and sums are those of the file itself.
            .accept_encoding("identity")
            .build()
            .into();
        Client { agent, settings, endpoint: Origin::of(&settings.endpoint) }
    }

    /// How long a server may be silent.
    pub fn patience(&self) -> Duration {
        self.settings.patience
    }

    /// The address of a file of a model.
    pub fn address(&self, id: &str, revision: &str, name: &FileName) -> String {
        let revision = revision.replace('/', "%2F");
        format!("{}/{id}/resolve/{revision}/{}", self.settings.endpoint, name.as_str())
    }

    /// Requests a file's metadata by its first byte.
    pub fn facts(&self, address: &str) -> Result<Facts, Failure> {
        let answer = self.get(address, Some("bytes=0-0"))?;
        let text = |name: &str| header_text(&answer.own, name);
        let commit = text("x-repo-commit").ok_or_else(|| lacks("x-repo-commit"))?;
        let etag = text("x-linked-etag").or_else(|| text("etag")).ok_or_else(|| lacks("etag"))?;
        let size = size(&answer.response).ok_or_else(|| lacks("content-range"))?;
        let wrong = |why| Failure::Other(format!("the answer is not the Hub's: {why}"));
        Ok(Facts {
            commit: Commit::new(commit).map_err(wrong)?,
            etag: Etag::new(etag).map_err(wrong)?,
            size,
        })
    }

    /// The contents of a file from some byte on; the byte that they begin with, which is 0 if the
    /// server gives whole files only.
    pub fn contents(&self, address: &str, from: u64) -> Result<(u64, Body), Failure> {
        let range = (from > 0).then(|| format!("bytes={from}-"));
        let response = self.get(address, range.as_deref())?.response;
        let begins = match response.status().as_u16() {
            206 => {
                let range = header_text(response.headers(), "content-range");
                let begin = range.and_then(|range| range.strip_prefix("bytes ")?.split('-').next());
                begin.and_then(|begin| begin.trim().parse().ok())
            }
            200 => Some(0),
            _ => None,
        };
        match begins {
            Some(begins) if begins == from || begins == 0 => Ok((begins, response.into_body())),
            _ => Err(Failure::Other(format!(
                "{address}: asked for the bytes from {from}, got status {} with the range {}",
                response.status().as_u16(),
                quoted(header_text(response.headers(), "content-range").unwrap_or(""))
            ))),
        }
    }

    /// Asks, and follows redirects.
    fn get(&self, address: &str, range: Option<&str>) -> Result<Answer, Failure> {
        let mut address = address.to_string();
        let mut own = ureq::http::HeaderMap::new();
        for _ in 0..=REDIRECTS {
            let at_endpoint =
                Origin::of(&address).is_some() && Origin::of(&address) == self.endpoint;
            let mut request = self.agent.get(&address);
            if let Some(range) = range {
                request = request.header(header::RANGE, range);
            }
            if let (Token::Sent(token), true) = (&self.settings.token, at_endpoint) {
                request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
            }
            let response = request.call()?;
            if at_endpoint {
                own = response.headers().clone();
            }
            match response.status().as_u16() {
                301 | 302 | 303 | 307 | 308 => {
                    let to = header_text(response.headers(), "location").unwrap_or("");
                    address = origin::redirected(&address, to).ok_or_else(|| {
                        Failure::Other(format!(
                            "{address} leads to {}, which is not followed: need an address that \
                             begins with https://",
                            quoted(to)
                        ))
                    })?;
                }
                200 | 206 => return Ok(Answer { response, own }),
                // An empty file has no first byte.
                416 if size(&response) == Some(0) => return Ok(Answer { response, own }),
                404 => return Err(Failure::Absent),
                status @ (401 | 403) if at_endpoint => return Err(Failure::NotAllowed(status)),
                status => {
                    return Err(Failure::Other(format!(
                        "{}: the answer was the status {status}",
                        quoted(&address)
                    )));
                }
            }
        }
        Err(Failure::Other(format!("{}: more than {REDIRECTS} redirects", quoted(&address))))
    }
}

/// The size of the whole file that an answer is a part of.
fn size(response: &Response<Body>) -> Option<u64> {
    match header_text(response.headers(), "content-range") {
        Some(range) => range.rsplit('/').next()?.trim().parse().ok(),
        None if response.status() == 200 => {
            header_text(response.headers(), "content-length")?.trim().parse().ok()
        }
        None => None,
    }
}

fn header_text<'a>(headers: &'a ureq::http::HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn lacks(name: &str) -> Failure {
    Failure::Other(format!("the answer is not the Hub's: its header {name:?} is not right"))
}

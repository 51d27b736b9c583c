//! Requests to the Hub. Redirects are followed here, one by one, so that the token is sent only to
//! the endpoint.

use super::failure::HubFailure;
use super::origin::{self, Origin};
use super::settings::{Settings, Token};
use super::words::{Commit, Etag, FileName, quoted};
use std::time::Duration;
use ureq::http::{Response, header};
use ureq::{Agent, Body};

/// Maximum number of redirects of one request.
const REDIRECTS: usize = 8;

/// HTTP client for the Hub.
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
    /// Size of the file in bytes.
    pub size: u64,
}

/// Final response of a request, and the headers of the endpoint before redirects.
struct Answer {
    response: Response<Body>,
    /// Headers of the last response of the endpoint itself, before redirects to other servers.
    own: ureq::http::HeaderMap,
}

impl Client<'_> {
    pub fn new(settings: &Settings) -> Client<'_> {
        let agent = Agent::config_builder()
            .max_redirects(0)
            .http_status_as_error(false)
            .timeout_connect(Some(settings.patience))
            .timeout_recv_response(Some(settings.patience))
            // A download may take hours, but not pause for longer than this.
            .timeout_per_read(Some(settings.patience))
            .user_agent(format!("regard/{}", env!("CARGO_PKG_VERSION")))
            // Sizes and checksums are those of the uncompressed file.
            .accept_encoding("identity")
            .build()
            .into();
        Client { agent, settings, endpoint: Origin::of(&settings.endpoint) }
    }

    /// Time without data after which a request fails.
    pub fn patience(&self) -> Duration {
        self.settings.patience
    }

    /// URL of a file of a model.
    pub fn address(&self, id: &str, revision: &str, name: &FileName) -> String {
        let revision = revision.replace('/', "%2F");
        format!("{}/{id}/resolve/{revision}/{}", self.settings.endpoint, name.as_str())
    }

    /// Requests the metadata of a file, with a range request for its first byte.
    pub fn facts(&self, address: &str) -> Result<Facts, HubFailure> {
        let answer = self.get(address, Some("bytes=0-0"))?;
        let text = |name: &str| header_text(&answer.own, name);
        let commit = text("x-repo-commit").ok_or_else(|| lacks("x-repo-commit"))?;
        let etag = text("x-linked-etag").or_else(|| text("etag")).ok_or_else(|| lacks("etag"))?;
        let size = size(&answer.response).ok_or_else(|| lacks("content-range"))?;
        let wrong = |why| HubFailure::Other(format!("the response is not from a Hub: {why}"));
        Ok(Facts {
            commit: Commit::new(commit).map_err(wrong)?,
            etag: Etag::new(etag).map_err(wrong)?,
            size,
        })
    }

    /// Requests the contents of a file from a byte offset. Returns the offset at which the body
    /// begins, 0 if the server ignores ranges.
    pub fn contents(&self, address: &str, from: u64) -> Result<(u64, Body), HubFailure> {
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
            _ => Err(HubFailure::Other(format!(
                "{address}: requested the bytes from {from}, got status {} with the range {}",
                response.status().as_u16(),
                quoted(header_text(response.headers(), "content-range").unwrap_or(""))
            ))),
        }
    }

    /// Sends a GET request, and follows redirects.
    fn get(&self, address: &str, range: Option<&str>) -> Result<Answer, HubFailure> {
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
                        HubFailure::Other(format!(
                            "{address} redirects to {}, which is not followed: need an address \
                             that begins with https://",
                            quoted(to)
                        ))
                    })?;
                }
                200 | 206 => return Ok(Answer { response, own }),
                // An empty file has no first byte.
                416 if size(&response) == Some(0) => return Ok(Answer { response, own }),
                404 => return Err(HubFailure::Absent),
                status @ (401 | 403) if at_endpoint => return Err(HubFailure::NotAllowed(status)),
                status => {
                    return Err(HubFailure::Other(format!(
                        "{}: got status {status}",
                        quoted(&address)
                    )));
                }
            }
        }
        Err(HubFailure::Other(format!("{}: more than {REDIRECTS} redirects", quoted(&address))))
    }
}

/// Size of the complete file of a full or partial response, in bytes.
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

fn lacks(name: &str) -> HubFailure {
    HubFailure::Other(format!("the response is not from a Hub: got no valid header {name:?}"))
}

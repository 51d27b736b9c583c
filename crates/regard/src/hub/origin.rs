//! Servers of URLs, and whether a token may be sent to them.

use http::Uri;
use std::net::IpAddr;

/// Server of a URL: scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    scheme: String,
    host: String,
    port: u16,
}

impl Origin {
    /// Parses an address that begins with http:// or https://.
    pub fn of(address: &str) -> Option<Origin> {
        let uri: Uri = address.parse().ok()?;
        let (scheme, host) = (uri.scheme_str()?.to_lowercase(), uri.host()?.to_lowercase());
        let port = match scheme.as_str() {
            "https" => 443,
            "http" => 80,
            _ => return None,
        };
        Some(Origin { scheme, host, port: uri.port_u16().unwrap_or(port) })
    }

    /// Whether it is the public Hub, `https://huggingface.co`.
    pub fn is_hugging_face(&self) -> bool {
        self.is_encrypted() && self.host == "huggingface.co" && self.port == 443
    }

    pub fn is_encrypted(&self) -> bool {
        self.scheme == "https"
    }

    /// Whether the connection is encrypted, or stays on this machine.
    pub fn is_private(&self) -> bool {
        let address = self.host.trim_start_matches('[').trim_end_matches(']');
        let loopback = address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        self.is_encrypted() || loopback || self.host == "localhost"
    }
}

/// Resolves a redirect against the requested URL. None if it must not be followed: an invalid URL,
/// another scheme than http(s), or a downgrade from https to http.
pub fn redirected(from: &str, location: &str) -> Option<String> {
    let base: Uri = from.parse().ok()?;
    let (scheme, authority) = (base.scheme_str()?, base.authority()?);
    let to = match location {
        _ if has_scheme(location) => location.to_string(),
        _ if location.starts_with("//") => format!("{scheme}:{location}"),
        _ if location.starts_with('/') => format!("{scheme}://{authority}{location}"),
        _ => {
            let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{scheme}://{authority}{folder}/{location}")
        }
    };
    let (before, after) = (Origin::of(from)?, Origin::of(&to)?);
    (after.is_encrypted() || !before.is_encrypted()).then_some(to)
}

/// Whether a URL begins with a scheme, such as `https:`.
fn has_scheme(address: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    address.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_has_one_origin() {
        let same = |a, b| Origin::of(a) == Origin::of(b);
        assert!(same("https://a.co/x", "https://A.co:443/y?z"));
        for other in ["http://a.co", "https://b.co", "https://a.co:8443", "https://a.co.evil.com"] {
            assert!(!same("https://a.co", other), "{other}");
        }
        assert!(Origin::of("file:///etc/passwd").is_none() && Origin::of("x").is_none());
        // The part before the @ is not the host.
        assert_eq!(Origin::of("https://huggingface.co@evil.com/").unwrap().host, "evil.com");
    }

    #[test]
    fn a_token_is_for_encrypted_or_local_servers() {
        for address in ["https://a.co", "http://127.0.0.1:8", "http://[::1]:8", "http://localhost"]
        {
            assert!(Origin::of(address).unwrap().is_private(), "{address}");
        }
        for address in ["http://a.co", "http://10.0.0.1", "http://localhost.evil.com"] {
            assert!(!Origin::of(address).unwrap().is_private(), "{address}");
        }
        assert!(Origin::of("https://huggingface.co").unwrap().is_hugging_face());
        for other in ["http://huggingface.co", "https://huggingface.co.evil.com", "https://hf.co"] {
            assert!(!Origin::of(other).unwrap().is_hugging_face(), "{other}");
        }
    }

    #[test]
    fn redirects_are_resolved_and_keep_encryption() {
        let from = "https://a.co/m/resolve/main/config.json";
        let to = |location| redirected(from, location);
        assert_eq!(to("/api/x").unwrap(), "https://a.co/api/x");
        assert_eq!(to("other.json").unwrap(), "https://a.co/m/resolve/main/other.json");
        assert_eq!(to("//cdn.co/x").unwrap(), "https://cdn.co/x");
        assert_eq!(to("https://cdn.co/x").unwrap(), "https://cdn.co/x");
        // A URL within the query is ignored.
        assert_eq!(to("/x?from=http://b.co/y").unwrap(), "https://a.co/x?from=http://b.co/y");
        let beside = "https://a.co/m/resolve/main/x?to=https://b.co";
        assert_eq!(to("x?to=https://b.co").unwrap(), beside);
        for bad in ["http://a.co/x", "file:///etc/passwd", "file:/etc/passwd", "https://"] {
            assert_eq!(to(bad), None, "{bad}");
        }
        assert!(redirected("http://a.co/x", "http://b.co/y").is_some());
    }
}

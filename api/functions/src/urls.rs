//! URLs as `java.net.URL` takes them apart: nothing in them is encoded, and no path is made shorter.

use std::net::Ipv6Addr;

/// What Java has a handler for; it takes no other URL.
const PROTOCOLS: [&str; 8] = ["http", "https", "ftp", "file", "jar", "jmod", "jrt", "mailto"];

/// A URL, taken apart.
struct Url<'a> {
    protocol: String,
    authority: Option<&'a str>,
    user: Option<&'a str>,
    host: &'a str,
    path: &'a str,
    query: Option<&'a str>,
    fragment: Option<&'a str>,
}

impl<'a> Url<'a> {
    /// `None` if Java takes it for none.
    fn new(text: &'a str) -> Option<Self> {
        let text = text.trim_matches(|c: char| c <= ' ');
        let (protocol, rest) = text.split_once(':')?;
        let protocol = protocol.to_ascii_lowercase();
        if !PROTOCOLS.contains(&protocol.as_str()) {
            return None;
        }
        let (rest, fragment) = split(rest, '#');
        let (rest, query) = split(rest, '?');
        let Some(rest) = rest.strip_prefix("//") else {
            let (authority, user, host) = (None, None, "");
            return Some(Self { protocol, authority, user, host, path: rest, query, fragment });
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (user, host) = match authority.split_once('@') {
            Some((_, host)) if host.contains('@') => (None, ""),
            Some((user, host)) => (Some(user), host_of(host)?),
            None => (None, host_of(authority)?),
        };
        Some(Self { protocol, authority: Some(authority), user, host, path, query, fragment })
    }
}

/// At the first such character.
fn split(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, behind)| (before, Some(behind)))
}

/// Without its port, which must be a number.
fn host_of(text: &str) -> Option<&str> {
    let end = match text.strip_prefix('[') {
        Some(inner) => {
            let inner = inner.split_once(']')?.0;
            inner.split('%').next()?.parse::<Ipv6Addr>().ok()?;
            inner.len() + 2
        }
        None => text.find(':').unwrap_or(text.len()),
    };
    let (host, port) = text.split_at(end);
    match port.strip_prefix(':') {
        None if port.is_empty() => Some(host),
        Some("") => Some(host),
        Some(port) => port.parse::<i32>().ok().filter(|port| *port >= -1).map(|_| host),
        None => None,
    }
}

/// A part of a URL, or the value of a key of its query.
pub(crate) fn part_of(text: &str, part: &str, key: Option<&str>) -> Option<String> {
    let url = Url::new(text)?;
    Some(match (part, key) {
        ("QUERY", Some(key)) => {
            let mut pairs = url.query?.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(found, _)| *found == key)?.1.to_owned()
        }
        (_, Some(_)) => return None,
        ("HOST", _) => url.host.to_owned(),
        ("PATH", _) => url.path.to_owned(),
        ("QUERY", _) => url.query?.to_owned(),
        ("REF", _) => url.fragment?.to_owned(),
        ("PROTOCOL", _) => url.protocol,
        ("AUTHORITY", _) => url.authority?.to_owned(),
        ("FILE", _) => url.query.map_or_else(|| url.path.to_owned(), |query| format!("{}?{query}", url.path)),
        ("USERINFO", _) => url.user?.to_owned(),
        _ => return None,
    })
}

/// What `URLEncoder` has encoded; `None` if a `%` has no two digits behind it.
pub(crate) fn decode(text: &str) -> Option<String> {
    let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
    let mut made = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        made.push(match byte {
            b'+' => b' ',
            b'%' => (digit(bytes.next())? * 16 + digit(bytes.next())?) as u8,
            other => other,
        });
    }
    Some(String::from_utf8_lossy(&made).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str, part: &str) -> Option<String> {
        part_of(text, part, None)
    }

    #[test]
    fn what_java_takes_for_no_url() {
        for text in ["kafka://host/x", "http://h:port/", "http://[::1/", "http://[x]/", "//h/x", "h"] {
            assert_eq!(part(text, "HOST"), None, "{text}");
        }
        assert_eq!(part("http://a@b@c/", "HOST").as_deref(), Some(""));
        assert_eq!(part("http://h:/x", "HOST").as_deref(), Some("h"));
        assert_eq!(part(" file:/tmp/x ", "PATH").as_deref(), Some("/tmp/x"));
        assert_eq!(part("http://h/a#b?c#d", "REF").as_deref(), Some("b?c#d"));
    }
}

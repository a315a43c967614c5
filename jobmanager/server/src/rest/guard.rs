//! Keeps web pages out. A page that a user of this machine has open in a browser can send requests to
//! loopback; there is no password, so where a request comes from is looked at.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::Rest;
use super::error::ApiError;

/// Refuses requests that were made in the name of another host or from another site.
pub(super) async fn check(State(rest): State<Arc<Rest>>, request: Request, next: Next) -> Response {
    let checked = check_headers(request.headers(), rest.address.ip().is_loopback());
    match checked {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

fn check_headers(headers: &HeaderMap, is_loopback: bool) -> Result<(), ApiError> {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text(HOST).unwrap_or_default();
    // DNS rebinding makes a page's own host name point to loopback, so that its requests come with that name.
    if is_loopback && !names_loopback(host) {
        return Err(ApiError::forbidden(format!(
            "the request is for host '{host}', this REST API listens on loopback only: use localhost or 127.0.0.1"
        )));
    }
    match text(ORIGIN) {
        Some(origin) if origin.split_once("://").map(|(_, site)| site) != Some(host) => {
            Err(ApiError::forbidden(format!("requests of the site '{origin}' are not accepted")))
        }
        _ => Ok(()),
    }
}

/// Whether a `Host` header, with or without a port, names this machine's loopback.
fn names_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_accepted(host: &str, origin: Option<&str>, is_loopback: bool) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        check_headers(&headers, is_loopback).is_ok()
    }

    #[test]
    fn on_loopback_only_its_own_names_are_accepted() {
        for host in ["localhost:8081", "LOCALHOST", "127.0.0.1:8081", "127.1.2.3", "[::1]:8081", "[::1]"] {
            assert!(is_accepted(host, None, true), "{host}");
        }
        for host in ["", "evil.example:8081", "localhost.evil.example", "10.0.0.1:8081", "[fe80::1]:8081"] {
            assert!(!is_accepted(host, None, true), "{host}");
        }
        assert!(is_accepted("flott.example:8081", None, false));
        assert!(check_headers(&HeaderMap::new(), true).is_err());
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        assert!(is_accepted("localhost:8081", Some("http://localhost:8081"), true));
        for origin in ["http://evil.example", "null", "http://localhost:9000"] {
            assert!(!is_accepted("localhost:8081", Some(origin), true), "{origin}");
        }
        assert!(!is_accepted("flott.example", Some("http://evil.example"), false));
    }
}

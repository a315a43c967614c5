//! The smallest HTTP client that can talk to the REST API, blocking and with time limits.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// How long one step of a request may take.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends one request to `port` on this machine. Returns status and body.
///
/// # Errors
/// Nobody listens, or what comes back is no HTTP.
pub fn request(port: u16, method: &str, path: &str, body: &[u8]) -> Result<(u16, String), String> {
    let failed = |error: std::io::Error| format!("{method} {path} on port {port}: {error}");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, STEP_TIMEOUT).map_err(failed)?;
    stream.set_read_timeout(Some(STEP_TIMEOUT)).map_err(failed)?;
    stream.set_write_timeout(Some(STEP_TIMEOUT)).map_err(failed)?;
    // In HTTP/1.0 the answer ends with the connection, and nothing is cut into chunks.
    let head = format!(
        "{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).map_err(failed)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map_err(failed)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&*answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| format!("{method} {path} on port {port} answered no HTTP: {head:?}"))?;
    Ok((status, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn an_answer_has_a_status_and_a_body() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let bytes = stream.read(&mut request).unwrap();
            stream.write_all(b"HTTP/1.0 404 Not Found\r\nX: y\r\n\r\n{\"errors\":[]}").unwrap();
            String::from_utf8_lossy(&request[..bytes]).into_owned()
        });
        assert_eq!(super::request(port, "GET", "/x", b"").unwrap(), (404, "{\"errors\":[]}".to_owned()));
        assert!(server.join().unwrap().starts_with(&format!("GET /x HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n")));
        assert!(super::request(port, "GET", "/x", b"").unwrap_err().starts_with("GET /x on port"));
    }
}

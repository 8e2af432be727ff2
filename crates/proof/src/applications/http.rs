//! As much of an HTTP client as a browser's user needs: one request, its answer, one cookie.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// After so long an application counts as hung; its own clients of Redis wait for a minute.
const PATIENCE: Duration = Duration::from_secs(150);

/// What came back.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
    /// `name=value` of the last cookie that was set.
    pub(crate) cookie: Option<String>,
}

/// GET of a path on this machine.
///
/// # Errors
/// Those of the socket; when what comes is no answer.
pub(crate) fn get(port: u16, path: &str, cookie: Option<&str>) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let cookie = cookie.map_or_else(String::new, |cookie| format!("Cookie: {cookie}\r\n"));
    // By HTTP 1.0 the answer ends where the connection does.
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n{cookie}\r\n").as_bytes())?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    parse(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{path} is answered by {text:?}")))
}

fn parse(text: &str) -> Option<Answer> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let of_cookie = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let pair = value.split(';').next()?.trim().to_owned();
        name.eq_ignore_ascii_case("set-cookie").then_some(pair)
    };
    Some(Answer { status, body: body.to_owned(), cookie: lines.filter_map(of_cookie).last() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::parse;

    #[test]
    fn an_answer_has_a_status_a_body_and_perhaps_a_cookie() {
        let answer = parse("HTTP/1.0 200 OK\r\nset-cookie: id=7; Path=/\r\nA: b\r\n\r\nann 3").unwrap();
        assert_eq!((answer.status, &*answer.body, answer.cookie.as_deref()), (200, "ann 3", Some("id=7")));
        assert_eq!(parse("HTTP/1.1 401 \r\n\r\nnobody").unwrap().status, 401);
        assert!(parse("").is_none() && parse("HTTP/1.1 what\r\n\r\n").is_none());
    }
}

//! The little of HTTP/1.1 that is needed: the head of a request, and a whole answer, after which the connection ends.

use base::limits::{ADMIN_HEAD_BYTES_MAX, ADMIN_HEADERS_MAX};

/// What somebody wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The path, without a query.
    pub path: String,
    /// What it takes, as far as it says so.
    pub accept: String,
    /// HEAD: everything but the body.
    pub is_head: bool,
}

/// What the bytes of a connection are so far.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// Not all of it.
    Partial,
    /// A request.
    Whole(Request),
    /// Nothing that is answered as it wants: status and a sentence.
    Refused(Status, &'static str),
}

/// Status of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// 200
    Ok,
    /// 400
    BadRequest,
    /// 404
    NotFound,
    /// 405
    MethodNotAllowed,
    /// 431
    HeadTooLong,
    /// 503
    Unhealthy,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Status::Ok => "200 OK",
            Status::BadRequest => "400 Bad Request",
            Status::NotFound => "404 Not Found",
            Status::MethodNotAllowed => "405 Method Not Allowed",
            Status::HeadTooLong => "431 Request Header Fields Too Large",
            Status::Unhealthy => "503 Service Unavailable",
        }
    }
}

/// Reads what came so far.
pub(crate) fn parse(bytes: &[u8]) -> Head {
    const TOO_LONG: Head = Head::Refused(Status::HeadTooLong, "the head of the request is too long");
    let mut headers = [httparse::EMPTY_HEADER; ADMIN_HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length > ADMIN_HEAD_BYTES_MAX => TOO_LONG,
        Ok(httparse::Status::Complete(_)) => whole(&request),
        Ok(httparse::Status::Partial) if bytes.len() >= ADMIN_HEAD_BYTES_MAX => TOO_LONG,
        Ok(httparse::Status::Partial) => Head::Partial,
        Err(httparse::Error::TooManyHeaders) => TOO_LONG,
        Err(_) => Head::Refused(Status::BadRequest, "this is no HTTP/1.1 request"),
    }
}

fn whole(request: &httparse::Request<'_, '_>) -> Head {
    let is_head = match request.method {
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return Head::Refused(Status::MethodNotAllowed, "everything here is read with GET or HEAD"),
    };
    let target = request.path.unwrap_or("/");
    let path = target.split_once('?').map_or(target, |(path, _)| path).to_owned();
    let accept = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("accept"));
    let accept: Vec<_> = accept.map(|header| String::from_utf8_lossy(header.value)).collect();
    Head::Whole(Request { path, accept: accept.join(",").to_ascii_lowercase(), is_head })
}

/// An answer, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// How it went.
    pub status: Status,
    /// What the body is.
    pub content_type: &'static str,
    /// All of it.
    pub body: String,
}

impl Response {
    /// A sentence for a person.
    pub fn text(status: Status, sentence: &str) -> Response {
        Response { status, content_type: "text/plain; charset=utf-8", body: format!("{sentence}\n") }
    }

    /// Its bytes; without a body for HEAD.
    pub fn encode(&self, is_head: bool) -> Vec<u8> {
        let Response { status, content_type, body } = self;
        let allow = if *status == Status::MethodNotAllowed { "Allow: GET, HEAD\r\n" } else { "" };
        let (line, length) = (status.line(), body.len());
        let mut bytes = format!(
            "HTTP/1.1 {line}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n{allow}Cache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
        )
        .into_bytes();
        if !is_head {
            bytes.extend_from_slice(body.as_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Head {
        parse(text.as_bytes())
    }

    #[test]
    fn a_request_is_read_once_it_is_whole() {
        let text = "GET /metrics?x=1 HTTP/1.1\r\nHost: h\r\nACCEPT: a/b\r\nAccept: Text/Plain\r\n\r\n";
        for length in 0..text.len() {
            assert_eq!(head(&text[..length]), Head::Partial, "{length}");
        }
        let wanted = Request { path: "/metrics".into(), accept: "a/b,text/plain".into(), is_head: false };
        assert_eq!(head(text), Head::Whole(wanted));
        let wanted = Request { path: "/".into(), accept: String::new(), is_head: true };
        assert_eq!(head("HEAD / HTTP/1.0\r\n\r\n"), Head::Whole(wanted));
    }

    #[test]
    fn what_is_no_request_and_what_is_too_long_is_refused() {
        let status = |text: &str| match head(text) {
            Head::Refused(status, _) => status,
            other => panic!("{other:?}"),
        };
        assert_eq!(status("*1\r\n$4\r\nPING\r\n"), Status::BadRequest);
        assert_eq!(status("POST / HTTP/1.1\r\n\r\n"), Status::MethodNotAllowed);
        assert_eq!(status(&format!("GET /{} HTTP/1.1\r\n", "x".repeat(ADMIN_HEAD_BYTES_MAX))), Status::HeadTooLong);
        let long = format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(ADMIN_HEAD_BYTES_MAX));
        assert_eq!(status(&long), Status::HeadTooLong);
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(ADMIN_HEADERS_MAX + 1));
        assert_eq!(status(&many), Status::HeadTooLong);
    }

    #[test]
    fn a_head_has_the_length_of_the_body_that_it_has_not() {
        let response = Response::text(Status::NotFound, "no");
        let (with, without) = (response.encode(false), response.encode(true));
        assert_eq!(with[without.len()..], *b"no\n");
        assert!(String::from_utf8_lossy(&without).contains("\r\nContent-Length: 3\r\n"));
    }
}

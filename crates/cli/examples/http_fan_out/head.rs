//! The head of a request, and that of an answer: the little of HTTP/1.1 that is needed.

/// Longest head, bytes; servers commonly allow as much.
pub const BYTES_MAX: usize = 16 << 10;
/// Most header fields.
const HEADERS_MAX: usize = 64;
/// Most keys of one request. A head has room for more short ones.
pub const KEYS_MAX: usize = 1000;

/// Status of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Ok,
    BadRequest,
    NotFound,
    MethodNotAllowed,
    Timeout,
    HeadTooLong,
    BadGateway,
    Unavailable,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Status::Ok => "200 OK",
            Status::BadRequest => "400 Bad Request",
            Status::NotFound => "404 Not Found",
            Status::MethodNotAllowed => "405 Method Not Allowed\r\nAllow: GET",
            Status::Timeout => "408 Request Timeout",
            Status::HeadTooLong => "431 Request Header Fields Too Large",
            Status::BadGateway => "502 Bad Gateway",
            Status::Unavailable => "503 Service Unavailable\r\nRetry-After: 1",
        }
    }
}

/// What the bytes of a connection begin with.
#[derive(Debug, PartialEq, Eq)]
pub enum Head {
    /// Not a whole head.
    Partial,
    /// A request for keys, so many bytes long. `stays`: its connection goes on.
    Keys { bytes: usize, keys: Vec<String>, stays: bool },
    /// A request that is not answered as it wants. If where it ends is not known, nothing behind it can be read.
    Refused { bytes: Option<usize>, status: Status, problem: &'static str },
}

/// Reads what is there.
pub fn read(bytes: &[u8]) -> Head {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let lost = |status, problem| Head::Refused { bytes: None, status, problem };
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) => Head::Partial,
        Ok(httparse::Status::Complete(length)) => whole(length, &request),
        Err(httparse::Error::TooManyHeaders) => lost(Status::HeadTooLong, "the request has too many header fields"),
        Err(_) => lost(Status::BadRequest, "this is no request of HTTP/1.1"),
    }
}

fn whole(length: usize, request: &httparse::Request<'_, '_>) -> Head {
    let value_of = |name: &str| {
        let header = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        header.map(|header| String::from_utf8_lossy(header.value).trim().to_ascii_lowercase())
    };
    let has_body = value_of("transfer-encoding").is_some() || value_of("content-length").is_some_and(|n| n != "0");
    if has_body {
        // Where the next request begins would have to be known of all ways to say it.
        let problem = "a request for keys has no body";
        return Head::Refused { bytes: None, status: Status::BadRequest, problem };
    }
    let is_of_one = request.version == Some(1);
    if is_of_one && value_of("host").is_none() {
        return Head::Refused {
            bytes: None,
            status: Status::BadRequest,
            problem: "a request of HTTP/1.1 names its host",
        };
    }
    let connection = value_of("connection").unwrap_or_default();
    let says = |word: &str| connection.split(',').any(|other| other.trim() == word);
    let stays = if is_of_one { !says("close") } else { says("keep-alive") };
    if request.method != Some("GET") {
        // The answer to a HEAD has no body, so that nothing can follow ours.
        return Head::Refused { bytes: None, status: Status::MethodNotAllowed, problem: "keys can be got only" };
    }
    match keys(request) {
        Ok(keys) => Head::Keys { bytes: length, keys, stays },
        Err((status, problem)) => Head::Refused { bytes: stays.then_some(length), status, problem },
    }
}

fn keys(request: &httparse::Request<'_, '_>) -> Result<Vec<String>, (Status, &'static str)> {
    let target = request.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if path != "/keys" {
        return Err((Status::NotFound, "there is /keys?k=KEY&k=KEY only"));
    }
    let words = query.split('&').filter_map(|pair| pair.strip_prefix("k="));
    let keys: Option<Vec<String>> = words.map(decoded).collect();
    match keys {
        None => Err((Status::BadRequest, "a key is UTF-8, with % before two hexadecimal digits")),
        Some(keys) if keys.is_empty() => Err((Status::BadRequest, "name at least one key: /keys?k=KEY")),
        Some(keys) if keys.len() > KEYS_MAX => Err((Status::BadRequest, "these are too many keys: at most 1000")),
        Some(keys) => Ok(keys),
    }
}

/// A word of a query without `%41` and `+`.
fn decoded(word: &str) -> Option<String> {
    let word = word.replace('+', " ");
    let mut parts = word.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

/// Writes an answer with a body of JSON.
pub fn write(status: Status, stays: bool, body: &str, answer: &mut Vec<u8>) {
    let connection = if stays { "keep-alive" } else { "close" };
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: {connection}\r\n\r\n",
        status.line(),
        body.len()
    );
    answer.extend_from_slice(head.as_bytes());
    answer.extend_from_slice(body.as_bytes());
}

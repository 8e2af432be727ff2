//! One blocking connection: words out, one reply back.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use tls::client::ClientFiles;
use wire::reply_parse::{Value, parse_reply};

/// Bytes read at a time.
const READ_BYTES: usize = 64 << 10;
/// What is told of a server that ends a connection.
pub const CLOSED: &str = "the server closed the connection";

/// Whom to talk to, and as whom.
#[derive(Clone)]
pub struct Target {
    pub host: String,
    pub port: u16,
    pub socket: Option<PathBuf>,
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: u8,
    pub resp3: bool,
    pub tls: Option<Tls>,
    /// Who does not answer for so long is not there; `None`: it is waited for.
    pub within: Option<Duration>,
}

/// How to speak TLS.
#[derive(Clone)]
pub struct Tls {
    pub files: ClientFiles,
    /// What the server's certificate has to name; `None`: the host.
    pub name: Option<String>,
}

impl std::fmt::Display for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.socket {
            Some(path) => write!(formatter, "{}", path.display())?,
            None => write!(formatter, "{}:{}", self.host, self.port)?,
        }
        if self.database > 0 { write!(formatter, "[{}]", self.database) } else { Ok(()) }
    }
}

fn dial(target: &Target) -> std::io::Result<TcpStream> {
    let to = (target.host.as_str(), target.port);
    let Some(within) = target.within else { return TcpStream::connect(to) };
    let mut last = ErrorKind::NotFound.into();
    for address in to.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, within) {
            Ok(stream) => {
                stream.set_read_timeout(Some(within))?;
                stream.set_write_timeout(Some(within))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

/// See the module.
pub struct Connection {
    stream: Box<dyn Stream>,
    received: Vec<u8>,
}

impl Connection {
    /// Connects, authenticates, and selects protocol and database.
    ///
    /// # Errors
    /// Why it does not work, for people.
    pub fn open(target: &Target) -> Result<Connection, String> {
        let cannot = |error: std::io::Error| {
            let hint = if error.kind() == ErrorKind::ConnectionRefused || error.kind() == ErrorKind::NotFound {
                "; is it running? `zerohop up` starts a store"
            } else {
                ""
            };
            format!("cannot connect to {target}: {error}{hint}")
        };
        let stream: Box<dyn Stream> = match &target.socket {
            Some(path) => Box::new(UnixStream::connect(path).map_err(cannot)?),
            None => {
                let stream = dial(target).map_err(cannot)?;
                stream.set_nodelay(true).map_err(cannot)?;
                match &target.tls {
                    None => Box::new(stream),
                    Some(Tls { files, name }) => {
                        let name = name.as_deref().unwrap_or(&target.host);
                        let sealed = files.connect(stream, name);
                        Box::new(sealed.map_err(|problem| format!("cannot connect to {target}: {problem}"))?)
                    }
                }
            }
        };
        let mut connection = Connection { stream, received: Vec::new() };
        if let Some(password) = &target.password {
            let words = ["AUTH"].into_iter().chain(target.user.as_deref()).chain([password.as_str()]);
            connection.expect_ok(words)?;
        }
        if target.resp3 {
            connection.expect_ok(["HELLO", "3"])?;
        }
        if target.database > 0 {
            connection.expect_ok(["SELECT", &target.database.to_string()])?;
        }
        Ok(connection)
    }

    fn expect_ok<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
        let words: Vec<Vec<u8>> = words.into_iter().map(|word| word.as_bytes().to_vec()).collect();
        match self.call(&words)? {
            Value::Error(text) => {
                let (command, text) = (String::from_utf8_lossy(&words[0]), String::from_utf8_lossy(&text));
                Err(format!("{command} was refused: {text}"))
            }
            _ => Ok(()),
        }
    }

    /// Sends commands at once and waits for all replies.
    ///
    /// # Errors
    /// When the connection broke, or what came is no reply.
    pub fn call_all(&mut self, requests: &[Vec<Vec<u8>>]) -> Result<Vec<Value>, String> {
        let mut bytes = Vec::new();
        for words in requests {
            wire::request::encode(words.iter().map(Vec::as_slice), &mut bytes);
        }
        self.stream.write_all(&bytes).map_err(|error| format!("the connection broke: {error}"))?;
        requests.iter().map(|_| self.reply()).collect()
    }

    /// Sends a command and waits for its reply. Pushes that come before it are left out.
    ///
    /// # Errors
    /// When the connection broke, or what came is no reply.
    pub fn call(&mut self, words: &[Vec<u8>]) -> Result<Value, String> {
        let mut request = Vec::new();
        wire::request::encode(words.iter().map(Vec::as_slice), &mut request);
        let broken = |error: std::io::Error| format!("the connection broke: {error}");
        self.stream.write_all(&request).map_err(broken)?;
        self.reply()
    }

    fn reply(&mut self) -> Result<Value, String> {
        let broken = |error: std::io::Error| format!("the connection broke: {error}");
        let mut chunk = vec![0; READ_BYTES];
        loop {
            match parse_reply(&self.received) {
                Err(error) => return Err(error.to_string()),
                Ok(Some((value, taken))) => {
                    self.received.drain(..taken);
                    if !matches!(value, Value::Push(_)) {
                        return Ok(value);
                    }
                }
                Ok(None) => match self.stream.read(&mut chunk) {
                    Ok(0) => return Err(CLOSED.to_owned()),
                    Ok(count) => self.received.extend_from_slice(&chunk[..count]),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(broken(error)),
                },
            }
        }
    }
}

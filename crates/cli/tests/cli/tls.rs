//! TLS: real clients on real sockets, on both backends, and what everybody hears who comes to the wrong port.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

use ports::PortBlock;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::process::Signal;
use tls::client::{ClientFiles, ClientStream};

use crate::process::{PATIENCE, Scratch, Server, run};

/// From the port without TLS to the one with, within a block.
const TLS_OFFSET: u16 = 16;

/// A server with TLS, and the files of its clients.
pub struct Served {
    pub server: Server,
    pub scratch: Scratch,
    pub authority: CertifiedIssuer<'static, KeyPair>,
}

pub fn write(scratch: &Scratch, name: &str, content: &str) -> String {
    std::fs::write(scratch.at(name), content).unwrap();
    scratch.at(name)
}

pub fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap()
}

/// Files of a certificate for this machine: its name and `.crt`, and `.key`.
pub fn certify(scratch: &Scratch, authority: &CertifiedIssuer<'static, KeyPair>, name: &str) -> [String; 2] {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, authority).unwrap();
    [
        write(scratch, &format!("{name}.crt"), &certificate.pem()),
        write(scratch, &format!("{name}.key"), &key.serialize_pem()),
    ]
}

/// The backends that work here.
fn backends() -> Vec<&'static str> {
    let mut backends = vec!["epoll"];
    if io::probe().is_ok() {
        backends.push("uring");
    }
    backends
}

impl Served {
    pub fn start(arguments: &[&str]) -> Served {
        let (scratch, authority, block) = (Scratch::new(), authority(), PortBlock::take().unwrap());
        let ca = write(&scratch, "ca.crt", &authority.pem());
        let [certificate, key] = certify(&scratch, &authority, "node");
        let port = (block.first() + TLS_OFFSET).to_string();
        let tls = ["--tls-port", &port, "--tls-cert-file", &certificate, "--tls-key-file", &key];
        let server = Server::serve_on(block, &[&tls[..], &["--tls-ca-cert-file", &ca], arguments].concat());
        Served { server, scratch, authority }
    }

    pub fn port(&self) -> u16 {
        self.server.port + TLS_OFFSET
    }

    fn files(&self) -> ClientFiles {
        ClientFiles { authorities: Some(PathBuf::from(self.scratch.at("ca.crt"))), ..ClientFiles::default() }
    }

    fn connect(&self) -> ClientStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port())).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        self.files().connect(stream, "127.0.0.1").unwrap()
    }

    /// `zerohop cli` with TLS, on a port.
    fn cli(&self, port: u16, words: &[&str]) -> crate::process::Run {
        let (port, ca) = (port.to_string(), self.scratch.at("ca.crt"));
        run(&[&["cli", "--tls", "--cacert", &ca, "-p", &port], words].concat())
    }
}

fn expect(stream: &mut impl Read, expected: &[u8]) {
    let mut received = vec![0; expected.len()];
    stream.read_exact(&mut received).expect("all of the reply comes");
    assert!(received == expected, "{}", String::from_utf8_lossy(&received[..received.len().min(200)]));
}

#[test]
fn pipelines_and_long_values_go_both_ways_on_both_backends() {
    for backend in backends() {
        let served = Served::start(&["--tls-auth-clients", "no", "--io", backend, "--cores", "2"]);
        let mut stream = served.connect();
        stream.write_all(&b"INCR n\r\n".repeat(10_000)).expect("the server takes the pipeline");
        let replies: String = (1..=10_000).map(|n| format!(":{n}\r\n")).collect();
        expect(&mut stream, replies.as_bytes());
        let value: Vec<u8> = (0..(64 << 20) / 4u32).flat_map(u32::to_le_bytes).collect();
        stream.write_all(format!("*3\r\n$3\r\nSET\r\n$4\r\nlong\r\n${}\r\n", value.len()).as_bytes()).unwrap();
        stream.write_all(&value).expect("the server takes the value");
        stream.write_all(b"\r\nGET long\r\n").unwrap();
        expect(&mut stream, format!("+OK\r\n${}\r\n", value.len()).as_bytes());
        expect(&mut stream, &value);
        expect(&mut stream, b"\r\n");
        // Without TLS it is the same store, as fast as ever.
        assert_eq!(served.server.ask(&["strlen", "long"]), value.len().to_string());
    }
}

#[test]
fn who_comes_to_the_wrong_port_hears_so() {
    for backend in backends() {
        let served = Served::start(&["--tls-auth-clients", "no", "--io", backend]);
        let plain = run(&["cli", "-p", &served.port().to_string(), "ping"]);
        assert!(plain.output.starts_with("ERR this port speaks TLS only"), "{}{}", plain.output, plain.errors);
        let sealed = served.cli(served.server.port, &["ping"]);
        assert!(sealed.errors.contains("does the server speak TLS on this port?"), "{}", sealed.errors);
        assert_eq!(served.cli(served.port(), &["ping"]).output, "PONG\n");
    }
}

#[test]
fn clients_that_stop_in_the_handshake_or_talk_garbage_hurt_nobody() {
    for backend in backends() {
        let served = Served::start(&["--tls-auth-clients", "no", "--io", backend]);
        let address = ("127.0.0.1", served.port());
        let mut halves: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
        halves.iter_mut().for_each(|half| half.write_all(&[22, 3, 1, 1, 0, 1, 0, 0, 250]).unwrap());
        for garbage in [&b"\x16\x03\x01\xff\xff"[..], b"\0\0\0\0", &[22; 70_000], b"\x16\x03\x03\0\x04\x01\xff\xff\xff"]
        {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(garbage).ok();
            if garbage.len() != 9 {
                // Closed with an alert or a sentence, or reset because not everything was read.
                stream.read_to_end(&mut Vec::new()).ok();
            }
        }
        assert_eq!(served.cli(served.port(), &["ping"]).output, "PONG\n");
        drop(halves);
        assert_eq!(served.server.stop(Signal::INT).0, Some(0));
    }
}

#[test]
fn certificates_of_clients_are_asked_for_unless_told_otherwise() {
    let served = Served::start(&[]);
    let none = served.cli(served.port(), &["ping"]);
    assert!(none.code == 1 && none.errors.contains("certificate"), "{}", none.errors);
    let [certificate, key] = certify(&served.scratch, &served.authority, "client");
    let shown =
        |certificate: &str, key: &str| served.cli(served.port(), &["--cert", certificate, "--key", key, "ping"]);
    assert_eq!(shown(&certificate, &key).output, "PONG\n");
    let [strange, strange_key] = certify(&served.scratch, &authority(), "strange");
    assert_eq!(shown(&strange, &strange_key).code, 1);
    // And the server's own has to be good for the client.
    let port = served.port().to_string();
    let pair = ["--cert", &certificate, "--key", &key, "ping"];
    let unknown = run(&[&["cli", "--tls", "--cacert", &strange, "-p", &port][..], &pair].concat());
    assert!(unknown.code == 1 && unknown.errors.contains("--insecure"), "{}", unknown.errors);
    assert_eq!(run(&[&["cli", "--tls", "--insecure", "-p", &port][..], &pair].concat()).output, "PONG\n");
    let other_name = served.cli(served.port(), &[&["--sni", "example.com"][..], &pair].concat());
    assert!(other_name.code == 1 && other_name.errors.contains("--sni"), "{}", other_name.errors);
    let same_name = served.cli(served.port(), &[&["--sni", "localhost"][..], &pair].concat());
    assert_eq!(same_name.output, "PONG\n");
}

#[test]
fn a_stop_tells_open_connections_that_it_is_the_end() {
    for backend in backends() {
        let served = Served::start(&["--tls-auth-clients", "no", "--io", backend]);
        let mut streams = [served.connect(), served.connect(), served.connect()];
        for stream in &mut streams {
            stream.write_all(b"PING\r\n").unwrap();
            expect(stream, b"+PONG\r\n");
        }
        let half = TcpStream::connect(("127.0.0.1", served.port())).unwrap();
        let (code, said) = served.server.stop(Signal::INT);
        assert_eq!((code, said.as_str()), (Some(0), "stopped\n"));
        for stream in &mut streams {
            // An end without TLS's own would be an error.
            assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
        }
        drop(half);
    }
}

#[test]
fn cluster_clients_are_told_ports_like_their_own() {
    let served = Served::start(&["--tls-auth-clients", "no", "--cores", "2"]);
    let (plain, sealed) = (served.server.port, served.port());
    for instance in [1, 2] {
        let set = served.cli(sealed + instance, &["-c", "set", "foo", "bar"]);
        assert_eq!((set.output.as_str(), set.errors.as_str()), ("OK\n", ""));
    }
    // foo belongs to the second half of the slots.
    let moved = served.cli(sealed + 1, &["get", "foo"]);
    assert_eq!(moved.output, format!("MOVED 12182 127.0.0.1:{}\n", sealed + 2));
    let moved = run(&["cli", "-p", &(plain + 1).to_string(), "get", "foo"]);
    assert_eq!(moved.output, format!("MOVED 12182 127.0.0.1:{}\n", plain + 2));
    for (command, port_of) in [("slots", "127.0.0.1\n{}\n"), ("nodes", " 127.0.0.1:{}@"), ("shards", "port\n{}\n")] {
        let [told, told_plain] =
            [served.cli(sealed, &["cluster", command]).output, served.server.ask(&["cluster", command])];
        for instance in [1, 2] {
            let expected = |port: u16| port_of.replace("{}", &(port + instance).to_string());
            assert!(told.contains(&expected(sealed)) && !told.contains(&expected(plain)), "{told}");
            assert!(told_plain.contains(&expected(plain)) && !told_plain.contains(&expected(sealed)), "{told_plain}");
        }
    }
}

#[test]
fn without_a_plain_port_there_is_none() {
    let served = Served::start(&["--tls-auth-clients", "no"]);
    let (ca, scratch) = (served.scratch.at("ca.crt"), &served.scratch);
    let block = PortBlock::take().unwrap();
    let port = block.first().to_string();
    let [certificate, key] = ["node.crt", "node.key"].map(|name| scratch.at(name));
    let files = ["--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-auth-clients", "no"];
    let only = Server::start(&[&["serve", "--port", "0", "--tls-port", &port][..], &files].concat());
    assert!(only.said.contains(&format!("ready on 127.0.0.1:{port} (TLS), cluster clients on")), "{}", only.said);
    assert_eq!(run(&["cli", "--tls", "--cacert", &ca, "-p", &port, "ping"]).output, "PONG\n");
    let instance = (block.first() + 1).to_string();
    let slots = run(&["cli", "--tls", "--cacert", &ca, "-p", &instance, "cluster", "slots"]).output;
    assert!(slots.contains(&instance), "{slots}");
    let config = run(&["cli", "--tls", "--cacert", &ca, "-p", &port, "config", "get", "*port"]).output;
    assert!(config.contains(&format!("tls-port\n{port}\n")) && config.contains("port\n0\n"), "{config}");
    assert_eq!(only.stop(Signal::INT).0, Some(0));
}

#[test]
fn files_are_read_again_at_a_hangup_and_faults_keep_what_was() {
    let mut served = Served::start(&["--tls-auth-clients", "no"]);
    let mut before = served.connect();
    let other = authority();
    certify(&served.scratch, &other, "node");
    let other_ca = write(&served.scratch, "other-ca.crt", &other.pem());
    let port = served.port().to_string();
    let with_other = || run(&["cli", "--tls", "--cacert", &other_ca, "-p", &port, "ping"]);
    assert_eq!(with_other().code, 1);
    let line = served.server.tell(Signal::HUP);
    assert_eq!(line, "SIGHUP: certificate and key were read again, for clients that come from now on\n");
    assert_eq!(with_other().output, "PONG\n");
    write(&served.scratch, "node.key", "no key");
    let line = served.server.tell(Signal::HUP);
    assert!(line.starts_with("SIGHUP: tls-key-file: there is no private key in it"), "{line}");
    assert_eq!(with_other().output, "PONG\n");
    before.write_all(b"PING\r\n").unwrap();
    expect(&mut before, b"+PONG\r\n");
}

#[test]
fn settings_that_cannot_be_are_refused_with_key_value_and_way_out() {
    let scratch = Scratch::new();
    let authority = authority();
    let [certificate, key] = certify(&scratch, &authority, "node");
    let [_, other_key] = certify(&scratch, &authority, "other");
    let no = ["--tls-auth-clients", "no"];
    for (arguments, expected) in [
        (vec!["--tls-port", "7100"], "--tls-port 7100: TLS needs the node's certificate; add --tls-cert-file FILE"),
        (
            vec!["--tls-port", "6380", "--tls-cert-file", &certificate, "--tls-key-file", &key],
            "--tls-port 6380: of its ports 6380 to 6381 some are among 6379 to 6380, which this node has already; \
             give another one, for example 6381",
        ),
        (
            vec!["--tls-port", "7100", "--tls-cert-file", &certificate, "--tls-key-file", &key],
            "--tls-auth-clients yes: nobody says which client certificates are good; give --tls-ca-cert-file FILE",
        ),
        (
            [&["--tls-port", "7100", "--tls-cert-file", &certificate, "--tls-key-file", "/no/key"][..], &no].concat(),
            "--tls-key-file /no/key: No such file or directory (os error 2); give a PEM file that this user can read",
        ),
        (
            [&["--tls-port", "7100", "--tls-cert-file", &certificate, "--tls-key-file", &other_key][..], &no].concat(),
            ": this key does not belong to the certificate ",
        ),
    ] {
        let run = run(&[&["serve"][..], &arguments].concat());
        assert!(run.code == 2 && run.errors.contains(expected), "{}", run.errors);
    }
}

//! Whom a machine dials through the layer: it hears of them when both ends agreed on keys, or why they did not.

use std::io::{Read, Write};
use std::sync::Arc;

use base::limits::{LAYER_ROOM_BYTES, TLS_HANDSHAKE_MS_MAX};
use base::street::LayerRoom;
use base::{ConnectionId, Effect, Event, Machine, Now, Span, TickInput, TickOutput};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use tls::client::ClientFiles;
use tls::{Dials, Layer};

use crate::certificates::{Authority, Certified, Scratch};

const TOKEN: u64 = 7;
const ID: ConnectionId = ConnectionId { index: 0, generation: 0 };

/// Notes what it hears, and asks for what it is told to.
#[derive(Default)]
struct Caller {
    notes: Vec<String>,
    heard: Vec<u8>,
    asks: Vec<Effect>,
}

impl Machine for Caller {
    type Message = ();

    fn tick(&mut self, input: TickInput<'_, ()>, output: &mut TickOutput<()>) {
        for event in input.events.drain(..) {
            self.notes.push(match event {
                Event::Dialed { token: TOKEN, connection } => match connection {
                    Ok(id) => format!("dialed {}", id.index),
                    Err(reason) => reason,
                },
                Event::Received { span, .. } => {
                    self.heard.extend_from_slice(span.of(input.received));
                    continue;
                }
                Event::SendDone { buffer, .. } => format!("sent {}", buffer.len()),
                Event::PeerClosed { .. } => "peer closed".to_owned(),
                Event::Closed { .. } => "closed".to_owned(),
                other => panic!("{other:?}"),
            });
        }
        output.effects.append(&mut self.asks);
    }
}

/// The layer with a machine that dials, and what it sends to whoever answered.
struct Line {
    layer: Layer<Caller>,
    now_us: u64,
    events: Vec<Event>,
    slab: Vec<u8>,
    sent: Vec<u8>,
    is_closed: bool,
    deadline_us: Option<u64>,
}

const RECEIVED_BYTES: usize = 1 << 20;

impl Line {
    /// It dialed `address`, and somebody answered.
    fn dialed(address: &str, files: &ClientFiles, name: Option<&str>) -> Line {
        let dials = Dials::read(files, name).unwrap();
        let mut line = Line {
            layer: Layer::between(Caller::default(), None, Some(dials)),
            now_us: 1_000_000,
            events: Vec::new(),
            slab: vec![0; RECEIVED_BYTES + LAYER_ROOM_BYTES],
            sent: Vec::new(),
            is_closed: false,
            deadline_us: None,
        };
        line.ask(Effect::Dial { token: TOKEN, address: address.to_owned() });
        line.events.push(Event::Dialed { token: TOKEN, connection: Ok(ID) });
        line.settle();
        line
    }

    fn ask(&mut self, effect: Effect) {
        self.layer.machine_mut().asks.push(effect);
        self.tick();
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.slab[..bytes.len()].copy_from_slice(bytes);
        self.events.push(Event::Received { connection: ID, span: Span { start: 0, len: bytes.len() as u32 } });
        self.settle();
    }

    fn tick(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        let now = Now { monotonic_us: self.now_us, unix_ms: 0 };
        let (received, room) = self.slab.split_at_mut(RECEIVED_BYTES);
        self.layer.open(now, received, LayerRoom { bytes: room, start: RECEIVED_BYTES as u32 }, &mut events);
        let mut output = TickOutput::default();
        let input = TickInput { now, received: &self.slab, events: &mut events, hops: &mut Vec::new() };
        self.layer.tick(input, &mut output);
        self.deadline_us = output.deadline_us;
        for effect in output.effects {
            match effect {
                Effect::Send { connection, buffer } => {
                    self.sent.extend_from_slice(&buffer);
                    self.events.push(Event::SendDone { connection, buffer });
                }
                Effect::Close { connection } => {
                    self.is_closed = true;
                    self.events.push(Event::Closed { connection });
                }
                _ => {}
            }
        }
    }

    fn settle(&mut self) {
        while !self.events.is_empty() {
            self.tick();
        }
    }

    /// Carries bytes to and fro, `step` at a time, until both are silent.
    fn carry(&mut self, server: &mut ServerConnection, step: usize) {
        loop {
            let (to_server, mut to_us) = (std::mem::take(&mut self.sent), Vec::new());
            let mut rest = &to_server[..];
            while !rest.is_empty() {
                server.read_tls(&mut rest).unwrap();
                // What it thinks of that it says by an alert.
                server.process_new_packets().ok();
            }
            while server.wants_write() {
                server.write_tls(&mut to_us).unwrap();
            }
            if to_server.is_empty() && to_us.is_empty() {
                return;
            }
            to_us.chunks(step).for_each(|piece| self.receive(piece));
        }
    }

    fn notes(&mut self) -> &[String] {
        &self.layer.machine_mut().notes
    }
}

fn server(certified: &Certified, clients: Option<&Authority>) -> ServerConnection {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        }
    };
    let key = PrivateKeyDer::from_pem_slice(certified.key.serialize_pem().as_bytes()).unwrap();
    let config = builder.with_single_cert(vec![certified.certificate.der().clone()], key).unwrap();
    ServerConnection::new(Arc::new(config)).unwrap()
}

fn trusting(scratch: &Scratch, authority: &Authority) -> ClientFiles {
    ClientFiles { authorities: Some(scratch.write("trusted.crt", &authority.pem())), ..ClientFiles::default() }
}

#[test]
fn who_has_the_right_certificate_is_dialed_and_bytes_go_both_ways() {
    let (authority, scratch) = (Authority::new(), Scratch::new());
    let node = authority.certify(|_| {});
    for step in [1, 5000] {
        let mut line = Line::dialed("localhost:6379", &trusting(&scratch, &authority), None);
        assert!(line.notes().is_empty(), "not before both agreed");
        let mut server = server(&node, None);
        line.carry(&mut server, step);
        assert_eq!(line.notes(), ["dialed 0"]);
        line.ask(Effect::Send { connection: ID, buffer: b"question".to_vec() });
        line.carry(&mut server, step);
        let mut heard = [0; 8];
        server.reader().read_exact(&mut heard).unwrap();
        server.writer().write_all(b"answer").unwrap();
        line.carry(&mut server, step);
        assert_eq!((&heard, &line.layer.machine_mut().heard[..]), (b"question", &b"answer"[..]));
        assert_eq!(line.notes(), ["dialed 0", "sent 8"]);
        server.send_close_notify();
        line.carry(&mut server, step);
        assert_eq!(line.notes().last().map(String::as_str), Some("peer closed"));
    }
}

#[test]
fn what_is_wrong_with_a_certificate_is_told_with_what_helps_and_nothing_is_sent() {
    let (authority, scratch) = (Authority::new(), Scratch::new());
    let (strange, good) = (Authority::new().certify(|_| {}), authority.certify(|_| {}));
    let old = authority.certify(|parameters| parameters.not_after = rcgen::date_time_ymd(2020, 1, 1));
    let young = authority.certify(|parameters| parameters.not_before = rcgen::date_time_ymd(2100, 1, 1));
    for (node, address, name, helps) in [
        (&strange, "localhost:1", None, "--cacert FILE"),
        (&good, "db.internal:1", None, "--sni"),
        (&good, "127.0.0.1:1", None, "--sni"),
        (&good, "localhost:1", Some("db.internal"), "--sni"),
        (&old, "localhost:1", None, "needs a new certificate"),
        (&young, "localhost:1", None, "clock right"),
    ] {
        let mut line = Line::dialed(address, &trusting(&scratch, &authority), name);
        line.carry(&mut server(node, None), 5000);
        let notes = line.notes().to_vec();
        assert!(notes.len() == 1 && notes[0].starts_with("TLS: ") && notes[0].contains(helps), "{helps}: {notes:?}");
        assert!(line.is_closed);
    }
    // The same, where it is what was wanted.
    for (node, address, name) in [(&good, "127.0.0.1:1", Some("localhost")), (&good, "unix:/run/store.sock", None)] {
        let mut line = Line::dialed(address, &trusting(&scratch, &authority), name);
        line.carry(&mut server(node, None), 5000);
        assert_eq!(line.notes(), ["dialed 0"]);
    }
    let any = ClientFiles { is_insecure: true, ..ClientFiles::default() };
    let mut line = Line::dialed("elsewhere:1", &any, None);
    line.carry(&mut server(&old, None), 5000);
    assert_eq!(line.notes(), ["dialed 0"]);
}

#[test]
fn a_server_that_wants_a_certificate_gets_one_or_the_machine_hears_that_it_does() {
    let (authority, scratch) = (Authority::new(), Scratch::new());
    let (node, own) = (authority.certify(|_| {}), authority.certify(|_| {}));
    let without = trusting(&scratch, &authority);
    let mut line = Line::dialed("localhost:1", &without, None);
    line.carry(&mut server(&node, Some(&authority)), 5000);
    let notes = line.notes().to_vec();
    assert!(notes.len() == 1 && notes[0].contains("--cert FILE --key FILE"), "{notes:?}");
    let with = ClientFiles {
        certificate: Some(scratch.write("own.crt", &own.certificate.pem())),
        key: Some(scratch.write("own.key", &own.key.serialize_pem())),
        ..without
    };
    let mut line = Line::dialed("localhost:1", &with, None);
    line.carry(&mut server(&node, Some(&authority)), 5000);
    assert_eq!(line.notes(), ["dialed 0"]);
}

#[test]
fn who_speaks_no_tls_ends_or_says_nothing_is_told_as_a_dial_that_failed() {
    let (authority, scratch) = (Authority::new(), Scratch::new());
    let files = trusting(&scratch, &authority);
    let begin = || Line::dialed("localhost:1", &files, None);
    let mut plain = begin();
    plain.receive(b"-ERR unknown command\r\n");
    let mut ended = begin();
    ended.events.push(Event::PeerClosed { connection: ID });
    ended.settle();
    let mut broken = begin();
    broken.events.push(Event::Closed { connection: ID });
    broken.settle();
    let mut silent = begin();
    assert_eq!(silent.deadline_us, Some(silent.now_us + TLS_HANDSHAKE_MS_MAX * 1000));
    silent.now_us += TLS_HANDSHAKE_MS_MAX * 1000;
    silent.tick();
    silent.settle();
    for line in [&mut plain, &mut ended, &mut broken, &mut silent] {
        let notes = line.notes().to_vec();
        assert!(
            notes.len() == 1 && notes[0].contains("does it speak TLS") | notes[0].contains("does the server speak TLS"),
            "{notes:?}"
        );
    }
}

#[test]
fn a_dial_that_nobody_answers_is_told_as_it_is_and_files_that_cannot_be_are_refused() {
    let (authority, scratch) = (Authority::new(), Scratch::new());
    let files = trusting(&scratch, &authority);
    let mut line = Line::dialed("localhost:1", &files, None);
    line.events.push(Event::Dialed { token: TOKEN, connection: Err("nobody there".to_owned()) });
    line.settle();
    assert_eq!(line.notes(), ["nobody there"]);
    assert!(Dials::read(&files, Some("no name")).unwrap_err().contains("--sni"));
    let missing = ClientFiles { authorities: Some("/no/such/file".into()), ..ClientFiles::default() };
    assert!(Dials::read(&missing, None).unwrap_err().contains("--cacert /no/such/file"));
}

//! Ends: good ones and bad ones, in handshakes and behind them. Nobody is kept, nothing panics.

use base::limits::{TLS_CLOSE_MS_MAX, TLS_HANDSHAKE_BYTES_MAX, TLS_HANDSHAKE_MS_MAX};
use base::rng::Rng;
use base::{Effect, Event};
use tls::ClientCertificates;

use crate::certificates::Authority;
use crate::rig::{Rig, id};

#[test]
fn a_client_without_a_cipher_is_told_so_in_its_own_words() {
    let mut rig = Rig::new(ClientCertificates::No);
    rig.accept(0, true);
    rig.receive(0, b"*1\r\n$4\r\nPING\r\n");
    rig.tick();
    assert!(rig.sent.starts_with(b"-ERR this port speaks TLS only") && rig.sent.ends_with(b"\r\n"));
    assert!(rig.is_closed && rig.echo().notes.is_empty());
}

#[test]
fn a_handshake_has_its_time() {
    let mut rig = Rig::new(ClientCertificates::No);
    rig.accept(0, true);
    let hello = rig.client(None).take();
    rig.receive(0, &hello[..hello.len() / 2]);
    rig.tick();
    let until_us = rig.now_us + TLS_HANDSHAKE_MS_MAX * 1000;
    assert_eq!(rig.output.deadline_us, Some(until_us));
    rig.now_us = until_us - 1;
    rig.tick();
    assert!(!rig.is_closed);
    rig.now_us = until_us;
    rig.tick();
    assert!(rig.is_closed && rig.echo().notes.is_empty());
    rig.events.push(Event::Closed { connection: id(0) });
    rig.tick();
    assert!(rig.output.deadline_us.is_none() && rig.echo().notes.is_empty(), "who never was there cannot go");
}

#[test]
fn a_handshake_has_its_bytes() {
    let mut rig = Rig::new(ClientCertificates::No);
    rig.accept(0, true);
    // Records of a message that is announced to be longer than any.
    let mut record = vec![22, 3, 3, 0x40, 0, 1, 0, 0xff, 0xff];
    record.resize(5 + 0x4000, 0);
    let mut given = 0;
    while !rig.is_closed {
        rig.receive(0, &record);
        given += record.len();
        assert!(given <= TLS_HANDSHAKE_BYTES_MAX + record.len());
        rig.tick();
    }
    assert!(rig.echo().notes.is_empty());
}

#[test]
fn garbage_ends_a_connection_wherever_it_comes() {
    let (mut rng, mut tolerated) = (Rng::new(7), 0);
    for round in 0..600 {
        let mut rig = Rig::new(ClientCertificates::Optional);
        let certified = rig.authority.certify(|_| {});
        let mut client = match round % 3 {
            0 => rig.connected(),
            _ => {
                rig.accept(0, true);
                rig.client(Some(&certified))
            }
        };
        if round % 3 == 1 {
            // What comes next is the client's certificate, its proof, and the end of the handshake.
            let hello = client.take();
            rig.receive(0, &hello);
            rig.tick();
            client.give(&std::mem::take(&mut rig.sent));
        }
        client.say(b"a request");
        let mut bytes = client.take();
        // One byte is another one; every other time what follows is anything.
        let at = rng.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 + rng.below(255) as u8;
        if round % 2 == 0 {
            bytes.extend((0..rng.below(40_000)).map(|_| rng.next_u64() as u8));
        }
        for piece in bytes.chunks(1 + rng.below(5_000) as usize) {
            if !rig.is_closed {
                rig.receive(0, piece);
                rig.tick();
            }
        }
        // A record's version, and what TLS 1.3 says for the sake of older boxes, may be anything.
        let received = &rig.echo().received;
        assert!(received.is_empty() || received == b"a request", "nothing that was changed is told");
        tolerated += usize::from(!received.is_empty());
        assert!(rig.is_closed || round % 2 == 1 || bytes.len() < 20_000, "{round}");
    }
    assert!(tolerated < 60, "{tolerated}");
}

#[test]
fn certificates_of_clients_are_wanted_as_configured() {
    use ClientCertificates::{No, Optional, Yes};
    let stranger = Authority::new();
    for (clients, shown, is_let_in) in [
        (Yes, "good", true),
        (Yes, "none", false),
        (Yes, "strange", false),
        (Optional, "good", true),
        (Optional, "none", true),
        (Optional, "strange", false),
        (No, "none", true),
        (No, "strange", true),
    ] {
        let mut rig = Rig::new(clients);
        let certified = match shown {
            "good" => Some(rig.authority.certify(|_| {})),
            "strange" => Some(stranger.certify(|_| {})),
            _ => None,
        };
        let mut client = rig.client(certified.as_ref());
        rig.accept(0, true);
        client.say(b"request");
        rig.carry(&mut client, 4096);
        let heard = (!rig.echo().notes.is_empty(), &client.read[..]);
        assert_eq!(heard, (is_let_in, if is_let_in { &b"request"[..] } else { b"" }), "{clients:?} {shown}");
        assert_eq!((rig.is_closed, client.failure.is_some()), (!is_let_in, !is_let_in), "{clients:?} {shown}");
    }
}

#[test]
fn the_machine_closes_and_the_client_hears_everything_and_the_end() {
    let mut rig = Rig::new(ClientCertificates::No);
    let mut client = rig.connected();
    rig.holds_sends = true;
    let buffer = vec![7; 700_000];
    rig.echo().asks = vec![Effect::Send { connection: id(0), buffer }, Effect::Close { connection: id(0) }];
    rig.tick();
    while rig.under_way.is_some() {
        rig.end_send();
        rig.tick();
    }
    client.give(&std::mem::take(&mut rig.sent));
    assert_eq!((client.read.len(), client.has_end, rig.is_closed), (700_000, true, true));
    assert_eq!(rig.echo().notes, ["accepted peer 0", "sent 700000", "closed"]);
}

#[test]
fn who_takes_nothing_of_its_last_replies_is_closed_without_them() {
    let mut rig = Rig::new(ClientCertificates::No);
    let _client = rig.connected();
    rig.holds_sends = true;
    let buffer = vec![7; 1 << 20];
    rig.echo().asks = vec![Effect::Send { connection: id(0), buffer }, Effect::Close { connection: id(0) }];
    rig.tick();
    let until_us = rig.now_us + TLS_CLOSE_MS_MAX * 1000;
    assert_eq!((rig.is_closed, rig.output.deadline_us), (false, Some(until_us)));
    // Some of it was taken meanwhile: its time begins anew.
    rig.end_send();
    rig.now_us = until_us;
    rig.tick();
    assert_eq!((rig.is_closed, rig.output.deadline_us), (false, Some(until_us + TLS_CLOSE_MS_MAX * 1000)));
    rig.now_us = until_us + TLS_CLOSE_MS_MAX * 1000;
    rig.tick();
    assert!(rig.is_closed);
}

#[test]
fn a_clients_end_is_told_once_and_replies_still_reach_it() {
    let mut rig = Rig::new(ClientCertificates::No);
    let mut client = rig.connected();
    client.say(b"last words");
    client.rustls.send_close_notify();
    rig.carry(&mut client, 1 << 20);
    rig.events.push(Event::PeerClosed { connection: id(0) });
    rig.tick();
    let notes = rig.echo().notes.clone();
    assert_eq!(notes.iter().filter(|note| *note == "peer closed").count(), 1, "{notes:?}");
    assert_eq!(client.read, b"last words");
    rig.echo().asks.push(Effect::Close { connection: id(0) });
    rig.tick();
    client.give(&std::mem::take(&mut rig.sent));
    assert!(client.has_end && rig.is_closed);
}

#[test]
fn a_machine_that_stops_says_good_bye() {
    let mut rig = Rig::new(ClientCertificates::No);
    let mut client = rig.connected();
    let buffer = vec![7; 1 << 20];
    rig.echo().asks = vec![Effect::Send { connection: id(0), buffer }, Effect::Stop];
    rig.holds_sends = true;
    rig.tick();
    assert!(!rig.is_closed, "a part is under way: nothing else can be handed over");
    let mut rig = Rig::new(ClientCertificates::No);
    client = {
        drop(client);
        rig.connected()
    };
    rig.echo().asks = vec![Effect::Stop];
    rig.tick();
    client.give(&std::mem::take(&mut rig.sent));
    assert!(client.has_end && rig.is_closed);
}

#[test]
fn a_client_that_makes_tls_talk_and_reads_nothing_makes_nothing_grow() {
    let mut rig = Rig::new(ClientCertificates::No);
    let mut client = rig.connected();
    rig.holds_sends = true;
    rig.echo().is_silent = true;
    let buffer = b"under way".to_vec();
    rig.echo().asks.push(Effect::Send { connection: id(0), buffer });
    rig.tick();
    rig.sends.clear();
    // Every update of keys is to be answered by one; data between two, because too many in a row are refused.
    for _ in 0..2_000 {
        client.rustls.refresh_traffic_keys().unwrap();
        client.say(b"x");
        let bytes = client.take();
        rig.receive(0, &bytes);
        rig.tick();
    }
    assert!(rig.sends.is_empty() && !rig.is_closed && rig.echo().received.len() == 2_000);
    rig.end_send();
    rig.tick();
    rig.echo().asks.push(Effect::Send { connection: id(0), buffer: b", and more".to_vec() });
    rig.end_send();
    rig.tick();
    assert!(rig.sends.iter().sum::<usize>() < 200, "one answer for all: {:?}", rig.sends);
    client.give(&std::mem::take(&mut rig.sent));
    assert_eq!((client.failure.take(), &client.read[..]), (None, &b"under way, and more"[..]));
    // Too many in a row, and it is closed.
    while !rig.is_closed {
        client.rustls.refresh_traffic_keys().unwrap();
        let bytes = client.take();
        rig.receive(0, &bytes);
        rig.tick();
    }
}

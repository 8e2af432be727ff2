//! Conversations: whatever way ciphertext is cut and mixed, the machine hears what the client said and the client what the
//! machine said.

use base::limits::{TLS_HANDSHAKE_STEPS_PER_TICK_MAX, TLS_SEAL_BYTES};
use tls::ClientCertificates;

use crate::rig::Rig;

#[test]
fn ciphertext_may_be_cut_anywhere() {
    // The whole conversation once, to know how long it is; then with a cut of every length.
    for step in (1..80).chain([1000, 1 << 20]) {
        let mut rig = Rig::new(ClientCertificates::No);
        let mut client = rig.client(None);
        rig.accept(0, true);
        rig.carry(&mut client, step);
        client.say(b"one");
        rig.carry(&mut client, step);
        client.say(b"two");
        client.say(b"three");
        rig.carry(&mut client, step);
        assert_eq!((client.failure.take(), &client.read[..]), (None, &b"onetwothree"[..]), "{step}");
        assert_eq!(rig.echo().received, b"onetwothree", "{step}");
    }
}

#[test]
fn every_single_cut_of_a_request_is_joined_again() {
    let mut rig = Rig::new(ClientCertificates::No);
    let mut client = rig.connected();
    let mut said = Vec::new();
    for cut in 1.. {
        let request = format!("request {cut};");
        client.say(request.as_bytes());
        let records = client.take();
        if cut >= records.len() {
            break;
        }
        said.extend_from_slice(request.as_bytes());
        for piece in [&records[..cut], &records[cut..]] {
            rig.receive(0, piece);
            rig.tick();
        }
        rig.carry(&mut client, 1 << 20);
        assert_eq!(client.read, said, "{cut}");
    }
    assert!(said.len() > 300);
}

#[test]
fn long_bytes_go_both_ways_and_a_send_is_done_when_its_last_record_is() {
    let mut rig = Rig::new(ClientCertificates::No);
    let mut client = rig.connected();
    let long: Vec<u8> = (0..3 * TLS_SEAL_BYTES as u32 / 4 + 5).flat_map(u32::to_le_bytes).collect();
    client.say(&long);
    rig.echo().is_silent = true;
    rig.carry(&mut client, 16 << 10);
    assert!(rig.echo().received == long);
    // The machine's own long send, with a client that takes it piece by piece.
    rig.holds_sends = true;
    let buffer = long.clone();
    rig.echo().asks.push(base::Effect::Send { connection: crate::rig::id(0), buffer });
    rig.echo().notes.clear();
    rig.sends.clear();
    rig.tick();
    for sends in 1..=4 {
        assert_eq!((rig.sends.len(), rig.echo().notes.len()), (sends, 0), "a part of it is no send that is done");
        assert!(rig.sends[sends - 1] < TLS_SEAL_BYTES + (TLS_SEAL_BYTES >> 4), "{:?}", rig.sends);
        assert!(rig.sends.len() == 4 || !rig.output.quiet_completions || rig.sends[sends - 1] > 16 << 10);
        rig.end_send();
        rig.tick();
    }
    assert_eq!(rig.echo().notes, [format!("sent {}", long.len())]);
    client.give(&std::mem::take(&mut rig.sent));
    assert!(client.read == long);
}

#[test]
fn connections_without_a_cipher_are_passed_on_as_they_are() {
    let mut rig = Rig::new(ClientCertificates::No);
    let mut client = rig.connected();
    rig.echo().is_silent = true;
    rig.accept(1, false);
    client.say(b"sealed");
    let records = client.take();
    rig.receive(1, b"plain");
    rig.receive(0, &records);
    rig.receive(1, b"more");
    rig.tick();
    assert_eq!(rig.echo().received, b"plainsealedmore");
    let spans: Vec<(u32, u32)> = rig.echo().spans.iter().map(|span| (span.start, span.len)).collect();
    let behind = 5 + records.len() as u32;
    assert_eq!((spans[0], spans[2]), ((0, 5), (behind, 4)), "where the street laid them");
    assert!(spans[1].0 >= 1 << 20, "in the room");
}

/// A record of the client is longer than the room, and its end waits behind the rest of it.
#[test]
fn what_finds_no_room_comes_with_the_next_ticks_in_order() {
    let mut rig = Rig::new(ClientCertificates::No);
    let mut client = rig.connected();
    rig.echo().is_silent = true;
    rig.echo().notes.clear();
    rig.room_bytes = 1000;
    let said: Vec<u8> = (0..40_000u32).map(|number| (number % 251) as u8).collect();
    client.say(&said);
    let records = client.take();
    rig.receive(0, &records);
    rig.events.push(base::Event::PeerClosed { connection: crate::rig::id(0) });
    for opened in (1000..=said.len()).step_by(1000) {
        rig.tick();
        assert_eq!((rig.echo().received.len(), rig.output.more), (opened, opened < said.len()));
        assert_eq!(rig.echo().notes.is_empty(), opened < said.len(), "{opened}");
    }
    assert!(rig.echo().received == said);
    assert_eq!(rig.echo().notes, ["peer closed"]);
}

#[test]
fn handshakes_take_turns_and_those_already_served_do_not_wait_for_them() {
    let mut rig = Rig::new(ClientCertificates::No);
    let mut served = rig.connected();
    let mut clients: Vec<_> = (0..9).map(|_| rig.client(None)).collect();
    for (index, client) in (1..).zip(&mut clients) {
        rig.accept(index, true);
        let hello = client.take();
        rig.receive(index, &hello);
    }
    served.say(b"served");
    let request = served.take();
    rig.receive(0, &request);
    rig.tick();
    assert_eq!(rig.echo().received, b"served");
    let mut answered = vec![rig.events.len() - 1];
    while rig.output.more {
        rig.events.clear();
        rig.tick();
        answered.push(rig.events.len());
    }
    let most = TLS_HANDSHAKE_STEPS_PER_TICK_MAX;
    assert_eq!(answered, [most, most, 1]);
}

#[test]
fn an_idle_core_makes_nothing_of_a_tick() {
    let mut rig = Rig::new(ClientCertificates::No);
    let _client = rig.connected();
    rig.tick();
    assert!(rig.output.deadline_us.is_none() && !rig.output.more && rig.output.quiet_completions);
}

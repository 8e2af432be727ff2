//! Callers that have become one with their own connection: nothing that came behind the request which did that is lost.

use crate::store::{Session, Store};
use crate::street::Street;
use base::ConnectionId;
use proxy::PolicyConfig;
use std::collections::BTreeMap;

/// What a caller hears that sends `bytes` at once, and what was said on the connection that subscribes.
fn heard(bytes: &[u8]) -> (String, String) {
    let (mut street, mut store) = (Street::new(PolicyConfig::SelfClocked), Store::of_today());
    let mut sessions: BTreeMap<ConnectionId, Session> = BTreeMap::new();
    let mut said_there: BTreeMap<ConnectionId, String> = BTreeMap::new();
    let client = street.client();
    street.arrive(client, bytes);
    let mut is_quiet = false;
    while !is_quiet {
        street.settle();
        is_quiet = true;
        for connection in street.upstream.clone() {
            let said = street.take(connection);
            *said_there.entry(connection).or_default() += std::str::from_utf8(&said).unwrap();
            let replies = sessions.entry(connection).or_default().take(&mut store, &said);
            if !replies.is_empty() {
                is_quiet = false;
                street.arrive(connection, &replies);
            }
        }
    }
    let there = said_there.into_values().find(|said| said.contains("SUBSCRIBE")).unwrap();
    (street.text(client), there)
}

#[test]
fn what_comes_in_one_packet_behind_a_subscription_follows_it_on_its_connection() {
    let subscribed = "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n";
    let as_array = b"*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n".as_slice();
    let inline: [&[u8]; 4] =
        [b"SUBSCRIBE c\r\n", b"SUBSCRIBE \"c\"\r\n", b"SUBSCRIBE \"\\x63\"\r\n", b"SUBSCRIBE 'c'\r\n"];
    for subscribe in [as_array].into_iter().chain(inline) {
        let bytes = [b"PING\r\n", subscribe, b"*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n"].concat();
        let expected = format!("+PONG\r\n{subscribed}+PONG\r\n$2\r\nhi\r\n");
        let (heard, there) = heard(&bytes);
        assert_eq!(heard, expected, "{}", subscribe.escape_ascii());
        let behind = there.split("SUBSCRIBE").nth(1).unwrap();
        assert!(behind.contains("PING") && behind.contains("ECHO"), "{} {behind}", subscribe.escape_ascii());
    }
}

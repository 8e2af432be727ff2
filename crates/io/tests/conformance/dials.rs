//! Dials: somebody answers, nobody does, and there is no room.

use crate::node::{Client, Node, Setup, on_each_backend};
use std::io::Read;
use std::net::{TcpListener, TcpStream};

fn accepted(listener: &TcpListener) -> Client {
    Client::over(listener.accept().unwrap().0)
}

#[test]
fn a_connection_that_was_dialed_is_one_like_any_other() {
    on_each_backend(|backend, quiet| {
        let node = Node::start(backend, quiet, Setup::default());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut asker = node.client();
        for number in 0..3 {
            assert_eq!(asker.ask(&format!("DIAL {}", listener.local_addr().unwrap())), "dialed");
            let mut other = accepted(&listener);
            assert_eq!(other.line(), format!("token {number}"));
            assert_eq!(other.ask("ECHO back"), "back");
            let long: String = (0..200_000).map(|i| char::from(b'a' + (i % 23) as u8)).collect();
            assert_eq!(other.ask(&format!("ECHO {long}")), long);
            assert_eq!(other.ask("QUIT"), "bye");
            assert_eq!(other.stream.read(&mut [0; 1]).unwrap(), 0);
        }
        // By name, and two at once.
        let by_name = format!("DIAL localhost:{}\n", listener.local_addr().unwrap().port());
        asker.send(by_name.repeat(2).as_bytes());
        assert_eq!([asker.line(), asker.line()], ["dialed", "dialed"]);
        drop([accepted(&listener), accepted(&listener)]);
        node.stop();
    });
}

#[test]
fn who_dials_in_vain_is_told() {
    on_each_backend(|backend, quiet| {
        let node = Node::start(backend, quiet, Setup { connections_max: 2, ..Setup::default() });
        let mut asker = node.client();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        for wrong in ["no such host:1", "127.0.0.1", "127.0.0.1:99999"] {
            assert_eq!(asker.ask(&format!("DIAL {wrong}")), "nobody", "{wrong}");
        }
        // One more has room, the next one has none, and its socket does not stay.
        assert_eq!(asker.ask(&format!("DIAL {address}")), "dialed");
        assert_eq!(asker.ask(&format!("DIAL {address}")), "nobody");
        let (first, mut second): (TcpStream, TcpStream) = (listener.accept().unwrap().0, listener.accept().unwrap().0);
        assert_eq!(second.read(&mut [0; 1]).unwrap(), 0);
        drop((first, listener));
        assert_eq!(asker.ask(&format!("DIAL {address}")), "nobody");
        // More than may be under way at once: every one is told.
        asker.send(format!("DIAL {address}\n").repeat(200).as_bytes());
        (0..200).for_each(|_| assert_eq!(asker.line(), "nobody"));
        node.stop();
    });
}

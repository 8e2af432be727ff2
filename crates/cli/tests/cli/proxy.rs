//! `zerohop proxy` before a node: what a client sets it reads back, and what goes wrong is said.

use rustix::process::Signal;

use crate::process::{Server, run};

fn before(store: &Server, more: &[&str]) -> Server {
    let address = format!("127.0.0.1:{}", store.port);
    Server::start(&[&["proxy", &address, "--port", "0"], more].concat())
}

#[test]
fn clients_are_served_through_it_on_both_backends() {
    let store = Server::serve(&[]);
    for io in ["epoll", "auto"] {
        let proxy = before(&store, &["--io", io, "--cores", "2"]);
        assert!(proxy.said.contains(&format!(", before 127.0.0.1:{}\n", store.port)), "{}", proxy.said);
        assert_eq!(proxy.ask(&["set", "through", io]), "OK");
        assert_eq!([store.ask(&["get", "through"]), proxy.ask(&["get", "through"])], [io, io]);
        assert_eq!(proxy.ask(&["zh.qos", "10ms"]), "OK");
        let refused = run(&["cli", "-p", &proxy.port.to_string(), "zh.qos", "soon"]);
        assert!(refused.code == 1 && refused.output.contains("500us, 10ms or 1s"), "{}", refused.output);
        assert_eq!(proxy.stop(Signal::TERM).0, Some(0));
    }
}

#[test]
fn a_store_that_is_gone_is_named_and_one_that_is_back_is_used() {
    let store = Server::serve(&[]);
    let proxy = before(&store, &[]);
    assert_eq!(proxy.ask(&["set", "a", "1"]), "OK");
    let address = format!("127.0.0.1:{}", store.port);
    let block = store.kill_for_another().unwrap();
    let port = proxy.port.to_string();
    let gone = run(&["cli", "-p", &port, "get", "a"]);
    assert!(
        gone.code == 1 && gone.output.contains(&address) && gone.output.contains("not carried out"),
        "{}",
        gone.output
    );
    let _store = Server::serve_on(block, &[]);
    // It dials again after a second at most.
    while run(&["cli", "-p", &port, "set", "a", "2"]).code != 0 {
        std::thread::yield_now();
    }
    assert_eq!(proxy.ask(&["get", "a"]), "2");
}

#[test]
fn what_it_cannot_do_it_says_with_the_fix() {
    let wrong = run(&["proxy", "localhost"]);
    assert!(wrong.code == 2 && wrong.errors.contains("127.0.0.1:6379"), "{}", wrong.errors);
    let wrong = run(&["proxy", "127.0.0.1:6379", "--within", "soon"]);
    assert!(wrong.code == 2 && wrong.errors.contains("10ms"), "{}", wrong.errors);
    let store = Server::serve(&[]);
    let taken = run(&["proxy", "127.0.0.1:1", "--port", &store.port.to_string()]);
    assert!(taken.code == 1 && taken.errors.contains("--port"), "{}", taken.errors);
}

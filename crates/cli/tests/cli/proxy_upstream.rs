//! `zerohop proxy` before stores that are named and spoken with in all ways: by host, by Unix socket, with TLS; and with TLS to
//! its own clients.

use ports::PortBlock;
use rustix::process::Signal;

use crate::process::{Run, Scratch, Server, run};
use crate::tls::{Served, authority, certify, write};

fn before(store: &str, more: &[&str]) -> Server {
    Server::start(&[&["proxy", store, "--port", "0"], more].concat())
}

/// What a client hears that asks through it for the first time.
fn first_word(proxy: &Server) -> Run {
    run(&["cli", "-p", &proxy.port.to_string(), "set", "a", "1"])
}

#[test]
fn a_store_is_found_by_its_host_name_and_by_its_socket_and_who_is_not_there_is_told_with_the_reason() {
    let scratch = Scratch::new();
    let path = scratch.at("store.sock");
    let store = Server::serve(&["--unixsocket", &path]);
    for named in [format!("redis://localhost:{}", store.port), format!("unix:{path}"), format!("unix://{path}")] {
        for io in ["epoll", "auto"] {
            let proxy = before(&named, &["--io", io]);
            assert_eq!(proxy.ask(&["set", "through", &named]), "OK");
            assert_eq!(store.ask(&["get", "through"]), named);
        }
    }
    let tried = run(&["proxy", "--try", &format!("unix:{path}"), "--json"]);
    assert!(tried.code == 0 && tried.output.contains("through zerohop proxy"), "{}{}", tried.output, tried.errors);
    let block = PortBlock::take().unwrap();
    for (named, reasons) in [
        (format!("localhost:{}", block.first()), ["127.0.0.1", "Connection refused"]),
        ("no-such-host.invalid:1".to_owned(), ["no-such-host.invalid:1 (", "lookup"]),
        (format!("unix:{path}.not"), ["store.sock.not (", "No such file"]),
    ] {
        let told = first_word(&before(&named, &[])).output;
        assert!(told.contains("not carried out") && reasons.iter().all(|part| told.contains(part)), "{named}: {told}");
    }
}

#[test]
fn a_store_with_tls_is_asked_by_the_right_name_and_certificate_only() {
    let served = Served::start(&["--tls-auth-clients", "no"]);
    let (ca, store) = (served.scratch.at("ca.crt"), format!("rediss://localhost:{}", served.port()));
    for io in ["epoll", "auto"] {
        let proxy = before(&store, &["--cacert", &ca, "--io", io]);
        assert!(proxy.said.contains(&format!("before localhost:{} (TLS)\n", served.port())), "{}", proxy.said);
        assert_eq!(proxy.ask(&["set", "through", io]), "OK");
        assert_eq!([served.server.ask(&["get", "through"]), proxy.ask(&["get", "through"])], [io, io]);
        assert_eq!(proxy.stop(Signal::TERM).0, Some(0));
    }
    let strange = write(&served.scratch, "strange.crt", &authority().pem());
    for (more, helps) in
        [(vec!["--cacert", &strange], "--cacert FILE"), (vec!["--cacert", &ca, "--sni", "db.internal"], "with --sni")]
    {
        let told = first_word(&before(&store, &more)).output;
        assert!(told.contains("not carried out") && told.contains(helps), "{more:?}: {told}");
    }
    let plain = format!("localhost:{}", served.server.port);
    let told = first_word(&before(&plain, &["--tls", "--cacert", &ca])).output;
    assert!(told.contains("does the server speak TLS on this port?"), "{told}");
    assert_eq!(first_word(&before(&store, &["--insecure"])).output, "OK\n");
    let tried = run(&["proxy", "--try", &store, "--cacert", &ca, "--json"]);
    assert!(tried.code == 0 && tried.output.contains("through zerohop proxy"), "{}{}", tried.output, tried.errors);
}

#[test]
fn a_store_that_wants_certificates_gets_one_and_without_says_so() {
    let served = Served::start(&[]);
    let (ca, store) = (served.scratch.at("ca.crt"), format!("rediss://localhost:{}", served.port()));
    let [certificate, key] = certify(&served.scratch, &served.authority, "proxy");
    let told = first_word(&before(&store, &["--cacert", &ca])).output;
    assert!(told.contains("not carried out") && told.contains("--cert FILE --key FILE"), "{told}");
    let proxy = before(&store, &["--cacert", &ca, "--cert", &certificate, "--key", &key]);
    assert_eq!(first_word(&proxy).output, "OK\n");
}

#[test]
fn nodes_of_a_cluster_are_spoken_with_by_tls_too() {
    let served = Served::start(&["--tls-auth-clients", "no", "--cores", "2"]);
    let ca = served.scratch.at("ca.crt");
    let proxy = before(&format!("rediss://127.0.0.1:{}", served.port() + 1), &["--cacert", &ca]);
    // foo belongs to the second half of the slots, bar to the first.
    assert_eq!(proxy.ask(&["mset", "foo", "1", "bar", "2"]), "OK");
    assert_eq!(served.server.ask(&["mget", "foo", "bar"]), "1\n2");
}

#[test]
fn clients_of_the_proxy_speak_tls_where_it_says_so() {
    let (store, scratch, authority, block) =
        (Server::serve(&[]), Scratch::new(), authority(), PortBlock::take().unwrap());
    let ca = write(&scratch, "ca.crt", &authority.pem());
    let [certificate, key] = certify(&scratch, &authority, "proxy");
    let port = block.first().to_string();
    let upstream = format!("127.0.0.1:{}", store.port);
    let keys = ["--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-auth-clients", "no"];
    let proxy = before(&upstream, &[&["--tls-port", &port][..], &keys].concat());
    assert_eq!(proxy.ask(&["set", "a", "plain"]), "OK");
    let sealed = ["cli", "--tls", "--cacert", &ca, "-p", &port];
    assert_eq!(run(&[&sealed[..], &["get", "a"]].concat()).output, "plain\n");
    assert!(run(&["cli", "-p", &port, "get", "a"]).output.contains("this port speaks TLS only"));
    assert_eq!(proxy.stop(Signal::TERM).0, Some(0));
    let file = write(
        &scratch,
        "proxy.toml",
        &format!(
            "upstream = [\"{upstream}\"]\n[tls]\ncert-file = \"{certificate}\"\nkey-file = \"{key}\"\nauth-clients = \"no\"\n\
             [[listener]]\naddress = \"127.0.0.1:{port}\"\ntls = true\n"
        ),
    );
    let checked = || run(&["proxy", "--config", &file, "--check"]);
    assert_eq!(checked().code, 0);
    let mut proxy = Server::start(&["proxy", "--config", &file]);
    assert_eq!(run(&[&sealed[..], &["get", "a"]].concat()).output, "plain\n");
    // Certificates are renewed while it runs; a fault changes nothing.
    let other = crate::tls::authority();
    certify(&scratch, &other, "proxy");
    let other_ca = write(&scratch, "other-ca.crt", &other.pem());
    let with_other = || run(&["cli", "--tls", "--cacert", &other_ca, "-p", &port, "get", "a"]);
    assert_eq!(with_other().code, 1);
    let said = proxy.tell(Signal::HUP);
    assert!(said.ends_with("changed: certificate and key, which were read again\n"), "{said}");
    assert_eq!(with_other().output, "plain\n");
    write(&scratch, "proxy.key", "no key");
    let said = proxy.tell(Signal::HUP);
    assert!(said.contains("everything stays as it was") && said.contains("tls-key-file"), "{said}");
    assert_eq!(with_other().output, "plain\n");
    let checked = checked();
    assert!(checked.code == 2 && checked.errors.contains("tls-key-file"), "{}", checked.errors);
}

#[test]
fn what_does_not_go_together_is_said() {
    for (arguments, part) in [
        (&["a:1", "--cacert", "x"][..], "rediss://"),
        (&["rediss://a:1", "--cacert", "/no/such/file"], "/no/such/file"),
        (&["rediss://a:1", "--cert", "x"], "--key"),
        (&["a:1", "--sentinel-password-file", "/dev/null"], "sentinel://"),
        (&["sentinel://a:1/shop", "--sentinel-password-file", "/no/such/file"], "/no/such/file"),
        (&["a:1", "--tls-port", "7"], "--tls-cert-file"),
        (&["a:1", "--tls-port", "7", "--tls-cert-file", "/no/such/file", "--tls-key-file", "x"], "tls-cert-file"),
        (&["sentinel://a:1/shop", "--try"], "name the master"),
    ] {
        let wrong = run(
            &[&["proxy"], arguments, &["--port", "0"][..if arguments.contains(&"--try") { 0 } else { 2 }]].concat()
        );
        assert!(wrong.code != 0 && wrong.errors.contains(part), "{arguments:?}: {}", wrong.errors);
    }
}

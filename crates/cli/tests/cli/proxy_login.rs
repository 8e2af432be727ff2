//! `zerohop proxy` with users of its own before a store with a password: callers log in at the proxy, and know no other password.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use ports::PortBlock;
use rustix::process::Signal;

use crate::process::{PATIENCE, Scratch, Server, run};

const SECRET: &str = "geheim";
const USERS: &str = "user default off\nuser ann on >pw ~shop:* +@all\nuser bob on >pw2 ~* &* +@all\n";

struct Line(TcpStream, BufReader<TcpStream>);

impl Line {
    fn to(port: u16) -> Line {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Line(stream.try_clone().unwrap(), BufReader::new(stream))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&mut self, text: &str) -> String {
        self.0.write_all(format!("{text}\r\n").as_bytes()).unwrap();
        self.line()
    }

    /// A text.
    fn text(&mut self, text: &str) -> String {
        assert!(self.ask(text).starts_with('$'));
        self.line()
    }

    fn is_closed(&mut self) -> bool {
        self.1.read(&mut [0]).unwrap_or(0) == 0
    }
}

#[test]
fn callers_log_in_at_the_proxy_and_what_they_may_do_is_read_again() {
    let (scratch, block) = (Scratch::new(), PortBlock::take().unwrap());
    let [path, users, password, own] = ["proxy.toml", "users.acl", "password", "own"].map(|name| scratch.at(name));
    fs::write(&own, SECRET).unwrap();
    let store = Server::serve(&["--requirepass-file", &own]);
    let [port, admin] = [block.first(), block.first() + 1];
    let write = |login: &str| {
        let text = format!(
            "upstream = [\"127.0.0.1:{}\"]\naclfile = \"{users}\"\nadmin = \"127.0.0.1:{admin}\"\n[[listener]]\n\
             address = \"127.0.0.1:{port}\"\n[upstream-login]\n{login}",
            store.port
        );
        fs::write(&path, text).unwrap();
    };
    write(&format!("password-file = \"{password}\"\n"));
    fs::write(&users, USERS).unwrap();
    let missing = run(&["proxy", "--config", &path, "--check"]);
    assert!(missing.code == 2 && missing.errors.contains("[upstream-login] password-file"), "{}", missing.errors);
    fs::write(&password, format!("{SECRET}\n")).unwrap();
    assert_eq!(run(&["proxy", "--config", &path, "--check"]).output, format!("{path} is fine\n"));

    let mut proxy = Server::start(&["proxy", "--config", &path]);
    let [mut ann, mut bob, mut nobody] = [Line::to(port), Line::to(port), Line::to(port)];
    assert_eq!(nobody.ask("GET shop:1"), "-NOAUTH Authentication required.");
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.";
    assert_eq!([nobody.ask(&format!("AUTH {SECRET}")), ann.ask("AUTH ann pw2")], [wrong, wrong]);
    assert_eq!([ann.ask("AUTH ann pw"), bob.ask("AUTH bob pw2")], ["+OK", "+OK"]);
    assert_eq!([ann.ask("SET shop:1 7"), bob.ask("SET other 8")], ["+OK", "+OK"]);
    assert_eq!(ann.ask("GET other"), "-NOPERM No permissions to access a key");
    assert_eq!([ann.text("ACL WHOAMI"), bob.text("GET shop:1")], ["ann", "7"]);
    assert!(ann.text("CLIENT INFO").contains(" user=ann "));
    assert_eq!(ann.line(), "", "that text ends its line by itself");
    assert_eq!([ann.ask("MULTI"), ann.ask("SET shop:1 8")], ["+OK", "+QUEUED"]);
    assert_eq!(ann.ask("SET other 9"), "-NOPERM No permissions to access a key");
    assert!(ann.ask("EXEC").starts_with("-EXECABORT"));
    assert_eq!([ann.text("GET shop:1"), bob.text("GET other")], ["7", "8"]);
    let mut metrics = Line::to(admin);
    metrics.0.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    metrics.1.read_to_string(&mut page).unwrap();
    assert!(page.contains("zerohop_proxy_failed_logins_total{core=\"0\"} 2"), "{page}");
    assert!(!page.contains(SECRET));

    fs::write(&users, USERS.replace("~shop:*", "~shop:2*")).unwrap();
    assert_eq!(proxy.tell(Signal::HUP), format!("SIGHUP: {path} was read again; changed: users\n"));
    assert!(ann.is_closed());
    assert_eq!(bob.text("GET other"), "8");
    let mut ann = Line::to(port);
    assert_eq!(ann.ask("AUTH ann pw"), "+OK");
    assert_eq!(ann.ask("GET shop:1"), "-NOPERM No permissions to access a key");

    fs::write(&users, format!("{USERS}user eve on >secret +gett\n")).unwrap();
    let said = proxy.tell(Signal::HUP);
    assert!(said.contains("everything stays as it was") && said.contains("line 4: '+gett'"), "{said}");
    assert!(!said.contains(">secret"), "{said}");
    fs::write(&users, USERS.replace("~shop:*", "~shop:2*")).unwrap();
    fs::write(&password, "another").unwrap();
    let said = proxy.tell(Signal::HUP);
    assert!(said.contains("from the next start or SIGUSR2 on") && !said.contains("another"), "{said}");
    write(&format!("user = \"x\"\npassword-file = \"{password}\"\n"));
    let said = proxy.tell(Signal::HUP);
    assert!(said.contains("the user of [upstream-login] cannot change while it runs"), "{said}");
    assert_eq!(bob.text("GET other"), "8");
    assert!(!proxy.stop_and_tell(Signal::TERM).contains(SECRET));
}

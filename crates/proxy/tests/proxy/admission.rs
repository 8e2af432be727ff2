//! A proxy with users of its own, before a store that wants a password which no caller knows.

mod handed;

use crate::store::{Session, Store};
use crate::street::{Street, upstream};
use base::ConnectionId;
use proxy::{Changeable, Classes, Naming, PolicyConfig, ProxyMachine, UpstreamLogin, Users};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::request::encode;
use wire::{Arguments, ParseLimits, Parsed, parse};

/// What the proxy logs in with.
const SECRET: &str = "geheim";

const USERS: &str = "user default off\n\
    user ann on >pw ~shop:* &news &w* -@all +@read +@write +@connection +@transaction +@pubsub +@scripting +acl|whoami\n\
    user bob on >pw2 ~* &* +@all\n\
    user reader on nopass %R~shop:* resetchannels +get +set +hset +multi +hget\n";

/// Other commands than those of [`Store`].
const MORE: [&str; 5] = [
    "*7\r\n$4\r\nhset\r\n:-4\r\n*1\r\n+write\r\n:1\r\n:1\r\n:1\r\n*2\r\n+@write\r\n+@hash\r\n",
    "*7\r\n$7\r\npublish\r\n:3\r\n*1\r\n+pubsub\r\n:0\r\n:0\r\n:0\r\n*1\r\n+@pubsub\r\n",
    "*7\r\n$10\r\npsubscribe\r\n:-2\r\n*1\r\n+pubsub\r\n:0\r\n:0\r\n:0\r\n*1\r\n+@pubsub\r\n",
    "*7\r\n$4\r\neval\r\n:-3\r\n*2\r\n+noscript\r\n+movablekeys\r\n:0\r\n:0\r\n:0\r\n*1\r\n+@scripting\r\n",
    "*7\r\n$9\r\nsubscribe\r\n:-2\r\n*2\r\n+pubsub\r\n+noscript\r\n:0\r\n:0\r\n:0\r\n*1\r\n+@pubsub\r\n",
];

/// A connection of a store that wants a password.
#[derive(Default)]
struct Locked {
    session: Session,
    input: Vec<u8>,
    is_open: bool,
}

impl Locked {
    fn take(&mut self, store: &mut Store, bytes: &[u8]) -> Vec<u8> {
        self.input.extend_from_slice(bytes);
        let (mut out, mut start) = (Vec::new(), 0);
        loop {
            let mut spans = Vec::new();
            let Parsed::Request { consumed } = parse(&self.input, start, &mut spans, &ParseLimits::AUTHENTICATED)
            else {
                break;
            };
            let words: Vec<Vec<u8>> = Arguments::new(&self.input, &spans).iter().map(<[u8]>::to_vec).collect();
            start += consumed;
            self.request(store, words, &mut out);
        }
        self.input.drain(..start);
        out
    }

    fn request(&mut self, store: &mut Store, words: Vec<Vec<u8>>, out: &mut Vec<u8>) {
        let name = words[0].to_ascii_lowercase();
        match &name[..] {
            b"auth" => {
                self.is_open = words.last().unwrap() == SECRET.as_bytes();
                out.extend_from_slice(if self.is_open { b"+OK\r\n" } else { b"-WRONGPASS here\r\n" });
            }
            b"reset" => {
                *self = Locked { input: std::mem::take(&mut self.input), ..Locked::default() };
                out.extend_from_slice(b"+RESET\r\n");
            }
            _ if !self.is_open => out.extend_from_slice(b"-NOAUTH of the store\r\n"),
            b"command" => {
                let mut list = Vec::new();
                self.session.request(store, words, &mut list);
                let rest = list.strip_prefix(b"*26\r\n").unwrap();
                out.extend_from_slice(&[format!("*{}\r\n", 26 + MORE.len()).as_bytes(), rest].concat());
                MORE.iter().for_each(|more| out.extend_from_slice(more.as_bytes()));
            }
            b"hset" | b"publish" => out.extend_from_slice(b":1\r\n"),
            b"acl" => out.extend_from_slice(b"$5\r\nproxy\r\n"),
            name if name.starts_with(b"zh.refused") => {
                let error = format!("-ERR unknown command '{}', with args: \r\n", String::from_utf8_lossy(name));
                self.session.refuse(&error, out);
            }
            _ => self.session.request(store, words, out),
        }
    }
}

fn users(text: &str) -> Arc<Users> {
    Arc::new(Users::from_file_naming(text.as_bytes(), None, Naming::Any).unwrap())
}

fn machine(text: Option<&str>) -> ProxyMachine {
    let mut store = upstream(vec!["store:6379".to_owned()], PolicyConfig::SelfClocked, 100);
    if text.is_some() {
        store.login = Some(UpstreamLogin { user: Some("proxy".to_owned()), password: SECRET.to_owned() });
    }
    let mut machine = ProxyMachine::new(store, Classes::default(), 7);
    if let Some(text) = text {
        machine.admit_users(users(text));
    }
    machine
}

/// The proxy and its store, with all that was said to that.
struct Scene {
    street: Street,
    store: Store,
    sessions: BTreeMap<ConnectionId, Locked>,
    said: String,
}

fn scene(text: &str) -> Scene {
    Scene::of(machine(Some(text)))
}

fn request(words: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(words.split(' ').map(str::as_bytes).collect::<Vec<_>>(), &mut bytes);
    bytes
}

impl Scene {
    fn of(machine: ProxyMachine) -> Scene {
        let street = Street::of(machine);
        Scene { street, store: Store::of_today(), sessions: BTreeMap::new(), said: String::new() }
    }

    /// Until nobody has anything to say.
    fn settle(&mut self) {
        let mut is_quiet = false;
        while !is_quiet {
            self.street.settle();
            is_quiet = true;
            for connection in self.street.upstream.clone() {
                let bytes = self.street.take(connection);
                let replies = self.sessions.entry(connection).or_default().take(&mut self.store, &bytes);
                self.said += std::str::from_utf8(&bytes).unwrap();
                if !replies.is_empty() {
                    is_quiet = false;
                    self.street.arrive(connection, &replies);
                }
            }
        }
    }

    /// What a client hears that sends these requests in one packet.
    fn ask_all(&mut self, client: ConnectionId, requests: &[&str]) -> String {
        let bytes: Vec<u8> = requests.iter().flat_map(|words| request(words)).collect();
        self.street.arrive(client, &bytes);
        self.settle();
        self.street.text(client)
    }

    fn ask(&mut self, client: ConnectionId, words: &str) -> String {
        self.ask_all(client, &[words])
    }

    fn logged_in(&mut self, words: &str) -> ConnectionId {
        let client = self.street.client();
        assert_eq!(self.ask(client, words), "+OK\r\n");
        client
    }

    fn reload(&mut self, text: &str) {
        let users = Some(users(text));
        let classes = Classes::default();
        self.street.order(Changeable { classes, connections_max: 100, collapse: Vec::new(), users });
        self.settle();
    }

    fn is_closed(&self, client: ConnectionId) -> bool {
        self.street.closed.contains(&client)
    }
}

const NOAUTH: &str = "-NOAUTH Authentication required.\r\n";
const WRONGPASS: &str = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
const NO_KEY: &str = "-NOPERM No permissions to access a key\r\n";
const NO_CHANNEL: &str = "-NOPERM No permissions to access a channel\r\n";
const ABORTED: &str = "-EXECABORT Transaction discarded because of previous errors.\r\n";

fn subscribed(channel: &str, count: usize) -> String {
    format!("*3\r\n$9\r\nsubscribe\r\n${}\r\n{channel}\r\n:{count}\r\n", channel.len())
}

#[test]
fn who_has_not_logged_in_reaches_nothing_and_the_store_hears_neither_it_nor_its_password() {
    let mut scene = scene(USERS);
    let client = scene.street.client();
    for words in ["GET shop:1", "PING", "SELECT 1", "HSET shop:1 f v", "SUBSCRIBE news", "ACL WHOAMI", "ZH.QOS 1ms"] {
        assert_eq!(scene.ask(client, words), NOAUTH, "{words}");
    }
    assert!(scene.ask(client, "HELLO 3").starts_with("-NOAUTH HELLO must be called"));
    assert!(scene.street.upstream.is_empty(), "nobody had a reason to dial");
    for wrong in ["AUTH pw", "AUTH ann pw2", "AUTH nobody pw", "HELLO 3 AUTH ann x", "AUTH proxy geheim", "AUTH geheim"]
    {
        assert_eq!(scene.ask(client, wrong), WRONGPASS, "{wrong}");
    }
    let standing = scene.street.standing();
    assert_eq!((standing.failed_logins, standing.refused_requests), (6, 7));
    assert_eq!(scene.ask_all(client, &["AUTH ann pw", "SET shop:1 7", "GET shop:1"]), "+OK\r\n+OK\r\n$1\r\n7\r\n");
    assert_eq!(scene.ask(client, "ACL WHOAMI"), "$3\r\nann\r\n");
    assert!(scene.said.contains("AUTH\r\n$5\r\nproxy\r\n$6\r\ngeheim") && !scene.said.contains("pw"), "{}", scene.said);
    assert_eq!(scene.ask_all(client, &["RESET", "GET shop:1"]), format!("+RESET\r\n{NOAUTH}"));
}

#[test]
fn rules_decide_about_commands_keys_and_channels_also_of_commands_that_only_the_store_has() {
    let mut scene = scene(USERS);
    let ann = scene.logged_in("AUTH ann pw");
    let reader = scene.logged_in("AUTH reader whatever");
    let no = |user: &str, command: &str| {
        format!("-NOPERM User {user} has no permissions to run the '{command}' command\r\n")
    };
    for (client, words, reply) in [
        (ann, "SET shop:1 7", "+OK\r\n".to_owned()),
        (ann, "SET other 7", NO_KEY.to_owned()),
        (ann, "MGET shop:1 other", NO_KEY.to_owned()),
        (ann, "HSET shop:1 f v", ":1\r\n".to_owned()),
        (ann, "HSET other f v", NO_KEY.to_owned()),
        (ann, "CONFIG GET *", no("ann", "config|get")),
        (ann, "ACL LIST", no("ann", "acl|list")),
        (ann, "ACL SETUSER x on", no("ann", "acl|setuser")),
        (ann, "PUBLISH news x", ":1\r\n".to_owned()),
        (ann, "PUBLISH world x", ":1\r\n".to_owned()),
        (ann, "PUBLISH secret x", NO_CHANNEL.to_owned()),
        (ann, "PSUBSCRIBE *", NO_CHANNEL.to_owned()),
        (ann, "SUBSCRIBE news secret", NO_CHANNEL.to_owned()),
        (ann, "EVAL x 0", no("ann", "eval")),
        (ann, "NOSUCH x", "-ERR unknown command 'NOSUCH', with args beginning with: 'x' \r\n".to_owned()),
        (ann, "HSET shop:1", "-ERR wrong number of arguments for 'hset' command\r\n".to_owned()),
        (reader, "GET shop:1", "$1\r\n7\r\n".to_owned()),
        (reader, "SET shop:1 8", NO_KEY.to_owned()),
        (reader, "HSET shop:1 f v", NO_KEY.to_owned()),
        (reader, "PUBLISH news x", no("reader", "publish")),
    ] {
        assert_eq!(scene.ask(client, words), reply, "{words}");
    }
    let bob = scene.logged_in("AUTH bob pw2");
    assert_eq!(scene.ask(bob, "GET shop:1"), "$1\r\n7\r\n");
    assert_eq!(scene.ask(bob, "ACL USERS"), "*4\r\n$3\r\nann\r\n$3\r\nbob\r\n$7\r\ndefault\r\n$6\r\nreader\r\n");
    for changes in ["ACL SETUSER x on", "ACL DELUSER ann", "ACL SAVE", "ACL LOAD"] {
        assert!(
            scene.ask(bob, changes).starts_with("-ERR the users of this proxy are those of its aclfile"),
            "{changes}"
        );
    }
    assert!(!scene.said.contains("ACL"), "the store's users are nobody's business");
}

#[test]
fn a_default_user_without_password_is_who_has_not_logged_in() {
    let mut scene = scene("user default on nopass ~open:* +get +set +auth\nuser ann on >pw ~* +@all\n");
    let client = scene.street.client();
    assert_eq!(scene.ask_all(client, &["SET open:1 3", "GET secret"]), format!("+OK\r\n{NO_KEY}"));
    assert!(scene.ask(client, "AUTH x").starts_with("-ERR AUTH <password> called without any password configured"));
    assert_eq!(scene.ask_all(client, &["AUTH ann pw", "SET secret 1"]), "+OK\r\n+OK\r\n");
}

#[test]
fn a_request_that_is_refused_inside_a_transaction_dooms_it_and_the_next_one_is_whole() {
    let mut scene = scene(USERS);
    let ann = scene.logged_in("AUTH ann pw");
    let refused = ["MULTI", "SET shop:1 1", "SET other 1", "EXEC"];
    assert_eq!(scene.ask_all(ann, &refused), format!("+OK\r\n+QUEUED\r\n{NO_KEY}{ABORTED}"));
    assert_eq!((scene.store.get(0, b"shop:1"), scene.store.get(0, b"other")), (None, None));
    for words in refused {
        scene.ask(ann, words);
    }
    assert_eq!(scene.store.version(), 0, "one by one, too");
    let whole = scene.ask_all(ann, &["MULTI", "SET shop:1 2", "EXEC", "GET shop:1"]);
    assert_eq!(whole, "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n$1\r\n2\r\n");
    let inside = scene.ask_all(ann, &["MULTI", "AUTH bob pw2", "EXEC", "ACL WHOAMI"]);
    let not_inside = "-ERR Command not allowed inside a transaction\r\n";
    assert_eq!(inside, format!("+OK\r\n{not_inside}{ABORTED}$3\r\nann\r\n"));
    // Who it is for the store changes inside: the rest goes unread but for what may not be.
    let relayed = scene.ask_all(ann, &["MULTI", "SELECT 0", "SET other 1", "SET shop:1 9", "EXEC", "GET shop:1"]);
    assert_eq!(relayed, format!("+OK\r\n+QUEUED\r\n{NO_KEY}+QUEUED\r\n-EXECABORT given up\r\n$1\r\n2\r\n"));
    let before = scene.logged_in("AUTH ann pw");
    let relayed = scene.ask_all(before, &["MULTI", "SET other 1", "SELECT 0", "SET shop:1 9", "EXEC", "GET shop:1"]);
    assert_eq!(relayed, format!("+OK\r\n{NO_KEY}+QUEUED\r\n+QUEUED\r\n-EXECABORT given up\r\n$1\r\n2\r\n"));
}

#[test]
fn exec_that_is_refused_ends_the_transaction() {
    let mut scene = scene(USERS);
    let reader = scene.logged_in("AUTH reader x");
    let heard = scene.ask_all(reader, &["MULTI", "GET shop:1", "EXEC", "GET shop:1"]);
    let aborted = "-EXECABORT Transaction discarded because of: NOPERM User reader has no permissions to run the 'exec' command\r\n";
    assert_eq!(heard, format!("+OK\r\n+QUEUED\r\n{aborted}$-1\r\n"));
}

#[test]
fn who_subscribes_is_asked_for_its_rights_each_time_and_hears_replies_in_their_order() {
    let mut scene = scene(USERS);
    let ann = scene.logged_in("AUTH ann pw");
    let requests = ["SUBSCRIBE news", "PING", "SUBSCRIBE secret", "SUBSCRIBE wide", "ACL WHOAMI", "GET other", "PING"];
    let (first, second) = (subscribed("news", 1), subscribed("wide", 2));
    let expected = format!("{first}+PONG\r\n{NO_CHANNEL}{second}$3\r\nann\r\n{NO_KEY}+PONG\r\n");
    assert_eq!(scene.ask_all(ann, &requests), expected);
    let one_by_one: String = requests[2..].iter().map(|words| scene.ask(ann, words)).collect();
    assert_eq!(one_by_one, format!("{NO_CHANNEL}{second}$3\r\nann\r\n{NO_KEY}+PONG\r\n"));
    assert!(!scene.said.contains("secret"), "{}", scene.said);
    let other = scene.ask_all(ann, &["AUTH bob x", "AUTH bob pw2", "SUBSCRIBE secret", "ACL WHOAMI"]);
    assert_eq!(other, format!("{WRONGPASS}+OK\r\n{}$3\r\nbob\r\n", subscribed("secret", 3)));
    assert!(!scene.said.contains("pw2"), "{}", scene.said);
    let reset = scene.ask_all(ann, &["RESET", "PING", "AUTH ann pw", "GET shop:1"]);
    assert_eq!(reset, format!("+RESET\r\n{NOAUTH}+OK\r\n$-1\r\n"));
}

#[test]
fn users_share_the_lanes_of_the_one_login_and_each_protocol_has_its_own() {
    let mut scene = scene(USERS);
    let clients = [scene.logged_in("AUTH ann pw"), scene.logged_in("AUTH bob pw2"), scene.logged_in("AUTH reader x")];
    clients.iter().for_each(|&client| scene.street.arrive(client, &request("GET shop:1")));
    scene.settle();
    assert_eq!(scene.street.upstream.len(), 1);
    clients.iter().for_each(|&client| assert_eq!(scene.street.text(client), "$-1\r\n"));
    let hello = scene.ask(clients[0], "HELLO 3 AUTH bob pw2 SETNAME me");
    assert!(hello.starts_with("%1\r\n$5\r\nproto\r\n:3"), "{hello}");
    assert_eq!(scene.ask_all(clients[0], &["ACL WHOAMI", "CLIENT GETNAME"]), "$3\r\nbob\r\n$2\r\nme\r\n");
    assert_eq!(scene.street.upstream.len(), 2);
    assert_eq!(scene.ask(clients[1], "HELLO 4 AUTH bob x"), "-NOPROTO unsupported protocol version\r\n");
}

#[test]
fn a_new_file_closes_whose_user_is_gone_or_changed_and_nobody_else() {
    let mut scene = scene(USERS);
    let [ann, bob, reader, waiting, blocked, nobody] = [
        scene.logged_in("AUTH ann pw"),
        scene.logged_in("AUTH bob pw2"),
        scene.logged_in("AUTH reader x"),
        scene.logged_in("AUTH ann pw"),
        scene.logged_in("AUTH ann pw"),
        scene.street.client(),
    ];
    assert_eq!(scene.ask(waiting, "SUBSCRIBE news"), subscribed("news", 1));
    scene.ask(bob, "GET shop:1");
    scene.street.arrive(blocked, &request("GET shop:1"));
    // It is owed a reply that the store does not give.
    scene.street.settle();
    let changed = USERS.replace("~shop:* &news", "~shop:2:* &news").replace("user reader", "user writer");
    scene.reload(&changed);
    for (client, is_closed) in
        [(ann, true), (bob, false), (reader, true), (waiting, true), (blocked, true), (nobody, false)]
    {
        assert_eq!(scene.is_closed(client), is_closed, "{client:?}");
    }
    assert_eq!(scene.ask_all(bob, &["GET shop:1", "ACL WHOAMI"]), "$-1\r\n$3\r\nbob\r\n");
    assert_eq!(scene.ask_all(nobody, &["GET shop:1", "AUTH reader x"]), format!("{NOAUTH}{WRONGPASS}"));
    assert_eq!(
        scene.ask_all(nobody, &["AUTH ann pw", "GET shop:1", "GET shop:2:1"]),
        format!("+OK\r\n{NO_KEY}$-1\r\n")
    );
    scene.reload(&changed.replace("user default off", "user default on nopass +@all ~*"));
    assert!(!scene.is_closed(nobody) && !scene.is_closed(bob));
    let late = scene.street.client();
    assert_eq!(scene.ask(late, "GET shop:1"), "$-1\r\n");
    scene.reload(&changed);
    assert!(scene.is_closed(late), "who had not logged in is default, and that one changed");
}

#[test]
fn a_store_that_refuses_the_proxys_login_is_not_mistaken_for_a_wrong_password_of_the_callers() {
    let mut store = upstream(vec!["store:6379".to_owned()], PolicyConfig::SelfClocked, 100);
    store.login = Some(UpstreamLogin { user: None, password: "outdated".to_owned() });
    let mut machine = ProxyMachine::new(store, Classes::default(), 7);
    machine.admit_users(users(USERS));
    let mut scene = Scene::of(machine);
    let bob = scene.logged_in("AUTH bob pw2");
    let told = "-ERR the store behind this proxy refuses the proxy's own login: WRONGPASS here\r\n";
    assert_eq!(scene.ask(bob, "GET shop:1"), told);
}

#[test]
fn who_shouts_before_its_login_is_bounded() {
    let mut scene = scene(USERS);
    let client = scene.street.client();
    scene.street.arrive(client, b"*11\r\n");
    scene.settle();
    assert!(scene.street.text(client).starts_with("-ERR Protocol error: unauthenticated multibulk length"));
    assert!(scene.is_closed(client));
}

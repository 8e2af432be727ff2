//! Files, as they are read and refused.
#![allow(clippy::unwrap_used)]
use super::*;
use client::PolicyConfig;

/// Where no file is.
fn read(text: &str) -> Result<ProxyConfig, String> {
    let password = |path: &Path| match path.to_str() {
        Some("secret" | "/etc/zerohop/store-password") => Ok("geheim".to_owned()),
        Some("empty") => Ok(String::new()),
        _ => Err(format!("no {}", path.display())),
    };
    let users = |path: &Path| match path.to_str() {
        Some("users" | "/etc/zerohop/proxy-users.acl") => {
            Ok(b"user default off\nuser ann on >pw ~shop:* &news +@read +hset +json.get\n".to_vec())
        }
        Some("wrong") => Ok(b"user default on nopass +@all ~* &*\nuser ann on >geheim +hste\n".to_vec()),
        _ => Err(format!("no {}", path.display())),
    };
    super::read(text, &super::Named { password: &password, users: &users })
}

const LEAST: &str = "upstream = [\"127.0.0.1:6379\"]\n[[listener]]\naddress = \"127.0.0.1:6380\"\n";

#[test]
fn the_least_file_is_as_without_one() {
    let config = read(LEAST).unwrap();
    assert_eq!(config.listeners, [Place::Tcp("127.0.0.1:6380".parse().unwrap()).into()]);
    assert_eq!((config.classes, config.class), (vec![Class::default()], ClassNumber::DEFAULT));
    assert_eq!((config.cores, config.backend), (1, io::Backend::Auto));
    assert_eq!(config.upstream.connections_max, UPSTREAM_CONNECTIONS_MAX);
    let alone = read(&LEAST.replace("[\"127.0.0.1:6379\"]", "\"127.0.0.1:6379\"")).unwrap();
    assert_eq!(alone.upstream.addresses, config.upstream.addresses, "one store is no list");
    assert_eq!(config.upstream.policy, PolicyConfig::SelfClocked);
}

#[test]
fn the_example_of_the_page_is_a_file() {
    let page = include_str!("../../../../docs/proxy-file.md");
    let example = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let config = read(example).unwrap();
    assert!(config.listeners.len() == 4 && config.of_users.len() == 2, "{config:?}");
    assert!(read(&example.replace("[classes.checkout]", "[classes.other]")).is_err(), "every part of it counts");
}

#[test]
fn classes_are_of_listeners_and_users() {
    let text = "upstream = [\"a:1\", \"redis://b:2/\"]\nclass = \"plain\"\n\
                [[listener]]\naddress = \"[::1]:6380\"\nclass = \"fast\"\n[[listener]]\nunix-socket = \"/tmp/s\"\n\
                [classes]\nfast = { within = \"1ms\", weight = 3 }\nplain = { weight = 100 }\nnow = { send = \"single\" }\n\
                [users]\nann = { class = \"now\" }\n";
    let config = read(text).unwrap();
    assert_eq!(config.upstream.addresses, ["a:1", "b:2"]);
    let class = |name: &str, qos, weight| Class { name: name.to_owned(), qos, weight, ..Class::default() };
    let fast = class("fast", Qos::Within { us: 1000 }, 3);
    let all = [Class::default(), fast, class("now", Qos::Single, 1), class("plain", Qos::Batch, 100)];
    assert_eq!((config.classes, config.class), (all.to_vec(), ClassNumber(3)));
    assert_eq!(config.listeners[0].class, Some(ClassNumber(1)));
    assert_eq!(config.listeners[1], Place::Unix("/tmp/s".into()).into());
    assert_eq!(config.of_users, BTreeMap::from([(b"ann".to_vec(), ClassNumber(2))]));
}

#[test]
fn those_of_whom_nothing_is_said_are_in_the_default_class_which_the_file_may_describe() {
    let config =
        read(&format!("{LEAST}[classes]\ndefault = {{ send = \"single\", weight = 2 }}\na = {{ weight = 1 }}"));
    let config = config.unwrap();
    assert_eq!((config.class, config.classes.len()), (ClassNumber::DEFAULT, 2));
    assert_eq!((config.classes[0].qos, config.classes[0].weight), (Qos::Single, 2));
}

#[test]
fn policies_have_the_names_of_the_page() {
    let of = |told: &str| read(&format!("policy = {told}\n{LEAST}")).map(|config| config.upstream.policy);
    assert_eq!(of("\"immediate\"").unwrap(), PolicyConfig::Immediate);
    assert_eq!(of("\"stout\"").unwrap(), PolicyConfig::Stout(StoutConfig::default()));
    assert_eq!(of("\"edf\"").unwrap(), PolicyConfig::Edf(EdfConfig::default()));
    assert_eq!(of("{ fixed = \"20ms\" }").unwrap(), PolicyConfig::Fixed(FixedConfig::pipelined(20_000)));
    let waiting = PolicyConfig::Fixed(FixedConfig::stop_and_wait(500));
    assert_eq!(of("{ stop-and-wait = \"500us\" }").unwrap(), waiting);
    for wrong in ["\"fast\"", "{ fixed = \"soon\" }", "{ fixed = \"2s\" }", "\"fixed\""] {
        assert!(of(wrong).unwrap_err().contains(if wrong.starts_with('{') { "20ms" } else { "line 1" }), "{wrong}");
    }
}

#[test]
fn what_is_collapsed_is_told_by_prefixes() {
    let config = read(&format!("collapse = [\"doc:\", \"\"]\n{LEAST}")).unwrap();
    assert_eq!(config.changeable().collapse, [b"doc:".to_vec(), Vec::new()]);
    let config = read(&format!("{LEAST}[classes]\na = {{ collapse = true }}\nb = {{ weight = 2 }}")).unwrap();
    assert_eq!(config.classes.iter().map(|class| class.collapses).collect::<Vec<_>>(), [false, true, false]);
    let many = vec!["\"x\""; COLLAPSE_PREFIXES_MAX + 1].join(",");
    assert!(read(&format!("collapse = [{many}]\n{LEAST}")).unwrap_err().contains("prefixes in collapse"));
}

#[test]
fn sentinels_have_a_login_of_their_own() {
    let text = "upstream = [\"sentinel://a:1/shop\"]\n[sentinel]\nuser = \"ann\"\npassword-file = \"secret\"\n\
                [[listener]]\naddress = \"[::1]:1\"\n";
    let master = read(text).unwrap().upstream.master.unwrap();
    assert_eq!(master.login, Some((Some("ann".to_owned()), "geheim".to_owned())));
}

#[test]
fn users_of_its_own_and_its_login_at_the_store_are_read_and_no_password_is_shown() {
    let text = format!("aclfile = \"users\"\n{LEAST}[upstream-login]\nuser = \"proxy\"\npassword-file = \"secret\"\n");
    let config = read(&text).unwrap();
    let login = config.upstream.login.clone().unwrap();
    assert_eq!((login.user.as_deref(), &login.password[..]), (Some("proxy"), "geheim"));
    let users = config.users.clone().unwrap();
    assert!(users.authenticate(b"ann", b"pw").is_some() && !users.default_user().is_open());
    assert!(!format!("{config:?}").contains("geheim"), "what is shown of a configuration has no password");
    assert!(!read("aclfile = \"wrong\"").unwrap_err().contains("geheim"));
    assert!(read(LEAST).unwrap().users.is_none());
}

#[test]
fn tls_is_said_of_the_store_and_of_listeners_apart() {
    let text = "upstream = [\"a:1\"]\n[upstream-tls]\ncacert = \"ca\"\nsni = \"db\"\n\
                [tls]\ncert-file = \"c\"\nkey-file = \"k\"\nauth-clients = \"optional\"\n\
                [[listener]]\naddress = \"[::1]:1\"\n[[listener]]\naddress = \"[::1]:2\"\ntls = true\n";
    let config = read(text).unwrap();
    let store = config.upstream.tls.unwrap();
    assert_eq!((store.files.authorities, store.name.as_deref()), (Some("ca".into()), Some("db")));
    let keys = config.tls.unwrap();
    assert_eq!((keys.certificate, keys.clients), ("c".into(), ClientCertificates::Optional));
    let sealed: Vec<bool> = config.listeners.iter().map(|listener| listener.is_sealed).collect();
    assert_eq!(sealed, [false, true]);
}

#[test]
fn what_is_wrong_is_named_with_what_is_possible() {
    let with = |more: &str| read(&format!("{LEAST}{more}")).unwrap_err();
    let first = |line: &str| read(&format!("{line}\n{LEAST}")).unwrap_err();
    let owned = |login: &str| read(&format!("aclfile = \"users\"\n{LEAST}[upstream-login]\n{login}")).unwrap_err();
    for (error, parts) in [
        (first("core = 2"), ["line 1", "unknown field `core`", "`cores`"]),
        (first("cores = 0"), ["cores", "0 is not between 1 and", ""]),
        (first("cores = \"two\""), ["line 1", "invalid type", "usize"]),
        (first("io = \"kqueue\""), ["line 1", "kqueue", "`epoll`"]),
        (first("max-upstream-connections = 1"), ["max-upstream-connections", "between 2 and", ""]),
        (first("class = \"fast\""), ["class", "no class \"fast\"", "there are: default"]),
        (with("class = \"quick\"\n[classes]\nfast = { within = \"1ms\" }"), ["[[listener]]", "\"quick\"", "fast"]),
        (with("[classes]\nfast = { within = \"soon\" }"), ["[classes.fast]", "soon", "10ms"]),
        (with("[classes]\nfast = { within = \"batch\" }"), ["[classes.fast]", "batch", "10ms"]),
        (with("[classes]\nfast = {}"), ["[classes.fast]", "needs either", "within"]),
        (with("[classes]\nfast = { weight = 0 }"), ["[classes.fast] weight", "0 is not between 1 and 100", ""]),
        (with("[classes]\nfast = { weight = 101 }"), ["[classes.fast] weight", "101 is not between", ""]),
        (with("[classes]\nfast = { weight = -1 }"), ["line 5", "invalid value", "u32"]),
        (with("[users]\nann = { class = \"x\" }"), ["[users.ann]", "\"x\"", "default"]),
        (with("unix-socket = \"/tmp/s\""), ["[[listener]]", "either address", "unix-socket"]),
        (with("[[listener]]\naddress = \"localhost:1\""), ["line 5", "invalid socket address", ""]),
        (read("upstream = []\n[[listener]]\naddress = \"127.0.0.1:1\"").unwrap_err(), ["upstream", "no store", ""]),
        (read("upstream = [\"x\"]\n[[listener]]\naddress = \"127.0.0.1:1\"").unwrap_err(), ["'x'", "HOST:PORT", ""]),
        (read("upstream = [\"a:1\"]\nlistener = []").unwrap_err(), ["[[listener]]", "0 is not between 1", ""]),
        (read("upstream = [\"a:1\"]").unwrap_err(), ["missing field `listener`", "", ""]),
        (with("tls = true"), ["[[listener]]", "[tls]", "cert-file"]),
        (with("[tls]\ncert-file = \"x\""), ["missing field `key-file`", "", ""]),
        (with("[upstream-tls]\nca = \"x\""), ["unknown field `ca`", "`cacert`", ""]),
        (with("[sentinel]\npassword-file = \"secret\""), ["sentinel://", "", ""]),
        (with("[sentinel]\npassword-file = \"x\""), ["no x", "", ""]),
        (read("upstream = ").unwrap_err(), ["line 1", "", ""]),
        (read("upstream = 6379").unwrap_err(), ["line 1", "a name, \"127.0.0.1:6379\", or a list", ""]),
        (read("upstream = [6379]").unwrap_err(), ["line 1", "expected a string", ""]),
        (first("aclfile = \"nowhere\""), ["aclfile = \"nowhere\"", "no nowhere", ""]),
        (first("aclfile = \"wrong\""), ["aclfile = \"wrong\"", "line 2", "+hste"]),
        (with("[upstream-login]\npassword-file = \"secret\""), ["[upstream-login]", "everyone", "aclfile ="]),
        (owned("password-file = \"x\""), ["[upstream-login]", "password-file = \"x\"", "no x"]),
        (owned("password-file = \"empty\""), ["[upstream-login]", "\"empty\"", "write the password"]),
        (owned("user = \"a\""), ["missing field `password-file`", "", ""]),
    ] {
        assert!(parts.iter().all(|part| error.contains(part)), "{error}\n{parts:?}");
    }
}

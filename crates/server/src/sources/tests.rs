//! Which source wins, and what is said of values that cannot be.
#![allow(clippy::unwrap_used)]
use super::*;

fn options(pairs: &[(&str, &str)]) -> Sources {
    let options = pairs.iter().map(|(key, value)| ((*key).into(), vec![(*value).into()])).collect();
    Sources { options, ..Sources::default() }
}

fn refused(sources: &Sources) -> String {
    resolve(sources, NodeConfig::default()).unwrap_err().0
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("zerohop-sources-{name}-{}.toml", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn an_option_wins_over_the_environment_over_the_file_over_the_default() {
    let path = file("order", "port = 1\ncores = 2\nbind = [\"127.0.0.2\", \"::1\"]\npin = true\n");
    let mut sources = options(&[("port", "3")]);
    sources.environment = vec![("ZEROHOP_PORT".into(), "2".into()), ("ZEROHOP_CORES".into(), "3".into())];
    sources.file = Some(path.clone());
    let resolved = resolve(&sources, NodeConfig::default()).unwrap();
    assert_eq!((resolved.config.port, resolved.config.cores, resolved.config.pin), (3, 3, true));
    assert_eq!(resolved.config.bind.len(), 2);
    let printed = resolved.print();
    assert!(printed.contains("port = 3"), "{printed}");
    // What is printed is a configuration file that means the same.
    let again = file("again", &printed);
    let second = resolve(&Sources { file: Some(again.clone()), ..Sources::default() }, NodeConfig::default()).unwrap();
    assert_eq!(format!("{:?}", second.config), format!("{:?}", resolved.config));
    std::fs::remove_file(path).unwrap();
    std::fs::remove_file(again).unwrap();
}

#[test]
fn errors_name_key_value_origin_and_fix() {
    let options_without_value =
        |key: &str| Sources { options: vec![(key.to_owned(), Vec::new())], ..Sources::default() };
    assert!(refused(&options(&[("port", "70000")])).starts_with("--port 70000: give a number from 0 to 65534"));
    assert!(refused(&options(&[("cores", "0")])).contains("from 1 to 64"));
    assert!(refused(&options(&[("announce-host", "")])).contains("give a host name"));
    assert!(refused(&options_without_value("bind")).contains("a value is missing; give ADDRESS, or leave bind out"));
    assert!(refused(&options(&[("cores", "100")])).contains("from 1 to 64"));
    assert!(refused(&options(&[("port", "65500"), ("cores", "64")])).contains("the last port would be 65564"));
    assert!(refused(&options(&[("bind", "0.0.0.0")])).contains("--requirepass-file"));
    assert!(refused(&options(&[("durability", "commit")])).contains("--dir"));
    let path = file("unknown", "prot = 1\n");
    let sources = Sources { file: Some(path.clone()), ..Sources::default() };
    assert!(refused(&sources).ends_with("there is no such key; did you mean `port`?"));
    std::fs::remove_file(path).unwrap();
    let environment = vec![("ZEROHOP_IO".into(), "select".into())];
    let text = refused(&Sources { environment, ..Sources::default() });
    assert_eq!(text, "ZEROHOP_IO=select (environment): give auto, uring or epoll");
}

#[test]
fn other_machines_are_let_in_with_a_password_or_by_decision_only() {
    let open = [("bind", "0.0.0.0"), ("protected-mode", "no")];
    assert!(resolve(&options(&open), NodeConfig::default()).is_ok());
    let path = file("password", "secret\n");
    let locked = [("bind", "0.0.0.0"), ("requirepass-file", path.to_str().unwrap())];
    let resolved = resolve(&options(&locked), NodeConfig::default()).unwrap();
    assert_eq!(resolved.config.password.as_deref(), Some(&b"secret"[..]));
    assert!(!resolved.print().contains("secret"));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_file_of_users_counts_as_a_whole_or_is_refused_by_its_line() {
    let open_to_all = file("users-open", "user al on nopass +@all\n");
    let locked = file("users", "user default on >x +@all ~*\nuser al on nopass +@all\n");
    let damaged = file("users-damaged", "user al on\nuser bo on +nosuch\n");
    let resolved = |path: &Path, bind: &str| {
        resolve(&options(&[("bind", bind), ("aclfile", path.to_str().unwrap())]), NodeConfig::default())
    };
    let config = resolved(&locked, "0.0.0.0").unwrap().config;
    assert!(config.users().unwrap().get(b"al").is_some());
    assert!(resolved(&open_to_all, "0.0.0.0").unwrap_err().to_string().contains("--requirepass-file"));
    let text = resolved(&damaged, "127.0.0.1").unwrap_err().to_string();
    assert!(text.starts_with(&format!("--aclfile {}: line 2: '+nosuch'", damaged.display())), "{text}");
    [&open_to_all, &locked, &damaged].into_iter().for_each(|path| std::fs::remove_file(path).unwrap());
    assert!(resolved(&damaged, "127.0.0.1").unwrap_err().to_string().contains("an empty one to begin with"));
}

#[test]
fn the_memory_limit_is_spelled_as_redis_spells_it() {
    let resolved = |options: &[(&str, &str)]| resolve(&super::tests::options(options), NodeConfig::default());
    let config = resolved(&[("memory-limit", "512mb"), ("when-full", "evict-lfu")]).unwrap().config;
    assert_eq!((config.memory_bytes_max, config.when_full.redis_name()), (Some(512 << 20), "allkeys-lfu"));
    for (size, bytes) in [("0", None), ("100", Some(100)), ("1k", Some(1000)), ("4GB", Some(4 << 30))] {
        let options = [("memory-limit", size)];
        assert_eq!(resolved(&options).unwrap().config.memory_bytes_max, bytes, "{size}");
    }
    let config = resolved(&[]).unwrap().config;
    assert_eq!((config.memory_bytes_max, config.when_full.redis_name()), (None, "noeviction"));
    let refused = |options: &[(&str, &str)]| resolved(options).unwrap_err().to_string();
    assert!(refused(&[("memory-limit", "much")]).contains("give a size such as 512mb"));
    assert_eq!(resolved(&[("when-full", "tier"), ("dir", "d")]).unwrap().config.when_full, WhenFull::Tier);
    assert!(refused(&[("when-full", "tier")]).contains("no run to read values from"));
    assert!(refused(&[("when-full", "allkeys-lru")]).contains("give refuse, evict-lru"));
}

#[test]
fn a_misspelt_variable_is_mentioned_and_a_foreign_one_is_not() {
    let environment = vec![("ZEROHOP_PROT".into(), "1".into()), ("ZEROHOP_SOMETHING_ELSE_ENTIRELY".into(), "1".into())];
    let resolved = resolve(&Sources { environment, ..Sources::default() }, NodeConfig::default()).unwrap();
    assert_eq!(resolved.warnings.len(), 1);
    assert!(resolved.warnings[0].contains("ZEROHOP_PORT"));
}

#[test]
fn an_option_of_up_alone_that_is_given_as_a_variable_is_mentioned() {
    let environment = vec![("ZEROHOP_EPHEMERAL".into(), "yes".into()), ("ZEROHOP_NODES".into(), "3".into())];
    let resolved = resolve(&Sources { environment, ..Sources::default() }, NodeConfig::default()).unwrap();
    assert_eq!(resolved.warnings.len(), 2);
    assert!(resolved.warnings[0].ends_with("it is an option of `zerohop up`, --ephemeral"), "{:?}", resolved.warnings);
}

#[test]
fn a_file_is_blamed_on_who_named_it() {
    let file = Some(std::path::PathBuf::from("/nowhere.toml"));
    let by_option = Sources { file, ..Sources::default() };
    assert!(refused(&by_option).starts_with("--config /nowhere.toml: "));
    let by_variable = Sources { file_by_variable: true, ..by_option };
    assert!(refused(&by_variable).starts_with("ZEROHOP_CONFIG /nowhere.toml: "));
}

#[test]
fn without_a_directory_what_helps_is_what_was_typed() {
    let plain = options(&[("durability", "commit")]);
    assert!(refused(&plain).ends_with("add --dir DIRECTORY"));
    let ephemeral = Sources { is_ephemeral: true, ..plain };
    assert!(refused(&ephemeral).ends_with("leave out --ephemeral"));
}

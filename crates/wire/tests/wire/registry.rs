//! The registry against redis-server 7.0.15, and against itself.

use base::street::Span;
use std::collections::BTreeMap;
use wire::registry::{self, CommandId, Family, Flags, KeySpec, Resolved, Spread};
use wire::reply_parse::{Value, parse_reply};
use wire::{Arguments, Protocol, Reply};

/// What redis-server 7.0.15 answers to COMMAND, one command per line: name, arity, flags, first key, last key, step,
/// categories, tips, key specifications. Lists are sorted; `-` is an empty one.
const REFERENCE: &str = include_str!("redis-7.0.15-commands.txt");

fn with_arguments<T>(words: &[&str], run: impl FnOnce(Arguments<'_>) -> T) -> T {
    let mut base = Vec::new();
    let spans: Vec<Span> = words
        .iter()
        .map(|word| {
            let start = base.len() as u32;
            base.extend_from_slice(word.as_bytes());
            Span { start, len: word.len() as u32 }
        })
        .collect();
    run(Arguments::new(&base, &spans))
}

/// The decoded reply to a request of the COMMAND family.
fn answer(words: &[&str], protocol: Protocol) -> Value {
    with_arguments(words, |arguments| {
        let mut out = Vec::new();
        let Resolved::Command(spec) = registry::resolve(arguments) else { panic!("{words:?} is no command") };
        registry::answer_command(spec.id, arguments, &mut Reply::new(&mut out, protocol));
        let (value, consumed) = parse_reply(&out).unwrap().expect("a whole reply");
        assert_eq!(consumed, out.len(), "{words:?}: more than one reply");
        value
    })
}

fn items(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) | Value::Set(items) => items,
        other => panic!("no list: {other:?}"),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Simple(bytes) | Value::Bulk(bytes) | Value::Error(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        Value::Integer(number) => number.to_string(),
        other => panic!("no text: {other:?}"),
    }
}

fn sorted(value: &Value) -> String {
    let mut texts: Vec<String> = items(value).iter().map(text).collect();
    texts.sort();
    if texts.is_empty() { "-".to_string() } else { texts.join(",") }
}

fn field<'a>(map: &'a Value, name: &str) -> &'a Value {
    let Value::Map(pairs) = map else { panic!("no map: {map:?}") };
    &pairs.iter().find(|(key, _)| text(key) == name).unwrap_or_else(|| panic!("no {name}")).1
}

fn key_spec_line(spec: &Value) -> String {
    let find = field(spec, "find_keys");
    let Value::Map(numbers) = field(find, "spec") else { panic!("no map") };
    let numbers: Vec<String> = numbers.iter().map(|(_, number)| text(number)).collect();
    let begin = text(field(field(field(spec, "begin_search"), "spec"), "index"));
    format!("{}@{begin}:{}({})", sorted(field(spec, "flags")), text(field(find, "type")), numbers.join(","))
}

fn collect_lines(entry: &Value, lines: &mut BTreeMap<String, String>) {
    let fields = items(entry);
    assert_eq!(fields.len(), 10);
    let keys: Vec<String> = items(&fields[8]).iter().map(key_spec_line).collect();
    let keys = if keys.is_empty() { "-".to_string() } else { keys.join(";") };
    let mut columns: Vec<String> = Vec::new();
    for (index, field) in fields[..8].iter().enumerate() {
        columns.push(if matches!(index, 2 | 6 | 7) { sorted(field) } else { text(field) });
    }
    columns.push(keys);
    lines.insert(columns[0].clone(), columns.join(" "));
    items(&fields[9]).iter().for_each(|subcommand| collect_lines(subcommand, lines));
}

#[test]
fn entries_equal_those_of_the_reference() {
    let mut lines = BTreeMap::new();
    items(&answer(&["COMMAND"], Protocol::Resp3)).iter().for_each(|entry| collect_lines(entry, &mut lines));
    let mut compared = 0;
    for expected in REFERENCE.lines() {
        let name = expected.split(' ').next().unwrap();
        assert_eq!(lines.remove(name).as_deref(), Some(expected));
        compared += 1;
    }
    assert!(compared > 180, "{compared}");
    // What the reference does not have is named here, so that nothing is forgotten by accident.
    let unknown: Vec<&str> = lines.keys().map(String::as_str).collect();
    let newer = [
        "client|no-touch",
        "client|setinfo",
        "cluster|cancelslotmigrations",
        "cluster|getslotmigrations",
        "cluster|migrateslots",
        "cluster|myshardid",
        "cluster|slot-stats",
        "delex",
        "delifeq",
        "digest",
        "msetex",
        "waitaof",
        "zh.backup",
        "zh.backup|begin",
        "zh.backup|end",
        "zh.backup|keep",
        "zh.cluster",
        "zh.cluster|configure",
        "zh.cluster|drain",
        "zh.cluster|keep",
        "zh.cluster|rebalance",
        "zh.cluster|remove",
        "zh.cluster|status",
        "zh.cluster|suspect",
        "zh.cluster|weigh",
        "zh.get",
        "zh.mget",
        "zh.wait",
    ];
    assert_eq!(unknown, newer);
}

#[test]
fn names_are_unique_lower_case_and_documented() {
    let mut names: Vec<&str> = registry::all().map(|spec| spec.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    for spec in registry::all().flat_map(|spec| std::iter::once(spec).chain(spec.subcommands)) {
        assert_eq!(spec.full_name, spec.full_name.to_ascii_lowercase());
        assert!(spec.summary.ends_with('.') && !spec.since.is_empty() && !spec.complexity.is_empty(), "{spec:?}");
        assert!(spec.arity != 0);
        assert!(!(spec.flags.contains(Flags::WRITE) && spec.flags.contains(Flags::READONLY)), "{}", spec.full_name);
        assert!(std::ptr::eq(registry::spec(spec.id), spec), "{}", spec.full_name);
    }
}

/// The fewest words that a syntax allows are the fewest that the arity allows.
#[test]
fn arity_agrees_with_the_documented_arguments() {
    use registry::syntax::{Argument, ArgumentKind, parse_syntax};
    fn fewest(arguments: &[Argument]) -> usize {
        arguments.iter().filter(|argument| !argument.optional).map(fewest_of).sum()
    }
    fn fewest_of(argument: &Argument) -> usize {
        match &argument.kind {
            ArgumentKind::Word("pure-token") => 1,
            ArgumentKind::Word(_) => 1 + usize::from(argument.token.is_some()),
            ArgumentKind::OneOf(alternatives) => alternatives.iter().map(fewest_of).min().unwrap(),
            ArgumentKind::Block(parts) => fewest(parts) + usize::from(argument.token.is_some()),
        }
    }
    fn is_open(arguments: &[Argument]) -> bool {
        arguments.iter().any(|argument| argument.optional || argument.multiple)
    }
    // Arity is looser than the syntax here, as in the reference.
    let looser = ["bitop", "bitfield", "client|tracking", "cluster|slot-stats", "client|kill"];
    for spec in registry::all().flat_map(|spec| std::iter::once(spec).chain(spec.subcommands)) {
        if !spec.subcommands.is_empty() || looser.contains(&spec.full_name) {
            continue;
        }
        let arguments = parse_syntax(spec.syntax);
        let words = spec.full_name.split('|').count() + fewest(&arguments);
        assert!(spec.accepts_count(words), "{}: {words} words, arity {}", spec.full_name, spec.arity);
        assert!(words == 1 || !spec.accepts_count(words - 1), "{}: arity {}", spec.full_name, spec.arity);
        if spec.arity > 0 {
            assert!(!is_open(&arguments), "{}", spec.full_name);
        }
    }
}

#[test]
fn key_specifications_are_legal_and_agree_with_the_spread() {
    for spec in registry::all().flat_map(|spec| std::iter::once(spec).chain(spec.subcommands)) {
        let one_key = |keys: &KeySpec| matches!(keys.find, registry::Find::Range { last: 0, .. });
        match spec.spread {
            Spread::SingleKey => assert!(spec.keys.len() == 1 && one_key(&spec.keys[0]), "{}", spec.full_name),
            Spread::MultiKey => assert!(spec.keys.len() > 1 || !one_key(&spec.keys[0]), "{}", spec.full_name),
            Spread::AllCores | Spread::Any => {
                assert!(spec.keys.is_empty(), "{}", spec.full_name);
                let data_without_keys = spec.family == Family::Data && spec.id != CommandId::Object;
                assert!(!data_without_keys || spec.id == CommandId::ObjectHelp, "{}", spec.full_name);
            }
        }
        for keys in spec.keys {
            assert!(keys.begin.index() >= 1 && keys.begin.index() < spec.arity.abs(), "{}", spec.full_name);
            if let registry::Find::Range { step, .. } = keys.find {
                assert!(step >= 1, "{}", spec.full_name);
            }
        }
    }
}

fn keys_of(words: &[&str]) -> String {
    let words = [&["COMMAND", "GETKEYS"], words].concat();
    match answer(&words, Protocol::Resp2) {
        Value::Error(bytes) => String::from_utf8(bytes).unwrap(),
        list => items(&list).iter().map(text).collect::<Vec<_>>().join(" "),
    }
}

#[test]
fn keys_are_found_as_the_reference_finds_them() {
    for (request, expected) in [
        ("get a", "a"),
        ("mset a 1 b 2", "a b"),
        ("mset a b c", "a c"),
        ("del a b c", "a b c"),
        ("lmpop 2 a b LEFT", "a b"),
        ("blmpop 0 2 a b LEFT COUNT 3", "a b"),
        ("msetex 2 a 1 b 2 EX 5", "a b"),
        ("bitop AND d a b", "d a b"),
        ("blpop a b 0", "a b"),
        ("rename a b", "a b"),
        ("lmove a b LEFT RIGHT", "a b"),
        ("object ENCODING a", "a"),
        ("memory usage a", "a"),
        ("set a b GET", "a"),
        ("lmpop 3 a LEFT", "ERR Invalid arguments specified for command"),
        ("lmpop x a LEFT", "ERR Invalid arguments specified for command"),
        ("lmpop 0 a LEFT", "ERR Invalid arguments specified for command"),
        ("lmpop 9223372036854775807 a LEFT", "ERR Invalid arguments specified for command"),
        ("msetex 3 a 1 b 2", "ERR Invalid arguments specified for command"),
        ("get a b", "ERR Invalid number of arguments specified for command"),
        ("ping a", "ERR The command has no key arguments"),
        ("nosuch a", "ERR Invalid command specified"),
    ] {
        let words: Vec<&str> = request.split(' ').collect();
        assert_eq!(keys_of(&words), expected, "{request}");
    }
}

#[test]
fn command_getkeysandflags_tells_what_this_request_does() {
    for (request, flags) in [
        ("set a b", "OW,update"),
        ("set a b EX 5 Get", "RW,access,update"),
        ("bitfield a GET u8 0", "RO,access"),
        ("bitfield a OVERFLOW SAT GET u8 0", "RO,access"),
        ("bitfield a GET u8 0 SET u8 0 1", "RW,access,update"),
        ("get a", "RO,access"),
    ] {
        let words: Vec<&str> = ["COMMAND", "GETKEYSANDFLAGS"].into_iter().chain(request.split(' ')).collect();
        let with_flags = answer(&words, Protocol::Resp2);
        let [pair] = items(&with_flags) else { panic!("{with_flags:?}") };
        assert_eq!((text(&items(pair)[0]), sorted(&items(pair)[1])), ("a".into(), flags.into()), "{request}");
    }
}

#[test]
fn command_lists_counts_documents_and_helps() {
    let Value::Integer(count) = answer(&["COMMAND", "COUNT"], Protocol::Resp2) else { panic!("no number") };
    assert_eq!(count as usize, registry::all().count());
    assert_eq!(items(&answer(&["command"], Protocol::Resp2)).len(), count as usize);
    let listed = answer(&["COMMAND", "LIST", "FILTERBY", "ACLCAT", "bitmap"], Protocol::Resp2);
    assert_eq!(sorted(&listed), "bitcount,bitfield,bitfield_ro,bitop,bitpos,getbit,setbit");
    let listed = answer(&["COMMAND", "LIST", "FILTERBY", "PATTERN", "BLP*"], Protocol::Resp2);
    assert_eq!(sorted(&listed), "blpop");
    assert_eq!(sorted(&answer(&["COMMAND", "LIST", "FILTERBY", "ACLCAT", "nosuch"], Protocol::Resp2)), "-");
    assert_eq!(text(&answer(&["COMMAND", "LIST", "x"], Protocol::Resp2)), "ERR syntax error");
    let infos = answer(&["COMMAND", "INFO", "GET", "nosuch", "client|id"], Protocol::Resp3);
    assert_eq!(items(&infos)[1], Value::Null);
    assert_eq!(text(&items(&items(&infos)[2])[0]), "client|id");
    let Value::Map(docs) = answer(&["COMMAND", "DOCS"], Protocol::Resp3) else { panic!("no map") };
    assert_eq!(docs.len(), count as usize);
    let Value::Map(docs) = answer(&["COMMAND", "DOCS", "set", "nosuch"], Protocol::Resp3) else { panic!("no map") };
    assert_eq!(docs.len(), 1);
    assert_eq!(text(field(&items(field(&docs[0].1, "arguments"))[0], "key_spec_index")), "0");
    let help = answer(&["COMMAND", "HELP"], Protocol::Resp2);
    assert_eq!(text(&items(&help)[0]), "COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
}

#[test]
fn requests_resolve_to_what_is_executed() {
    let resolve = |words: &[&str]| with_arguments(words, registry::resolve);
    assert!(matches!(resolve(&["Get", "a"]), Resolved::Command(spec) if spec.id == CommandId::Get));
    assert!(
        matches!(resolve(&["CLIENT", "SetName", "a"]), Resolved::Command(spec) if spec.id == CommandId::ClientSetname)
    );
    assert!(matches!(resolve(&["command"]), Resolved::Command(spec) if spec.id == CommandId::Command));
    assert!(matches!(resolve(&["get"]), Resolved::WrongArity(spec) if spec.full_name == "get"));
    assert!(
        matches!(resolve(&["client", "setname"]), Resolved::WrongArity(spec) if spec.full_name == "client|setname")
    );
    assert!(matches!(resolve(&["client"]), Resolved::WrongArity(spec) if spec.full_name == "client"));
    assert!(matches!(resolve(&["client", "x"]), Resolved::UnknownSubcommand(spec) if spec.name == "client"));
    assert!(matches!(resolve(&["nosuch"]), Resolved::UnknownCommand));
    assert!(matches!(resolve(&[]), Resolved::UnknownCommand));
}

//! The manual's notation of arguments, read into the tree that COMMAND DOCS answers with.
//!
//! ```text
//! key value [NX | XX] [EX seconds | KEEPTTL] <field value>...
//! word        required          [ … ]  optional         a | b   one of
//! TOKEN       literally         < … >  together         x...    once or more
//! ```

/// One argument, or a group of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// What it is called.
    pub name: String,
    /// The word that announces it, or that it is.
    pub token: Option<&'static str>,
    /// What it holds.
    pub kind: ArgumentKind,
    /// May be left out.
    pub optional: bool,
    /// May be repeated.
    pub multiple: bool,
}

/// What an argument holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A single word; the type's name as COMMAND DOCS prints it.
    Word(&'static str),
    /// Exactly one of these.
    OneOf(Vec<Argument>),
    /// All of these in this order.
    Block(Vec<Argument>),
}

/// Names of arguments that are keys, in the order of nobody's preference.
const KEY_NAMES: &[&str] = &["key", "key1", "key2", "newkey", "source", "destination", "destkey"];
const INTEGER_NAMES: &[&str] = &[
    "bit",
    "client-id",
    "config-epoch",
    "count",
    "cluster-bus-port",
    "cursor",
    "db",
    "decrement",
    "destination-db",
    "end",
    "end-slot",
    "index",
    "len",
    "limit",
    "milliseconds",
    "num-matches",
    "numkeys",
    "numlocal",
    "numreplicas",
    "offset",
    "port",
    "protover",
    "rank",
    "seconds",
    "slot",
    "start",
    "start-slot",
    "stop",
    "timeout-ms",
    "version",
];

/// Reads a registry entry's `syntax`. It is the compiler's constant, so a mistake in it panics; a test reads all.
pub fn parse_syntax(syntax: &'static str) -> Vec<Argument> {
    let mut reader = Reader { words: tokenize(syntax), at: 0 };
    let arguments = reader.sequence();
    assert!(reader.at == reader.words.len(), "unbalanced brackets in {syntax:?}");
    arguments
}

/// Brackets, bars and dots become words of their own.
fn tokenize(syntax: &'static str) -> Vec<&'static str> {
    let mut words = Vec::new();
    for mut word in syntax.split_whitespace() {
        while !word.is_empty() {
            let len = match word.find(['[', ']', '<', '>', '|']) {
                Some(0) => 1,
                None if word.len() > 3 && word.ends_with("...") => word.len() - 3,
                None => word.len(),
                Some(bracket) => bracket,
            };
            let (head, rest) = word.split_at(len);
            words.push(head);
            word = rest;
        }
    }
    words
}

struct Reader {
    words: Vec<&'static str>,
    at: usize,
}

impl Reader {
    fn next_if(&mut self, word: &str) -> bool {
        let found = self.words.get(self.at) == Some(&word);
        self.at += usize::from(found);
        found
    }

    fn sequence(&mut self) -> Vec<Argument> {
        let mut arguments = Vec::new();
        while let Some(&word) = self.words.get(self.at) {
            if matches!(word, "]" | ">" | "|") {
                break;
            }
            self.at += 1;
            let mut argument = match word {
                "[" => {
                    let group = self.group("]");
                    Argument { optional: true, ..group }
                }
                "<" => self.group(">"),
                _ if is_token(word) => self.token(word),
                _ => plain(word),
            };
            argument.multiple |= self.next_if("...");
            arguments.push(argument);
        }
        arguments
    }

    fn group(&mut self, closing: &str) -> Argument {
        let mut alternatives = vec![one(self.sequence())];
        while self.next_if("|") {
            alternatives.push(one(self.sequence()));
        }
        assert!(self.next_if(closing), "a group of a syntax is not closed");
        if alternatives.len() == 1 {
            return alternatives.remove(0);
        }
        let name = alternatives[0].name.clone();
        Argument { name, token: None, kind: ArgumentKind::OneOf(alternatives), optional: false, multiple: false }
    }

    /// A token and the plain words it announces.
    fn token(&mut self, token: &'static str) -> Argument {
        let mut values = Vec::new();
        while let Some(&word) = self.words.get(self.at) {
            if matches!(word, "[" | "]" | "<" | ">" | "|" | "...") || is_token(word) {
                break;
            }
            self.at += 1;
            values.push(plain(word));
        }
        let name = token.to_ascii_lowercase();
        let kind = match values.len() {
            0 => ArgumentKind::Word("pure-token"),
            1 => return Argument { token: Some(token), ..values.remove(0) },
            _ => ArgumentKind::Block(values),
        };
        Argument { name, token: Some(token), kind, optional: false, multiple: false }
    }
}

/// A sequence as one argument.
fn one(mut sequence: Vec<Argument>) -> Argument {
    assert!(!sequence.is_empty(), "an empty alternative in a syntax");
    if sequence.len() == 1 {
        return sequence.remove(0);
    }
    let name = sequence[0].name.clone();
    Argument { name, token: None, kind: ArgumentKind::Block(sequence), optional: false, multiple: false }
}

fn plain(word: &'static str) -> Argument {
    let kind = match word {
        _ if KEY_NAMES.contains(&word) => "key",
        _ if INTEGER_NAMES.contains(&word) => "integer",
        _ if word.starts_with("unix-time") => "unix-time",
        "timeout" => "double",
        "pattern" => "pattern",
        _ => "string",
    };
    Argument { name: word.to_string(), token: None, kind: ArgumentKind::Word(kind), optional: false, multiple: false }
}

fn is_token(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree back in the notation of the manual; equal to what was read, apart from redundant brackets.
    fn print(arguments: &[Argument]) -> String {
        let texts: Vec<String> = arguments
            .iter()
            .map(|argument| {
                let inner = match &argument.kind {
                    ArgumentKind::Word("pure-token") => String::new(),
                    ArgumentKind::Word(_) => argument.name.clone(),
                    ArgumentKind::OneOf(alternatives) => {
                        alternatives.iter().map(|one| print(std::slice::from_ref(one))).collect::<Vec<_>>().join(" | ")
                    }
                    ArgumentKind::Block(parts) => print(parts),
                };
                let text = [argument.token.unwrap_or(""), &inner].join(" ").trim().to_string();
                let grouped = matches!(argument.kind, ArgumentKind::OneOf(_) | ArgumentKind::Block(_));
                let text = match (argument.optional, grouped && argument.token.is_none()) {
                    (true, _) => format!("[{text}]"),
                    (false, true) => format!("<{text}>"),
                    (false, false) => text,
                };
                text + if argument.multiple { "..." } else { "" }
            })
            .collect();
        texts.join(" ")
    }

    #[test]
    fn every_syntax_of_the_registry_is_read_whole() {
        let subcommands = crate::registry::all().flat_map(|spec| spec.subcommands);
        for spec in crate::registry::all().chain(subcommands) {
            let compact = |text: &str| text.replace(['[', ']', '<', '>', ' '], "");
            let arguments = parse_syntax(spec.syntax);
            assert_eq!(compact(&print(&arguments)), compact(spec.syntax), "{}", spec.full_name);
        }
    }

    #[test]
    fn groups_tokens_and_repetition() {
        let arguments = parse_syntax("key [NX | EX seconds]... <a b>... [LIMIT offset count]");
        assert_eq!(print(&arguments), "key [NX | EX seconds]... <a b>... [LIMIT offset count]");
        let ArgumentKind::OneOf(alternatives) = &arguments[1].kind else { panic!("{arguments:?}") };
        assert_eq!(alternatives[0].kind, ArgumentKind::Word("pure-token"));
        assert_eq!((alternatives[1].name.as_str(), alternatives[1].token), ("seconds", Some("EX")));
        assert!(arguments[1].optional && arguments[1].multiple);
        assert!(matches!(arguments[3].kind, ArgumentKind::Block(_)));
    }
}

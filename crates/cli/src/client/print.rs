//! Replies as redis-cli prints them: numbered and quoted for a terminal, bytes for a pipe.

use wire::reply_parse::Value;

/// Whether the reply is a text made to be read, which a terminal gets as it is.
pub fn is_text_for_people(words: &[Vec<u8>]) -> bool {
    const TEXTS: [&str; 7] =
        ["info", "lolwut", "cluster nodes", "cluster info", "client list", "client info", "memory doctor"];
    let lower: Vec<String> =
        words.iter().take(2).map(|word| String::from_utf8_lossy(word).to_ascii_lowercase()).collect();
    TEXTS.iter().any(|text| text == &lower[0] || *text == lower.join(" "))
}

/// For a terminal.
pub fn pretty(value: &Value, out: &mut Vec<u8>) {
    write_pretty(value, 0, out);
}

/// `indent`: columns before every line but the first, whose beginning the parent wrote.
fn write_pretty(value: &Value, indent: usize, out: &mut Vec<u8>) {
    let mut line = |text: &str| out.extend_from_slice(format!("{text}\n").as_bytes());
    match value {
        Value::Integer(number) => line(&format!("(integer) {number}")),
        Value::Double(number) => line(&format!("(double) {number}")),
        Value::Boolean(truth) => line(if *truth { "(true)" } else { "(false)" }),
        Value::Null => line("(nil)"),
        Value::Simple(text) | Value::BigNumber(text) | Value::Verbatim(_, text) => put(&[text, b"\n"], out),
        Value::Error(text) => put(&[b"(error) ", text, b"\n"], out),
        Value::Bulk(bytes) => put(&[&quoted(bytes), b"\n"], out),
        Value::Array(items) => write_items(items.iter(), (")", "(empty array)"), indent, out),
        Value::Set(items) => write_items(items.iter(), ("~", "(empty set)"), indent, out),
        Value::Push(items) => write_items(items.iter(), (")", "(empty push)"), indent, out),
        Value::Map(pairs) => write_pairs(pairs, indent, out),
    }
}

fn put(parts: &[&[u8]], out: &mut Vec<u8>) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

fn write_items<'a>(
    items: impl ExactSizeIterator<Item = &'a Value>,
    (mark, empty): (&str, &str),
    indent: usize,
    out: &mut Vec<u8>,
) {
    if items.len() == 0 {
        return put(&[empty.as_bytes(), b"\n"], out);
    }
    let width = items.len().to_string().len();
    for (index, item) in items.enumerate() {
        number(index, width, mark, indent, out);
        write_pretty(item, indent + width + 2, out);
    }
}

fn write_pairs(pairs: &[(Value, Value)], indent: usize, out: &mut Vec<u8>) {
    if pairs.is_empty() {
        return put(&[b"(empty hash)\n"], out);
    }
    let width = pairs.len().to_string().len();
    for (index, (key, value)) in pairs.iter().enumerate() {
        number(index, width, "#", indent, out);
        write_pretty(key, indent + width + 2, out);
        out.pop_if(|byte| *byte == b'\n');
        put(&[b" => "], out);
        write_pretty(value, indent + width + 2, out);
    }
}

fn number(index: usize, width: usize, mark: &str, indent: usize, out: &mut Vec<u8>) {
    let indent = if index == 0 { 0 } else { indent };
    out.extend_from_slice(format!("{:indent$}{:>width$}{mark} ", "", index + 1).as_bytes());
}

/// Bytes between quotes, with escapes that the command line takes back.
fn quoted(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![b'"'];
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x07 => out.extend_from_slice(b"\\a"),
            0x08 => out.extend_from_slice(b"\\b"),
            b' '..=b'~' => out.push(byte),
            _ => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
    out.push(b'"');
    out
}

/// For a pipe: bytes, one element per line.
pub fn raw(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Simple(bytes)
        | Value::Error(bytes)
        | Value::Bulk(bytes)
        | Value::BigNumber(bytes)
        | Value::Verbatim(_, bytes) => out.extend_from_slice(bytes),
        Value::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Double(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Boolean(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
        Value::Null => {}
        Value::Array(items) | Value::Set(items) | Value::Push(items) => {
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b'\n');
                }
                raw(item, out);
            }
        }
        Value::Map(pairs) => {
            for (index, (key, value)) in pairs.iter().enumerate() {
                if index > 0 {
                    out.push(b'\n');
                }
                raw(key, out);
                out.push(b' ');
                raw(value, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: &Value) -> String {
        let mut out = Vec::new();
        pretty(value, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.as_bytes().to_vec())
    }

    #[test]
    fn single_replies_look_as_in_redis_cli() {
        assert_eq!(shown(&Value::Simple(b"OK".to_vec())), "OK\n");
        assert_eq!(shown(&Value::Error(b"ERR no".to_vec())), "(error) ERR no\n");
        assert_eq!(shown(&Value::Integer(-1)), "(integer) -1\n");
        assert_eq!(shown(&Value::Null), "(nil)\n");
        assert_eq!(shown(&Value::Bulk(b"a\"\\\n\x00\xff".to_vec())), "\"a\\\"\\\\\\n\\x00\\xff\"\n");
        assert_eq!(shown(&Value::Array(vec![])), "(empty array)\n");
        assert_eq!(shown(&Value::Map(vec![])), "(empty hash)\n");
    }

    #[test]
    fn nested_replies_are_indented_under_their_number() {
        let inner = Value::Array(vec![bulk("a"), Value::Integer(2)]);
        let mut items = vec![inner, bulk("b")];
        assert_eq!(shown(&Value::Array(items.clone())), "1) 1) \"a\"\n   2) (integer) 2\n2) \"b\"\n");
        items.extend((0..8).map(|_| Value::Null));
        assert!(shown(&Value::Array(items.clone())).starts_with(" 1) 1) \"a\"\n    2) (integer) 2\n 2) \"b\"\n"));
        let map = Value::Map(vec![(bulk("k"), Value::Array(vec![bulk("x"), bulk("y")])), (bulk("l"), Value::Null)]);
        assert_eq!(shown(&map), "1# \"k\" => 1) \"x\"\n   2) \"y\"\n2# \"l\" => (nil)\n");
    }

    #[test]
    fn raw_replies_are_bytes() {
        let mut out = Vec::new();
        raw(&Value::Array(vec![bulk("a\n"), Value::Integer(1), Value::Null]), &mut out);
        assert_eq!(out, b"a\n\n1\n");
    }

    #[test]
    fn texts_for_people_are_known_by_their_command() {
        assert!(is_text_for_people(&[b"INFO".to_vec(), b"server".to_vec()]));
        assert!(is_text_for_people(&[b"Cluster".to_vec(), b"NODES".to_vec()]));
        assert!(!is_text_for_people(&[b"CLUSTER".to_vec(), b"SLOTS".to_vec()]));
    }
}

//! Replies as JSON. Bytes that are no UTF-8 appear as `\xHH`, which no reader mistakes for text it can trust.

use wire::reply_parse::Value;

/// Appends one JSON value.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Boolean(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
        Value::Double(number) if number.is_finite() => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Double(number) => string(number.to_string().as_bytes(), out),
        Value::Simple(bytes) | Value::Bulk(bytes) | Value::BigNumber(bytes) | Value::Verbatim(_, bytes) => {
            string(bytes, out);
        }
        Value::Error(text) => {
            out.extend_from_slice(b"{\"error\":");
            string(text, out);
            out.push(b'}');
        }
        Value::Array(items) | Value::Set(items) | Value::Push(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        Value::Map(pairs) => {
            out.push(b'{');
            for (index, (key, value)) in pairs.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                match key {
                    Value::Bulk(bytes) | Value::Simple(bytes) => string(bytes, out),
                    other => {
                        // JSON has no other keys than strings.
                        let mut text = Vec::new();
                        write(other, &mut text);
                        string(&text, out);
                    }
                }
                out.push(b':');
                write(value, out);
            }
            out.push(b'}');
        }
    }
}

/// Appends a JSON string.
pub fn string(bytes: &[u8], out: &mut Vec<u8>) {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    out.extend_from_slice(serde_json::Value::String(text).to_string().as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_reply_is_json() {
        let bulk = |bytes: &[u8]| Value::Bulk(bytes.to_vec());
        let value = Value::Map(vec![
            (bulk(b"a\"\n"), Value::Array(vec![Value::Integer(1), Value::Null, Value::Boolean(true)])),
            (Value::Integer(2), Value::Double(1.5)),
            (bulk(b"bytes"), bulk(b"\xff\x00z")),
            (bulk(b"e"), Value::Error(b"ERR x".to_vec())),
        ]);
        let mut out = Vec::new();
        write(&value, &mut out);
        let text = String::from_utf8_lossy(&out);
        assert_eq!(text, r#"{"a\"\n":[1,null,true],"2":1.5,"bytes":"\\xff\u0000z","e":{"error":"ERR x"}}"#);
        assert!(serde_json::from_slice::<serde_json::Value>(&out).is_ok());
    }
}

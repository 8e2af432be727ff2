//! Patterns of keys, each for reading, writing or both.

use wire::glob;
use wire::registry::KeyFlags;

use super::rules::RuleError;

/// What a pattern gives, or a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// To read the value.
    pub read: bool,
    /// To change it.
    pub write: bool,
}

impl Access {
    /// Both.
    pub const ALL: Access = Access { read: true, write: true };

    /// What a command needs for a key with these flags; Redis's reading of them.
    pub fn needed(flags: KeyFlags) -> Access {
        let writes = KeyFlags::INSERT.union(KeyFlags::DELETE).union(KeyFlags::UPDATE);
        Access { read: flags.contains(KeyFlags::ACCESS), write: flags.intersects(writes) }
    }

    fn gives(self, needed: Access) -> bool {
        (self.read || !needed.read) && (self.write || !needed.write)
    }
}

/// One rule `~pattern`, `%R~pattern`, `%W~pattern` or `%RW~pattern`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyPattern {
    access: Access,
    pattern: Vec<u8>,
}

impl KeyPattern {
    /// Reads a rule that begins with `~` or `%`.
    pub fn parse(rule: &[u8]) -> Result<KeyPattern, RuleError> {
        let (access, pattern) = match rule.strip_prefix(b"~") {
            Some(pattern) => (Access::ALL, pattern),
            None => read_permissions(rule.get(1..).unwrap_or_default())?,
        };
        if has_spaces(pattern) {
            return Err(RuleError::Syntax);
        }
        Ok(KeyPattern { access, pattern: pattern.to_vec() })
    }

    /// Adds the rule to those there are; the same pattern twice gives what both give.
    pub fn add_to(self, patterns: &mut Vec<KeyPattern>) {
        match patterns.iter_mut().find(|other| other.pattern == self.pattern) {
            Some(other) => {
                other.access.read |= self.access.read;
                other.access.write |= self.access.write;
            }
            None => patterns.push(self),
        }
    }

    /// Whether it allows what is needed of `key`.
    pub fn allows(&self, key: &[u8], needed: Access) -> bool {
        self.access.gives(needed) && glob::matches(&self.pattern, key, false)
    }

    /// As a rule.
    pub fn write(&self, text: &mut Vec<u8>) {
        let prefix: &[u8] = match (self.access.read, self.access.write) {
            // `~*` would mean `allkeys`, which nothing may follow.
            (true, true) if self.pattern == b"*" => b"%RW~",
            (true, true) => b"~",
            (true, false) => b"%R~",
            _ => b"%W~",
        };
        text.extend_from_slice(prefix);
        text.extend_from_slice(&self.pattern);
    }
}

/// `R~pattern`, `w~pattern`, `RW~pattern`: letters at most once each and at least one.
fn read_permissions(rule: &[u8]) -> Result<(Access, &[u8]), RuleError> {
    let mut access = Access { read: false, write: false };
    for (index, letter) in rule.iter().enumerate() {
        let given = match letter.to_ascii_uppercase() {
            b'R' => &mut access.read,
            b'W' => &mut access.write,
            b'~' if index > 0 => return Ok((access, &rule[index + 1..])),
            _ => return Err(RuleError::Syntax),
        };
        if std::mem::replace(given, true) {
            return Err(RuleError::Syntax);
        }
    }
    Err(RuleError::Syntax)
}

/// A rule with a space could not be written to a line and read again.
pub(super) fn has_spaces(text: &[u8]) -> bool {
    text.iter().any(|byte| byte.is_ascii_whitespace() || matches!(*byte, 0 | 0x0b))
}

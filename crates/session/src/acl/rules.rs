//! The words of ACL SETUSER, one after the other: `on >secret ~cache:* +@read (%R~config:* +get)`.

use super::other::Naming;
use super::patterns::{KeyPattern, has_spaces};
use super::user::{PasswordHash, Selector, User, hash_of};

/// Why a word is none; Redis's reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// No command, subcommand or category of that name.
    Unknown,
    /// It is no rule.
    Syntax,
    /// A pattern where every key is allowed.
    KeyAfterAll,
    /// A pattern where every channel is allowed.
    ChannelAfterAll,
    /// `<password`, which the user does not have.
    NoSuchPassword,
    /// `#hash` that is none.
    Hash,
    /// `+config|get|maxmemory`.
    FirstArgumentOfSubcommand,
}

impl RuleError {
    /// Redis's words.
    pub fn text(self) -> &'static str {
        match self {
            RuleError::Unknown => "Unknown command or category name in ACL",
            RuleError::Syntax => "Syntax error",
            RuleError::KeyAfterAll => {
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. \
                 Try 'resetkeys' to start with an empty list of patterns"
            }
            RuleError::ChannelAfterAll => {
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any \
                 effect. Try 'resetchannels' to start with an empty list of channels"
            }
            RuleError::NoSuchPassword => "The password you are trying to remove from the user does not exist",
            RuleError::Hash => {
                "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
            }
            RuleError::FirstArgumentOfSubcommand => "Allowing first-arg of a subcommand is not supported",
        }
    }
}

impl User {
    /// Applies one rule; on an error nothing has changed. An empty one is none.
    ///
    /// # Errors
    /// When it is no rule, or does not fit those before it.
    pub fn apply(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        self.apply_naming(rule, Naming::Own)
    }

    /// The same, where rules may name these commands.
    pub(super) fn apply_naming(&mut self, rule: &[u8], naming: Naming) -> Result<(), RuleError> {
        match rule.to_ascii_lowercase().as_slice() {
            b"" => {}
            b"on" => self.enabled = true,
            b"off" => self.enabled = false,
            b"nopass" => self.set_only_password(None),
            b"resetpass" => {
                self.no_password = false;
                self.passwords.clear();
            }
            b"sanitize-payload" => self.skips_sanitizing = false,
            b"skip-sanitize-payload" => self.skips_sanitizing = true,
            b"clearselectors" => self.selectors.truncate(1),
            b"reset" => *self = User::new(&self.name),
            _ => self.apply_other(rule, naming)?,
        }
        self.settle();
        Ok(())
    }

    fn apply_other(&mut self, rule: &[u8], naming: Naming) -> Result<(), RuleError> {
        let rest = &rule[1..];
        match rule[0] {
            b'>' => self.add_password(hash_of(rest)),
            b'#' => self.add_password(parse_hash(rest)?),
            b'<' => return self.remove_password(hash_of(rest)),
            b'!' => return self.remove_password(parse_hash(rest)?),
            b'(' if rest.ends_with(b")") => {
                let mut selector = Selector::default();
                let words = rest[..rest.len() - 1].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
                for word in words {
                    // Written to a line it would end the selector there.
                    if word.ends_with(b")") {
                        return Err(RuleError::Syntax);
                    }
                    selector.apply(word, naming)?;
                }
                self.selectors.push(selector);
            }
            _ => return self.selectors[0].apply(rule, naming),
        }
        Ok(())
    }

    fn add_password(&mut self, hash: PasswordHash) {
        if !self.passwords.contains(&hash) {
            self.passwords.push(hash);
        }
        self.no_password = false;
    }

    fn remove_password(&mut self, hash: PasswordHash) -> Result<(), RuleError> {
        let place = self.passwords.iter().position(|known| *known == hash).ok_or(RuleError::NoSuchPassword)?;
        self.passwords.remove(place);
        Ok(())
    }
}

impl Selector {
    fn apply(&mut self, rule: &[u8], naming: Naming) -> Result<(), RuleError> {
        match rule.to_ascii_lowercase().as_slice() {
            b"allkeys" | b"~*" => (self.all_keys, self.patterns) = (true, Vec::new()),
            b"resetkeys" => (self.all_keys, self.patterns) = (false, Vec::new()),
            b"allchannels" | b"&*" => (self.all_channels, self.channels) = (true, Vec::new()),
            b"resetchannels" => (self.all_channels, self.channels) = (false, Vec::new()),
            b"allcommands" | b"+@all" => self.commands.set_all(true),
            b"nocommands" | b"-@all" => self.commands.set_all(false),
            _ => return self.apply_sign(rule, naming),
        }
        Ok(())
    }

    fn apply_sign(&mut self, rule: &[u8], naming: Naming) -> Result<(), RuleError> {
        match rule {
            [b'~' | b'%', ..] if self.all_keys => return Err(RuleError::KeyAfterAll),
            [b'~' | b'%', ..] => KeyPattern::parse(rule)?.add_to(&mut self.patterns),
            [b'&', ..] if self.all_channels => return Err(RuleError::ChannelAfterAll),
            [b'&', pattern @ ..] if has_spaces(pattern) => return Err(RuleError::Syntax),
            [b'&', pattern @ ..] => {
                if !self.channels.iter().any(|known| known == pattern) {
                    self.channels.push(pattern.to_vec());
                }
            }
            [sign @ (b'+' | b'-'), b'@', category @ ..] => {
                return self.commands.set_category(category, *sign == b'+');
            }
            [sign @ (b'+' | b'-'), command @ ..] => return self.commands.set_command(command, *sign == b'+', naming),
            _ => return Err(RuleError::Syntax),
        }
        Ok(())
    }
}

/// 64 lower-case hexadecimal digits.
fn parse_hash(text: &[u8]) -> Result<PasswordHash, RuleError> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        _ => Err(RuleError::Hash),
    };
    let mut hash = PasswordHash::default();
    if text.len() != 2 * hash.len() {
        return Err(RuleError::Hash);
    }
    for (byte, pair) in hash.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Ok(hash)
}

/// Joins what stands between parentheses into one rule each: a client sends `(+get ~a)` as two arguments.
///
/// # Errors
/// The word of a parenthesis that nothing closes.
pub fn merge_selectors<'a>(words: impl Iterator<Item = &'a [u8]>) -> Result<Vec<Vec<u8>>, Vec<u8>> {
    let mut rules: Vec<Vec<u8>> = Vec::new();
    let mut open: Option<(&'a [u8], Vec<u8>)> = None;
    for word in words {
        match &mut open {
            None if word.starts_with(b"(") && !word.ends_with(b")") => open = Some((word, word.to_vec())),
            None => rules.push(word.to_vec()),
            Some((_, rule)) => {
                rule.push(b' ');
                rule.extend_from_slice(word);
                if word.ends_with(b")") {
                    rules.extend(open.take().map(|(_, rule)| rule));
                }
            }
        }
    }
    match open {
        None => Ok(rules),
        Some((word, _)) => Err(word.to_vec()),
    }
}

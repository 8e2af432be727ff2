//! All users of a node, by name; `default` is always one of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::limits::{ACL_USER_BYTES_MAX, ACL_USERS_MAX};
use sha2::{Digest, Sha256};

use super::other::Naming;
use super::patterns::has_spaces;
use super::rules::merge_selectors;
use super::user::User;

/// Who a connection is that has not logged in.
pub const DEFAULT_USER: &[u8] = b"default";

/// See the module. A clone shares the users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Users {
    by_name: BTreeMap<Vec<u8>, Arc<User>>,
}

impl Default for Users {
    fn default() -> Users {
        Users::new(None)
    }
}

impl Users {
    /// `default` alone, who may do everything once this password is given; `None`: without any.
    pub fn new(password: Option<&[u8]>) -> Users {
        let mut user = User::unbounded(DEFAULT_USER);
        user.set_only_password(password);
        Users { by_name: BTreeMap::from([(DEFAULT_USER.to_vec(), Arc::new(user))]) }
    }

    /// The user of that name.
    pub fn get(&self, name: &[u8]) -> Option<&Arc<User>> {
        self.by_name.get(name)
    }

    /// Who a connection is at first.
    pub fn default_user(&self) -> &Arc<User> {
        self.get(DEFAULT_USER).expect("the default user cannot be removed")
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<User>> {
        self.by_name.values()
    }

    /// The user, if the password is one of its and it is on. A wrong name costs as much time as a wrong password.
    pub fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        let nobody = User::new(name);
        let user = self.get(name);
        let accepted = user.map_or(&nobody, |user| user).accepts(password);
        user.filter(|_| accepted).cloned()
    }

    /// Makes or changes a user: all rules, or none.
    ///
    /// # Errors
    /// What is wrong, in Redis's words.
    pub fn set(&mut self, name: &[u8], rules: &[Vec<u8>]) -> Result<(), Vec<u8>> {
        if has_spaces(name) {
            return Err(b"Usernames can't contain spaces or null characters".to_vec());
        }
        let mut user = self.get(name).map_or_else(|| User::new(name), |user| User::clone(user));
        for rule in rules {
            user.apply(rule).map_err(|error| {
                let reason = error.text().as_bytes();
                [b"Error in ACL SETUSER modifier '", rule.as_slice(), b"': ", reason].concat()
            })?;
        }
        self.insert(user)
    }

    fn insert(&mut self, user: User) -> Result<(), Vec<u8>> {
        if user.line().len() > ACL_USER_BYTES_MAX {
            let text = format!("the rules of a user are longer than {ACL_USER_BYTES_MAX} bytes together");
            return Err(text.into_bytes());
        }
        if self.by_name.len() >= ACL_USERS_MAX && !self.by_name.contains_key(&user.name) {
            return Err(format!("there are {ACL_USERS_MAX} users, and more are not kept").into_bytes());
        }
        self.by_name.insert(user.name.clone(), Arc::new(user));
        Ok(())
    }

    /// Removes users; how many there were. `default` stays.
    pub fn remove(&mut self, names: &[Vec<u8>]) -> usize {
        let there = |name: &&Vec<u8>| name.as_slice() != DEFAULT_USER && self.by_name.remove(name.as_slice()).is_some();
        names.iter().filter(there).count()
    }

    /// `requirepass`: the only password of `default`; `None`: any will do.
    pub fn set_default_password(&mut self, password: Option<&[u8]>) {
        let mut user = User::clone(self.default_user());
        user.set_only_password(password);
        self.by_name.insert(DEFAULT_USER.to_vec(), Arc::new(user));
    }

    /// The users of a file, one line each. Where it does not name `default`, that has `password`.
    ///
    /// # Errors
    /// The number of the first line that is wrong, and why.
    pub fn from_file(content: &[u8], password: Option<&[u8]>) -> Result<Users, (usize, String)> {
        Users::from_file_naming(content, password, Naming::Own)
    }

    /// The same, where rules may name these commands.
    ///
    /// # Errors
    /// As [`Users::from_file`].
    pub fn from_file_naming(content: &[u8], password: Option<&[u8]>, naming: Naming) -> Result<Users, (usize, String)> {
        let mut users = Users::new(password);
        let mut named = std::collections::BTreeSet::new();
        for (index, line) in content.split(|byte| *byte == b'\n').enumerate() {
            let words: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
            let refused = |reason: String| (index + 1, reason);
            let [keyword, rest @ ..] = words.as_slice() else { continue };
            let [name, rules @ ..] = rest else {
                return Err(refused("a line is 'user NAME rules…'".into()));
            };
            if *keyword != b"user" {
                return Err(refused("a line begins with the word 'user'".into()));
            }
            if !named.insert(name.to_vec()) {
                return Err(refused(format!("user '{}' stands in the file twice", name.escape_ascii())));
            }
            users.by_name.remove(*name);
            let user = read_user(name, rules, naming).map_err(refused)?;
            users.insert(user).map_err(|reason| refused(String::from_utf8_lossy(&reason).into_owned()))?;
        }
        Ok(users)
    }

    /// As a file that [`Users::from_file`] reads.
    pub fn to_file(&self) -> Vec<u8> {
        self.iter().flat_map(|user| [user.line(), b"\n".to_vec()].concat()).collect()
    }
}

fn read_user(name: &[u8], words: &[&[u8]], naming: Naming) -> Result<User, String> {
    if has_spaces(name) {
        return Err("a name has no spaces and no zero bytes".into());
    }
    let unmatched = |word: Vec<u8>| format!("nothing closes the parenthesis of '{}'", word.escape_ascii());
    let mut user = User::new(name);
    for rule in merge_selectors(words.iter().copied()).map_err(unmatched)? {
        // A file may hold passwords: only what is none is repeated.
        let shown = if rule.starts_with(b">") || rule.starts_with(b"<") { &rule[..1] } else { &rule };
        let refused = |error: super::RuleError| format!("'{}': {}", shown.escape_ascii(), error.text());
        user.apply_naming(&rule, naming).map_err(refused)?;
    }
    Ok(user)
}

/// A password of `bits` random bits, as hexadecimal digits, four bits each. Nobody who lacks `secret` can tell it from
/// others; the same `number` gives the same one.
pub fn password_from(secret: &[u8; 32], number: u64, bits: usize) -> Vec<u8> {
    let digit_count = bits.div_ceil(4);
    let mut digits = Vec::with_capacity(digit_count + 64);
    for block in 0u64.. {
        if digits.len() >= digit_count {
            break;
        }
        let mut hasher = Sha256::new();
        hasher.update(secret);
        hasher.update(number.to_le_bytes());
        hasher.update(block.to_le_bytes());
        let halves = hasher.finalize().into_iter().flat_map(|byte| [byte >> 4, byte & 15]);
        digits.extend(halves.map(|half| b"0123456789abcdef"[usize::from(half)]));
    }
    digits.truncate(digit_count);
    digits
}

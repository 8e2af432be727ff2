//! The cluster's key, and what is worked out with it: keyed BLAKE3 throughout (<https://github.com/BLAKE3-team/BLAKE3-specs>).

use blake3::Hash;

/// Bytes of a frame's mark.
pub const MARK_BYTES: usize = 16;

const PROOFS: &str = "zerohop 2026-11 between nodes: proofs";
const WAYS: &str = "zerohop 2026-11 between nodes: ways";
const CHANCE: &str = "zerohop 2026-11 between nodes: chance";

/// What the nodes of a cluster share, and nobody else has. Nothing prints it but [`Token::to_text`].
#[derive(Clone, Copy, Eq)]
pub struct Token([u8; 16]);

impl Token {
    /// Of its bytes.
    pub const fn new(bytes: [u8; 16]) -> Token {
        Token(bytes)
    }

    /// For the file that keeps it.
    pub fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Of 32 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Token> {
        let is_token = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_token.then(|| u128::from_str_radix(text, 16).ok().map(|number| Token(number.to_be_bytes()))).flatten()
    }

    /// As [`Token::parse`] takes it: for whoever is to join.
    pub fn to_text(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0))
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token(secret)")
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Token) -> bool {
        padded(&self.0) == padded(&other.0)
    }
}

/// `Hash` compares in constant time.
fn padded(bytes: &[u8; 16]) -> Hash {
    let mut whole = [0; 32];
    whole[..16].copy_from_slice(bytes);
    Hash::from_bytes(whole)
}

/// Who proves something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Accepts,
    Dials,
}

/// Keys that are derived from the token: one for each purpose, so that nothing that one of them made says anything elsewhere.
#[derive(Clone)]
pub(crate) struct Keys {
    proofs: [u8; 32],
    ways: [u8; 32],
    chance: [u8; 32],
}

impl Keys {
    pub fn of(token: &Token) -> Keys {
        let key = |purpose| blake3::derive_key(purpose, &token.0);
        Keys { proofs: key(PROOFS), ways: key(WAYS), chance: key(CHANCE) }
    }

    /// That `role` has the key, in the conversation that began with these bytes.
    pub fn proof(&self, role: Role, begun: &[u8]) -> Hash {
        let word: &[u8; 8] = match role {
            Role::Accepts => b"answer\0\0",
            Role::Dials => b"proof\0\0\0",
        };
        blake3::Hasher::new_keyed(&self.proofs).update(word).update(begun).finalize()
    }

    /// The two ways of the conversation that began with these bytes: from who dials, and to it.
    pub fn ways(&self, begun: &[u8]) -> [Way; 2] {
        let mut keys = [[0; 32]; 2];
        blake3::Hasher::new_keyed(&self.ways).update(begun).finalize_xof().fill(keys.as_flattened_mut());
        keys.map(|key| Way { key, frames: 0 })
    }

    /// 16 bytes that nobody guesses who has not the key, from a source that need not be a secret but never repeats itself.
    pub fn chance(&self, source: &[u8]) -> [u8; 16] {
        first_half(&blake3::keyed_hash(&self.chance, source))
    }
}

fn first_half(hash: &Hash) -> [u8; 16] {
    *hash.as_bytes().first_chunk().expect("half of thirty-two")
}

/// One direction of a connection: its key, and how many frames went by.
pub(crate) struct Way {
    key: [u8; 32],
    frames: u64,
}

impl Way {
    /// The next frame's mark.
    pub fn mark(&self, frame: &[u8]) -> [u8; MARK_BYTES] {
        let hash = blake3::Hasher::new_keyed(&self.key).update(&self.frames.to_le_bytes()).update(frame).finalize();
        first_half(&hash)
    }

    /// Whether it is the next frame's mark.
    pub fn is_marked(&self, frame: &[u8], mark: &[u8; MARK_BYTES]) -> bool {
        padded(&self.mark(frame)) == padded(mark)
    }

    /// A frame went by.
    pub fn step(&mut self) {
        self.frames += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_is_written_and_prints_nowhere_else() {
        let token = Token::new(std::array::from_fn(|i| i as u8));
        assert_eq!(token.to_text(), "000102030405060708090a0b0c0d0e0f");
        assert_eq!(Token::parse(&token.to_text()), Some(token));
        assert!(!format!("{token:?} {token:#?}").contains("01"));
        assert_ne!(Some(token), Token::parse("000102030405060708090a0b0c0d0e0e"));
        for text in ["", "00", "+00102030405060708090a0b0c0d0e0f", "000102030405060708090a0b0c0d0e0g"] {
            assert_eq!(Token::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_mark_is_of_one_way_one_number_and_one_frame() {
        let keys = Keys::of(&Token::new([7; 16]));
        let [mut one, other] = keys.ways(b"begun");
        let mark = one.mark(b"frame");
        assert!(one.is_marked(b"frame", &mark));
        assert!(!other.is_marked(b"frame", &mark) && !one.is_marked(b"frames", &mark));
        assert!(!keys.ways(b"begun otherwise")[0].is_marked(b"frame", &mark));
        assert!(!Keys::of(&Token::new([8; 16])).ways(b"begun")[0].is_marked(b"frame", &mark));
        one.step();
        assert!(!one.is_marked(b"frame", &mark));
    }
}

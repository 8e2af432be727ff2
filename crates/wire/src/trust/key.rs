//! The cluster's key, and what is worked out with it: keyed BLAKE3 (<https://github.com/BLAKE3-team/BLAKE3-specs>) for proofs and for keys,
//! AES-128-GCM (NIST SP 800-38D) for frames.

use blake3::Hash;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use crate::frame::LENGTH_BYTES;

/// Bytes of a frame's mark.
pub const MARK_BYTES: usize = 16;
/// Frames that one key seals. Frames of links have 64 KiB at most, nearly all of them: a key sees some 2^32 blocks, and the chance to tell
/// what it made from noise stays below 2^-60.
const FRAMES_PER_KEY: u64 = 1 << 20;

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
        keys.map(Way::new)
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
    cipher: LessSafeKey,
    frames: u64,
}

impl Way {
    fn new(key: [u8; 32]) -> Way {
        Way { key, cipher: cipher(&key, 0), frames: 0 }
    }

    /// The number of the frame: under one key there is none twice.
    fn nonce(&self) -> Nonce {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&self.frames.to_le_bytes());
        Nonce::assume_unique_for_key(nonce)
    }

    /// Makes the next frame, but for its length, what only the other end reads; its mark, which stands behind it.
    pub fn seal(&self, frame: &mut [u8]) -> [u8; MARK_BYTES] {
        let (length, rest) = frame.split_at_mut(LENGTH_BYTES);
        let sealed = self.cipher.seal_in_place_separate_tag(self.nonce(), Aad::from(&*length), rest);
        *sealed.expect("no frame is as long as a key allows").as_ref().first_chunk().expect("a mark's length")
    }

    /// Makes it again what the other end wrote, if it did: a frame and its mark. Otherwise the bytes say nothing.
    pub fn open(&self, frame: &mut [u8]) -> bool {
        let (length, rest) = frame.split_at_mut(LENGTH_BYTES);
        self.cipher.open_in_place(self.nonce(), Aad::from(&*length), rest).is_ok()
    }

    /// A frame went by.
    pub fn step(&mut self) {
        self.frames += 1;
        if self.frames.is_multiple_of(FRAMES_PER_KEY) {
            self.cipher = cipher(&self.key, self.frames);
        }
    }
}

/// The key for frames from this number on.
fn cipher(key: &[u8; 32], frames: u64) -> LessSafeKey {
    let bytes = first_half(&blake3::keyed_hash(key, &frames.to_le_bytes()));
    LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &bytes).expect("half of thirty-two is a key's length"))
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

    fn sealed(way: &Way, body: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        crate::frame::seal(40, &mut frame, |out| out.extend_from_slice(body));
        let mark = way.seal(&mut frame);
        [&frame[..], &mark].concat()
    }

    fn opens(way: &Way, bytes: &[u8], body: &[u8]) -> bool {
        let mut bytes = bytes.to_vec();
        let is_open = way.open(&mut bytes);
        assert!(!is_open || bytes[crate::frame::FRAME_HEAD_BYTES..].starts_with(body));
        is_open
    }

    #[test]
    fn a_frame_is_of_one_way_one_number_and_one_key() {
        let keys = Keys::of(&Token::new([7; 16]));
        let [mut one, other] = keys.ways(b"begun");
        let bytes = sealed(&one, b"a frame");
        assert!(opens(&one, &bytes, b"a frame") && !opens(&other, &bytes, b""));
        assert!(!opens(&keys.ways(b"begun otherwise")[0], &bytes, b""));
        assert!(!opens(&Keys::of(&Token::new([8; 16])).ways(b"begun")[0], &bytes, b""));
        let longer = [&[bytes[0] + 1], &bytes[1..]].concat();
        assert!(!opens(&one, &longer, b""), "its length is part of it");
        one.step();
        assert!(!opens(&one, &bytes, b"") && opens(&one, &sealed(&one, b"a frame"), b"a frame"));
        assert!(sealed(&one, b"a frame") != bytes && !bytes.windows(5).any(|part| part == b"frame"));
    }

    #[test]
    fn both_ends_take_another_key_after_so_many_frames() {
        let keys = Keys::of(&Token::new([7; 16]));
        let [mut one, mut same] = [0, 1].map(|_| keys.ways(b"begun")[0].clone_at(FRAMES_PER_KEY - 1));
        let before = sealed(&one, b"the last one");
        assert!(opens(&same, &before, b"the last one"));
        [&mut one, &mut same].into_iter().for_each(Way::step);
        let behind = sealed(&one, b"the first one");
        assert!(opens(&same, &behind, b"the first one"));
        let old = Way { cipher: cipher(&one.key, 0), ..one };
        assert!(!opens(&old, &behind, b""), "by the key before");
    }

    impl Way {
        fn clone_at(&self, frames: u64) -> Way {
            Way { frames, ..Way::new(self.key) }
        }
    }
}

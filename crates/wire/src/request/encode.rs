//! The way back: words into a request, for hops between cores, clients and tests.

use crate::number::push_unsigned;

/// Appends a request of `words` in the multibulk form: [`super::Arguments`], or any list that knows its length.
pub fn encode<'a, W>(words: W, out: &mut Vec<u8>)
where
    W: IntoIterator<Item = &'a [u8]>,
    W::IntoIter: ExactSizeIterator,
{
    let words = words.into_iter();
    encode_count(words.len(), out);
    for word in words {
        encode_word(word, out);
    }
}

/// Appends the beginning of a request of so many words.
#[inline]
pub fn encode_count(words: usize, out: &mut Vec<u8>) {
    out.push(b'*');
    push_unsigned(out, words as u64);
    out.extend_from_slice(b"\r\n");
}

/// Appends one word of such a request.
#[inline]
pub fn encode_word(word: &[u8], out: &mut Vec<u8>) {
    out.push(b'$');
    push_unsigned(out, word.len() as u64);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

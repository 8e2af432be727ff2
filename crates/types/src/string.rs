//! Strings: integers inside them, encoding names, digests and bit operations.

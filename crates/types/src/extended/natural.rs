//! Natural numbers of any size, as far as reading and writing decimal numbers needs them.

/// Little-endian, without leading zero words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Natural(Vec<u32>);

/// 10^9, the largest power of ten in one word.
const CHUNK: u32 = 1_000_000_000;
const CHUNK_DIGITS: u32 = 9;

impl From<u128> for Natural {
    fn from(value: u128) -> Natural {
        let mut number = Natural((0..4).map(|word| (value >> (32 * word)) as u32).collect());
        number.normalize();
        number
    }
}

impl Natural {
    /// From decimal digits (0 to 9, not characters).
    pub(super) fn from_digits(digits: &[u8]) -> Natural {
        let mut number = Natural(Vec::new());
        for chunk in digits.chunks(CHUNK_DIGITS as usize) {
            let value = chunk.iter().fold(0, |sum, digit| sum * 10 + u32::from(*digit));
            number.multiply_add(10u32.pow(chunk.len() as u32), value);
        }
        number
    }

    fn normalize(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn multiply_add(&mut self, factor: u32, summand: u32) {
        let mut carry = u64::from(summand);
        for word in &mut self.0 {
            let product = u64::from(*word) * u64::from(factor) + carry;
            *word = product as u32;
            carry = product >> 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    /// Divide and return the remainder.
    fn divide(&mut self, divisor: u32) -> u32 {
        let mut remainder = 0u64;
        for word in self.0.iter_mut().rev() {
            let dividend = remainder << 32 | u64::from(*word);
            *word = (dividend / u64::from(divisor)) as u32;
            remainder = dividend % u64::from(divisor);
        }
        self.normalize();
        remainder as u32
    }

    pub(super) fn multiply_by_power_of_ten(&mut self, exponent: u32) {
        for _ in 0..exponent / CHUNK_DIGITS {
            self.multiply_add(CHUNK, 0);
        }
        self.multiply_add(10u32.pow(exponent % CHUNK_DIGITS), 0);
    }

    /// Divide; whether anything was left over.
    pub(super) fn divide_by_power_of_ten(&mut self, exponent: u32) -> bool {
        let mut left_over = self.divide(10u32.pow(exponent % CHUNK_DIGITS)) > 0;
        for _ in 0..exponent / CHUNK_DIGITS {
            left_over |= self.divide(CHUNK) > 0;
        }
        left_over
    }

    pub(super) fn shift_left(&mut self, bits: u32) {
        self.multiply_add(1 << (bits % 32), 0);
        if !self.0.is_empty() {
            self.0.splice(0..0, std::iter::repeat_n(0, (bits / 32) as usize));
        }
    }

    /// The highest words, up to 128 bits of them; whether anything below is not 0; how many bits are below.
    pub(super) fn top_bits(&self) -> (u128, bool, u32) {
        let split = self.0.len().saturating_sub(4);
        let (below, top) = self.0.split_at(split);
        let top = top.iter().rev().fold(0u128, |sum, word| sum << 32 | u128::from(*word));
        (top, below.iter().any(|word| *word != 0), 32 * split as u32)
    }

    /// Decimal digits.
    pub(super) fn to_decimal(&self) -> String {
        let (mut rest, mut chunks) = (self.clone(), Vec::new());
        while !rest.0.is_empty() {
            chunks.push(rest.divide(CHUNK));
        }
        let Some(highest) = chunks.pop() else { return "0".to_string() };
        let mut text = highest.to_string();
        for chunk in chunks.iter().rev() {
            text.push_str(&format!("{chunk:09}"));
        }
        text
    }
}

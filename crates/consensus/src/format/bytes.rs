//! Little endian, lengths before what they count, an option as a byte 0 or 1.

/// Appends values to bytes.
#[derive(Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    /// One byte.
    pub fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    /// Eight bytes.
    pub fn number(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A truth.
    pub fn truth(&mut self, value: bool) {
        self.byte(u8::from(value));
    }

    /// A length and so many bytes.
    pub fn bytes(&mut self, value: &[u8]) {
        self.number(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// 1 and the value, or 0.
    pub fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Writer, T)) {
        self.truth(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }

    /// A count and so many values.
    pub fn list<T>(&mut self, values: impl ExactSizeIterator<Item = T>, mut write: impl FnMut(&mut Writer, T)) {
        self.number(values.len() as u64);
        values.for_each(|value| write(self, value));
    }
}

/// Takes values from bytes; `None` when they are no such value.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// One byte.
    pub fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    /// Eight bytes.
    pub fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// A truth.
    pub fn truth(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// A length and so many bytes, at most `bytes_max`.
    pub fn bytes(&mut self, bytes_max: usize) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        if length > bytes_max { None } else { self.take(length) }
    }

    /// 1 and the value, or 0.
    pub fn option<T>(&mut self, read: impl FnOnce(&mut Reader<'a>) -> Option<T>) -> Option<Option<T>> {
        if self.truth()? { Some(Some(read(self)?)) } else { Some(None) }
    }

    /// A count, at most `count_max`, and so many values. Each takes at least a byte, so a count cannot promise more than
    /// there is.
    pub fn list<T>(&mut self, count_max: usize, mut read: impl FnMut(&mut Reader<'a>) -> Option<T>) -> Option<Vec<T>> {
        let count = usize::try_from(self.number()?).ok()?;
        if count > count_max.min(self.0.len()) {
            return None;
        }
        (0..count).map(|_| read(self)).collect()
    }

    /// `value`, if nothing is left behind it.
    pub fn end<T>(&self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

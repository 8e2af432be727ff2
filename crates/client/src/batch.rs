//! STUB until the batcher is merged.

/// Policy.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicyConfig { /// now
 Immediate, /// one out
 SelfClocked }
/// QoS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Qos { /// now
 Single, /// policy
 Batch, /// deadline
 Within { /// us
 us: u64 } }
/// Refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushRefused;
/// Batch.
pub struct Batch<T> { /// b
 pub bytes: Vec<u8>, /// i
 pub items: Vec<T> }
/// Answer.
pub struct BatchAnswer { /// a
 pub sent_us: u64, /// b
 pub bytes: usize, /// c
 pub count: usize, /// d
 pub is_sample: bool }
/// Batcher.
pub struct Batcher<T> { bytes: Vec<u8>, items: Vec<T>, out: usize, policy: PolicyConfig, spare: Vec<Vec<u8>> }
impl<T> Batcher<T> {
    /// new
    pub fn new(policy: PolicyConfig) -> Self { Batcher { bytes: Vec::new(), items: Vec::new(), out: 0, policy, spare: Vec::new() } }
    /// len
    pub fn len(&self) -> usize { self.items.len() }
    /// push
    pub fn push(&mut self, _now: u64, _caller: u64, _qos: Qos, item: T, encode: impl FnOnce(&mut Vec<u8>)) -> Result<(), PushRefused> {
        if self.bytes.len() > 16 << 20 { return Err(PushRefused); }
        self.items.push(item); encode(&mut self.bytes); Ok(())
    }
    /// due
    pub fn due(&mut self, _now: u64) -> Option<Batch<T>> {
        if self.items.is_empty() || (self.policy == PolicyConfig::SelfClocked && self.out > 0) { return None; }
        self.out += 1;
        let spare = self.spare.pop().unwrap_or_default();
        Some(Batch { bytes: std::mem::replace(&mut self.bytes, spare), items: std::mem::take(&mut self.items) })
    }
    /// answered
    pub fn answered(&mut self, _now: u64, _answer: BatchAnswer) { self.out -= 1; }
    /// recycle
    pub fn recycle(&mut self, mut b: Vec<u8>) { if self.spare.len() < 4 { b.clear(); self.spare.push(b); } }
    /// reset
    pub fn reset(&mut self, _now: u64) { self.out = 0; }
    /// all
    pub fn take_all(&mut self) -> Vec<T> { self.bytes.clear(); std::mem::take(&mut self.items) }
    /// deadline
    pub fn deadline_us(&self) -> Option<u64> { None }
}

//! Candidate hashes: what one costs per key, and how evenly it spreads keys over partitions.

use std::hash::{BuildHasher, Hasher};
use std::hint::black_box;
use std::time::Instant;

use serde::Serialize;

/// Partitions that keys are spread over: the hash slots of Redis Cluster.
pub const PARTITIONS: usize = base::SLOT_COUNT as usize;

/// A candidate: its name and the function.
pub struct Candidate {
    /// Name in tables.
    pub name: &'static str,
    /// Hash of one key.
    pub hash: fn(&[u8]) -> u64,
}

/// Every candidate.
pub const CANDIDATES: &[Candidate] = &[
    Candidate { name: "crc16 (Redis slots)", hash: |key| u64::from(placement::crc16(key)) },
    Candidate { name: "crc32c", hash: |key| u64::from(base::checksum::crc32c(key)) },
    Candidate { name: "xxh3-64", hash: xxhash_rust::xxh3::xxh3_64 },
    Candidate { name: "foldhash quality", hash: fold_hash },
    Candidate { name: "fnv-1a 64", hash: fnv_1a },
    Candidate { name: "sdbm", hash: sdbm },
    Candidate { name: "siphash 1-3", hash: sip_hash },
];

/// What one candidate showed on one set of keys.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Name of the candidate.
    pub hash: &'static str,
    /// Nanoseconds per key, one value per pass over the keys.
    pub ns_per_key: Vec<f64>,
    /// Keys of the fullest partition over the mean.
    pub fullest_over_mean: f64,
    /// Chi-square statistic over its degrees of freedom: 1 is what a random function gives, above is uneven, below is
    /// more even than chance.
    pub chi_square_per_degree: f64,
}

/// Measures `candidate` on `keys`, `passes` times.
pub fn measure(candidate: &Candidate, keys: &[Vec<u8>], passes: usize) -> Outcome {
    let ns_per_key = (0..passes)
        .map(|_| {
            let started = Instant::now();
            for key in keys {
                black_box((candidate.hash)(black_box(key)));
            }
            started.elapsed().as_nanos() as f64 / keys.len().max(1) as f64
        })
        .collect();
    let mut filled = vec![0u32; PARTITIONS];
    for key in keys {
        filled[(candidate.hash)(key) as usize % PARTITIONS] += 1;
    }
    let mean = keys.len() as f64 / PARTITIONS as f64;
    let fullest = filled.iter().copied().max().unwrap_or(0);
    let chi_square: f64 = filled.iter().map(|count| (f64::from(*count) - mean).powi(2) / mean).sum();
    Outcome {
        hash: candidate.name,
        ns_per_key,
        fullest_over_mean: f64::from(fullest) / mean,
        chi_square_per_degree: chi_square / (PARTITIONS - 1) as f64,
    }
}

fn fold_hash(key: &[u8]) -> u64 {
    let mut hasher = foldhash::quality::FixedState::with_seed(1).build_hasher();
    hasher.write(key);
    hasher.finish()
}

fn sip_hash(key: &[u8]) -> u64 {
    let mut hasher = std::collections::hash_map::DefaultHasher::new();
    hasher.write(key);
    hasher.finish()
}

/// Fowler, Noll and Vo, 1991; 64 bits.
fn fnv_1a(key: &[u8]) -> u64 {
    key.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The hash of the sdbm library (Yigit, 1989), which ZHT used.
fn sdbm(key: &[u8]) -> u64 {
    key.iter()
        .fold(0u64, |hash, byte| u64::from(*byte).wrapping_add(hash << 6).wrapping_add(hash << 16).wrapping_sub(hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_hashes_have_their_published_values() {
        assert_eq!(fnv_1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv_1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(sdbm(b"a"), 97);
    }

    #[test]
    fn unevenness_is_seen() {
        let keys: Vec<Vec<u8>> = (0..100_000u32).map(|n| n.to_string().into_bytes()).collect();
        let even = measure(&CANDIDATES[2], &keys, 1);
        assert!((0.9..1.1).contains(&even.chi_square_per_degree), "{even:?}");
        let constant = measure(&Candidate { name: "constant", hash: |_| 7 }, &keys, 1);
        assert!(constant.chi_square_per_degree > 1000.0, "{constant:?}");
        assert_eq!(constant.fullest_over_mean, PARTITIONS as f64);
    }
}

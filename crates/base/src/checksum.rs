//! CRC-32C of everything at rest; the polynomial of iSCSI and NVMe, in hardware wherever Zerohop runs. And that of Redis's dumps.

/// CRC-32C (Castagnoli) of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// CRC-64 of Jones, reflected, as Redis has it behind a dump.
pub fn crc64_redis(bytes: &[u8]) -> u64 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Redis, bytes)
}

#[cfg(test)]
mod tests {
    use super::{crc32c, crc64_redis};

    /// RFC 3720 B.4 and the catalogue's check value.
    #[test]
    fn matches_published_vectors() {
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        // `crc64.c` of Redis names it.
        assert_eq!(crc64_redis(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        assert_eq!(crc32c(&[0u8; 32]), 0x8A91_36AA);
        assert_eq!(crc32c(&[0xFFu8; 32]), 0x62A8_AB43);
    }
}

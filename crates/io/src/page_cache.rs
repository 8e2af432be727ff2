//! Pages of files that the operating system keeps, a few at a time.
//!
//! Writing back a segment of 8 MiB, or letting go of the pages of a long one, is a millisecond or more in the kernel, which gives the
//! CPU to nobody meanwhile: with as many cores as CPUs some core stands still for it. In pieces, with the CPU offered to others
//! between two, that is 0.1 ms each (`cargo x bench gaps`). Nothing here changes what is in a file, or what is durable.

use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::thread::yield_now;

use rustix::fs::{Advice, fadvise};

/// Bytes of one piece.
const PIECE_BYTES: u64 = 512 << 10;

/// Has what was written to `range` go to the disk, as far as it does by itself. A sync has to follow: it has less to do, waits, and
/// is told of every error.
pub(crate) fn begin_write_back(file: &File, range: Range<u64>) {
    // A short one costs less than asking twice.
    if range.end - range.start <= PIECE_BYTES {
        return;
    }
    for piece in pieces(range) {
        if !begin_write_back_piece(file.as_raw_fd(), &piece) {
            return;
        }
        yield_now();
    }
}

#[cfg(target_os = "linux")]
fn begin_write_back_piece(file: RawFd, piece: &Range<u64>) -> bool {
    const SYNC_FILE_RANGE_WRITE: u32 = 2;
    unsafe extern "C" {
        fn sync_file_range(file: i32, offset: i64, bytes: i64, flags: u32) -> i32;
    }
    // SAFETY: sync_file_range(2) touches no memory of ours.
    unsafe { sync_file_range(file, piece.start as i64, (piece.end - piece.start) as i64, SYNC_FILE_RANGE_WRITE) == 0 }
}

/// Lets go of the clean pages of a file that will be removed.
pub(crate) fn forget(path: &Path) {
    if let Ok(file) = File::open(path)
        && let Ok(about) = file.metadata()
    {
        forget_range(&file, 0..about.len());
    }
}

/// Lets go of the clean pages of a range.
pub(crate) fn forget_range(file: &File, range: Range<u64>) {
    for piece in pieces(range) {
        if fadvise(file, piece.start, std::num::NonZeroU64::new(piece.end - piece.start), Advice::DontNeed).is_err() {
            return;
        }
        yield_now();
    }
}

fn pieces(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    range.step_by(PIECE_BYTES as usize).map(move |start| start..end.min(start + PIECE_BYTES))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn pieces_are_all_of_a_range() {
        let of = |range: Range<u64>| pieces(range).map(|piece| (piece.start, piece.end)).collect::<Vec<_>>();
        assert_eq!(of(5..5), []);
        assert_eq!(of(5..6), [(5, 6)]);
        assert_eq!(of(1..PIECE_BYTES + 3), [(1, PIECE_BYTES + 1), (PIECE_BYTES + 1, PIECE_BYTES + 3)]);
    }

    #[test]
    fn what_is_in_a_file_stays_whatever_becomes_of_its_pages() {
        use std::os::unix::fs::FileExt;
        let path = std::env::temp_dir().join(format!("zerohop-pages-{}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        let content: Vec<u8> = (0..3 * PIECE_BYTES as usize + 7).map(|at| (at / 5) as u8).collect();
        file.write_all_at(&content, 0).unwrap();
        // Dirty ones, those on their way, and clean ones.
        forget(&path);
        assert!(begin_write_back_piece(file.as_raw_fd(), &(0..PIECE_BYTES)));
        begin_write_back(&file, 0..content.len() as u64);
        forget(&path);
        file.sync_data().unwrap();
        forget(&path);
        assert!(std::fs::read(&path).unwrap() == content);
        forget(&path.join("not there"));
        std::fs::remove_file(&path).unwrap();
    }
}

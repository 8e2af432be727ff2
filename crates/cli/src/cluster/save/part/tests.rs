//! Parts as they are written and read, and what damage does.

use super::*;

fn entry(number: u64) -> Entry {
    let payload = vec![number as u8; (number * 37 % 300) as usize];
    Entry { key: format!("key:{number}").into_bytes(), expires_at_ms: number % 3 * 1_000_000, payload }
}

fn written(name: &str, count: u64) -> (std::path::PathBuf, Content) {
    let path = std::env::temp_dir().join(format!("zerohop-part-{}-{name}", std::process::id()));
    std::fs::remove_file(&path).ok();
    let mut writer = Writer::create(&path).unwrap();
    (0..count).for_each(|number| writer.add(&entry(number)).unwrap());
    let (content, bytes, _) = writer.finish().unwrap();
    assert_eq!(bytes, std::fs::metadata(&path).unwrap().len());
    (path, content)
}

fn read(path: &Path) -> io::Result<Vec<Entry>> {
    let mut reader = Reader::open(path)?;
    let mut entries = Vec::new();
    while let Some(entry) = reader.next()? {
        entries.push(entry);
    }
    Ok(entries)
}

#[test]
fn what_is_written_is_read_and_adds_up_in_any_order() {
    let (path, content) = written("sound", 50);
    let entries = read(&path).unwrap();
    assert_eq!(entries, (0..50).map(entry).collect::<Vec<_>>());
    let mut backwards = Content::default();
    entries.iter().rev().for_each(|entry| backwards.add(entry));
    assert_eq!(backwards, content);
    let mut other = Content::default();
    entries.iter().for_each(|entry| other.add(&Entry { expires_at_ms: entry.expires_at_ms + 1, ..entry.clone() }));
    assert_ne!(other.sum, content.sum, "an expiry is a part of it");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn every_cut_and_every_changed_byte_is_an_error() {
    let (path, _) = written("damaged", 4);
    let sound = std::fs::read(&path).unwrap();
    for at in 0..sound.len() {
        std::fs::write(&path, &sound[..at]).unwrap();
        assert!(read(&path).is_err(), "cut at {at}");
        let mut changed = sound.clone();
        changed[at] ^= 0x10;
        std::fs::write(&path, &changed).unwrap();
        assert!(read(&path).is_err(), "byte {at} changed");
    }
    std::fs::write(&path, [&sound[..], b"x"].concat()).unwrap();
    assert!(read(&path).is_err(), "something behind its end");
    std::fs::remove_file(path).unwrap();
}

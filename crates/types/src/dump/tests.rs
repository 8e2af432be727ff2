//! Dumps that Redis 7.0.15 and Valkey 8.0.1 made, dumps of our own, and what is none.

use proptest::prelude::*;

use super::*;
use crate::change::End;

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|digits| u8::from_str_radix(digits, 16).unwrap()).collect()
}

fn list_of(elements: &[&str]) -> Dumped {
    let mut encoding = Vec::new();
    elements.iter().for_each(|element| put_element(element.as_bytes(), &mut encoding));
    Dumped::List(encoding)
}

fn with_footer(mut body: Vec<u8>, version: u16) -> Vec<u8> {
    body.extend_from_slice(&version.to_le_bytes());
    body.extend_from_slice(&crc64_redis(&body).to_le_bytes());
    body
}

#[test]
fn strings_of_redis_and_valkey_are_read() {
    let big = "c30d419002616261e0ff01e07a010161620a003f03619433dd8d9a";
    let dumps = [
        ("000568656c6c6f0a006372df766534200a", "hello".to_owned()),
        ("000568656c6c6f0b000aad620598abc983", "hello".to_owned()),
        ("00c139300a009d94ea2793fc08b9", "12345".to_owned()),
        ("00c0f90a005e26d130d7a242ab", "-7".to_owned()),
        ("00c1d4fe0a00c6c48623febede2e", "-300".to_owned()),
        ("00c2701101000a0001a408fe953095a5", "70000".to_owned()),
        ("000a353030303030303030300a0069a90fd57e0ff425", "5000000000".to_owned()),
        (&format!("00{big}"), "ab".repeat(200)),
    ];
    for (dump, value) in dumps {
        assert_eq!(restore(&bytes_of(dump)), Ok(Dumped::String(value.into_bytes())), "{dump}");
    }
}

#[test]
fn lists_of_redis_and_valkey_are_read() {
    let compressed = "120102c32e408c1f8c0000000800816102826262030101dffb02c12c02f270110104f400f2052a01201e0309e06478e05a000166ff0a0020\
                      1413b96cac1c16";
    let (hundred, seventy) = ("x".repeat(100), "x".repeat(70));
    let elements = ["a", "bb", "1", "-5", "300", "70000", "5000000000", hundred.as_str()];
    assert_eq!(restore(&bytes_of(compressed)), Ok(list_of(&elements)));
    let several = "12040213130000000400816102826262030101dffb02ff0216160000000400c12c02d06002f1001003f270110104ff02c3224062116200\
                   00000400f3ffff7fff05f400f2052a0120100309e04678e03c0003487f01ff0212120000000300c08002df7f02f200800004ff0a00a49d\
                   cdf8bfad9676";
    let numbers =
        ["a", "bb", "1", "-5", "300", "-4000", "4096", "70000", "-8388609", "5000000000", &seventy, "127", "128"];
    let all: Vec<&str> = numbers.into_iter().chain(["-129", "32768"]).collect();
    assert_eq!(restore(&bytes_of(several)), Ok(list_of(&all)));
    let valkey = "1201020f0f00000003008161020101ded402ff0b00e9db9d3bd4a40b00";
    assert_eq!(restore(&bytes_of(valkey)), Ok(list_of(&["a", "1", "-300"])));
}

/// The examples of `ziplist.c`, alone and in a quicklist, as Redis before 7.0 dumps lists; and its other ways to write numbers.
#[test]
fn lists_of_older_stores_are_read() {
    let two_five = "0f0000000c0000000200";
    let list = format!("{two_five}00f302f6ff");
    for body in [format!("0a0f{list}"), format!("0e010f{list}")] {
        assert_eq!(restore(&with_footer(bytes_of(&body), 9)), Ok(list_of(&["2", "5"])));
    }
    let entries =
        "0040026869 05fe80 03c0d4fe 04f0ffff7f 05d070110100 06e000f2052a01000000 0a800000000161 fe00000000fd ff"
            .replace(' ', "");
    let entries = bytes_of(&entries);
    let mut ziplist = ((entries.len() + 10) as u32).to_le_bytes().to_vec();
    ziplist.extend_from_slice(&[0; 6]);
    ziplist.extend_from_slice(&entries);
    let mut body = vec![LIST_ZIPLIST, ziplist.len() as u8];
    body.extend_from_slice(&ziplist);
    let elements = ["hi", "-128", "-300", "8388607", "70000", "5000000000", "a", "12"];
    assert_eq!(restore(&with_footer(body, 6)), Ok(list_of(&elements)));
}

#[test]
fn what_is_no_dump_is_told_apart_from_what_is_no_value() {
    let sound = dump_string(Text::Short(b"hello"));
    assert_eq!(restore(b""), Err(DumpError::Footer));
    assert_eq!(restore(&sound[2..]), Err(DumpError::Footer));
    assert_eq!(restore(&sound[..sound.len() - 1]), Err(DumpError::Footer));
    let without_checksum = [&sound[..sound.len() - 8], &[0; 8]].concat();
    assert_eq!(restore(&without_checksum), Err(DumpError::Footer));
    for version in [12, 79, 81] {
        assert_eq!(restore(&with_footer(vec![0, 1, b'a'], version)), Err(DumpError::Footer), "{version}");
    }
    assert_eq!(restore(&with_footer(vec![0, 1, b'a'], 80)), Ok(Dumped::String(b"a".to_vec())));
    let not_values: [&[u8]; 8] =
        [&[], &[0], &[0, 5, b'a'], &[0, 1, b'a', b'b'], &[1, 0], &[2, 1, 1, b'a'], &[18, 1, 3, 0], &[18, 0]];
    for body in not_values {
        assert_eq!(restore(&with_footer(body.to_vec(), 10)), Err(DumpError::Value), "{body:?}");
    }
    for at in 0..sound.len() {
        for bit in 0..8 {
            let mut damaged = sound.clone();
            damaged[at] ^= 1 << bit;
            assert_eq!(restore(&damaged), Err(DumpError::Footer), "bit {bit} of byte {at}");
        }
    }
}

/// A few bytes say that they stand for very many: no more is made than was asked for.
#[test]
fn what_would_be_too_long_is_refused_before_it_is_made() {
    let bomb = [0xe0, 0xff, 0x00].repeat(1 << 16);
    let mut body = vec![STRING, 0xc3];
    strings::put_length(bomb.len() + 2, &mut body);
    strings::put_length(VALUE_BYTES_MAX + 1, &mut body);
    body.extend_from_slice(&[0, b'a']);
    body.extend_from_slice(&bomb);
    assert_eq!(restore(&with_footer(body, 10)), Err(DumpError::Value));
    let claims = [&[STRING, 0x81][..], &[0xff; 8]].concat();
    assert_eq!(restore(&with_footer(claims, 10)), Err(DumpError::Value));
    let claims = [&[LIST_QUICKLIST_2, 0x80][..], &[0xff; 4]].concat();
    assert_eq!(restore(&with_footer(claims, 10)), Err(DumpError::Value));
}

proptest! {
    #[test]
    fn what_is_dumped_here_is_restored_here(strings in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..20)) {
        let mut list = List::new();
        strings.iter().for_each(|element| list.push(End::Tail, element));
        let mut encoding = Vec::new();
        list.encode(&mut encoding);
        prop_assert_eq!(restore(&dump_list(&list)), Ok(Dumped::List(encoding)));
        let string = strings.concat();
        prop_assert_eq!(restore(&dump_string(Text::Short(&string))), Ok(Dumped::String(string)));
    }

    /// Whatever a body is, reading it ends.
    #[test]
    fn any_body_is_a_value_or_an_error(kind in prop::sample::select(vec![0u8, 1, 10, 14, 18]), body in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut payload = vec![kind];
        payload.extend_from_slice(&body);
        prop_assert_ne!(restore(&with_footer(payload, 10)), Err(DumpError::Footer));
    }
}

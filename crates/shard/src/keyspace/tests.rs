//! Commands about keys that are the node's to run.

use crate::Durability;
use crate::one_core::{Core, request, turn};

#[test]
fn memory_usage_reads_its_options_before_it_looks_for_the_key() {
    let _turn = turn();
    let mut core = Core::new(Durability::Memory, 1);
    let mut usage = |words: &str| {
        let words: Vec<&[u8]> = ["MEMORY", "USAGE"].into_iter().chain(words.split(' ')).map(str::as_bytes).collect();
        core.replies.clear();
        core.tick(0, &request(&words));
        String::from_utf8(core.replies.remove(&0).unwrap_or_default()).expect("text")
    };
    for words in ["none foo", "none samples", "none samples -1", "none foo 1", "none SAMPLES 3 foo", "none SAMPLES 3 4"]
    {
        assert_eq!(usage(words), "-ERR syntax error\r\n", "{words}");
    }
    assert_eq!(usage("none samples a"), "-ERR value is not an integer or out of range\r\n");
    for words in ["none", "none samples 0", "none SAMPLES 3 samples 5"] {
        assert_eq!(usage(words), "$-1\r\n", "{words}");
    }
}

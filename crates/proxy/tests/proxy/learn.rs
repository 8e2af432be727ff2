//! What is made of a store's answer to `COMMAND`.

use client::{CommandTable, FirstKey, Hold, Way};
use wire::reply_parse::parse_reply;

fn table(answer: &[u8]) -> CommandTable {
    CommandTable::learn(&parse_reply(answer).unwrap().unwrap().0).unwrap()
}

#[test]
fn our_own_commands_have_their_ways() {
    let table = CommandTable::own();
    let way = |words: &str| {
        let (name, inner) = words.split_once(' ').map_or((words, None), |(name, inner)| (name, Some(inner)));
        table.look_up(name.as_bytes(), inner.map(str::as_bytes)).unwrap_or_else(|| panic!("{words}")).way
    };
    for shared in ["GET", "set", "MGET", "DEL", "APPEND", "LPUSH", "EXPIRE", "PING", "SCAN", "DBSIZE", "ZH.GET", "TYPE"]
    {
        assert_eq!(way(shared), Way::Shared, "{shared}");
    }
    for alone in ["BLPOP", "INFO", "CONFIG GET", "CLIENT KILL", "ZH.WAIT", "CLUSTER SLOTS"] {
        assert_eq!(way(alone), Way::Alone, "{alone}");
    }
    for caller in ["HELLO", "AUTH", "SELECT", "QUIT", "RESET", "CLIENT SETNAME"] {
        assert_eq!(way(caller), Way::Caller, "{caller}");
    }
    assert_eq!(
        ["MULTI", "WATCH", "EXEC", "CLIENT ID", "CLIENT INFO", "CLIENT LIST"].map(way),
        [Hold::Begin, Hold::Watch, Hold::End, Hold::Named, Hold::Named, Hold::Described].map(Way::Held)
    );
    assert_eq!(
        ["CLIENT REPLY", "READONLY", "MONITOR"]
            .map(|words| table.look_up(words.as_bytes(), None).map(|known| known.way))
            .len(),
        3
    );
    assert_eq!(way("CLIENT REPLY"), Way::Sticky);
    assert!(table.look_up(b"nonsense", None).is_none() && table.look_up(&[b'x'; 500], None).is_none());
}

#[test]
fn keys_are_found_where_the_store_says() {
    let learnt = table(
        b"*4\r\n\
        *10\r\n$5\r\nxread\r\n:-4\r\n*3\r\n+readonly\r\n+blocking\r\n+movablekeys\r\n:0\r\n:0\r\n:0\r\n*0\r\n*0\r\n\
        *1\r\n*6\r\n$5\r\nflags\r\n*0\r\n$12\r\nbegin_search\r\n*4\r\n$4\r\ntype\r\n$7\r\nkeyword\r\n$4\r\nspec\r\n\
        *4\r\n$7\r\nkeyword\r\n$7\r\nSTREAMS\r\n$9\r\nstartfrom\r\n:1\r\n$9\r\nfind_keys\r\n*4\r\n$4\r\ntype\r\n$5\r\nrange\r\n$4\r\nspec\r\n*0\r\n*0\r\n\
        *10\r\n$4\r\neval\r\n:-3\r\n*2\r\n+noscript\r\n+movablekeys\r\n:0\r\n:0\r\n:0\r\n*0\r\n*0\r\n\
        *1\r\n*6\r\n$5\r\nflags\r\n*0\r\n$12\r\nbegin_search\r\n*4\r\n$4\r\ntype\r\n$5\r\nindex\r\n$4\r\nspec\r\n\
        *2\r\n$5\r\nindex\r\n:2\r\n$9\r\nfind_keys\r\n*4\r\n$4\r\ntype\r\n$6\r\nkeynum\r\n$4\r\nspec\r\n*0\r\n*0\r\n\
        *7\r\n$7\r\nmod.get\r\n:2\r\n*1\r\n+readonly\r\n:1\r\n:1\r\n:1\r\n*0\r\n\
        *10\r\n$6\r\nobject\r\n:-2\r\n*0\r\n:0\r\n:0\r\n:0\r\n*0\r\n*0\r\n*0\r\n\
        *1\r\n*7\r\n$15\r\nobject|encoding\r\n:3\r\n*1\r\n+readonly\r\n:2\r\n:2\r\n:1\r\n*0\r\n",
    );
    let xread = learnt.look_up(b"XREAD", None).unwrap();
    assert_eq!((xread.way, xread.first_key), (Way::Shared, FirstKey::Behind(b"streams", 1)));
    assert_eq!(xread.blocks_with, Some(b"block".as_slice()));
    let eval = learnt.look_up(b"eval", None).unwrap();
    assert_eq!((eval.way, eval.first_key), (Way::Shared, FirstKey::Counted(2)));
    let module = learnt.look_up(b"Mod.Get", None).unwrap();
    assert!(module.way == Way::Shared && module.is_read);
    let inner = learnt.look_up(b"OBJECT", Some(b"Encoding")).unwrap();
    assert_eq!((inner.way, inner.first_key), (Way::Shared, FirstKey::At(2)));
    assert!(learnt.look_up(b"OBJECT", Some(b"nonsense")).is_none(), "the store refuses it");
    assert!(CommandTable::learn(&wire::reply_parse::Value::Integer(1)).is_none());
}

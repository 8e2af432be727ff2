//! Callers of a proxy with users of its own, and its successor.

use super::*;

/// What a caller is called and may do behind an upgrade from one file of users to another; `None`: it is closed.
fn moved(before: Option<&str>, after: Option<&str>, words: &str) -> (Scene, Option<ConnectionId>) {
    let mut old = Scene::of(machine(before));
    let client = old.street.client();
    if !words.is_empty() {
        // A store without users of the proxy's takes the password that it has.
        assert_eq!(old.ask(client, words), "+OK\r\n");
    }
    old.street.leave();
    old.settle();
    let (_, state, unread) = old.street.handed.pop().unwrap();
    assert!(before.is_none() || !state.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()));
    let mut successor = machine(after);
    successor.inherit(vec![(0, 0)]);
    let mut new = Scene::of(successor);
    let there = new.street.arrives(state);
    new.street.arrive(there, &unread);
    new.settle();
    let is_closed = new.is_closed(there);
    (new, (!is_closed).then_some(there))
}

#[test]
fn a_caller_is_the_same_user_behind_an_upgrade_with_the_rights_of_the_new_file() {
    let (mut new, there) = moved(Some(USERS), Some(USERS), "AUTH ann pw");
    let there = there.unwrap();
    assert_eq!(new.ask_all(there, &["ACL WHOAMI", "GET shop:1", "GET other"]), format!("$3\r\nann\r\n$-1\r\n{NO_KEY}"));
    let fewer = USERS.replace("user ann on >pw ~shop:*", "user ann on >pw ~shop:2:*");
    let (mut new, there) = moved(Some(USERS), Some(&fewer), "AUTH ann pw");
    assert_eq!(new.ask(there.unwrap(), "GET shop:1"), NO_KEY);
    let (mut new, there) = moved(Some(USERS), Some(USERS), "");
    assert_eq!(new.ask(there.unwrap(), "GET shop:1"), NOAUTH, "who had not logged in has not");
}

#[test]
fn a_user_that_is_gone_is_gone_behind_an_upgrade() {
    assert_eq!(moved(Some(USERS), Some(&USERS.replace("user ann", "user eve")), "AUTH ann pw").1, None);
    assert_eq!(moved(Some(USERS), Some(&USERS.replace("user ann on", "user ann off")), "AUTH ann pw").1, None);
    assert_eq!(moved(Some(USERS), None, "AUTH ann pw").1, None, "the store knows no ann");
    assert_eq!(moved(Some(USERS), None, "").1, None);
}

#[test]
fn who_logged_in_at_the_store_is_who_it_says_if_the_new_file_takes_its_password() {
    let (mut new, there) = moved(None, Some(&USERS.replace(">pw ", ">geheim ")), "AUTH ann geheim");
    assert_eq!(new.ask(there.unwrap(), "ACL WHOAMI"), "$3\r\nann\r\n");
    assert_eq!(moved(None, Some(USERS), "AUTH ann geheim").1, None);
    let (mut new, there) = moved(None, Some(USERS), "");
    assert_eq!(new.ask(there.unwrap(), "GET shop:1"), NOAUTH);
}

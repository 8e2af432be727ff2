//! A store under a limit: it holds, the right keys go, and what nobody may lose stays.

use super::*;
use crate::Key;
use crate::eviction::Order;
use crate::group::SlotGroup;
use crate::log::format::{GROUP_HEADER_BYTES, GroupHeader};
use crate::log::record::RecordForm;
use crate::log::replay::{DecodedChange, StagedValue, Stages, Step, each_record};
use base::{BLOCK_BYTES, Blocks, Database, Slot, SlotGroupId};
use types::{Expiry, Kind};

const LIMIT: usize = 8 << 20;

fn policy(only_expiring: bool, order: Order) -> Option<Policy> {
    Some(Policy { only_expiring, order })
}

fn store_with(limit_bytes: usize, policy: Option<Policy>) -> Store {
    let mut store = Store::new(CoreId(0), 7, false);
    for id in SlotGroupId::all() {
        store.insert_group(Box::new(SlotGroup::new(id, CoreId(0))));
    }
    store.set_memory_limit(Some(MemoryLimit { bytes: limit_bytes, policy, tiers: false }));
    store
}

/// Any map from names to slots will do here.
fn key_of(store: &Store, name: &[u8]) -> (Slot, u64) {
    let hash = Key::new(name, Database(0), Slot::wrapping(0), 99).hash;
    (Slot::wrapping(hash as u16), store.seed())
}

fn with_key<T>(store: &mut Store, name: &str, act: impl FnOnce(&mut Store, &Key<'_>) -> T) -> T {
    let (slot, _) = key_of(store, name.as_bytes());
    let key = store.key(name.as_bytes(), Database(0), slot);
    act(store, &key)
}

fn put(store: &mut Store, name: &str, value: &[u8], expiry: Expiry) -> Room {
    with_key(store, name, |store, key| {
        let room = store.make_room(name.len() + value.len() + 64);
        if room != Room::Refused {
            store.apply(key, &Change::Put { kind: Kind::String, value, expiry }).expect("far from full");
        }
        room
    })
}

/// Without an expiry.
fn keep(store: &mut Store, name: &str, value: &[u8]) {
    assert_ne!(put(store, name, value, Expiry::Clear), Room::Refused);
}

/// As many small keys without an expiry as there is room for.
fn fill(store: &mut Store) {
    let mut count = 0;
    while put(store, &format!("{count}"), &[b'v'; 100], Expiry::Clear) == Room::Enough {
        count += 1;
    }
}

fn has(store: &mut Store, name: &str) -> bool {
    with_key(store, name, |store, key| store.read(key, 0).is_some())
}

fn keys(store: &Store) -> u64 {
    store.count(Database(0)).keys
}

fn check_sums(store: &Store) {
    assert_eq!(store.eviction.bytes, store.count_bytes(), "the sum that is kept is not the sum that is counted");
}

#[test]
fn the_limit_holds_while_sizes_change_and_most_of_it_is_used() {
    let mut store = store_with(LIMIT, policy(false, Order::Lru));
    let mut rng = Rng::new(3);
    for round in 0..6usize {
        let bytes = [40, 200, 90, 700, 20, 3000][round];
        let (mut live, mut most) = (0, 0);
        for number in 0..12 * LIMIT / (bytes + 40) / 4 {
            let value = vec![b'v'; bytes + rng.below(bytes as u64 / 4) as usize];
            let name = format!("{round}:{number}");
            assert_ne!(put(&mut store, &name, &value, Expiry::Clear), Room::Refused);
            most = most.max(store.memory_bytes());
            live = store.live_bytes();
        }
        println!("round {round}: at most {} %, in use {} %", most * 100 / LIMIT, live * 100 / LIMIT);
        assert!(most <= LIMIT + LIMIT / 50, "{most} in round {round}");
        check_sums(&store);
        assert!(live > LIMIT * 11 / 16, "only {live} of {LIMIT} in use in round {round}");
    }
}

#[test]
fn without_a_policy_writes_are_refused_until_something_goes() {
    let mut store = store_with(LIMIT, None);
    let mut count = 0;
    while put(&mut store, &format!("k{count}"), &[b'v'; 100], Expiry::Clear) == Room::Enough {
        count += 1;
    }
    assert_eq!((keys(&store), store.evicted()), (count, 0));
    assert_eq!(store.make_room(164), Room::Refused);
    for number in 0..20 {
        with_key(&mut store, &format!("k{number}"), |store, key| store.apply(key, &Change::Remove)).expect("no room");
    }
    assert_eq!(put(&mut store, "again", &[b'v'; 100], Expiry::Clear), Room::Enough);
    check_sums(&store);
}

#[test]
fn what_cannot_fit_is_refused_and_evicts_nothing() {
    let mut store = store_with(LIMIT, policy(false, Order::Lru));
    (0..1000)
        .for_each(|number| assert_eq!(put(&mut store, &format!("{number}"), &[1; 100], Expiry::Clear), Room::Enough));
    assert_eq!(store.make_room(LIMIT), Room::Refused);
    assert_eq!((keys(&store), store.evicted()), (1000, 0));
}

#[test]
fn only_keys_with_an_expiry_go_where_the_policy_says_so() {
    for order in [Order::Lru, Order::Lfu, Order::Random, Order::Soonest] {
        let mut store = store_with(LIMIT, policy(true, order));
        for number in 0..10_000 {
            put(&mut store, &format!("stay{number}"), &[b'v'; 100], Expiry::Clear);
        }
        for number in 0..100_000u64 {
            put(&mut store, &format!("go{number}"), &[b'v'; 100], Expiry::At(1_000_000 + number));
        }
        assert!(store.evicted() > 10_000, "{order:?}");
        assert!((0..10_000).all(|number| has(&mut store, &format!("stay{number}"))), "{order:?}");
        assert!(store.memory_bytes() <= LIMIT + (64 << 10), "{order:?}");
        check_sums(&store);
        // Without any such key nothing may go.
        let mut store = store_with(LIMIT, policy(true, order));
        fill(&mut store);
        assert_eq!(store.evicted(), 0);
        assert_eq!(store.make_room(164), Room::Refused);
    }
}

#[test]
fn one_key_with_an_expiry_among_many_without_is_found() {
    let mut store = store_with(LIMIT, policy(true, Order::Random));
    put(&mut store, "the one", &[b'v'; 100], Expiry::At(5));
    fill(&mut store);
    for _ in 0..2000 {
        if store.make_room(164) != Room::Later {
            break;
        }
    }
    assert_eq!(store.evicted(), 1);
}

#[test]
fn those_that_expire_soonest_go_first() {
    let mut store = store_with(LIMIT, policy(true, Order::Soonest));
    let mut rng = Rng::new(5);
    let due: Vec<u64> = (0..60_000).map(|_| 1_000 + rng.below(1_000_000)).collect();
    for (number, at_ms) in due.iter().enumerate() {
        put(&mut store, &format!("{number}"), &[b'v'; 150], Expiry::At(*at_ms));
    }
    let mean = |store: &mut Store, gone: bool| {
        let chosen = due.iter().enumerate().filter(|(number, _)| has(store, &format!("{number}")) != gone);
        let (count, sum) = chosen.fold((0, 0), |(count, sum), (_, at_ms)| (count + 1, sum + at_ms));
        sum / count
    };
    let (gone, there) = (mean(&mut store, true), mean(&mut store, false));
    assert!(gone * 3 < there * 2, "gone {gone}, there {there}");
}

/// Share of reads that find their key when each miss is filled again: zipf over ten times what fits, in percent.
fn hits(order: Order, theta: f64) -> u64 {
    const KEYS: usize = 200_000;
    let mut store = store_with(LIMIT / 2, policy(false, order));
    let weights: Vec<f64> = (1..=KEYS).map(|rank| (rank as f64).powf(-theta)).collect();
    let mut sums = Vec::with_capacity(KEYS);
    weights.iter().fold(0.0, |sum, weight| {
        sums.push(sum + weight);
        sum + weight
    });
    let (mut rng, mut hits, mut reads) = (Rng::new(11), 0, 0);
    for round in 0..400_000 {
        let drawn = rng.unit() * sums[KEYS - 1];
        let name = format!("{}", sums.partition_point(|sum| *sum < drawn));
        let is_hit = has(&mut store, &name);
        if !is_hit {
            put(&mut store, &name, &[b'v'; 150], Expiry::Clear);
        }
        if round >= 200_000 {
            (hits, reads) = (hits + u64::from(is_hit), reads + 1);
        }
    }
    hits * 1000 / reads
}

#[test]
fn what_is_used_stays_better_by_lru_and_best_by_lfu() {
    let (random, lru, lfu) = (hits(Order::Random, 0.99), hits(Order::Lru, 0.99), hits(Order::Lfu, 0.99));
    println!("of 1000 reads by zipf 0.99 found: random {random}, lru {lru}, lfu {lfu}");
    assert!(lru > random + 15 && lfu > lru + 3, "random {random}, lru {lru}, lfu {lfu}");
}

#[test]
fn memory_on_its_way_back_evicts_nobody() {
    let mut store = store_with(LIMIT, policy(false, Order::Lru));
    (0..4000).for_each(|number| keep(&mut store, &format!("{number}"), &[b'v'; 300]));
    assert_ne!(put(&mut store, "long", &vec![b'v'; LIMIT * 10 / 16], Expiry::Clear), Room::Refused);
    let before = store.evicted();
    with_key(&mut store, "long", |store, key| store.apply(key, &Change::Remove)).expect("a removal needs no room");
    assert!(store.has_garbage());
    let mut most = 0;
    for number in 0..8000 {
        assert_eq!(put(&mut store, &format!("new{number}"), &[b'v'; 300], Expiry::Clear), Room::Enough);
        most = most.max(store.memory_bytes());
    }
    assert_eq!(store.evicted(), before);
    assert!(most <= LIMIT + (64 << 10), "{most}");
}

#[test]
fn what_is_lent_keeps_its_keys_and_counts_as_it_left() {
    let mut store = store_with(LIMIT, policy(false, Order::Random));
    (0..20_000).for_each(|number| keep(&mut store, &format!("{number}"), &[b'v'; 200]));
    let bytes = store.memory_bytes();
    let lent: Vec<Box<SlotGroup>> = SlotGroupId::all().step_by(2).filter_map(|id| store.take_group(id)).collect();
    assert_eq!(store.memory_bytes(), bytes);
    let keys_lent =
        |groups: &[Box<SlotGroup>]| groups.iter().map(|group| group.database(Database(0)).keys).sum::<u64>();
    let before = keys_lent(&lent);
    // Another core's groups are here for a unit: they are not this store's to evict from, and take nothing of its share.
    let mut guest = Store::new(CoreId(1), 7, false);
    guest.set_memory_limit(Some(MemoryLimit { bytes: LIMIT / 8, policy: policy(false, Order::Random), tiers: false }));
    SlotGroupId::all().skip(1).step_by(2).for_each(|id| guest.insert_group(Box::new(SlotGroup::new(id, CoreId(1)))));
    let own_bytes = guest.memory_bytes();
    lent.into_iter().for_each(|group| guest.insert_group(group));
    assert_eq!(guest.memory_bytes(), own_bytes);
    let own = Slot::wrapping(SlotGroupId::all().nth(1).expect("there are 64").slot(3).number());
    for number in 0..10_000 {
        let name = format!("own{number}");
        let key = guest.key(name.as_bytes(), Database(0), own);
        assert_ne!(guest.make_room(300), Room::Refused);
        let change = Change::Put { kind: Kind::String, value: &[b'v'; 200], expiry: Expiry::Clear };
        guest.apply(&key, &change).expect("far from full");
    }
    assert!(guest.evicted() > 1000);
    let back: Vec<Box<SlotGroup>> = SlotGroupId::all().step_by(2).filter_map(|id| guest.take_group(id)).collect();
    assert_eq!(keys_lent(&back), before);
    store.set_memory_limit(Some(MemoryLimit { bytes: LIMIT, policy: policy(false, Order::Random), tiers: false }));
    back.into_iter().for_each(|group| store.insert_group(group));
    assert_eq!(store.memory_bytes(), bytes);
    check_sums(&store);
}

#[test]
fn a_skewed_store_gives_from_its_large_group() {
    let mut store = store_with(LIMIT, policy(false, Order::Random));
    let few: Vec<String> = (0..200).map(|number| format!("few{number}")).collect();
    few.iter().for_each(|name| keep(&mut store, name, &[b'v'; 100]));
    for number in 0..100_000 {
        let name = format!("{number}");
        let key = store.key(name.as_bytes(), Database(0), Slot::wrapping(5));
        assert_ne!(store.make_room(200), Room::Refused);
        let change = Change::Put { kind: Kind::String, value: &[b'v'; 100], expiry: Expiry::Clear };
        store.apply(&key, &change).expect("far from full");
    }
    let left = few.iter().filter(|name| has(&mut store, name)).count();
    // As many of a hundred as of all keys: about half of them went.
    assert!((20..180).contains(&left), "{left} of {} are left", few.len());
}

#[test]
fn a_lower_limit_is_reached_step_by_step() {
    let mut store = store_with(LIMIT, policy(false, Order::Lru));
    (0..50_000).for_each(|number| keep(&mut store, &format!("{number}"), &[b'v'; 100]));
    store.set_memory_limit(Some(MemoryLimit { bytes: LIMIT / 8, policy: policy(false, Order::Lru), tiers: false }));
    let mut steps = 0;
    while store.make_room(0) != Room::Enough {
        let before = store.evicted();
        steps += 1;
        assert!(steps < 100_000 && store.evicted() - before <= STEPS_MAX as u64);
    }
    assert!(store.memory_bytes() <= LIMIT / 8 && keys(&store) > 1000, "{} keys", keys(&store));
    check_sums(&store);
}

#[test]
fn what_went_stays_away_when_the_log_is_replayed() {
    let mut store = Store::new(CoreId(0), 7, true);
    let mut replayed = Store::new(CoreId(0), 8, false);
    for id in SlotGroupId::all() {
        store.insert_group(Box::new(SlotGroup::new(id, CoreId(0))));
        replayed.insert_group(Box::new(SlotGroup::new(id, CoreId(0))));
    }
    store.set_memory_limit(Some(MemoryLimit { bytes: 1 << 20, policy: policy(false, Order::Lru), tiers: false }));
    // Names come again, so that what went is made anew and goes again.
    (0..30_000).for_each(|number| keep(&mut store, &format!("{}", number % 9_000), &[b'v'; 100]));
    assert!(store.evicted() > 10_000);
    let log = store.log.take().expect("it logs");
    let (records, record_bytes) = (log.records(), log.record_bytes() as u32);
    let (ordinal, bytes) = (base::LogOrdinal(1), log.into_bytes());
    let header = GroupHeader {
        record_bytes,
        records,
        ordinal,
        durable: ordinal,
        identity: 0,
        unix_ms: 0,
        form: RecordForm::Short,
    };
    each_record(("log", 0), (&header, &bytes[GROUP_HEADER_BYTES..]), &mut |step| {
        let Step::Record(record, body) = step else { return Ok(()) };
        let (mut elements, mut stages, mut value) = (Vec::new(), Stages::default(), StagedValue::default());
        let decoded = DecodedChange::of(record, body, &mut elements, (&mut stages, &mut value))?;
        let key = replayed.key(record.key, decoded.database, decoded.slot);
        replayed.replay(&key, &decoded.change, record.version, false)
    })
    .expect("the log fits itself");
    assert_eq!(keys(&replayed), keys(&store));
    for number in 0..9_000 {
        let name = format!("{number}");
        assert_eq!(has(&mut replayed, &name), has(&mut store, &name), "{name}");
    }
}

/// A value of so many bytes, in blocks.
fn put_long(store: &mut Store, name: &str, bytes: usize) {
    let blocks = Blocks::of(&vec![b'v'; bytes]);
    let put = Change::PutBlocks { blocks: &blocks, staged: None, expiry: Expiry::Clear };
    with_key(store, name, |store, key| store.apply(key, &put).map(|_| ())).expect("far from full");
}

/// Asks for room until there is some, as a request does that is put off; how often. What `before_each` does comes in between.
fn room_in_calls(store: &mut Store, bytes: usize, mut before_each: impl FnMut(&mut Store, usize)) -> usize {
    for call in 1..200 {
        before_each(store, call);
        let before = store.garbage_bytes();
        let room = store.make_room(bytes);
        let given_back = before.saturating_sub(store.garbage_bytes());
        assert!(given_back <= GIVEN_BACK_BYTES_MAX + BLOCK_BYTES, "{given_back} bytes in one call");
        if room == Room::Enough {
            return call;
        }
        assert_eq!(room, Room::Later);
    }
    panic!("it is put off for ever, with {} bytes to give back", store.garbage_bytes());
}

#[test]
fn memory_of_long_values_is_given_back_in_steps_also_for_who_needs_it_now() {
    const LONG: usize = 40 << 20;
    let limit_bytes = 64 << 20;
    for gone in ["removed", "overwritten", "evicted", "cleared"] {
        let mut store = store_with(limit_bytes, policy(false, Order::Lru));
        put_long(&mut store, "long", LONG);
        match gone {
            "removed" => {
                with_key(&mut store, "long", |store, key| store.apply(key, &Change::Remove).map(|_| ()).unwrap())
            }
            "overwritten" => keep(&mut store, "long", b"short"),
            "cleared" => store.clear(None),
            _ => {}
        }
        let calls = room_in_calls(&mut store, LONG, |_, _| {});
        assert!(calls > 2, "{gone}: in {calls} calls");
        // What is taken with the new value stays within the limit, also what is not given back yet.
        assert!(store.memory_bytes() + LONG <= limit_bytes, "{gone}: {} bytes", store.memory_bytes());
        put_long(&mut store, "other", LONG);
        assert!(store.memory_bytes() <= limit_bytes, "{gone}: {} bytes", store.memory_bytes());
        check_sums(&store);
        // The rest goes, and is counted once.
        let mut left = store.garbage_bytes();
        while store.has_garbage() {
            store.lazy_free_step(2 << 20);
            let now = store.garbage_bytes();
            assert!(now < left && left - now <= (2 << 20) + BLOCK_BYTES, "{gone}: from {left} to {now}");
            left = now;
        }
        assert_eq!((left, store.memory_bytes()), (0, store.count_bytes().total), "{gone}");
    }
}

#[test]
fn what_is_cleared_while_memory_is_given_back_is_given_back_as_well() {
    const LONG: usize = 24 << 20;
    let mut store = store_with(64 << 20, policy(false, Order::Lru));
    put_long(&mut store, "first", LONG);
    put_long(&mut store, "second", LONG);
    with_key(&mut store, "first", |store, key| store.apply(key, &Change::Remove).map(|_| ()).unwrap());
    let calls = room_in_calls(&mut store, LONG, |store, call| {
        if call == 2 {
            let before = store.garbage_bytes();
            store.clear(None);
            assert!(store.garbage_bytes() >= before + LONG, "a clear loses what is to be given back");
        }
    });
    assert!(calls > 2, "{calls} calls");
    let mut given_back = 0;
    while store.has_garbage() {
        let before = store.garbage_bytes();
        store.lazy_free_step(1 << 20);
        given_back += before - store.garbage_bytes();
    }
    assert!(given_back > 0 && store.memory_bytes() == store.count_bytes().total);
}

fn version(store: &mut Store, name: &str) -> base::Version {
    with_key(store, name, |store, key| store.version(key, 0))
}

/// Asks for room until that is there or refused, as a writer does tick after tick.
fn room_in_the_end(store: &mut Store, bytes: usize) -> Room {
    (0..10_000).map(|_| store.make_room(bytes)).find(|room| *room != Room::Later).expect("an end")
}

/// Whole groups, and every second slot of others, are of another node, which says what goes there.
#[test]
fn what_another_node_serves_is_not_evicted_here() {
    for policy in [policy(false, Order::Lru), policy(false, Order::Lfu), policy(false, Order::Random)] {
        let mut store = store_with(LIMIT, policy);
        let names: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
        names.iter().for_each(|name| keep(&mut store, name, &[b'v'; 100]));
        assert_eq!(store.evicted(), 0);
        let words = |index: usize| if index < 128 { u64::MAX } else { 0xaaaa_aaaa_aaaa_aaaa };
        let is_followed = |slot: Slot| words(usize::from(slot.number()) / 64) >> (slot.number() % 64) & 1 == 1;
        store.set_followed(words);
        let is_other = |store: &Store, name: &str| is_followed(key_of(store, name.as_bytes()).0);
        let others: Vec<&String> = names.iter().filter(|name| is_other(&store, name)).collect();
        let before: Vec<_> = others.iter().map(|name| version(&mut store, name)).collect();
        let limit = |bytes| Some(MemoryLimit { bytes, policy, tiers: false });
        store.set_memory_limit(limit(store.memory_bytes() * 9 / 10));
        assert_eq!(room_in_the_end(&mut store, 0), Room::Enough);
        assert!(store.evicted() > 500 && store.evicted() < 5_000, "{}", store.evicted());
        store.set_memory_limit(limit(1 << 20));
        assert_eq!(room_in_the_end(&mut store, 0), Room::Refused);
        assert_eq!(store.evicted() as usize, names.len() - others.len(), "all that are its own");
        assert_eq!(store.make_room(100), Room::Refused, "the next one does not look for long");
        let after: Vec<_> = others.iter().map(|name| version(&mut store, name)).collect();
        assert_eq!(before, after);
        // There is room again, and another own key: with the next limit it goes, though all looks before were in vain.
        store.set_memory_limit(limit(LIMIT));
        let own = names.iter().find(|name| !is_other(&store, name)).expect("half are");
        assert_eq!(put(&mut store, own, &[b'v'; 100], Expiry::Clear), Room::Enough);
        store.set_memory_limit(limit(1 << 20));
        let evicted = store.evicted();
        assert_eq!((room_in_the_end(&mut store, 0), store.evicted()), (Room::Refused, evicted + 1));
        store.set_followed(|_| 0);
        assert_ne!(store.make_room(100), Room::Refused, "they may go from now on");
        let enough = (0..200).filter(|_| store.make_room(100) == Room::Enough).count();
        assert!(enough > 0, "who frees what it takes makes nothing worse");
        assert!(store.evicted() as usize > names.len() - others.len() + 100, "they are its own now");
    }
}

/// Only keys of crowded slots take memory of their copies' nodes, so only they go for what comes there.
#[test]
fn for_copies_without_room_keys_of_their_slots_go() {
    let mut store = store_with(LIMIT, policy(false, Order::Lru));
    let names: Vec<String> = (0..10_000).map(|number| format!("{number}")).collect();
    names.iter().for_each(|name| keep(&mut store, name, &[b'v'; 100]));
    assert!(!store.has_crowd());
    // Every fourth slot.
    store.set_crowded(|_| 0x1111_1111_1111_1111);
    let crowded: Vec<bool> = names.iter().map(|name| store.is_crowded(key_of(&store, name.as_bytes()).0)).collect();
    let count = |of: bool| crowded.iter().filter(|is_crowded| **is_crowded == of).count();
    assert!((2_000..3_000).contains(&count(true)), "{}", count(true));
    let before = store.live_bytes();
    for _ in 0..100 {
        assert_eq!([store.make_room_in_copies(1_000), store.make_room_in_copies(1_000)], [Room::Enough; 2]);
        store.take_room_in_copies(1_000);
    }
    let freed = before - store.live_bytes();
    assert!((112_500..125_000).contains(&freed), "{freed} bytes for 100,000");
    let is_there: Vec<bool> = names.iter().map(|name| has(&mut store, name)).collect();
    let gone = is_there.iter().filter(|is_there| !**is_there).count();
    assert!(gone > 500 && crowded.iter().zip(&is_there).all(|(is_crowded, is_there)| *is_crowded || *is_there));

    // More than one call gives: what went counts for the next one.
    let calls = (0..).take_while(|_| store.make_room_in_copies(200_000) == Room::Later).count();
    assert!(calls < 10, "{calls} calls");
    store.take_room_in_copies(200_000);
    while store.make_room_in_copies(1_000) != Room::Refused {
        store.take_room_in_copies(1_000);
    }
    assert_eq!(keys(&store), count(false) as u64, "all of them, and nobody else");
    store.set_crowded(|_| 0);
    assert!(!store.has_crowd() && !store.is_crowded(Slot::wrapping(0)));
}

#[test]
fn where_nobody_may_go_copies_get_no_room() {
    for policy in [None, policy(true, Order::Soonest)] {
        let mut store = store_with(LIMIT, policy);
        (0..100).for_each(|number| keep(&mut store, &format!("{number}"), &[b'v'; 100]));
        store.set_crowded(|_| u64::MAX);
        let refused = (0..1_000).any(|_| store.make_room_in_copies(100) == Room::Refused);
        assert!(refused && keys(&store) == 100);
    }
}

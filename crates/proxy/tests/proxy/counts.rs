//! What a core counts, before a store that answers when the test lets it.

use crate::store::{Session, Store};
use crate::street::Street;
use base::ConnectionId;
use proxy::{Class, ClassNumber, Classes, Qos};

struct World {
    street: Street,
    store: Store,
    session: Session,
    /// What was asked and is not answered.
    kept: Vec<(ConnectionId, Vec<u8>)>,
}

impl World {
    /// Listener 1 is that of class `fast`, of 5 ms.
    fn new() -> World {
        let fast = Class { name: "fast".to_owned(), qos: Qos::Within { us: 5000 }, weight: 2, ..Class::default() };
        let all = vec![Class::default(), fast];
        let classes = Classes { all, of_listeners: vec![None, Some(ClassNumber(1))], ..Classes::default() };
        let (store, session) = (Store::default(), Session::default());
        World { street: Street::with_classes(classes), store, session, kept: Vec::new() }
    }

    fn hold(&mut self) {
        self.street.settle();
        for lane in self.street.upstream.clone() {
            let bytes = self.street.take(lane);
            self.kept.extend((!bytes.is_empty()).then_some((lane, bytes)));
        }
    }

    /// The store answers, until nothing is asked.
    fn answer(&mut self) {
        self.hold();
        while let Some((lane, bytes)) = self.kept.pop() {
            let replies = self.session.take(&mut self.store, &bytes);
            self.street.arrive(lane, &replies);
            self.hold();
        }
    }
}

const GET: &[u8] = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n";

#[test]
fn a_reply_that_is_later_than_wanted_is_counted_for_its_class_and_its_destination() {
    let mut world = World::new();
    let client = world.street.client_through(1);
    world.street.arrive(client, GET);
    world.answer();
    world.street.arrive(client, &GET.repeat(2));
    world.hold();
    world.street.pass(5001);
    let standing = world.street.standing();
    let [default, fast] = &standing.classes[..] else { panic!("two classes") };
    assert_eq!((default.callers, default.counts.requests, default.outstanding.requests), (0, 0, 0));
    assert_eq!((fast.callers, fast.callers_waiting, fast.class.name.as_str()), (1, 0, "fast"));
    assert_eq!((fast.counts.requests, fast.counts.request_bytes), (3, 3 * GET.len() as u64));
    assert_eq!((fast.counts.replies, fast.counts.reply_bytes, fast.counts.wanted, fast.counts.late), (1, 5, 1, 0));
    assert_eq!((fast.outstanding.requests, fast.outstanding.oldest_us), (2, 5001));
    let [store] = &standing.destinations[..] else { panic!("one store") };
    // The lane that asked the store who it is, and that of those in a hurry.
    assert_eq!((store.address.as_str(), store.open, store.down), ("store:6379", 2, 0));
    assert_eq!((store.outstanding.requests, store.outstanding.oldest_us), (2, 5001));
    assert_eq!((store.counts.requests, store.counts.requests_sent, store.counts.batches_sent), (3, 3, 2));
    assert_eq!((store.counts.replies, store.counts.batches_done, store.counts.connections), (1, 1, 2));

    let (lane, _) = world.kept.pop().unwrap();
    world.street.arrive(lane, b"$-1\r\n");
    world.street.settle();
    world.street.pass(1000);
    world.street.arrive(lane, b"$-1\r\n");
    world.street.settle();
    let standing = world.street.standing();
    let (fast, store) = (&standing.classes[1], &standing.destinations[0]);
    assert_eq!((fast.counts.replies, fast.counts.wanted, fast.counts.late), (3, 3, 2));
    assert_eq!(fast.counts.latency.sum_us, 5001 + 6001);
    assert_eq!((fast.outstanding.requests, fast.outstanding.oldest_us), (0, 0));
    assert_eq!((store.counts.batches_done, store.counts.first_reply_us, store.counts.done_us), (2, 5001, 6001));
}

#[test]
fn what_the_proxy_answers_itself_and_what_it_asks_again_are_counted_too() {
    let mut world = World::new();
    let client = world.street.client_through(0);
    world.street.arrive(client, b"ZH.QOS\r\n");
    world.street.arrive(client, GET);
    world.answer();
    world.street.arrive(client, GET);
    world.hold();
    let (lane, _) = world.kept.pop().unwrap();
    world.street.break_off(lane);
    world.street.settle();
    world.session = Session::default();
    world.answer();
    let standing = world.street.standing();
    let (default, store) = (&standing.classes[0], &standing.destinations[0]);
    assert_eq!((default.counts.requests, default.counts.replies, default.counts.wanted), (3, 3, 0));
    assert_eq!((store.retries, store.counts.connections, store.counts.requests_sent), (1, 2, 3));
    world.street.answers = false;
    world.street.break_off(*world.street.upstream.last().unwrap());
    world.street.arrive(client, GET);
    world.street.settle();
    let store = &world.street.standing().destinations[0];
    assert_eq!((store.open, store.down), (0, 1));
}

//! A reactor for clients and others for the store, with queues between them, as Netty's drivers of MongoDB, Cassandra and Redis are (type 2a
//! of the paper, whose default is one and two). A reactor of the store has a connection to each of its instances, on which the requests of
//! all clients follow each other; what it finds in its queue leaves in one write for each instance.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use rustix::event::epoll::EventFlags;

use super::gather::Gather;
use super::route::Route;
use super::sockets::{Client, Heard, Poller, Queue, READ_BYTES, StoreConnection, hear};

const LISTENER: u64 = u64::MAX;
const QUEUE: u64 = u64::MAX - 1;

/// A key that an instance is asked for.
struct Order {
    instance: usize,
    gather: Arc<Gather>,
    place: usize,
}

/// An answer for a client.
type Answer = (Arc<Client>, Vec<u8>);

/// Serves until the process ends, with `backs` reactors for the store.
pub fn serve(listener: TcpListener, route: Route, backs: usize) -> io::Result<Infallible> {
    let poller = Poller::new()?;
    let answers = Arc::new(Queue::new(&poller, QUEUE)?);
    let mut orders = Vec::new();
    for _ in 0..backs {
        let back_poller = Poller::new()?;
        let queue = Arc::new(Queue::new(&back_poller, QUEUE)?);
        orders.push(Pending { queue: Arc::clone(&queue), batch: Vec::new() });
        let back = Back { poller: back_poller, orders: queue, answers: Arc::clone(&answers), route };
        std::thread::spawn(move || super::end(back.work()));
    }
    poller.add(&listener, LISTENER, EventFlags::IN)?;
    let buffer = vec![0; READ_BYTES];
    Front { poller, listener, route, answers, orders, clients: HashMap::new(), next_number: 0, buffer }.work()
}

/// Orders of one turn for one reactor of the store.
struct Pending {
    queue: Arc<Queue<Order>>,
    batch: Vec<Order>,
}

struct Front {
    poller: Poller,
    listener: TcpListener,
    route: Route,
    answers: Arc<Queue<Answer>>,
    orders: Vec<Pending>,
    clients: HashMap<u64, Arc<Client>>,
    next_number: u64,
    buffer: Vec<u8>,
}

impl Front {
    fn work(mut self) -> io::Result<Infallible> {
        let (mut events, mut answers) = (Vec::new(), Vec::new());
        loop {
            self.poller.wait(&mut events)?;
            for event in &events {
                match event.data.u64() {
                    LISTENER => self.accept()?,
                    QUEUE => {
                        self.answers.take(&mut answers);
                        for (client, answer) in answers.drain(..) {
                            client.out.lock().expect("this thread alone writes").end().extend_from_slice(&answer);
                            self.flush(&client)?;
                        }
                    }
                    number => self.turn(number, event.flags)?,
                }
            }
            for Pending { queue, batch } in &mut self.orders {
                queue.hand(batch)?;
            }
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        let client = Client::new(self.next_number, self.listener.accept()?.0)?;
        self.poller.add(&client.socket, client.number, EventFlags::IN)?;
        self.clients.insert(client.number, client);
        self.next_number += 1;
        Ok(())
    }

    fn turn(&mut self, number: u64, flags: EventFlags) -> io::Result<()> {
        let Some(client) = self.clients.get(&number).map(Arc::clone) else { return Ok(()) };
        if flags.contains(EventFlags::OUT) {
            self.flush(&client)?;
        }
        let mut input = client.input.lock().expect("this thread alone reads");
        let is_over = matches!(hear(&client.socket, &mut input, &mut self.buffer), Heard::Ended);
        match Gather::take(&client, &mut input) {
            Ok(Some(gather)) if !is_over => self.order(&Arc::new(gather)),
            Ok(_) if !is_over => {}
            _ => {
                self.clients.remove(&number);
            }
        }
        Ok(())
    }

    fn order(&mut self, gather: &Arc<Gather>) {
        let backs = self.orders.len();
        for (place, key) in gather.keys().enumerate() {
            let instance = self.route.of(key);
            self.orders[instance % backs].batch.push(Order { instance, gather: Arc::clone(gather), place });
        }
    }

    /// Writes what the client takes, and looks for room for the rest.
    fn flush(&self, client: &Client) -> io::Result<()> {
        let mut out = client.out.lock().expect("this thread alone writes");
        // A client that is gone shows as one that ended.
        out.flush(&client.socket).ok();
        let interest = if out.is_empty() { EventFlags::IN } else { EventFlags::IN | EventFlags::OUT };
        if out.is_waiting == out.is_empty() {
            out.is_waiting = !out.is_empty();
            self.poller.change(&client.socket, client.number, interest)?;
        }
        Ok(())
    }
}

struct Back {
    poller: Poller,
    orders: Arc<Queue<Order>>,
    answers: Arc<Queue<Answer>>,
    route: Route,
}

impl Back {
    fn work(self) -> io::Result<Infallible> {
        let mut connections: Vec<Option<StoreConnection>> = (0..self.route.instances).map(|_| None).collect();
        let (mut events, mut orders, mut answers, mut touched) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut buffer = vec![0; READ_BYTES];
        loop {
            self.poller.wait(&mut events)?;
            for event in &events {
                if event.data.u64() == QUEUE {
                    self.orders.take(&mut orders);
                    for Order { instance, gather, place } in orders.drain(..) {
                        self.connected(&mut connections, instance)?.ask(gather, place);
                        touched.push(instance);
                    }
                    continue;
                }
                let instance = event.data.u64() as usize;
                let connection = self.connected(&mut connections, instance)?;
                connection.hear(&mut buffer, |client, answer| answers.push((Arc::clone(client), answer)))?;
            }
            touched.sort_unstable();
            touched.dedup();
            for instance in touched.drain(..) {
                // What is on its way to an instance is some kilobytes at most: a socket has room for it.
                let connection = self.connected(&mut connections, instance)?;
                connection.out.flush_whole(&connection.socket)?;
            }
            self.answers.hand(&mut answers)?;
        }
    }

    fn connected<'a>(
        &self,
        connections: &'a mut [Option<StoreConnection>],
        instance: usize,
    ) -> io::Result<&'a mut StoreConnection> {
        let slot = &mut connections[instance];
        if slot.is_none() {
            let connection = StoreConnection::new(self.route.connect(instance)?)?;
            self.poller.add(&connection.socket, instance as u64, EventFlags::IN)?;
            *slot = Some(connection);
        }
        Ok(slot.as_mut().expect("just connected"))
    }
}

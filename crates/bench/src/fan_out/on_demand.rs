//! A reactor that hands whatever is ready to workers, as many as are needed at once: Java's asynchronous channels and MongoDB's driver on
//! them (type 2b of the paper, "AIO"). The driver of the paper has a connection for each request that is on its way; here, to be kind, the
//! requests of all clients follow each other on one connection for each instance.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Condvar, Mutex};

use rustix::event::epoll::EventFlags;

use super::gather::Gather;
use super::route::Route;
use super::sockets::{Client, Heard, Poller, READ_BYTES, StoreConnection, hear};

const LISTENER: u64 = u64::MAX;
/// Instances are told from clients by their numbers.
const CLIENT: u64 = 1 << 32;
const WORKERS_MAX: usize = 64;

/// Serves until the process ends.
pub fn serve(listener: TcpListener, route: Route) -> io::Result<Infallible> {
    let poller = Poller::new()?;
    poller.add(&listener, LISTENER, EventFlags::IN)?;
    let mut instances = Vec::new();
    for instance in 0..route.instances {
        let connection = StoreConnection::new(route.connect(instance)?)?;
        poller.add(&connection.socket, instance as u64, EventFlags::IN | EventFlags::ONESHOT)?;
        instances.push(Mutex::new(connection));
    }
    let gateway = Arc::new(Gateway { poller, route, instances, clients: Mutex::default() });
    let workers = Arc::new(Workers::default());
    let (mut events, mut number) = (Vec::new(), CLIENT);
    loop {
        gateway.poller.wait(&mut events)?;
        for event in &events {
            if event.data.u64() != LISTENER {
                workers.hand(&gateway, event.data.u64())?;
                continue;
            }
            let client = Client::new(number, listener.accept()?.0)?;
            let mut clients = gateway.clients.lock().expect("no thread panics while it holds the lock");
            clients.insert(number, Arc::clone(&client));
            gateway.poller.add(&client.socket, number, EventFlags::IN | EventFlags::ONESHOT)?;
            number += 1;
        }
    }
}

/// What is ready and nobody works at, and how many could.
#[derive(Default)]
struct Ready {
    sources: VecDeque<u64>,
    idle: usize,
    workers: usize,
}

#[derive(Default)]
struct Workers {
    ready: Mutex<Ready>,
    some: Condvar,
}

impl Workers {
    /// Somebody is to see to this source: whoever is idle, or one more.
    fn hand(self: &Arc<Workers>, gateway: &Arc<Gateway>, source: u64) -> io::Result<()> {
        let mut ready = self.ready.lock().expect("no thread panics while it holds the lock");
        ready.sources.push_back(source);
        if ready.idle >= ready.sources.len() {
            self.some.notify_one();
        } else if ready.workers < WORKERS_MAX {
            ready.workers += 1;
            let (workers, gateway) = (Arc::clone(self), Arc::clone(gateway));
            std::thread::Builder::new().spawn(move || super::end(workers.work(&gateway)))?;
        }
        Ok(())
    }

    fn work(&self, gateway: &Gateway) -> io::Result<Infallible> {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let mut ready = self.ready.lock().expect("no thread panics while it holds the lock");
            let source = loop {
                match ready.sources.pop_front() {
                    Some(source) => break source,
                    None => {
                        ready.idle += 1;
                        ready = self.some.wait(ready).expect("no thread panics while it holds the lock");
                        ready.idle -= 1;
                    }
                }
            };
            drop(ready);
            gateway.turn(source, &mut buffer)?;
        }
    }
}

struct Gateway {
    poller: Poller,
    route: Route,
    instances: Vec<Mutex<StoreConnection>>,
    clients: Mutex<HashMap<u64, Arc<Client>>>,
}

impl Gateway {
    fn turn(&self, source: u64, buffer: &mut [u8]) -> io::Result<()> {
        if source < CLIENT {
            return self.hear_instance(source as usize, buffer);
        }
        let clients = self.clients.lock().expect("no thread panics while it holds the lock");
        let Some(client) = clients.get(&source).map(Arc::clone) else { return Ok(()) };
        drop(clients);
        let mut input = client.input.lock().expect("no thread panics while it holds the lock");
        let is_over = matches!(hear(&client.socket, &mut input, buffer), Heard::Ended);
        let Ok(Some(whole)) = Gather::take(&client, &mut input).map(|whole| (!is_over).then_some(whole)) else {
            self.clients.lock().expect("no thread panics while it holds the lock").remove(&source);
            return Ok(());
        };
        drop(input);
        if let Some(gather) = whole {
            self.ask(&Arc::new(gather))?;
        }
        self.flush(&client)
    }

    fn ask(&self, gather: &Arc<Gather>) -> io::Result<()> {
        let mut places = vec![Vec::new(); self.instances.len()];
        for (place, key) in gather.keys().enumerate() {
            places[self.route.of(key)].push(place);
        }
        for (instance, places) in places.into_iter().enumerate().filter(|(_, places)| !places.is_empty()) {
            let mut connection = self.instances[instance].lock().expect("no thread panics while it holds the lock");
            places.into_iter().for_each(|place| connection.ask(Arc::clone(gather), place));
            // What is on its way to an instance is some kilobytes at most: a socket has room for it.
            let StoreConnection { socket, out, .. } = &mut *connection;
            out.flush_whole(&*socket)?;
        }
        Ok(())
    }

    fn hear_instance(&self, instance: usize, buffer: &mut [u8]) -> io::Result<()> {
        let mut answers = Vec::new();
        let mut connection = self.instances[instance].lock().expect("no thread panics while it holds the lock");
        connection.hear(buffer, |client, answer| answers.push((Arc::clone(client), answer)))?;
        self.poller.change(&connection.socket, instance as u64, EventFlags::IN | EventFlags::ONESHOT)?;
        drop(connection);
        for (client, answer) in answers {
            client.out.lock().expect("no thread panics while it holds the lock").end().extend_from_slice(&answer);
            self.flush(&client)?;
        }
        Ok(())
    }

    /// Writes what the client takes, and waits for more of it, or for room for the rest.
    fn flush(&self, client: &Client) -> io::Result<()> {
        let mut out = client.out.lock().expect("no thread panics while it holds the lock");
        // A client that is gone shows as one that ended.
        out.flush(&client.socket).ok();
        let room = if out.is_empty() { EventFlags::empty() } else { EventFlags::OUT };
        self.poller.change(&client.socket, client.number, EventFlags::IN | EventFlags::ONESHOT | room)?;
        Ok(())
    }
}

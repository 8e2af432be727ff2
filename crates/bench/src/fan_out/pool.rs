//! An interface that seems asynchronous over a pool of workers that wait, as drivers of DynamoDB and HBase are (type 1 of the paper): a reactor
//! reads requests, and each worker carries out what one of them asks one instance. Who has the last reply writes the answer.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use rustix::event::epoll::EventFlags;

use super::gather::Gather;
use super::route::{Route, append_get};
use super::sockets::{Client, Heard, Poller, READ_BYTES, hear};
use super::threads::read_values;

/// Each has a connection to each instance. With fewer the store is idle at 64 clients, with more the processor has more to switch.
const WORKERS: usize = 32;
const WORKER_READ_BYTES: usize = 64 << 10;
const LISTENER: u64 = u64::MAX;

/// What a request asks one instance: the places of its keys.
struct Job {
    gather: Arc<Gather>,
    instance: usize,
    places: Vec<usize>,
}

#[derive(Default)]
struct Jobs {
    waiting: Mutex<VecDeque<Job>>,
    some: Condvar,
}

/// Serves until the process ends.
pub fn serve(listener: TcpListener, route: Route) -> io::Result<Infallible> {
    let jobs = Arc::new(Jobs::default());
    for _ in 0..WORKERS {
        let jobs = Arc::clone(&jobs);
        std::thread::spawn(move || super::end(work(&jobs, route)));
    }
    let poller = Poller::new()?;
    poller.add(&listener, LISTENER, EventFlags::IN)?;
    let mut clients: HashMap<u64, Arc<Client>> = HashMap::new();
    let (mut events, mut buffer, mut number) = (Vec::new(), vec![0; READ_BYTES], 0);
    loop {
        poller.wait(&mut events)?;
        for event in &events {
            if event.data.u64() == LISTENER {
                let client = Client::new(number, listener.accept()?.0)?;
                poller.add(&client.socket, number, EventFlags::IN)?;
                clients.insert(number, client);
                number += 1;
                continue;
            }
            let client = &clients[&event.data.u64()];
            if !request(client, route, &jobs, &mut buffer) {
                clients.remove(&event.data.u64());
            }
        }
    }
}

/// Reads from a client; whether it goes on.
fn request(client: &Arc<Client>, route: Route, jobs: &Jobs, buffer: &mut [u8]) -> bool {
    let mut input = client.input.lock().expect("no thread panics while it holds the lock");
    if matches!(hear(&client.socket, &mut input, buffer), Heard::Ended) {
        return false;
    }
    let Ok(whole) = Gather::take(client, &mut input) else { return false };
    let Some(gather) = whole.map(Arc::new) else { return true };
    let mut places = vec![Vec::new(); route.instances];
    for (place, key) in gather.keys().enumerate() {
        places[route.of(key)].push(place);
    }
    let mut waiting = jobs.waiting.lock().expect("no thread panics while it holds the lock");
    for (instance, places) in places.into_iter().enumerate().filter(|(_, places)| !places.is_empty()) {
        waiting.push_back(Job { gather: Arc::clone(&gather), instance, places });
        jobs.some.notify_one();
    }
    true
}

/// One job after the other.
fn work(jobs: &Jobs, route: Route) -> io::Result<Infallible> {
    let mut instances: Vec<Option<TcpStream>> = (0..route.instances).map(|_| None).collect();
    let mut buffer = vec![0; WORKER_READ_BYTES];
    loop {
        let waiting = jobs.waiting.lock().expect("no thread panics while it holds the lock");
        let mut waiting = jobs
            .some
            .wait_while(waiting, |waiting| waiting.is_empty())
            .expect("no thread panics while it holds the lock");
        let Job { gather, instance, places } = waiting.pop_front().expect("it was waited for");
        drop(waiting);
        if instances[instance].is_none() {
            instances[instance] = Some(route.connect(instance)?);
        }
        let socket = instances[instance].as_mut().expect("just connected");
        let mut requests = Vec::new();
        places.iter().for_each(|place| append_get(gather.key(*place), &mut requests));
        socket.write_all(&requests)?;
        let mut whole = None;
        read_values(socket, &mut buffer, &places, |place, value| whole = gather.fill(place, value).or(whole.take()))?;
        if let Some(answer) = whole {
            let mut out = gather.client.out.lock().expect("no thread panics while it holds the lock");
            out.end().extend_from_slice(&answer);
            // A client that is gone is the reactor's to notice.
            out.flush_whole(&gather.client.socket).ok();
        }
    }
}

//! The least machine on the street: answers every 35 bytes (a GET of a 15-byte key) with the same 140 bytes. What it costs
//! above the null server of `bench` is what the street costs.
//!
//! `fixed_reply epoll|uring [deferred|cooperative] [loud] [PORT]`

use base::street::{Door, Effect, Event, Machine, TickInput, TickOutput};
use io::{ChosenBackend, CoreConfig, Listener, TaskWork, mesh, run_core};

const REQUEST_BYTES: usize = 35;

#[derive(Default)]
struct Client {
    owed_bytes: usize,
    sending: bool,
    dirty: bool,
}

struct FixedReply {
    reply: Vec<u8>,
    clients: Vec<Client>,
    dirty: Vec<base::ids::ConnectionId>,
    spare: Vec<Vec<u8>>,
    quiet: bool,
}

impl FixedReply {
    fn event(&mut self, event: Event, effects: &mut Vec<Effect>) {
        match event {
            Event::Accepted { connection, .. } => {
                let index = connection.index as usize;
                self.clients.resize_with(self.clients.len().max(index + 1), Client::default);
                self.clients[index] = Client::default();
            }
            Event::Received { connection, span } => {
                let client = &mut self.clients[connection.index as usize];
                client.owed_bytes += span.len as usize;
                if !client.dirty {
                    client.dirty = true;
                    self.dirty.push(connection);
                }
            }
            Event::SendDone { connection, mut buffer } => {
                buffer.clear();
                self.spare.push(buffer);
                let client = &mut self.clients[connection.index as usize];
                client.sending = false;
                if client.owed_bytes >= REQUEST_BYTES && !client.dirty {
                    client.dirty = true;
                    self.dirty.push(connection);
                }
            }
            Event::PeerClosed { connection } => effects.push(Effect::Close { connection }),
            Event::ShutdownRequested => effects.push(Effect::Stop),
            _ => {}
        }
    }
}

impl Machine for FixedReply {
    type Message = ();

    fn tick(&mut self, input: TickInput<'_, ()>, output: &mut TickOutput<()>) {
        for event in input.events.drain(..) {
            self.event(event, &mut output.effects);
        }
        output.quiet_completions = self.quiet;
        for connection in self.dirty.drain(..) {
            let client = &mut self.clients[connection.index as usize];
            client.dirty = false;
            if client.sending {
                continue;
            }
            let mut buffer = self.spare.pop().unwrap_or_default();
            for _ in 0..client.owed_bytes / REQUEST_BYTES {
                buffer.extend_from_slice(&self.reply);
            }
            client.owed_bytes %= REQUEST_BYTES;
            if buffer.is_empty() {
                self.spare.push(buffer);
            } else {
                client.sending = true;
                output.effects.push(Effect::Send { connection, buffer });
            }
        }
    }
}

fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|given| given == word);
    let backend = if has("uring") { ChosenBackend::Uring } else { ChosenBackend::Epoll };
    let port: u16 = words.iter().find_map(|word| word.parse().ok()).unwrap_or(0);
    let listener = Listener::tcp(([127, 0, 0, 1], port).into(), Door::Standalone, false)?;
    let address = listener.address().expect("a TCP listener has an address");
    println!("listening on {address}");
    let mut config = CoreConfig::new(backend, vec![listener]);
    if has("cooperative") {
        config.task_work = TaskWork::Cooperative;
    }
    let machine = FixedReply {
        reply: [b"$132\r\n".as_slice(), &[b'x'; 132], b"\r\n"].concat(),
        clients: Vec::new(),
        dirty: Vec::new(),
        spare: Vec::new(),
        quiet: !has("loud"),
    };
    let (mut mailboxes, _handle) = mesh(1)?;
    run_core(config, machine, mailboxes.remove(0)).map(drop)
}

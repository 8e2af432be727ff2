//! Connections between clients and cores: bytes that travel, pause, break and close.

use base::{ConnectionId, Door, Entrance, Event, Span};

use super::{Happening, Item, Street};
use crate::faults::Fault;
use crate::network::{Connection, Socket, next_segment};
use crate::node::Node;

impl<N: Node> Street<N> {
    /// A client connects.
    pub fn connect(&mut self, core: u16, door: Door, slowness: u64) -> Socket {
        let socket = Socket(self.connections.len());
        let id = self.cores[usize::from(core)].ids.take();
        self.connections.push(Connection::new(id, core, door, self.boot, slowness));
        self.trace.note(self.agenda.now_us(), "connect", &[u64::from(core), socket.0 as u64], &[]);
        let port = if door == Door::Standalone { 7000 } else { self.node.cluster_port(core) };
        let (peer, local) = (format!("127.0.0.1:{}", 20_000 + socket.0), format!("127.0.0.1:{port}"));
        self.tell(core, Event::Accepted { connection: id, door, entrance: Entrance::default(), peer, local });
        socket
    }

    /// A client writes.
    pub fn write(&mut self, socket: Socket, bytes: &[u8]) {
        let connection = &mut self.connections[socket.0];
        assert!(!connection.half_closed, "a client that closed writes no more");
        self.trace.note(self.agenda.now_us(), "request", &[socket.0 as u64], bytes);
        connection.to_server.extend(bytes);
        self.plan_to_server(socket);
    }

    /// A client writes no more and reads on.
    pub fn half_close(&mut self, socket: Socket) {
        self.faults.fired(Fault::HalfClose);
        self.end_of_peer(socket);
    }

    /// The other end of a connection between nodes says no more.
    pub fn end_of_peer(&mut self, socket: Socket) {
        self.connections[socket.0].half_closed = true;
        self.plan_to_server(socket);
    }

    /// A client breaks the connection; bytes under way are lost.
    pub fn reset(&mut self, socket: Socket) {
        self.connections[socket.0].dead_for_client = true;
        self.trace.note(self.agenda.now_us(), "reset", &[socket.0 as u64], &[]);
        if !self.is_outlived(socket) {
            self.close_for_server(socket);
        }
    }

    pub(super) fn plan_to_server(&mut self, socket: Socket) {
        let connection = &mut self.connections[socket.0];
        if !connection.server_planned && !connection.paused && !connection.dead_for_server {
            connection.server_planned = true;
            let delay_us = self.chance_us(self.weather.network_us_max);
            self.after(delay_us, Item::ToServer(socket));
        }
    }

    pub(super) fn deliver_to_server(&mut self, socket: Socket) {
        let connection = &mut self.connections[socket.0];
        connection.server_planned = false;
        if connection.paused || connection.dead_for_server {
            return;
        }
        let (core, id) = (connection.core, connection.id);
        let bytes = next_segment(&mut connection.to_server, self.weather.whole_segments_of_8, &mut self.rng);
        let place = &mut self.cores[usize::from(core)];
        if !bytes.is_empty() {
            let span = Span { start: place.received.len() as u32, len: bytes.len() as u32 };
            place.received.extend_from_slice(&bytes);
            self.tell(core, Event::Received { connection: id, span });
        }
        let connection = &mut self.connections[socket.0];
        if !connection.to_server.is_empty() {
            self.plan_to_server(socket);
        } else if connection.half_closed && !connection.told_half_closed {
            connection.told_half_closed = true;
            self.tell(core, Event::PeerClosed { connection: id });
        }
    }

    pub(crate) fn pause(&mut self, core: u16, id: ConnectionId, paused: bool) {
        if let Some(socket) = self.socket_of(core, id) {
            self.connections[socket.0].paused = paused;
            if !paused {
                self.plan_to_server(socket);
            }
        }
    }

    /// The client's name for a connection that is alive for the server.
    pub(crate) fn socket_of(&self, core: u16, id: ConnectionId) -> Option<Socket> {
        let found = self
            .connections
            .iter()
            .rposition(|connection| connection.boot == self.boot && connection.core == core && connection.id == id)?;
        (!self.connections[found].dead_for_server).then_some(Socket(found))
    }

    /// Whether something that the node sent has not come to the client.
    pub(crate) fn has_bytes_for_client(&self, socket: Socket) -> bool {
        !self.connections[socket.0].to_client.is_empty()
    }

    pub(crate) fn plan_to_client(&mut self, socket: Socket) {
        let connection = &mut self.connections[socket.0];
        if !connection.client_planned && !connection.dead_for_client {
            connection.client_planned = true;
            let slowness = connection.slowness;
            let delay_us = self.chance_us(self.weather.network_us_max * slowness);
            self.after(delay_us, Item::ToClient(socket));
        }
    }

    pub(super) fn deliver_to_client(&mut self, socket: Socket) -> Happening {
        let connection = &mut self.connections[socket.0];
        connection.client_planned = false;
        if connection.dead_for_client {
            return Happening::Quiet;
        }
        let bytes = next_segment(&mut connection.to_client, self.weather.whole_segments_of_8, &mut self.rng);
        if connection.to_client.is_empty() {
            self.send_done(socket);
        }
        let connection = &mut self.connections[socket.0];
        if bytes.is_empty() && connection.dead_for_server {
            connection.dead_for_client = true;
            return Happening::Gone(socket);
        }
        if !connection.to_client.is_empty() || connection.dead_for_server {
            self.plan_to_client(socket);
        }
        if bytes.is_empty() {
            return Happening::Quiet;
        }
        self.trace.note(self.agenda.now_us(), "reply", &[socket.0 as u64], &bytes);
        Happening::Received(socket, bytes)
    }

    pub(super) fn send_done(&mut self, socket: Socket) {
        let connection = &mut self.connections[socket.0];
        let Some(buffer) = connection.sending.take() else { return };
        if connection.dead_for_server {
            return;
        }
        let (core, id, closing) = (connection.core, connection.id, connection.closing);
        self.tell(core, Event::SendDone { connection: id, buffer });
        if closing {
            self.close_for_server(socket);
        }
    }

    /// The connection is gone for the machine; the client still gets what is under way unless it broke it itself.
    pub(crate) fn close_for_server(&mut self, socket: Socket) {
        let connection = &mut self.connections[socket.0];
        if connection.dead_for_server {
            return;
        }
        connection.dead_for_server = true;
        let (core, id) = (connection.core, connection.id);
        self.cores[usize::from(core)].ids.release(id);
        self.tell(core, Event::Closed { connection: id });
        self.plan_to_client(socket);
    }
}

//! The clients, each as its own manual has it for many callers.

use crate::crowd::{Awaited, Blocking};
use fred::interfaces::{ClientLike, KeysInterface};
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, Commands};
use std::sync::Mutex;
use tokio::runtime::Handle;

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

const MISSING: &str = "a key is missing";

fn length(value: Option<Vec<u8>>) -> Result<usize, String> {
    value.map(|value| value.len()).ok_or_else(|| MISSING.to_owned())
}

/// Ours: handles share one connection.
pub struct Zerohop(zerohop::Client);

impl Zerohop {
    pub fn open(port: u16) -> Result<Zerohop, String> {
        zerohop::Client::open(&format!("127.0.0.1:{port}")).map(Zerohop).map_err(text)
    }
}

impl Awaited for Zerohop {
    async fn get(&self, _: usize, key: &str) -> Result<usize, String> {
        length(self.0.get(key).await.map_err(text)?)
    }

    async fn set(&self, _: usize, key: &str, value: &[u8]) -> Result<(), String> {
        self.0.set(key, value).await.map_err(text)
    }
}

impl Blocking for Zerohop {
    fn get(&self, _: usize, key: &str) -> Result<usize, String> {
        length(self.0.get(key).wait().map_err(text)?)
    }

    fn set(&self, _: usize, key: &str, value: &[u8]) -> Result<(), String> {
        self.0.set(key, value).wait().map_err(text)
    }
}

fn redis(port: u16) -> Result<redis::Client, String> {
    redis::Client::open(format!("redis://127.0.0.1:{port}")).map_err(text)
}

/// redis-rs: one connection that callers clone. Threads block on the runtime that drives it.
pub struct Multiplexed {
    connection: MultiplexedConnection,
    handle: Handle,
}

impl Multiplexed {
    pub fn open(handle: &Handle, port: u16) -> Result<Multiplexed, String> {
        let client = redis(port)?;
        let connection = handle.block_on(client.get_multiplexed_async_connection()).map_err(text)?;
        Ok(Multiplexed { connection, handle: handle.clone() })
    }
}

impl Awaited for Multiplexed {
    async fn get(&self, _: usize, key: &str) -> Result<usize, String> {
        length(self.connection.clone().get(key).await.map_err(text)?)
    }

    async fn set(&self, _: usize, key: &str, value: &[u8]) -> Result<(), String> {
        self.connection.clone().set(key, value).await.map_err(text)
    }
}

impl Blocking for Multiplexed {
    fn get(&self, caller: usize, key: &str) -> Result<usize, String> {
        self.handle.block_on(Awaited::get(self, caller, key))
    }

    fn set(&self, caller: usize, key: &str, value: &[u8]) -> Result<(), String> {
        self.handle.block_on(Awaited::set(self, caller, key, value))
    }
}

/// redis-rs: a connection for each task.
pub struct Pooled(Vec<MultiplexedConnection>);

impl Pooled {
    pub fn open(handle: &Handle, port: u16, count: usize) -> Result<Pooled, String> {
        let client = redis(port)?;
        let open = |_| handle.block_on(client.get_multiplexed_async_connection()).map_err(text);
        (0..count).map(open).collect::<Result<_, _>>().map(Pooled)
    }
}

impl Awaited for Pooled {
    async fn get(&self, caller: usize, key: &str) -> Result<usize, String> {
        length(self.0[caller].clone().get(key).await.map_err(text)?)
    }

    async fn set(&self, caller: usize, key: &str, value: &[u8]) -> Result<(), String> {
        self.0[caller].clone().set(key, value).await.map_err(text)
    }
}

/// redis-rs: a blocking connection for each thread, whose lock nobody else takes.
pub struct PooledThreads(Vec<Mutex<redis::Connection>>);

impl PooledThreads {
    pub fn open(port: u16, count: usize) -> Result<PooledThreads, String> {
        let client = redis(port)?;
        let open = |_| client.get_connection().map(Mutex::new).map_err(text);
        (0..count).map(open).collect::<Result<_, _>>().map(PooledThreads)
    }
}

impl Blocking for PooledThreads {
    fn get(&self, caller: usize, key: &str) -> Result<usize, String> {
        let mut connection = self.0[caller].lock().map_err(text)?;
        length(connection.get(key).map_err(text)?)
    }

    fn set(&self, caller: usize, key: &str, value: &[u8]) -> Result<(), String> {
        let mut connection = self.0[caller].lock().map_err(text)?;
        connection.set(key, value).map_err(text)
    }
}

/// fred: one client for all, which pipelines by itself.
pub struct Fred {
    client: fred::clients::Client,
    handle: Handle,
}

impl Fred {
    pub fn open(handle: &Handle, port: u16) -> Result<Fred, String> {
        let config = fred::types::config::Config::from_url(&format!("redis://127.0.0.1:{port}")).map_err(text)?;
        let client = fred::types::Builder::from_config(config).build().map_err(text)?;
        handle.block_on(client.init()).map_err(text)?;
        Ok(Fred { client, handle: handle.clone() })
    }
}

impl Awaited for Fred {
    async fn get(&self, _: usize, key: &str) -> Result<usize, String> {
        // Its own bytes, which are shared and not copied.
        let value: Option<fred::bytes::Bytes> = self.client.get(key).await.map_err(text)?;
        value.map(|value| value.len()).ok_or_else(|| MISSING.to_owned())
    }

    async fn set(&self, _: usize, key: &str, value: &[u8]) -> Result<(), String> {
        self.client.set(key, value, None, None, false).await.map_err(text)
    }
}

impl Blocking for Fred {
    fn get(&self, caller: usize, key: &str) -> Result<usize, String> {
        self.handle.block_on(Awaited::get(self, caller, key))
    }

    fn set(&self, caller: usize, key: &str, value: &[u8]) -> Result<(), String> {
        self.handle.block_on(Awaited::set(self, caller, key, value))
    }
}

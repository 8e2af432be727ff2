//! redis-rs as a plain and as a cluster client: the script every client test follows.

use std::fmt::Debug;
use std::process::ExitCode;

use redis::cluster::ClusterClient;
use redis::{Commands, ConnectionLike, IntoConnectionInfo, ProtocolVersion, RedisResult};

/// Counts and names what held and what did not.
#[derive(Default)]
struct Checks {
    passed: u32,
    failed: u32,
}

impl Checks {
    fn equal<T: Debug + PartialEq>(&mut self, what: &str, actual: RedisResult<T>, expected: T) {
        if actual.as_ref().is_ok_and(|actual| *actual == expected) {
            self.passed += 1;
        } else {
            self.failed += 1;
            println!("FAILED {what}: expected {expected:?}, got {actual:?}");
        }
    }

    fn finish(&mut self, name: &str, result: RedisResult<()>) {
        if let Err(error) = result {
            self.failed += 1;
            println!("FAILED {name}: {error}");
        }
    }
}

/// What plain and cluster clients have in common; `key` makes names in one slot.
fn script<C: ConnectionLike>(checks: &mut Checks, name: &str, client: &mut C, key: &dyn Fn(&str) -> String) {
    let what = |operation: &str| format!("{name} {operation}");
    checks.equal(&what("set"), client.set(key("s"), "a\r\nb"), "OK".to_string());
    checks.equal(&what("get"), client.get(key("s")), "a\r\nb".to_string());
    checks.equal(&what("missing"), client.get(key("none")), None::<String>);
    checks.equal(&what("append"), client.append(key("s"), "c"), 5);
    checks.equal(&what("incr"), client.incr(key("n"), 42), 42);
    checks.equal(&what("rpush"), client.rpush(key("l"), &["a", "b", "c"]), 3);
    checks.equal(&what("lrange"), client.lrange(key("l"), 0, -1), vec!["a".to_string(), "b".into(), "c".into()]);
    checks.equal(&what("blpop"), client.blpop(key("l"), 1.0), (key("l"), "a".to_string()));
    checks.equal(&what("expire"), client.expire(key("s"), 1000), true);
    checks.equal(&what("ttl"), client.ttl(key("s")).map(|ttl: i64| (990..=1000).contains(&ttl)), true);
    checks.equal(&what("mset"), client.mset(&[(key("a"), "1"), (key("b"), "2")]), "OK".to_string());
    let values = client.mget(&[key("a"), key("none"), key("b")]);
    checks.equal(&what("mget"), values, vec![Some("1".to_string()), None, Some("2".into())]);
    let refused: RedisResult<i64> = client.incr(key("l"), 1);
    checks.equal(&what("wrong type"), Ok(refused.is_err_and(|error| error.code() == Some("WRONGTYPE"))), true);
    checks.equal(&what("delete"), client.del(&[key("a"), key("b"), key("none")]), 2);
}

fn plain(checks: &mut Checks, name: &str, host: &str, port: u16, protocol: ProtocolVersion) -> RedisResult<()> {
    let info = (host, port).into_connection_info()?;
    let settings = info.redis_settings().clone().set_protocol(protocol);
    let client = redis::Client::open(info.set_redis_settings(settings))?;
    let mut connection = client.get_connection()?;
    let tag = format!("rust-{}-{name}", std::process::id());
    script(checks, name, &mut connection, &|part| format!("{tag}:{part}"));
    let mut pipeline = redis::pipe();
    for i in 0..100 {
        pipeline.set(format!("{tag}:p{i}"), i).ignore();
    }
    checks.equal(&format!("{name} pipeline"), pipeline.query(&mut connection), ());
    let found: Vec<String> = connection.scan_match(format!("{tag}:p*"))?.collect::<RedisResult<_>>()?;
    checks.equal(&format!("{name} scan"), Ok(found.len()), 100);
    let key = format!("{tag}:w");
    let counted: RedisResult<(i64,)> = redis::transaction(&mut connection, &[&key], |connection, pipe| {
        pipe.set(&key, 1).ignore().incr(&key, 1).query(connection)
    });
    checks.equal(&format!("{name} exec"), counted, (2,));
    let mut other = client.get_connection()?;
    redis::cmd("WATCH").arg(&key).exec(&mut connection)?;
    let _: () = other.set(&key, "changed elsewhere")?;
    let lost: RedisResult<Option<(String,)>> = redis::pipe().atomic().set(&key, "lost").query(&mut connection);
    checks.equal(&format!("{name} watch"), lost, None);
    Ok(())
}

fn cluster(checks: &mut Checks, name: &str, host: &str, port: u16, protocol: ProtocolVersion) -> RedisResult<()> {
    let client = ClusterClient::builder([(host, port)]).use_protocol(protocol).build()?;
    let mut connection = client.get_connection()?;
    let tag = format!("rust-{}-{name}", std::process::id());
    script(checks, name, &mut connection, &|part| format!("{{{tag}}}{part}"));
    let mut wrong = 0;
    for i in 0..500 {
        let key = format!("{tag}:{i}");
        let _: () = connection.set(&key, i)?;
        let value: i32 = connection.get(&key)?;
        wrong += i32::from(value != i);
    }
    checks.equal(&format!("{name} routing over 500 keys"), Ok(wrong), 0);
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, host, plain_port, cluster_port] = &arguments[..] else {
        eprintln!("usage: client HOST PORT CLUSTER-PORT");
        return ExitCode::FAILURE;
    };
    let port = |text: &str| text.parse().expect("a port is a number");
    let mut checks = Checks::default();
    for (version, protocol) in [("RESP2", ProtocolVersion::RESP2), ("RESP3", ProtocolVersion::RESP3)] {
        let name = format!("redis-rs {version}");
        let result = plain(&mut checks, &name, host, port(plain_port), protocol);
        checks.finish(&name, result);
        let name = format!("redis-rs cluster {version}");
        let result = cluster(&mut checks, &name, host, port(cluster_port), protocol);
        checks.finish(&name, result);
    }
    println!("{} passed, {} failed", checks.passed, checks.failed);
    if checks.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

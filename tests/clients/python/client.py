"""redis-py and valkey-glide as plain and as cluster clients: the script every client test follows.

With a fourth argument, the file of an authority, redis-py alone, with TLS.
"""

import sys
import threading
import time
import uuid

import redis
from redis.cluster import RedisCluster


# What makes redis-py speak TLS, if it is to.
TLS = {}


class Checks:
    """Counts and names what held and what did not."""

    def __init__(self):
        self.passed = 0
        self.failed = 0

    def equal(self, what, actual, expected):
        if actual == expected:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {what}: expected {expected!r}, got {actual!r}")

    def true(self, what, condition):
        self.equal(what, bool(condition), True)

    def run(self, name, script, *arguments):
        try:
            script(self, name, *arguments)
        except Exception as error:  # a client that throws is one failed check, not the end of the run
            self.failed += 1
            print(f"FAILED {name}: {type(error).__name__}: {error}")


def strings_and_lists(checks, name, client, key):
    """What plain and cluster clients have in common; `key` makes names in one slot."""
    checks.equal(f"{name} set", client.set(key("s"), "a\r\nb"), True)
    checks.equal(f"{name} get", client.get(key("s")), b"a\r\nb")
    checks.equal(f"{name} append", client.append(key("s"), "c"), 5)
    checks.equal(f"{name} incr", [client.incr(key("n")), client.incrby(key("n"), 41)], [1, 42])
    checks.equal(f"{name} incrbyfloat", float(client.incrbyfloat(key("n"), 0.5)), 42.5)
    checks.equal(f"{name} set nx", client.set(key("s"), "x", nx=True), None)
    checks.equal(f"{name} set get", client.set(key("s"), "x", get=True), b"a\r\nbc")
    checks.equal(f"{name} rpush", client.rpush(key("l"), "a", "b", "c"), 3)
    checks.equal(f"{name} lrange", client.lrange(key("l"), 0, -1), [b"a", b"b", b"c"])
    checks.equal(f"{name} lmove", client.lmove(key("l"), key("l2"), "LEFT", "RIGHT"), b"a")
    checks.equal(f"{name} blpop", client.blpop([key("l2")], timeout=1)[1], b"a")
    checks.equal(f"{name} expire", client.expire(key("s"), 1000), True)
    checks.true(f"{name} ttl", 990 < client.ttl(key("s")) <= 1000)
    checks.equal(f"{name} pexpire past", client.pexpireat(key("n"), 1), True)
    checks.equal(f"{name} expired", client.exists(key("n")), 0)
    checks.equal(f"{name} mset", client.mset({key("a"): "1", key("b"): "2"}), True)
    checks.equal(f"{name} mget", client.mget(key("a"), key("none"), key("b")), [b"1", None, b"2"])
    checks.equal(f"{name} setbit", [client.setbit(key("bits"), 7, 1), client.bitcount(key("bits"))], [0, 1])
    checks.equal(f"{name} type", client.type(key("l")), b"list")
    try:
        client.incr(key("l"))
        checks.true(f"{name} wrong type", False)
    except redis.ResponseError as error:
        checks.true(f"{name} wrong type", "WRONGTYPE" in str(error))
    with client.pipeline(transaction=False) as pipe:
        for i in range(100):
            pipe.set(key(f"p{i}"), i)
        checks.equal(f"{name} pipeline", pipe.execute(), [True] * 100)
    checks.equal(f"{name} delete", client.delete(key("a"), key("b"), key("none")), 2)


def transactions(checks, name, client, key):
    with client.pipeline(transaction=True) as pipe:
        pipe.watch(key("w"))
        pipe.multi()
        pipe.set(key("w"), "1").incr(key("w"))
        checks.equal(f"{name} exec", pipe.execute(), [True, 2])
    with client.pipeline(transaction=True) as pipe:
        pipe.watch(key("w"))
        client.set(key("w"), "changed elsewhere")
        pipe.multi()
        pipe.set(key("w"), "lost")
        try:
            pipe.execute()
            checks.true(f"{name} watch", False)
        except redis.WatchError:
            checks.equal(f"{name} watch", client.get(key("w")), b"changed elsewhere")


def plain(checks, name, host, port, protocol):
    tag = uuid.uuid4().hex
    client = redis.Redis(**TLS, host=host, port=port, protocol=protocol)
    checks.true(f"{name} ping", client.ping())
    strings_and_lists(checks, name, client, lambda part: f"{tag}:{part}")
    transactions(checks, name, client, lambda part: f"{tag}:{part}")
    found = set(client.scan_iter(match=f"{tag}:p*", count=7))
    checks.equal(f"{name} scan", found, {f"{tag}:p{i}".encode() for i in range(100)})
    checks.equal(f"{name} info", client.info("server")["redis_mode"], "standalone")
    checks.true(f"{name} client id", client.client_id() > 0)
    other = redis.Redis(**TLS, host=host, port=port, protocol=protocol, db=3)
    checks.equal(f"{name} select", [other.set(f"{tag}:db", 3), client.get(f"{tag}:db")], [True, None])
    checks.equal(f"{name} move", other.move(f"{tag}:db", 0), True)
    checks.equal(f"{name} moved", client.get(f"{tag}:db"), b"3")
    for lock_key in client.scan_iter(match=f"{tag}:*"):
        client.delete(lock_key)


def blocking(checks, name, host, port, protocol):
    """Keys of whatever core, one client waiting for all of them."""
    tag = uuid.uuid4().hex
    lists = [f"{tag}:q{i}" for i in range(8)]
    client = redis.Redis(**TLS, host=host, port=port, protocol=protocol)

    def while_blocked(call, act):
        waiter = redis.Redis(**TLS, host=host, port=port, protocol=protocol, single_connection_client=True)
        number, found = waiter.client_id(), []

        def wait():
            try:
                found.append(call(waiter))
            except redis.ResponseError as error:
                found.append(str(error))

        thread = threading.Thread(target=wait)
        thread.start()
        blocks = lambda: any(int(one["id"]) == number and "b" in one["flags"] for one in client.client_list())
        while thread.is_alive() and not blocks():
            pass
        act(number)
        thread.join()
        return found[0]

    pair = lambda found: found and [bytes(part) for part in found]
    for at in (0, 7):
        found = while_blocked(lambda waiter: waiter.blpop(lists), lambda _: client.rpush(lists[at], "x"))
        checks.equal(f"{name} blpop over cores", pair(found), [lists[at].encode(), b"x"])
        checks.equal(f"{name} blpop takes it", client.exists(*lists), 0)
    for target in lists[1:]:
        found = while_blocked(lambda waiter: waiter.blmove(lists[0], target, 0), lambda _: client.rpush(lists[0], "y"))
        checks.equal(f"{name} blmove over cores", [found, client.lpop(target)], [b"y", b"y"])
    with client.pipeline(transaction=True) as pipe:
        for each in lists:
            pipe.rpush(each, "z")
        found = while_blocked(lambda waiter: waiter.brpop(lists), lambda _: pipe.execute())
    checks.equal(f"{name} exec pushes", [bytes(found[1]), sum(client.llen(each) for each in lists)], [b"z", 7])
    client.delete(*lists)
    client.rpush(f"{tag}:other", "r")
    found = while_blocked(lambda waiter: waiter.blpop(lists), lambda _: client.rename(f"{tag}:other", lists[5]))
    checks.equal(f"{name} rename", pair(found), [lists[5].encode(), b"r"])
    checks.equal(f"{name} blpop timeout", client.blpop(lists, timeout=0.01), None)
    checks.equal(f"{name} blmove timeout", client.blmove(lists[0], lists[1], 0.01), None)
    for wanted in (lists, lists[:1], lists[3:4]):
        call = lambda waiter: waiter.blpop(wanted)
        checks.equal(f"{name} unblock", while_blocked(call, lambda number: client.client_unblock(number)), None)
        found = while_blocked(call, lambda number: client.client_unblock(number, error=True))
        checks.true(f"{name} unblock by error", "unblocked" in str(found))
    checks.equal(f"{name} nobody took it", [client.rpush(lists[0], "k"), client.lpop(lists[0])], [1, b"k"])


def cluster(checks, name, host, port, protocol):
    tag = uuid.uuid4().hex
    client = RedisCluster(**TLS, host=host, port=port, protocol=protocol)
    checks.true(f"{name} nodes", len(client.get_primaries()) >= 1)
    strings_and_lists(checks, name, client, lambda part: f"{{{tag}}}{part}")
    wrong = [i for i in range(500) if not client.set(f"{tag}:{i}", i) or client.get(f"{tag}:{i}") != str(i).encode()]
    checks.equal(f"{name} routing over 500 keys", wrong, [])
    found = set(client.scan_iter(match=f"{tag}:*", count=50))
    checks.equal(f"{name} scan over all nodes", len(found), 500)
    values = client.mget_nonatomic([f"{tag}:{i}" for i in range(50)])
    checks.equal(f"{name} mget over slots", values, [str(i).encode() for i in range(50)])
    one_node = redis.Redis(**TLS, host=host, port=port, protocol=protocol)
    try:
        one_node.mget(f"{tag}:1", f"{tag}:2")
        checks.true(f"{name} crossslot", False)
    except redis.ResponseError as error:
        checks.true(f"{name} crossslot", "CROSSSLOT" in str(error) or "same slot" in str(error))


def glide(checks, name, host, port, is_cluster):
    from glide_sync import GlideClient, GlideClientConfiguration, GlideClusterClient, GlideClusterClientConfiguration, NodeAddress

    tag = uuid.uuid4().hex
    key = (lambda part: f"{{{tag}}}{part}") if is_cluster else (lambda part: f"{tag}:{part}")
    addresses = [NodeAddress(host, port)]
    if is_cluster:
        client = GlideClusterClient.create(GlideClusterClientConfiguration(addresses, request_timeout=5000))
    else:
        client = GlideClient.create(GlideClientConfiguration(addresses, request_timeout=5000))
    checks.equal(f"{name} set", client.set(key("s"), "value"), "OK")
    checks.equal(f"{name} get", client.get(key("s")), b"value")
    checks.equal(f"{name} append", client.append(key("s"), "!"), 6)
    checks.equal(f"{name} incr", client.incr(key("n")), 1)
    checks.equal(f"{name} rpush", client.rpush(key("l"), ["a", "b"]), 2)
    checks.equal(f"{name} lrange", client.lrange(key("l"), 0, -1), [b"a", b"b"])
    checks.equal(f"{name} expire", client.expire(key("s"), 100), True)
    checks.true(f"{name} ttl", 90 < client.ttl(key("s")) <= 100)
    checks.equal(f"{name} mget", client.mget([key("s"), key("none")]), [b"value!", None])
    wrong = [i for i in range(100) if client.set(f"{tag}-{i}", str(i)) != "OK" or client.get(f"{tag}-{i}") != str(i).encode()]
    checks.equal(f"{name} routing over 100 keys", wrong, [])
    checks.equal(f"{name} delete", client.delete([key("s"), key("n"), key("l")]), 3)
    client.close()


def main():
    host, plain_port, cluster_port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if len(sys.argv) > 4:
        TLS.update(ssl=True, ssl_ca_certs=sys.argv[4])
    checks = Checks()
    started = time.monotonic()
    for protocol in (2, 3):
        checks.run(f"redis-py RESP{protocol}", plain, host, plain_port, protocol)
        checks.run(f"redis-py blocking RESP{protocol}", blocking, host, plain_port, protocol)
        checks.run(f"redis-py cluster RESP{protocol}", cluster, host, cluster_port, protocol)
    if TLS:
        return end(checks, started)
    checks.run("glide", glide, host, plain_port, False)
    checks.run("glide cluster", glide, host, cluster_port, True)
    end(checks, started)


def end(checks, started):
    print(f"python clients in {time.monotonic() - started:.1f} s")
    print(f"{checks.passed} passed, {checks.failed} failed")
    sys.exit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()

"""The client whose calls wait."""

import threading

import pytest
from puppet import Puppet

import zerohop


def test_strings_are_set_under_conditions(client):
    assert client.set("a", b"\x00\r\n\xff") is True
    assert client.get("a") == b"\x00\r\n\xff"
    assert client.get("nothing") is None
    assert client.set("a", "x", nx=True) is None
    assert client.set("new", "x", xx=True) is None
    assert client.set("a", "x", get=True) == b"\x00\r\n\xff"
    assert client.append("a", "yz") == 3
    assert (client.strlen("a"), client.getrange("a", 1, -1)) == (3, b"yz")
    assert client.setrange("a", 1, "YZ") == 3
    assert client.getdel("a") == b"xYZ"
    assert client.exists("a", "new") == 0


def test_a_swap_is_made_once(client):
    client.set("leader", "a")
    assert client.compare_and_swap("leader", "b", "c") is False
    assert client.compare_and_swap("absent", "b", "c") is False
    assert client.compare_and_swap("leader", "a", "c", ex=100) is True
    assert 0 < client.ttl("leader") <= 100
    assert client.delete_if_equal("leader", "a") is False
    assert client.delete_if_equal("leader", "c") is True
    assert client.get("leader") is None


def test_counters_and_several_keys(client):
    assert client.mset({"a": 1, "b": 2.5, b"c": b"x"}) is True
    assert client.mget("a", "b", "c", "d") == client.mget(["a", "b", "c", "d"]) == [b"1", b"2.5", b"x", None]
    assert [client.incr("a"), client.incrby("a", 40), client.decr("a"), client.decrby("a", 2)] == [2, 42, 41, 39]
    assert client.incrbyfloat("b", 0.25) == 2.75
    assert client.exists("a", "a", "d") == 2
    assert client.dbsize() == 3
    assert sorted(client.keys()) == [b"a", b"b", b"c"]
    assert client.delete("a", "b", "d") == 2
    assert client.rename("c", "d") is True
    assert client.type("d") == b"string"
    assert client.flushdb() is True
    assert client.ping() is True


def test_keys_of_all_cores_as_a_cluster(client, port):
    keys = [f"key:{number}" for number in range(100)]
    values = [b"%d" % number for number in range(100)]
    # The port of the first core alone: the other one is a node of its own to clients of clusters.
    with zerohop.Client("127.0.0.1", port + 1, socket_timeout=60) as node:
        assert node.mset(dict(zip(keys, values))) is True
        assert node.mget(keys) == client.mget(keys) == values
        assert node.mget(keys[::-1], within_ms=5) == values[::-1]
        assert node.submit("MGET", *keys, "none").result() == [*values, None]
        assert node.exists(*keys, "none") == 100
        assert node.delete(*keys[:60]) == 60
    assert client.dbsize() == 40


def test_expiry_is_set_and_taken_back(client):
    assert client.expire("a", 100) is False
    client.set("a", "x", px=100_000)
    assert 99_000 < client.pttl("a") <= 100_000
    assert client.persist("a") is True
    assert (client.ttl("a"), client.ttl("b")) == (-1, -2)
    assert client.pexpire("a", 50_000) is True
    client.set("a", "y", keepttl=True)
    assert 0 < client.ttl("a") <= 50


def test_lists(client):
    assert client.rpush("l", "b", "c") == 2
    assert client.lpush("l", "a") == 3
    assert client.lrange("l", 0, -1) == [b"a", b"b", b"c"]
    assert (client.llen("l"), client.lindex("l", -1)) == (3, b"c")
    assert client.lset("l", 1, "B") is True
    assert client.lmove("l", "m") == b"a"
    assert client.lrem("l", 0, "B") == 1
    assert client.rpush("l", "d", "e") == 3
    assert client.lpop("l") == b"c"
    assert client.rpop("l", 5) == [b"e", b"d"]
    assert client.lpop("l") is None
    client.rpush("l", 1, 2, 3)
    assert client.ltrim("l", 0, 1) is True
    assert client.lrange("l", 0, -1) == [b"1", b"2"]


def test_replies_are_text_where_that_is_wanted(port, client):
    client.set("a", "ä")
    with zerohop.Client.from_url(f"redis://127.0.0.1:{port}/0", decode_responses=True) as text:
        assert text.get("a") == "ä"
        assert text.mget("a", "b") == ["ä", None]
        text.set("a", b"\xff")
        with pytest.raises(UnicodeDecodeError):
            text.get("a")
    client.rpush("l", b"\xc3\xa4")
    with zerohop.Client("127.0.0.1", port, decode_responses=True, protocol=3) as text:
        assert text.lrange("l", 0, -1) == ["ä"]
        hello = text.execute_command("CONFIG GET", "port")
        assert hello == {"port": str(port)}


def test_every_method_takes_a_deadline(client):
    methods = {name: method for name, method in vars(zerohop._commands.Commands).items() if not name.startswith("_")}
    assert len(methods) > 40
    for name, method in methods.items():
        assert "within_ms" in method.__kwdefaults__, name
    assert client.set("a", "b", within_ms=10) is True
    assert client.get("a", within_ms=0.5) == b"b"
    # In a hurry requests have a connection of their own.
    requests = []
    with Puppet(lambda request: requests.append(request) or b"+OK\r\n") as puppet:
        with zerohop.Client("127.0.0.1", puppet.port) as hurried:
            accepted = threading.active_count()
            hurried.set("a", 1)
            hurried.set("a", 1)
            one = threading.active_count() - accepted
            hurried.set("a", 1, within_ms=1)
            assert (one, threading.active_count() - accepted) == (1, 2)


def test_a_pipeline_shares_writes_and_keeps_order(client):
    before = client.traffic()
    with client.pipeline() as pipeline:
        pending = [pipeline.incr("n") for _ in range(1000)]
        wrong = pipeline.lpush("n", 1)
        last = pipeline.get("n")
        assert len(pipeline) == 1002
        with pytest.raises(zerohop.ResponseError, match="WRONGTYPE"):
            pipeline.execute()
        assert len(pipeline) == 0
        assert pipeline.execute() == []
    assert [one.result() for one in pending] == list(range(1, 1001))
    assert (last.result(), last.result(), last.done()) == (b"1000", b"1000", True)
    with pytest.raises(zerohop.ResponseError):
        wrong.result()
    requests, writes, _ = (after - earlier for after, earlier in zip(client.traffic(), before))
    assert requests == 1002 and writes < 200
    with client.pipeline() as pipeline:
        pipeline.incr("n"), pipeline.lpush("n", 1)
        first, second = pipeline.execute(raise_on_error=False)
    assert first == 1001 and isinstance(second, zerohop.ResponseError)
    assert client.submit("GET", "n").result() == b"1001"


def test_threads_share_the_connection_and_get_their_own(client):
    together = threading.Barrier(16)
    wrong = []

    def live(number):
        together.wait()
        for turn in range(200):
            client.set(f"key:{number}", f"{number}:{turn}")
            got = client.get(f"key:{number}")
            if got != f"{number}:{turn}".encode():
                wrong.append((number, turn, got))

    threads = [threading.Thread(target=live, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_others_run_while_one_waits():
    """The reply waits for another thread of Python: a call that kept the GIL would wait for ever."""
    asked, go_on = threading.Event(), threading.Event()

    def answer(_):
        asked.set()
        go_on.wait()
        return b"+OK\r\n"

    told = []
    with Puppet(answer) as puppet, zerohop.Client("127.0.0.1", puppet.port, socket_timeout=60) as client:
        thread = threading.Thread(target=lambda: told.append(client.set("a", "b")))
        thread.start()
        asked.wait()
        go_on.set()
        thread.join()
    assert told == [True]


def test_values_of_any_size_and_kind(client):
    for size in (0, 1, 65_536, 5_000_000):
        value = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
        client.set("long", bytearray(value))
        assert client.get("long") == value
        client.set("long", memoryview(value)[::-1])
        assert client.get("long") == value[::-1]
    for wrong in (None, True, [], object()):
        with pytest.raises(zerohop.DataError, match="no word of a request"):
            client.set("a", wrong)
    client.set("number", 2**70)
    assert client.get("number") == b"1180591620717411303424"

"""The embedded store."""

import os
import signal
import subprocess
import sys
import threading

import pytest

import zerohop


def test_a_store_reads_like_a_mapping_and_survives_its_end(tmp_path):
    with zerohop.open(tmp_path / "data") as store:
        store["a"] = b"1"
        store["ä"] = "ö"
        store[b"\x00"] = bytearray(b"x")
        assert (store["a"], store.get("a"), store.get("b"), store.get("b", 7)) == (b"1", b"1", None, 7)
        assert ("a" in store, "b" in store, len(store)) == (True, False, 3)
        with pytest.raises(KeyError, match="b"):
            store["b"]
        with pytest.raises(KeyError):
            del store["b"]
        del store[b"\x00"]
        assert (store.append("a", "2"), store.append("b", "3")) == (2, 1)
        assert (store.delete("b"), store.delete("b")) == (True, False)
        assert dict(store.items()) == {b"a": b"12", "ä".encode(): "ö".encode()}
    with pytest.raises(zerohop.ClosedError, match="was closed"):
        store.get("a")
    with zerohop.open(os.fspath(tmp_path / "data"), durability="commit") as store:
        assert sorted(store) == sorted(store.keys()) == [b"a", "ä".encode()]
        assert store["ä"].decode() == "ö"


def test_walks_by_prefix():
    with zerohop.open() as store:
        for number in range(1000):
            store[f"user:{number}"] = str(number)
            store[f"group:{number}"] = b"x"
        assert sorted(int(value) for value in store.values("user:")) == list(range(1000))
        assert len(list(store.keys(b"group:99"))) == 11
        walk = store.items("user:7")
        assert iter(walk) is walk
        key, value = next(walk)
        assert key == b"user:" + value


def test_swaps_by_value_and_by_version():
    with zerohop.open() as store:
        assert store.compare_and_swap("a", None, "1") is True
        assert store.compare_and_swap("a", None, "2") is False
        assert store.compare_and_swap("a", "1", "2") is True
        value, version = store.get_with_version("a")
        assert value == b"2" and store.get_with_version("b") is None
        store["a"] = "2"
        assert store.compare_and_swap_version("a", version, "3") is False
        assert store.compare_and_swap_version("a", store.get_with_version("a")[1], "3") is True
        assert store.compare_and_swap_version("b", 0, "new") is True
        assert store.compare_and_swap("a", "3", None) is True
        assert store.compare_and_swap("a", "3", None) is False
        assert "a" not in store


def test_a_batch_is_made_as_a_whole_or_not_at_all():
    with zerohop.open() as store:
        store["old"] = b"x"
        with store.batch() as batch:
            batch.put("a", 1)
            batch.put("b", 2, ttl=100)
            batch.delete("old")
            assert (len(batch), "a" in store) == (3, False)
        assert dict(store.items()) == {b"a": b"1", b"b": b"2"}
        with pytest.raises(RuntimeError, match="no"):
            with store.batch() as batch:
                batch.put("c", 3)
                raise RuntimeError("no")
        assert "c" not in store
        with pytest.raises(zerohop.DataError, match="key of 65536 bytes is too long"):
            with store.batch() as batch:
                batch.put("d", 4)
                batch.put("x" * 65536, 5)
        assert "d" not in store


def test_waits_see_what_was_there_for_one_write_only():
    with zerohop.open() as store:
        store["light"] = b"red"
        seen = []
        threads = [
            threading.Thread(target=lambda: seen.append(store.wait("light", equals="green"))),
            threading.Thread(target=lambda: seen.append(store.wait("light", exists=False))),
        ]
        for thread in threads:
            thread.start()
        # No test waits for time: the light changes until both have seen what they wait for.
        while any(thread.is_alive() for thread in threads):
            store["light"] = b"green"
            del store["light"]
            store["light"] = b"red"
        assert sorted(seen, key=bool) == [None, b"green"]
        assert store.wait("light", differs="green") == b"red"
        with pytest.raises(zerohop.TimeoutError, match="did not come within 0.01 s"):
            store.wait("light", equals="green", timeout=0.01)
        with pytest.raises(TimeoutError):
            store.wait("nothing", exists=True, timeout=0)
        for wrong in ({}, {"exists": True, "equals": b"x"}):
            with pytest.raises(zerohop.DataError, match="give one of"):
                store.wait("light", **wrong)


def test_threads_take_turns_without_losing_anything():
    with zerohop.open() as store:

        def add():
            for _ in range(500):
                while True:
                    value, version = store.get_with_version("n") or (b"0", 0)
                    if store.compare_and_swap_version("n", version, int(value) + 1):
                        break

        threads = [threading.Thread(target=add) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert store["n"] == b"4000"


def test_the_end_of_the_store_ends_waits():
    store = zerohop.open()
    raised = []

    def wait():
        try:
            store.wait("never", exists=True)
        except zerohop.ClosedError as error:
            raised.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    store.close()
    thread.join()
    assert len(raised) == 1


def test_expiry():
    with zerohop.open() as store:
        store.put("a", b"x", ttl=0.001)
        assert store.wait("a", exists=False) is None
        store.put("a", b"x", ttl=1000)
        assert store["a"] == b"x"
        with pytest.raises(zerohop.DataError, match="ttl is NaN"):
            store.put("a", b"x", ttl=float("nan"))


def test_a_directory_has_one_holder_and_damage_is_told(tmp_path):
    with zerohop.open(tmp_path / "data"):
        with pytest.raises(zerohop.HeldError, match="is in use by"):
            zerohop.open(tmp_path / "data")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "MANIFEST").write_bytes(b"no manifest at all")
    with pytest.raises(zerohop.DamagedError):
        zerohop.open(tmp_path / "other")
    with pytest.raises(zerohop.DataError, match='no durability is called "most"'):
        zerohop.open(tmp_path / "third", durability="most")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(zerohop.StoreError, match="file"):
        zerohop.open(tmp_path / "file")


WRITER = """
import sys, zerohop
store = zerohop.open(sys.argv[1])
for number in range(1_000_000):
    store[f"key:{number}"] = str(number)
    print(number, flush=True)
"""


def test_what_was_acknowledged_outlives_the_process(tmp_path):
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    for _ in range(500):
        writer.stdout.readline()
    writer.send_signal(signal.SIGKILL)
    told = [line for line in writer.communicate()[0].splitlines(keepends=True) if line.endswith("\n")]
    acknowledged = 500 + len(told)
    with zerohop.open(tmp_path) as store:
        assert all(store[f"key:{number}"] == str(number).encode() for number in range(acknowledged))


def test_the_server_opens_the_same_directory(tmp_path, program):
    with zerohop.open(tmp_path) as store:
        store["a"] = b"1"
    checked = subprocess.run([program, "check", str(tmp_path)], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_values_leave_memory_and_come_back(tmp_path):
    with zerohop.open(tmp_path / "data", memory_limit=2 << 20) as store:
        values = {f"key:{number}": bytes([number % 251]) * 1000 for number in range(8000)}
        for key, value in values.items():
            store[key] = value
        assert all(store[key] == value for key, value in values.items())
    with pytest.raises(zerohop.DataError, match="needs a disk"):
        zerohop.open(memory_limit=1 << 20)

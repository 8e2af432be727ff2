"""Children of fork, as Celery and gunicorn have them: with clients that were used before, threads that wait, and open stores."""

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
import warnings

import pytest
from puppet import Puppet

import zerohop
import zerohop.aio

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")


def in_child(work):
    """What ``work`` returned, as text, in a child, behind what that complained of. One that hangs is ended, and fails its test."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.dup2(writer, 2)
        signal.alarm(60)
        try:
            told = work()
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
        os.write(writer, str(told).encode())
        os.close(writer)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as told:
        text = told.read()
    assert os.waitpid(child, 0)[1] == 0
    return text


def test_parent_and_child_have_connections_of_their_own(client):
    client.set("who", "parent")
    parent_id = client.execute_command("CLIENT", "ID")

    def work():
        for number in range(100):
            client.set("child", number)
            assert client.get("child") == str(number).encode()
        return client.execute_command("CLIENT", "ID")

    child = threading.Thread(target=lambda: ids.append(int(in_child(work))))
    ids = []
    child.start()
    while child.is_alive():
        assert client.get("who") == b"parent"
    child.join()
    assert client.execute_command("CLIENT", "ID") == parent_id
    assert ids[0] != parent_id


def test_a_fork_while_threads_wait(port):
    """Their locks are the parent's: the child must not want them."""
    asked, go_on = threading.Event(), threading.Event()

    def answer(request):
        if b"hold" in request:
            asked.set()
            go_on.wait()
        return b"$1\r\nx\r\n"

    with Puppet(answer) as puppet:
        client = zerohop.Client("127.0.0.1", puppet.port, socket_timeout=60)
        thread = threading.Thread(target=client.get, args=("hold",))
        thread.start()
        asked.wait()
        assert in_child(lambda: client.get("a")) == "b'x'"
        go_on.set()
        thread.join()


def add(client):
    return [client.incr("n") for _ in range(50)]


def test_workers_of_multiprocessing(client, port):
    client.set("n", 0)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        workers = [multiprocessing.get_context("fork").Process(target=add, args=(client,)) for _ in range(4)]
        for worker in workers:
            worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert client.get("n") == b"200"


def test_asyncio_in_parent_and_child(client, port):
    shared = zerohop.aio.Client("127.0.0.1", port, socket_timeout=60)

    async def add():
        return sorted(await asyncio.gather(*(shared.incr("n") for _ in range(50))))

    assert asyncio.run(add()) == list(range(1, 51))
    assert in_child(lambda: asyncio.run(add()) == list(range(51, 101))) == "True"
    assert asyncio.run(add()) == list(range(101, 151))


def test_what_the_parent_submitted_is_the_parents(client):
    go_on = threading.Event()

    def answer(_):
        go_on.wait()
        return b"$1\r\nx\r\n"

    with Puppet(answer) as puppet, zerohop.Client("127.0.0.1", puppet.port, socket_timeout=60) as other:
        pending = other.submit("GET", "a")
        told = in_child(pending.result)
        assert told.startswith("UnknownOutcomeError: process") and "submitted this" in told
        go_on.set()
        assert pending.result() == b"x"


def test_a_store_is_its_openers(tmp_path):
    store = zerohop.open(tmp_path)
    store["a"] = b"1"
    walk, batch = store.keys(), store.batch()
    batch.put("b", 2)

    def work():
        nonlocal store, walk, batch
        told = set()
        for act in (lambda: store.get("a"), lambda: store.close(), lambda: next(walk), lambda: batch.commit(), lambda: len(store)):
            try:
                told.add(act())
            except zerohop.StoreError as error:
                told.add(f"a child of fork cannot use it: {'a child of fork cannot use it' in str(error)}")
        # The end of the last reference in the child is not the end of the store.
        references = sys.getrefcount(store), sys.getrefcount(walk)
        del store, walk, batch
        return told, references

    # One more is that of the question.
    assert in_child(work) == "({'a child of fork cannot use it: True'}, (3, 2))"
    batch.commit()
    store["c"] = b"3"
    store.close()
    with zerohop.open(tmp_path) as store:
        assert dict(store.items()) == {b"a": b"1", b"b": b"2", b"c": b"3"}

"""The client for asyncio."""

import asyncio
import gc
import threading
import weakref

import pytest
from puppet import Puppet

import zerohop
import zerohop.aio


def connect(port, **options):
    return zerohop.aio.Client("127.0.0.1", port, socket_timeout=60, **options)


def test_many_tasks_share_writes_and_get_their_own(client, port):
    async def live(shared, number):
        for turn in range(50):
            assert await shared.set(f"key:{number}", f"{number}:{turn}") is True
            assert await shared.get(f"key:{number}") == f"{number}:{turn}"

    async def main():
        async with connect(port, decode_responses=True) as shared:
            threads = threading.active_count()
            await asyncio.gather(*(live(shared, number) for number in range(200)))
            return shared.traffic(), threading.active_count() - threads

    (requests, writes, _), more_threads = asyncio.run(main())
    assert (requests, more_threads) == (200 * 50 * 2, 0)
    assert writes < requests / 5
    assert client.dbsize() == 200


def test_tasks_that_are_answered_together_are_one_turn_of_the_loop(client, port):
    async def main():
        async with connect(port) as shared:
            await shared.ping()
            loop = asyncio.get_running_loop()
            tasks = shared._tasks[loop]
            turns = []

            def drain():
                turns.append(None)
                tasks.drain()

            loop.add_reader(tasks.fileno(), drain)
            for _ in range(20):
                await asyncio.gather(*(shared.incr("n") for _ in range(100)))
            return len(turns)

    # Of two thousand replies; one turn for each round is the least, and one more lets others ask before anything is sent.
    assert asyncio.run(main()) < 200
    assert client.get("n") == b"2000"


def test_commands_and_deadlines_as_in_the_other_client(client, port):
    async def main():
        async with connect(port) as shared:
            assert await shared.mset({"a": 1, "b": 2}, within_ms=5) is True
            assert await shared.compare_and_swap("a", 1, 3) is True
            assert await shared.expire("a", 100) is True
            assert await shared.incrbyfloat("a", 0.5) == 3.5
            assert await shared.execute_command("MGET", "a", "b", within_ms=1) == [b"3.5", b"2"]

    asyncio.run(main())


def test_keys_of_all_cores_as_a_cluster(client, port):
    keys = [f"key:{number}" for number in range(100)]

    async def main():
        async with connect(port + 1, decode_responses=True) as node:
            assert await node.mset({key: key for key in keys}) is True
            assert await node.mget(keys) == keys
            assert await asyncio.gather(*(node.exists(*keys) for _ in range(10))) == [100] * 10
            assert await node.delete(*keys) == 100

    asyncio.run(main())
    assert client.dbsize() == 0


def test_errors_are_raised_where_they_are_awaited(client, port):
    async def main():
        async with connect(port, decode_responses=True) as shared:
            await shared.rpush("list", 1)
            with pytest.raises(zerohop.ResponseError, match="WRONGTYPE"):
                await shared.get("list")
            await shared.set("a", b"\xff")
            with pytest.raises(UnicodeDecodeError):
                await shared.get("a")
            with pytest.raises(zerohop.DataError):
                shared.set("a", None)
        with pytest.raises(zerohop.ConnectionError, match="was closed"):
            shared.get("a")
        async with zerohop.aio.Client("127.0.0.1", 1) as nobody:
            with pytest.raises(zerohop.ConnectionError, match="nobody answers"):
                await nobody.get("a")

    asyncio.run(main())


def test_who_is_cancelled_disturbs_nobody():
    go_on = threading.Event()

    def answer(request):
        go_on.wait()
        return b"$1\r\nx\r\n" * request.count(b"GET")

    async def main():
        with Puppet(answer) as puppet:
            async with connect(puppet.port) as shared:
                first, second = (asyncio.ensure_future(shared.get(key)) for key in ("a", "b"))
                first.cancel()
                go_on.set()
                assert await second == b"x"
                with pytest.raises(asyncio.CancelledError):
                    await first
                assert await shared.get("c") == b"x"

    asyncio.run(main())


def test_the_end_waits_for_replies_and_leaves_nothing_in_the_loop(client, port):
    async def main():
        shared = connect(port)
        pending = [asyncio.ensure_future(shared.incr("n")) for _ in range(10)]
        tasks = shared._tasks[asyncio.get_running_loop()]
        watched = weakref.ref(tasks)
        await shared.aclose()
        await shared.aclose()
        assert [future.result() for future in pending] == list(range(1, 11))
        assert tasks.waiting() == []
        del shared, tasks
        return watched() is None

    assert asyncio.run(main())


def test_a_loop_that_ends_in_the_middle_is_forgotten():
    with Puppet(lambda _: b"") as puppet:

        async def ask(shared):
            await shared.get("a")

        loop = asyncio.new_event_loop()
        shared = connect(puppet.port)
        asked = loop.create_task(ask(shared))
        loop.run_until_complete(asyncio.sleep(0))
        asked._log_destroy_pending = False
        forgotten = weakref.ref(asked)
        loop.close()
        del loop, asked, shared
        gc.collect()
        assert forgotten() is None


def test_one_client_serves_several_loops(client, port):
    shared = connect(port)

    async def add():
        for _ in range(100):
            await shared.incr("n")

    async def add_together():
        await asyncio.gather(*(add() for _ in range(5)))

    asyncio.run(add_together())
    threads = [threading.Thread(target=lambda: asyncio.run(add_together())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Of two loops of one thread the one that stands still finds its replies when it goes on.
    loops = [asyncio.new_event_loop() for _ in range(2)]
    waiting = [loop.create_task(add()) for loop in loops]
    for _ in range(2):
        for loop in loops:
            loop.run_until_complete(asyncio.sleep(0))
    for loop, task in zip(loops, waiting):
        loop.run_until_complete(task)
        loop.close()
    assert client.get("n") == b"2200"


def test_outside_of_a_loop_it_says_so(port):
    with pytest.raises(RuntimeError, match="no running event loop"):
        connect(port).get("a")

"""The client for asyncio: every command returns an awaitable, and no thread waits for it.

>>> import asyncio, zerohop.aio
>>> async def main():
...     async with zerohop.aio.Client("localhost", 6379, decode_responses=True) as client:
...         await client.set("visits", 0)
...         await asyncio.gather(*(client.incr("visits") for _ in range(100)))
...         return await client.get("visits", within_ms=10)
>>> asyncio.run(main())
'100'
"""

from asyncio import get_running_loop, wait
from weakref import WeakKeyDictionary

from ._client import Value, _Connected
from ._zerohop import Tasks

__all__ = ["Client"]


class Client(_Connected[Value]):
    """A client whose calls return awaitables. Tasks of several event loops may share it; each has a pipe of its own until ``aclose``
    there, or its end."""

    def _open(self, address, **options):
        super()._open(address, **options)
        self._tasks = WeakKeyDictionary()
        # The loop that asked last, which is nearly always the one that asks now.
        self._last = (None, None)

    def _ask(self, words, form, within_ms):
        loop = get_running_loop()
        last, tasks = self._last
        if last is not loop:
            tasks = self._tasks_of(loop)
        future = loop.create_future()
        tasks.ask(self._connection, words, form, within_ms, future)
        return future

    def _tasks_of(self, loop):
        tasks = self._tasks.get(loop)
        if tasks is None:
            tasks = self._tasks[loop] = Tasks()
            loop.add_reader(tasks.fileno(), tasks.drain)
        self._last = (loop, tasks)
        return tasks

    async def aclose(self):
        """Takes no more requests, and returns when those of this loop are answered."""
        self._connection.close()
        loop = get_running_loop()
        tasks = self._tasks.pop(loop, None)
        if tasks is not None:
            if waiting := tasks.waiting():
                await wait(waiting)
            loop.remove_reader(tasks.fileno())

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.aclose()

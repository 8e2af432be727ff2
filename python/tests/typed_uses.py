"""What type checkers are to know; checked by test_types.py, and never run."""

from typing_extensions import assert_type

import zerohop
import zerohop.aio


def waiting(bytes_client: zerohop.Client[bytes]) -> None:
    assert_type(bytes_client.get("a", within_ms=10), bytes | None)
    assert_type(bytes_client.incr("a"), int)
    text_client = zerohop.Client("localhost", decode_responses=True)
    assert_type(text_client, zerohop.Client[str])
    assert_type(text_client.lrange("a", 0, -1), list[str])
    assert_type(text_client.lpop("a", 2), list[str] | None)
    assert_type(zerohop.Client.from_url("localhost"), zerohop.Client[bytes])
    with text_client.pipeline() as pipeline:
        assert_type(pipeline.get("a").result(), str | None)
    try:
        text_client.set("a", 1)
    except zerohop.ResponseError as error:
        assert_type(error.code, str)


async def awaiting() -> None:
    async with zerohop.aio.Client(decode_responses=True) as client:
        assert_type(await client.mget("a", "b"), list[str | None])
        assert_type(await client.compare_and_swap("a", 1, 2), bool)


def embedded(store: zerohop.Store) -> None:
    assert_type(store["a"], bytes)
    assert_type(store.get("a", 0), bytes | int)
    for key, value in store.items():
        assert_type((key, value), tuple[bytes, bytes])

"""Zerohop for Python: a client of Zerohop, Redis and Valkey servers, and the store itself inside the process.

>>> import zerohop
>>> client = zerohop.Client("localhost", 6379)
>>> client.set("greeting", "hello")
True
>>> client.get("greeting", within_ms=10)
b'hello'
"""

import os as _os

from ._client import Client, Pipeline
from ._errors import (
    AuthenticationError,
    BusyError,
    ClosedError,
    ClusterError,
    ConnectionError,
    DamagedError,
    DataError,
    Error,
    FullError,
    HeldError,
    LogFailedError,
    PartialError,
    ResponseError,
    StoreError,
    TimeoutError,
    UnknownOutcomeError,
    WrongTypeError,
)
from ._zerohop import Batch, Entries, Pending, Store, __version__

__all__ = [
    "AuthenticationError",
    "Batch",
    "BusyError",
    "Client",
    "ClosedError",
    "ClusterError",
    "ConnectionError",
    "DamagedError",
    "DataError",
    "Entries",
    "Error",
    "FullError",
    "HeldError",
    "LogFailedError",
    "PartialError",
    "Pending",
    "Pipeline",
    "ResponseError",
    "Store",
    "StoreError",
    "TimeoutError",
    "UnknownOutcomeError",
    "WrongTypeError",
    "__version__",
    "open",
]


def open(directory=None, *, durability="interval", memory_limit=None):
    """Opens the store in a directory, and makes both if they are not there; without a directory, one that nothing survives of.

    ``durability`` says what a write has survived when its call returns: ``"memory"`` nothing, ``"interval"`` the death of the process (and
    all but the last second a power cut), ``"commit"`` a power cut. ``memory_limit``, in bytes, is what keys, values and index may take in
    memory: above it the values used longest ago are on the disk alone, and come back when they are asked for.

    >>> with zerohop.open("./data") as store:
    ...     store["greeting"] = b"hello"
    ...     store.append("greeting", b" world")
    11
    >>> with zerohop.open("./data") as store:
    ...     store["greeting"]
    b'hello world'
    """
    return Store(None if directory is None else _os.fspath(directory), durability=durability, memory_limit=memory_limit)

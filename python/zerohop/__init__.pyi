"""The types of the package: those of its parts."""

from os import PathLike
from typing import Literal

from ._client import Client as Client, Pipeline as Pipeline
from ._errors import (
    AuthenticationError as AuthenticationError,
    BusyError as BusyError,
    ClosedError as ClosedError,
    ClusterError as ClusterError,
    ConnectionError as ConnectionError,
    DamagedError as DamagedError,
    DataError as DataError,
    Error as Error,
    FullError as FullError,
    HeldError as HeldError,
    LogFailedError as LogFailedError,
    PartialError as PartialError,
    ResponseError as ResponseError,
    StoreError as StoreError,
    TimeoutError as TimeoutError,
    UnknownOutcomeError as UnknownOutcomeError,
    WrongTypeError as WrongTypeError,
)
from ._zerohop import (
    Batch as Batch,
    Entries as Entries,
    Pending as Pending,
    Store as Store,
    __version__ as __version__,
)

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

def open(
    directory: str | PathLike[str] | None = None,
    *,
    durability: Literal["memory", "interval", "commit"] = "interval",
    memory_limit: int | None = None,
) -> Store: ...

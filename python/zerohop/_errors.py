"""What can go wrong. The text of each exception says whether the request was carried out, and what to do."""

import builtins


class Error(Exception):
    """Everything that this package raises of its own."""


class ConnectionError(Error, builtins.ConnectionError):
    """Nobody answers, or the connection ended: the request was not carried out, or changed nothing."""


class UnknownOutcomeError(ConnectionError):
    """The connection ended while a write was on its way. It may have been carried out, or not: read before you send it again."""


class AuthenticationError(ConnectionError):
    """The server refuses the connection: user, password or database are wrong."""


class ClusterError(ConnectionError):
    """A node of a cluster sent the request to a place where it cannot go."""


class TimeoutError(Error, builtins.TimeoutError):
    """No reply in time. A write may have been carried out, and may still be."""


class BusyError(Error):
    """Too many requests are on their way. This one was not carried out."""


class DataError(Error, ValueError):
    """What was given cannot be sent, or stored."""


class ResponseError(Error):
    """The server answered with an error; the text is its own."""

    @property
    def code(self) -> str:
        """The first word of it, as ``WRONGTYPE``."""
        return str(self).split(" ", 1)[0]


class PartialError(Error):
    """Some of the keys were reached, others not. Its cause says what kept the request from these, and whether they may have been changed."""


class StoreError(Error):
    """What only an embedded store meets."""


class HeldError(StoreError):
    """Another process, or another store of this one, has the directory open."""


class DamagedError(StoreError):
    """The directory is damaged, of another format, or holds something else."""


class WrongTypeError(StoreError, TypeError):
    """The key holds a list, which the server made, and not a string."""


class FullError(StoreError):
    """There is no room: on the disk, or for this key."""


class LogFailedError(StoreError):
    """Writing the log failed, and nothing is written any more. Whether the change is there after the next opening is not known."""


class ClosedError(StoreError):
    """The store was closed."""

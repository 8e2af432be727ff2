"""The client whose calls wait, and what both clients have in common."""

from typing import Generic, TypeVar

from ._commands import Commands
from ._zerohop import Connection

Value = TypeVar("Value", bytes, str)


class _Connected(Commands, Generic[Value]):
    """A client of a Zerohop, Redis or Valkey server, for all threads and tasks of a process. It connects when something is asked."""

    def __init__(
        self,
        host="localhost",
        port=6379,
        db=0,
        password=None,
        *,
        username=None,
        socket_timeout=5.0,
        socket_connect_timeout=2.0,
        decode_responses=False,
        protocol=2,
    ):
        self._open(
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
            login=None if password is None else (username or "default", password),
            database=db,
            timeout=socket_timeout,
            connect_timeout=socket_connect_timeout,
            decodes=decode_responses,
            protocol=protocol,
        )

    @classmethod
    def from_url(cls, url, *, socket_timeout=5.0, socket_connect_timeout=2.0, decode_responses=False, protocol=2):
        """A client of the server at ``redis://user:password@host:port/database``, of which only the host has to be there."""
        client = cls.__new__(cls)
        client._open(
            url,
            login=None,
            database=0,
            timeout=socket_timeout,
            connect_timeout=socket_connect_timeout,
            decodes=decode_responses,
            protocol=protocol,
        )
        return client

    def _open(self, address, **options):
        self._connection = Connection(address, **options)

    def traffic(self):
        """Requests, writes to and reads from sockets so far."""
        return self._connection.traffic()


class Client(_Connected[Value]):
    """A client whose calls wait for their replies."""

    def _ask(self, words, form, within_ms):
        return self._connection.ask(words, form, within_ms)

    def submit(self, *words, within_ms=None):
        """Sends any command and returns at once; ``result()`` of what is returned waits for the reply."""
        return self._connection.submit(words, "plain", within_ms)

    def pipeline(self):
        """Commands that are sent without waiting for the replies of those before them."""
        return Pipeline(self._connection)

    def close(self):
        """Takes no more requests, and closes the connections when what is on its way is answered."""
        self._connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Pipeline(Commands, Generic[Value]):
    """Commands that are sent at once, together where they can; each returns what to ask for its reply.

    It is no transaction: others' commands may come in between.
    """

    def __init__(self, connection):
        self._connection = connection
        self._pending = []

    def _ask(self, words, form, within_ms):
        pending = self._connection.submit(words, form, within_ms)
        self._pending.append(pending)
        return pending

    def execute(self, raise_on_error=True):
        """Waits for all replies since the last time and returns them in order. When all are there, the first error is raised, or with
        ``raise_on_error=False`` each stands in the place of its reply."""
        pending, self._pending = self._pending, []
        replies = [_reply(one) for one in pending]
        if raise_on_error:
            for reply in replies:
                if isinstance(reply, Exception):
                    raise reply
        return replies

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._pending.clear()

    def __len__(self):
        return len(self._pending)


def _reply(pending):
    try:
        return pending.result()
    except Exception as error:
        return error

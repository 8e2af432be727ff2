"""What a client is told when something fails, and by which exception."""

import socket

import pytest
from puppet import Puppet

import zerohop


@pytest.fixture
def nobody():
    """A port at which nobody listens: that of a connection which is there."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with socket.create_connection(listener.getsockname()) as taken:
            yield taken.getsockname()[1]


def test_exceptions_are_related_as_those_of_redis_py():
    for kind in (zerohop.ConnectionError, zerohop.TimeoutError, zerohop.ResponseError, zerohop.DataError, zerohop.StoreError):
        assert issubclass(kind, zerohop.Error)
    assert issubclass(zerohop.ConnectionError, ConnectionError)
    assert issubclass(zerohop.TimeoutError, TimeoutError)
    assert issubclass(zerohop.DataError, ValueError)
    for kind in (zerohop.UnknownOutcomeError, zerohop.AuthenticationError, zerohop.ClusterError):
        assert issubclass(kind, zerohop.ConnectionError)


def test_the_servers_words_and_their_code(client):
    client.rpush("list", 1)
    with pytest.raises(zerohop.ResponseError, match="^WRONGTYPE Operation") as raised:
        client.get("list")
    assert raised.value.code == "WRONGTYPE"


def test_nobody_there(nobody):
    with zerohop.Client("127.0.0.1", nobody) as client:
        with pytest.raises(zerohop.ConnectionError, match=f"nobody answers at 127.0.0.1:{nobody}.*was not carried out"):
            client.get("a")
        with pytest.raises(ConnectionError):
            client.submit("GET", "a").result()


def test_no_reply_in_time():
    with Puppet(lambda _: b"") as puppet, zerohop.Client("127.0.0.1", puppet.port, socket_timeout=0.05) as client:
        with pytest.raises(zerohop.TimeoutError, match="no reply from .* within 50ms"):
            client.get("a")


def test_a_write_whose_connection_ends_may_have_been_carried_out():
    with Puppet(lambda _: None) as puppet, zerohop.Client("127.0.0.1", puppet.port) as client:
        with pytest.raises(zerohop.UnknownOutcomeError, match="may have been carried out or not"):
            client.incr("a")


def test_a_login_that_is_refused():
    with Puppet(lambda _: b"-WRONGPASS no\r\n") as puppet:
        with zerohop.Client("127.0.0.1", puppet.port, password="x") as client:
            with pytest.raises(zerohop.AuthenticationError, match="refuses the connection: WRONGPASS no"):
                client.get("a")


def test_what_cannot_be_sent(client):
    with pytest.raises(zerohop.DataError, match="BLPOP would change or hold the connection"):
        client.execute_command("BLPOP", "a", 0)
    with pytest.raises(zerohop.DataError, match="begins with the name"):
        client.execute_command()
    with pytest.raises(zerohop.DataError, match="within_ms is -1"):
        client.get("a", within_ms=-1)
    with pytest.raises(zerohop.DataError, match="is no address"):
        zerohop.Client.from_url("rediss://127.0.0.1")
    with pytest.raises(zerohop.DataError, match="protocol 4"):
        zerohop.Client(protocol=4)


def test_a_closed_client_says_so(port):
    client = zerohop.Client("127.0.0.1", port)
    pending = client.submit("ECHO", "there")
    client.close()
    client.close()
    with pytest.raises(zerohop.ConnectionError, match="was closed"):
        client.get("a")
    assert pending.result() == b"there"


def test_keys_that_were_not_reached_are_counted(nobody):
    """One node has all slots but those of a node that is gone."""

    def answer(request):
        if b"NODES" in request:
            lines = f"a 127.0.0.1:{puppet.port}@1 master - 0 0 1 connected 0-11999\nb 127.0.0.1:{nobody}@1 master - 0 0 2 connected 12000-16383\n"
            return b"$%d\r\n%s\r\n" % (len(lines), lines.encode())
        parts = [b"*2\r\n$" + part for part in request.split(b"*2\r\n$")[1:]]
        return b"".join(b"*1\r\n$1\r\nx\r\n" if b"MGET" in part else b":1\r\n" for part in parts) or b"-CROSSSLOT no\r\n"

    # Slots 15,495, 3,300 and 7,365.
    with Puppet(answer) as puppet, zerohop.Client("127.0.0.1", puppet.port) as client:
        with pytest.raises(zerohop.PartialError, match="^2 of 3 keys were reached, others were not: nobody answers.*not carried out") as raised:
            client.delete("a", "b", "c")
        assert isinstance(raised.value.__cause__, zerohop.ConnectionError)
        with pytest.raises(zerohop.PartialError, match="^2 of 3 keys were reached, others were not: NOREPLY nobody answers"):
            client.mget("a", "b", "c")
        error, *others = client.execute_command("MGET", "a", "b", "c")
        assert others == [b"x", b"x"] and isinstance(error, zerohop.ResponseError) and error.code == "NOREPLY"


def test_errors_among_several_replies_are_values():
    with Puppet(lambda _: b"*2\r\n:1\r\n-ERR no\r\n") as puppet, zerohop.Client("127.0.0.1", puppet.port) as client:
        one, error = client.execute_command("EXAMPLE")
        assert one == 1 and isinstance(error, zerohop.ResponseError) and str(error) == "ERR no"

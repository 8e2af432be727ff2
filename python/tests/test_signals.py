"""Ctrl-C ends a wait, however long it would have been."""

import os
import signal
import threading

import pytest
from puppet import Puppet

import zerohop


@pytest.fixture(autouse=True)
def handler():
    """Ctrl-C as at a terminal: a shell that started the tests in the background left it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Interrupting(Puppet):
    """Interrupts this process when it is asked for ``signal``, and answers that only when it may."""

    def __init__(self):
        super().__init__(self.reply)
        self.go_on = threading.Event()

    def reply(self, request):
        if b"signal" not in request:
            return b"$4\r\nelse\r\n"
        os.kill(os.getpid(), signal.SIGINT)
        self.go_on.wait()
        return b"$4\r\nlate\r\n"


def test_a_wait_for_a_reply_is_interrupted_and_the_client_goes_on():
    with Interrupting() as puppet, zerohop.Client("127.0.0.1", puppet.port, socket_timeout=60) as client:
        assert client.get("a") == b"else"
        with pytest.raises(KeyboardInterrupt):
            client.get("signal")
        puppet.go_on.set()
        assert client.get("a") == b"else"


def test_a_wait_for_a_submitted_request_is_interrupted():
    with Interrupting() as puppet, zerohop.Client("127.0.0.1", puppet.port, socket_timeout=60) as client:
        with pytest.raises(KeyboardInterrupt):
            # The signal may come before the wait.
            pending = client.submit("GET", "signal")
            pending.result()
        puppet.go_on.set()
        assert client.get("a") == b"else"


def test_a_handler_that_raises_nothing_ends_nothing():
    handled = threading.Event()
    before = signal.signal(signal.SIGUSR1, lambda *_: handled.set())

    def answer(_):
        os.kill(os.getpid(), signal.SIGUSR1)
        # Python's handlers run on the main thread, which waits for this reply.
        handled.wait()
        return b"$1\r\nx\r\n"

    try:
        with Puppet(answer) as puppet, zerohop.Client("127.0.0.1", puppet.port, socket_timeout=60) as client:
            assert client.get("a") == b"x"
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_wait_for_a_key_is_interrupted():
    with zerohop.open() as store:
        about_to_wait = threading.Event()

        def interrupt():
            about_to_wait.wait()
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            about_to_wait.set()
            store.wait("never", exists=True, timeout=60)
        store["never"] = b"now"
        assert store.wait("never", exists=True) == b"now"

"""A server that does what a test wants, and nothing else."""

import socket
import threading


class Puppet:
    """Hands each request, as it arrived, to ``answer``, and sends what that returns; with ``None`` the connection ends."""

    def __init__(self, answer):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.answer = answer
        # Ends with the process, whichever way that ends.
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection:
            while request := connection.recv(65536):
                reply = self.answer(request)
                if reply is None:
                    return
                connection.sendall(reply)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

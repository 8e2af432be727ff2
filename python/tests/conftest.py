"""The store that the tests ask: the program of the package, started once and ended with the tests."""

import subprocess

import pytest

import zerohop


def pytest_addoption(parser):
    parser.addoption("--port", type=int, default=16379, help="where the store of the tests listens")
    parser.addoption("--program", default="zerohop", help="the program that is the store")


@pytest.fixture(scope="session")
def program(request):
    return request.config.getoption("--program")


@pytest.fixture(scope="session")
def port(request, program, tmp_path_factory):
    """The port of a store that answers."""
    port = request.config.getoption("--port")
    directory = tmp_path_factory.mktemp("store")
    command = [program, "serve", "--port", str(port), "--dir", str(directory), "--cores", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            lines = []
            while not (lines and lines[-1].startswith("ready on ")):
                line = server.stdout.readline()
                assert line, f"the store does not start: {lines}"
                lines.append(line)
            yield port
        finally:
            server.terminate()


@pytest.fixture
def client(port):
    """A client of an empty store."""
    with zerohop.Client("127.0.0.1", port, socket_timeout=60) as client:
        client.flushdb()
        yield client


class Counts:
    """Says at the end, in one line, what `cargo x test` reads."""

    def __init__(self):
        self.outcomes = []

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.failed or report.skipped:
            self.outcomes.append(report.outcome)

    def pytest_unconfigure(self):
        passed, failed, skipped = (self.outcomes.count(name) for name in ("passed", "failed", "skipped"))
        print(f"\n{passed} passed, {failed} failed, {skipped} skipped")


def pytest_configure(config):
    config.pluginmanager.register(Counts())

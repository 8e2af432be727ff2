"""The types beside the package say what it is, and type checkers find them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import zerohop

PACKAGE = Path(zerohop.__file__).parent


def mypy(*arguments):
    """What a program of mypy says of the package that is installed, and whether it is content."""
    environment = {"MYPYPATH": str(PACKAGE.parent), "PYTHONPATH": str(PACKAGE.parent), "PATH": ""}
    command = [sys.executable, "-m", *arguments]
    checked = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=Path(__file__).parent)
    return checked.stdout + checked.stderr, checked.returncode == 0


def test_the_stubs_are_those_of_what_runs():
    said, is_content = mypy("mypy.stubtest", "zerohop", "--concise")
    assert is_content, said


@pytest.mark.parametrize("oldest", ["3.10", f"{sys.version_info.major}.{sys.version_info.minor}"])
def test_uses_have_their_types(tmp_path, oldest):
    options = ("mypy", "--strict", "--python-version", oldest, "--cache-dir", str(tmp_path))
    said, is_content = mypy(*options, "typed_uses.py")
    assert is_content, said
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import zerohop\nname: str = zerohop.Client().get('a')\nzerohop.Client().set('a', None)\n")
    said, is_content = mypy(*options, str(wrong))
    assert not is_content and len(re.findall(r"wrong.py:\d+: error", said)) == 2, said


def commands(stub, name):
    """The commands of a class in a stub, as they are written there."""
    text = (PACKAGE / stub).read_text()
    body = text.split(f"\nclass {name}(", 1)[1].split("\nclass ", 1)[0]
    return body.split("# Commands:\n", 1)[1].rstrip()


def test_commands_have_the_same_types_whichever_way_they_are_asked():
    waiting = commands("_client.pyi", "Client")
    assert waiting.count("    def ") > 40

    def wrapped(name):
        return re.sub(r"\) -> (.*): \.\.\.$", rf") -> {name}[\1]: ...", waiting, flags=re.MULTILINE)

    assert commands("_client.pyi", "Pipeline") == wrapped("Pending")
    assert commands("aio.pyi", "Client") == wrapped("Awaitable")

"""The examples of the documentation, run: those of the README, of docs/python.md, and of the modules themselves."""

import doctest
import importlib
from pathlib import Path

import pytest

import zerohop

ROOT = Path(__file__).parents[2]
PAGES = ["python/README.md", "docs/python.md"]
MODULES = ["zerohop", "zerohop.aio"]


def run(text, name, port, minimum):
    """Runs the examples of a text, which know the store by the port that it has unless it is told another one."""
    test = doctest.DocTestParser().get_doctest(text.replace("6379", str(port)), {"__name__": name}, name, name, 0)
    assert len(test.examples) >= minimum
    said = []
    failed = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append).failed
    assert failed == 0, "".join(said)


@pytest.mark.parametrize("page", PAGES)
def test_pages(page, client, port, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # What ends an example in Markdown is no part of what it prints.
    text = (ROOT / page).read_text().replace("```", "")
    run(text, page, port, 10)


@pytest.mark.parametrize("name", MODULES)
def test_modules(name, client, port, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    own = [value for value in vars(module).values() if getattr(value, "__module__", None) == name]
    texts = [module.__doc__, *(value.__doc__ for value in own if value.__doc__)]
    run("\n\n".join(texts), name, port, 3)


def test_everything_public_says_what_it_is():
    for name in zerohop.__all__:
        if name != "__version__":
            assert getattr(zerohop, name).__doc__, name
    for kind in (zerohop.Client, zerohop.aio.Client, zerohop.Store, zerohop.Batch, zerohop.Pending):
        for name in dir(kind):
            if not name.startswith("_"):
                assert getattr(kind, name).__doc__, f"{kind.__name__}.{name}"

"""A shop in Django: its own cache and its own sessions, both in Redis by `store.py`, which is what docs/applications.md shows.

`application.py PORT` tries the cache and the sessions, prints what each step gave, and then serves users.
"""

import os
import sys
import threading
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import django
from django.conf import settings

import store

HERE = Path.cwd()
WRITERS, ROUNDS = 8, 25

settings.configure(
    **{name: value for name, value in vars(store).items() if name.isupper()},
    SECRET_KEY="of a test",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": HERE / "users.sqlite", "OPTIONS": {"timeout": 60}}},
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"],
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware", "django.contrib.auth.middleware.AuthenticationMiddleware"],
    LOGGING_CONFIG=None,
    USE_TZ=True,
)
django.setup()

from django.contrib.auth import get_user_model, login, logout  # noqa: E402
from django.contrib.sessions.backends.cached_db import SessionStore as CachedDatabaseSession  # noqa: E402
from django.core.cache import cache  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.http import HttpResponse  # noqa: E402
from django.test import Client  # noqa: E402
from django.urls import path  # noqa: E402


def on_login(request):
    name = request.GET["user"]
    user, _ = get_user_model().objects.get_or_create(username=name)
    login(request, user)
    request.session["count"] = 0
    return HttpResponse(f"{name} 0")


def of_user(answer):
    def view(request):
        if not request.user.is_authenticated:
            return HttpResponse("nobody", status=401)
        return HttpResponse(f"{request.user.username} {answer(request)}")

    return view


def on_count(request):
    request.session["count"] += 1
    return request.session["count"]


def on_logout(request):
    logout(request)
    return HttpResponse("bye")


urlpatterns = [
    path("login", on_login),
    path("count", of_user(on_count)),
    path("read", of_user(lambda request: request.session["count"])),
    path("logout", on_logout),
]


class Steps:
    """Prints what each step gave; what it has to give stands beside it."""

    def equal(self, what, actual, expected):
        is_so = actual == expected
        print(f"{'ok' if is_so else 'FAILED'} {what}: {actual!r}{'' if is_so else f', expected {expected!r}'}", flush=True)

    def raises(self, what, error, call):
        try:
            self.equal(what, call(), error.__name__)
        except error:
            self.equal(what, error.__name__, error.__name__)


def try_cache(steps):
    steps.equal("clear", cache.clear(), True)
    steps.equal("get of nothing", [cache.get("a"), cache.get("a", "default")], [None, "default"])
    steps.equal("set", [cache.set("a", {"list": [1, "\r\n", b"\0\xff"]}), cache.get("a")], [None, {"list": [1, "\r\n", b"\0\xff"]}])
    long_text = "long" * 100_000
    steps.equal("a long value", [cache.set("long", long_text), cache.get("long") == long_text], [None, True])
    steps.equal("add", [cache.add("a", 1), cache.add("b", 1), cache.get("b")], [False, True, 1])
    steps.equal("get_or_set", [cache.get_or_set("b", 9), cache.get_or_set("c", lambda: 3)], [1, 3])
    steps.equal("incr and decr", [cache.incr("b"), cache.incr("b", 41), cache.decr("b", 2), cache.get("b")], [2, 43, 41, 41])
    steps.raises("incr of nothing", ValueError, lambda: cache.incr("none"))
    steps.equal("has_key", ["b" in cache, cache.has_key("none")], [True, False])
    steps.equal("delete", [cache.delete("b"), cache.delete("b"), cache.get("b")], [True, False, None])


def try_timeouts(steps):
    steps.equal("a timeout of nothing", [cache.set("t", 1, timeout=0), cache.get("t")], [None, None])
    steps.equal("add without time", [cache.add("t", 1, timeout=0), cache.get("t")], [True, None])
    cache.set("t", 1, timeout=1)
    expiry = threading.Event()
    while cache.get("t") is not None:
        expiry.wait(0.05)
    steps.equal("expired", cache.get("t"), None)
    ttl = lambda key: cache._cache.get_client().ttl(cache.make_key(key))
    cache.set("t", 1, timeout=1000)
    steps.equal("a timeout", 900 < ttl("t") <= 1000, True)
    steps.equal("touch", [cache.touch("t", 5000), 4900 < ttl("t") <= 5000], [True, True])
    steps.equal("touch for ever", [cache.touch("t", None), ttl("t")], [True, -1])
    steps.equal("touch of nothing", [cache.touch("none", 10), cache.touch("none", None)], [False, False])
    steps.equal("for ever", [cache.set("u", 1, timeout=None), ttl("u")], [None, -1])


def try_many(steps):
    many = {f"many{i}": i if i % 2 else f"text {i}" for i in range(50)}
    steps.equal("set_many", [cache.set_many(many, timeout=1000), cache.get_many([*many, "none"]) == many], [[], True])
    steps.equal("set_many for ever", [cache.set_many({"x": 1, "y": 2}, timeout=None), cache.get_many("xy")], [[], {"x": 1, "y": 2}])
    steps.equal("delete_many", [cache.delete_many(list(many)[:40]), len(cache.get_many(many))], [None, 10])
    cache.set("v", "one", version=1)
    cache.set("v", "two", version=2)
    steps.equal("versions", [cache.get("v"), cache.get("v", version=2), cache.get("v", version=3)], ["one", "two", None])
    steps.equal("incr_version", [cache.incr_version("v", version=2), cache.get("v", version=3)], [3, "two"])
    steps.equal("moved away", cache.get("v", version=2), None)


def try_threads(steps):
    """Each thread has keys of its own, and one that it shares with all others."""
    wrong = []
    cache.set("together", 0, timeout=None)

    def write(name):
        for turn in range(ROUNDS):
            mine = (name, turn)
            cache.set(f"of-{name}", mine)
            cache.incr("together")
            if cache.get(f"of-{name}") != mine:
                wrong.append(mine)

    threads = [threading.Thread(target=write, args=(name,)) for name in range(WRITERS)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    steps.equal("threads hear their own", [wrong, cache.get("together")], [[], WRITERS * ROUNDS])


def try_sessions(steps):
    browser, other = Client(), Client()
    ask = lambda client, where: (lambda answer: f"{answer.status_code} {answer.content.decode()}")(client.get(where))
    steps.equal("a stranger", ask(browser, "/count"), "401 nobody")
    steps.equal("log in", [ask(browser, "/login?user=ann"), ask(other, "/login?user=bob")], ["200 ann 0", "200 bob 0"])
    steps.equal("count", [ask(browser, "/count"), ask(browser, "/count"), ask(other, "/count")], ["200 ann 1", "200 ann 2", "200 bob 1"])
    before = browser.cookies[settings.SESSION_COOKIE_NAME].value
    steps.equal("log out", [ask(browser, "/logout"), ask(browser, "/read"), ask(other, "/read")], ["200 bye", "401 nobody", "200 bob 1"])
    browser.cookies[settings.SESSION_COOKIE_NAME] = before
    steps.equal("the old cookie", ask(browser, "/read"), "401 nobody")
    ask(other, "/logout")
    session = CachedDatabaseSession()
    session["basket"] = ["bread"]
    session.save()
    key = session.session_key
    steps.equal("cached_db", CachedDatabaseSession(key)["basket"], ["bread"])
    steps.equal("cached_db is in the cache", session.cache_key in session._cache, True)
    session.flush()
    steps.equal("cached_db flushed", CachedDatabaseSession(key).get("basket"), None)


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 128


class Quiet(WSGIRequestHandler):
    def log_message(self, *arguments):
        pass


def main():
    call_command("migrate", verbosity=0)
    steps = Steps()
    for part in (try_cache, try_timeouts, try_many, try_threads, try_sessions):
        part(steps)
    server = make_server("127.0.0.1", int(sys.argv[1]), get_wsgi_application(), Server, Quiet)
    print("ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()

"""A service on redis-py: locks, the rate limits of `limits`, pub/sub, by `store.py`, which is what docs/applications.md shows.

`application.py PORT` tries all three, prints what each step gave, and then serves users. Each count of a user is read and written
under a lock, limited, and published.
"""

import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import redis
from limits import parse
from limits.strategies import STRATEGIES

from store import LIMITS, STORE

THREADS, PROCESSES, ROUNDS = 8, 3, 10
ATTEMPTS, PAUSE_SECONDS = 600, 0.1
LIMITERS = {name: strategy(LIMITS) for name, strategy in sorted(STRATEGIES.items())}
FEW, MANY = parse("5/day"), parse("1000000/day")


class Steps:
    """What each step gave; what it has to give stands beside it."""

    def __init__(self):
        self.lines = []

    def equal(self, what, actual, expected):
        is_so = actual == expected
        self.lines.append(f"{'ok' if is_so else 'FAILED'} {what}: {actual!r}{'' if is_so else f', expected {expected!r}'}")

    def raises(self, what, error, call):
        try:
            self.equal(what, call(), error.__name__)
        except error:
            self.equal(what, error.__name__, error.__name__)


def patiently(is_so):
    """Asks until it is so, but not for ever; whether it is."""
    pause = threading.Event()
    for _ in range(ATTEMPTS):
        try:
            if is_so():
                return True
        except redis.RedisError:
            pass
        pause.wait(PAUSE_SECONDS)
    return False


def side_by_side(work):
    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]


def raise_under_lock(key):
    """Read and written apart, so that two who are inside at once lose a step."""
    with STORE.lock(f"lock:{key}", timeout=60, sleep=0.005):
        STORE.set(key, int(STORE.get(key) or 0) + 1)


def try_locks(steps):
    mine, yours = STORE.lock("lock:a", timeout=100), STORE.lock("lock:a", timeout=100)
    ttl = lambda: STORE.pttl("lock:a") / 1000
    steps.equal("acquire", [mine.acquire(), yours.acquire(blocking=False), yours.acquire(blocking_timeout=0.2)], [True, False, False])
    steps.equal("whose it is", [mine.locked(), mine.owned(), yours.locked(), yours.owned()], [True, True, True, False])
    steps.equal("extend", [mine.extend(100), 100 < ttl() <= 200], [True, True])
    steps.equal("extend from now", [mine.extend(500, replace_ttl=True), 400 < ttl() <= 500], [True, True])
    steps.equal("reacquire", [mine.reacquire(), 50 < ttl() <= 100], [True, True])
    steps.raises("release of another's", redis.exceptions.LockError, yours.release)
    steps.equal("release", [mine.release(), mine.locked(), yours.acquire(), yours.release()], [None, False, True, None])
    short = STORE.lock("lock:a", timeout=0.2)
    steps.equal("one that is over", [short.acquire(), yours.acquire(blocking_timeout=60)], [True, True])
    steps.raises("extend of what is over", redis.exceptions.LockNotOwnedError, lambda: short.extend(1))
    steps.raises("release of what is over", redis.exceptions.LockNotOwnedError, short.release)
    yours.release()
    side_by_side(lambda _: [raise_under_lock("by-threads") for _ in range(ROUNDS)])
    steps.equal("of threads one at a time", STORE.get("by-threads"), str(THREADS * ROUNDS).encode())
    processes = [subprocess.Popen([sys.executable, __file__, "raise", "by-processes"]) for _ in range(PROCESSES)]
    steps.equal("processes", [process.wait() for process in processes], [0] * PROCESSES)
    steps.equal("of processes one at a time", STORE.get("by-processes"), str(PROCESSES * ROUNDS).encode())


def try_limits(steps):
    steps.equal("the store is there", LIMITS.check(), True)
    for name, limiter in LIMITERS.items():
        steps.equal(f"{name}: five", [limiter.hit(FEW, "a", name) for _ in range(6)], [True] * 5 + [False])
        steps.equal(f"{name}: test and others", [limiter.test(FEW, "a", name), limiter.test(FEW, "b", name)], [False, True])
        # A fixed window counts what it refuses, too.
        expected = [True, False, name != "fixed-window"]
        steps.equal(f"{name}: cost", [limiter.hit(FEW, "b", name, cost=cost) for cost in (3, 3, 2)], expected)
        steps.equal(f"{name}: what is left", [limiter.get_window_stats(FEW, each, name).remaining for each in "abc"], [0, 0, 5])
        limiter.clear(FEW, "a", name)
        steps.equal(f"{name}: clear", [limiter.get_window_stats(FEW, "a", name).remaining, limiter.hit(FEW, "a", name)], [5, True])
        allowed = []
        limit = parse("20/day")
        side_by_side(lambda _: allowed.extend(limiter.hit(limit, "threads", name) for _ in range(ROUNDS)))
        steps.equal(f"{name}: of threads", [allowed.count(True), allowed.count(False)], [20, THREADS * ROUNDS - 20])
    steps.equal("reset", [LIMITS.reset() > 0, LIMITERS["fixed-window"].test(FEW, "b", "fixed-window")], [True, True])


def listen(**subscriptions):
    """A subscriber, whose subscriptions are confirmed."""
    subscriber = STORE.pubsub()
    for kind, names in subscriptions.items():
        getattr(subscriber, kind)(*names)
    confirmed = [next_message(subscriber)["type"] for names in subscriptions.values() for _ in names]
    return subscriber, confirmed


def next_message(subscriber):
    for _ in range(ATTEMPTS):
        message = subscriber.get_message(timeout=PAUSE_SECONDS)
        if message is not None:
            return message
    return {"type": "nothing", "channel": None, "data": None}


def try_subscribers(steps):
    one, said = listen(subscribe=["news:a"])
    all_, of_all = listen(psubscribe=["news:*"])
    both, of_both = listen(subscribe=["news:a", "news:b"], psubscribe=["n*:a"])
    steps.equal("confirmed", [said, of_all, of_both], [["subscribe"], ["psubscribe"], ["subscribe", "subscribe", "psubscribe"]])
    steps.equal("receivers", [STORE.publish(f"news:{name}", name) for name in "abc"], [4, 2, 1])
    heard = lambda subscriber, count: sorted((m["type"], m["channel"], m["data"]) for m in (next_message(subscriber) for _ in range(count)))
    steps.equal("by channel", heard(one, 1), [("message", b"news:a", b"a")])
    steps.equal("by pattern", heard(all_, 3), [("pmessage", f"news:{name}".encode(), name.encode()) for name in "abc"])
    steps.equal("by both", heard(both, 3), [("message", b"news:a", b"a"), ("message", b"news:b", b"b"), ("pmessage", b"news:a", b"a")])
    steps.equal("numsub and numpat", [STORE.pubsub_numsub("news:a", "news:b"), STORE.pubsub_numpat()], [[(b"news:a", 2), (b"news:b", 1)], 2])
    side_by_side(lambda number: [STORE.publish(f"news:{number}", f"{number} {turn}") for turn in range(ROUNDS)])
    messages = [next_message(all_)["data"].decode() for _ in range(THREADS * ROUNDS)]
    of_each = [[message for message in messages if message.startswith(f"{number} ")] for number in range(THREADS)]
    expected = [[f"{number} {turn}" for turn in range(ROUNDS)] for number in range(THREADS)]
    steps.equal("in each publisher's order", of_each == expected or messages, True)
    one.unsubscribe("news:a")
    steps.equal("unsubscribed", [next_message(one)["type"], STORE.publish("news:a", "again")], ["unsubscribe", 3])
    [subscriber.close() for subscriber in (one, all_, both)]
    steps.equal("all have left", patiently(lambda: STORE.publish("news:a", "nobody") == 0), True)


class Service:
    """What users ask for, and what is going on while the store's primary is killed."""

    def __init__(self):
        self.heard = {}
        self.held = STORE.lock("lock:held", timeout=600, thread_local=False)
        self.inside, self.inside_max, self.was_inside = 0, 0, []
        self.waiters = []
        threading.Thread(target=self.hear, daemon=True).start()

    def hear(self):
        """A subscriber that goes on as long as the service does."""
        subscriber = STORE.pubsub()
        subscriber.psubscribe("counts:*")
        while True:
            try:
                for message in subscriber.listen():
                    if message["type"] == "pmessage":
                        self.heard.setdefault(message["channel"].decode(), []).append(int(message["data"]))
            except redis.RedisError as error:
                print(f"subscriber: {error}", file=sys.stderr, flush=True)

    def count(self, user):
        with STORE.lock(f"lock:{user}", timeout=5, blocking_timeout=10, sleep=0.01):
            count = STORE.get(f"count:{user}")
            if count is None:
                return None
            if not all(limiter.hit(MANY, user, name) for name, limiter in LIMITERS.items()):
                raise redis.RedisError("nobody comes near that limit")
            STORE.set(f"count:{user}", int(count) + 1)
        STORE.publish(f"counts:{user}", int(count) + 1)
        return int(count) + 1

    def before(self):
        steps = Steps()
        steps.equal("a lock that stays", self.held.acquire(), True)
        for name, limiter in LIMITERS.items():
            steps.equal(f"{name} is full", [limiter.hit(FEW, "kept", name) for _ in range(6)], [True] * 5 + [False])
        self.waiters = [threading.Thread(target=self.wait, args=(number,), daemon=True) for number in range(PROCESSES)]
        [waiter.start() for waiter in self.waiters]
        return steps

    def wait(self, number):
        lock = STORE.lock("lock:held", timeout=60)
        if not patiently(lock.acquire):
            return
        self.inside += 1
        self.inside_max = max(self.inside_max, self.inside)
        self.was_inside.append(number)
        self.inside -= 1
        patiently(lambda: lock.release() is None)

    def after(self):
        steps = Steps()
        ttl = lambda: STORE.pttl("lock:held") / 1000
        steps.equal("the lock stayed", [patiently(self.held.owned), self.was_inside], [True, []])
        steps.equal("extend", [self.held.extend(2000, replace_ttl=True), 1000 < ttl() <= 2000], [True, True])
        steps.equal("reacquire", [self.held.reacquire(), 300 < ttl() <= 600], [True, True])
        for name, limiter in LIMITERS.items():
            steps.equal(f"{name} is full still", [limiter.test(FEW, "kept", name), limiter.hit(FEW, "kept", name)], [False, False])
            steps.equal(f"{name} counts on", [limiter.hit(FEW, "new", name) for _ in range(6)], [True] * 5 + [False])
        steps.equal("release", self.held.release(), None)
        [waiter.join(ATTEMPTS * PAUSE_SECONDS) for waiter in self.waiters]
        steps.equal("who waited came, one at a time", [sorted(self.was_inside), self.inside_max], [list(range(PROCESSES)), 1])
        heard = lambda: STORE.publish("counts:last", 1) is not None and "counts:last" in self.heard
        steps.equal("the subscriber hears", patiently(heard), True)
        steps.equal("in order", [name for name, counts in self.heard.items() if counts != sorted(counts)], [])
        return steps


class Pages(BaseHTTPRequestHandler):
    service = None

    def do_GET(self):
        url = urlsplit(self.path)
        user = parse_qs(url.query).get("user", [""])[0]
        try:
            status, text = self.answer(url.path, user)
        except redis.RedisError as error:
            status, text = 503, f"{type(error).__name__}: {error}"
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer(self, path, user):
        key = f"count:{user}"
        if path in ("/before", "/after"):
            return 200, "\n".join(getattr(self.service, path[1:])().lines)
        if path == "/login":
            STORE.set(key, 0)
            return 200, f"{user} 0"
        if path == "/logout":
            STORE.delete(key)
            return 200, "bye"
        count = self.service.count(user) if path == "/count" else STORE.get(key)
        return (401, "nobody") if count is None else (200, f"{user} {int(count)}")

    def log_message(self, *arguments):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128


def main():
    if sys.argv[1] == "raise":
        return [raise_under_lock(sys.argv[2]) for _ in range(ROUNDS)] and None
    for part in (try_locks, try_limits, try_subscribers):
        steps = Steps()
        part(steps)
        print("\n".join(steps.lines), flush=True)
    Pages.service = Service()
    server = Server(("127.0.0.1", int(sys.argv[1])), Pages)
    print("ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()

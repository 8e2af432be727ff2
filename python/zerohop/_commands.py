"""The commands by the names that redis-py gives them: the words of each request, and the form of its reply.

``_ask`` is what tells clients apart: it waits, submits, or returns a future. Types stand beside them, in ``__init__.pyi`` and ``aio.pyi``.
"""


def _flags(**given):
    """The words of those options that were given: a flag by its name, others with their values."""
    words = []
    for name, value in given.items():
        if value is True:
            words.append(name.upper())
        elif value is not None and value is not False:
            words += (name.upper(), value)
    return words


def _listed(keys, others):
    """Keys as redis-py takes them: one after the other, or a list of them."""
    first = [keys] if isinstance(keys, (str, bytes, bytearray, memoryview)) else list(keys)
    return [*first, *others]


class Commands:
    """Strings, counters, keys, expiry and lists. Any other command goes with ``execute_command``.

    With ``within_ms`` a request is to be answered within so many milliseconds: it waits for others, to share a write with them, only as
    long as that allows. It is no promise; the timeout of the client says when to give up.
    """

    def _ask(self, words, form, within_ms):
        raise NotImplementedError

    def execute_command(self, *words, within_ms=None):
        """Any command, word by word; the reply as the server sends it."""
        return self._ask(words, "plain", within_ms)

    def ping(self, *, within_ms=None):
        """Whether the server answers: PING."""
        return self._ask(("PING",), "flag", within_ms)

    def get(self, name, *, within_ms=None):
        """The value of a key: GET."""
        return self._ask(("GET", name), "plain", within_ms)

    def set(self, name, value, ex=None, px=None, nx=False, xx=False, keepttl=False, get=False, exat=None, pxat=None, *, within_ms=None):
        """Sets a key: SET. ``True``, or ``None`` if ``nx`` or ``xx`` kept it from that; with ``get`` what it held before."""
        options = _flags(ex=ex, px=px, exat=exat, pxat=pxat, nx=nx, xx=xx, keepttl=keepttl, get=get)
        return self._ask(("SET", name, value, *options), "plain", within_ms)

    def compare_and_swap(self, name, expected, value, ex=None, px=None, keepttl=False, *, within_ms=None):
        """Sets a key to ``value`` if it holds ``expected``, in one step; whether it did: SET with IFEQ."""
        words = ("SET", name, value, "IFEQ", expected, *_flags(ex=ex, px=px, keepttl=keepttl))
        return self._ask(words, "flag", within_ms)

    def delete_if_equal(self, name, expected, *, within_ms=None):
        """Deletes a key if it holds ``expected``, in one step; whether it did: DELIFEQ."""
        return self._ask(("DELIFEQ", name, expected), "flag", within_ms)

    def getdel(self, name, *, within_ms=None):
        """The value of a key, which is deleted: GETDEL."""
        return self._ask(("GETDEL", name), "plain", within_ms)

    def append(self, key, value, *, within_ms=None):
        """Adds to the end of a value; how long it is then: APPEND."""
        return self._ask(("APPEND", key, value), "plain", within_ms)

    def strlen(self, name, *, within_ms=None):
        """How long a value is: STRLEN."""
        return self._ask(("STRLEN", name), "plain", within_ms)

    def getrange(self, key, start, end, *, within_ms=None):
        """A part of a value, ``end`` included: GETRANGE."""
        return self._ask(("GETRANGE", key, start, end), "plain", within_ms)

    def setrange(self, name, offset, value, *, within_ms=None):
        """Overwrites a part of a value; how long it is then: SETRANGE."""
        return self._ask(("SETRANGE", name, offset, value), "plain", within_ms)

    def mget(self, keys, *args, within_ms=None):
        """The values of some keys: MGET."""
        return self._ask(("MGET", *_listed(keys, args)), "values", within_ms)

    def mset(self, mapping, *, within_ms=None):
        """Sets some keys together: MSET."""
        words = [word for pair in mapping.items() for word in pair]
        return self._ask(("MSET", *words), "plain", within_ms)

    def incr(self, name, amount=1, *, within_ms=None):
        """Adds to a counter; what it is then: INCRBY."""
        return self._ask(("INCRBY", name, amount), "plain", within_ms)

    incrby = incr

    def decr(self, name, amount=1, *, within_ms=None):
        """Takes from a counter; what it is then: DECRBY."""
        return self._ask(("DECRBY", name, amount), "plain", within_ms)

    decrby = decr

    def incrbyfloat(self, name, amount=1.0, *, within_ms=None):
        """Adds to a number with a fraction; what it is then: INCRBYFLOAT."""
        return self._ask(("INCRBYFLOAT", name, amount), "float", within_ms)

    def delete(self, *names, within_ms=None):
        """Deletes keys; how many were there: DEL."""
        return self._ask(("DEL", *names), "plain", within_ms)

    def exists(self, *names, within_ms=None):
        """How many of the keys are there: EXISTS."""
        return self._ask(("EXISTS", *names), "plain", within_ms)

    def expire(self, name, time, *, within_ms=None):
        """Deletes a key after so many seconds; whether it is there: EXPIRE."""
        return self._ask(("EXPIRE", name, time), "flag", within_ms)

    def pexpire(self, name, time, *, within_ms=None):
        """Deletes a key after so many milliseconds; whether it is there: PEXPIRE."""
        return self._ask(("PEXPIRE", name, time), "flag", within_ms)

    def persist(self, name, *, within_ms=None):
        """Keeps a key that had an expiry; whether it had one: PERSIST."""
        return self._ask(("PERSIST", name), "flag", within_ms)

    def ttl(self, name, *, within_ms=None):
        """Seconds until a key is deleted; -1 without expiry, -2 without key: TTL."""
        return self._ask(("TTL", name), "plain", within_ms)

    def pttl(self, name, *, within_ms=None):
        """Milliseconds until a key is deleted, as ``ttl``: PTTL."""
        return self._ask(("PTTL", name), "plain", within_ms)

    def type(self, name, *, within_ms=None):
        """What a key holds, as ``string``: TYPE."""
        return self._ask(("TYPE", name), "plain", within_ms)

    def rename(self, src, dst, *, within_ms=None):
        """Gives a value another key: RENAME."""
        return self._ask(("RENAME", src, dst), "plain", within_ms)

    def keys(self, pattern="*", *, within_ms=None):
        """All keys that a pattern fits: KEYS. It holds the server up for as long as it takes to look at all."""
        return self._ask(("KEYS", pattern), "plain", within_ms)

    def dbsize(self, *, within_ms=None):
        """How many keys there are: DBSIZE."""
        return self._ask(("DBSIZE",), "plain", within_ms)

    def flushdb(self, *, within_ms=None):
        """Deletes all keys of the database: FLUSHDB."""
        return self._ask(("FLUSHDB",), "plain", within_ms)

    def lpush(self, name, *values, within_ms=None):
        """Adds to the head of a list; how long it is then: LPUSH."""
        return self._ask(("LPUSH", name, *values), "plain", within_ms)

    def rpush(self, name, *values, within_ms=None):
        """Adds to the end of a list; how long it is then: RPUSH."""
        return self._ask(("RPUSH", name, *values), "plain", within_ms)

    def lpop(self, name, count=None, *, within_ms=None):
        """Takes the head off a list; with ``count`` a list of that many: LPOP."""
        return self._ask(("LPOP", name, *(() if count is None else (count,))), "plain", within_ms)

    def rpop(self, name, count=None, *, within_ms=None):
        """Takes the end off a list, as ``lpop``: RPOP."""
        return self._ask(("RPOP", name, *(() if count is None else (count,))), "plain", within_ms)

    def llen(self, name, *, within_ms=None):
        """How long a list is: LLEN."""
        return self._ask(("LLEN", name), "plain", within_ms)

    def lrange(self, name, start, end, *, within_ms=None):
        """A part of a list, ``end`` included: LRANGE."""
        return self._ask(("LRANGE", name, start, end), "plain", within_ms)

    def lindex(self, name, index, *, within_ms=None):
        """An element of a list: LINDEX."""
        return self._ask(("LINDEX", name, index), "plain", within_ms)

    def lset(self, name, index, value, *, within_ms=None):
        """Replaces an element of a list: LSET."""
        return self._ask(("LSET", name, index, value), "plain", within_ms)

    def lrem(self, name, count, value, *, within_ms=None):
        """Removes elements that are ``value``; how many: LREM."""
        return self._ask(("LREM", name, count, value), "plain", within_ms)

    def ltrim(self, name, start, end, *, within_ms=None):
        """Keeps a part of a list, ``end`` included: LTRIM."""
        return self._ask(("LTRIM", name, start, end), "plain", within_ms)

    def lmove(self, first_list, second_list, src="LEFT", dest="RIGHT", *, within_ms=None):
        """Moves an element from one list to another: LMOVE."""
        return self._ask(("LMOVE", first_list, second_list, src, dest), "plain", within_ms)

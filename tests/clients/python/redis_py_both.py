"""redis-py's own tests against one store twice: directly, and through a proxy. Whatever passes directly has to pass proxied."""

import re
import subprocess
import sys
from pathlib import Path

from redis_py_suite import VERSION, source

FILES = [f"test_{name}.py" for name in ["commands", "pipeline", "encoding", "pubsub", "lock", "scripting", "monitor"]]
# What differs on purpose, with its reason.
EXCEPTIONS = {
    # CLIENT LIST and CLIENT KILL see connections of the proxy: a caller has one there only while it needs one.
    "test_client_kill",
    "test_client_kill_filter_by_id",
    "test_client_kill_filter_by_addr",
    "test_client_kill_filter_by_laddr",
    "test_client_list_after_client_setname",
    # A user that may not SELECT logs in on a connection that chose its database before: the proxy's has to choose it afterwards.
    "test_auth",
}
OUTCOME = re.compile(r"^(tests/\S+?::.*?) (PASSED|FAILED|ERROR)")


def outcomes(root, host, port):
    """Test -> whether it passed."""
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-W", "ignore", "--tb=short"]
    command += [f"--redis-url=redis://{host}:{port}/9", "-m", "not redismod and not onlycluster"]
    command += [f"tests/{name}" for name in FILES]
    env = {"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"}
    result = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True)
    found = [OUTCOME.match(line) for line in result.stdout.splitlines()]
    return {match[1]: match[2] == "PASSED" for match in found if match}, result.stdout


def main():
    folder, host, proxied, direct = Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3], sys.argv[4]
    root = source(folder)
    of_store, _ = outcomes(root, host, direct)
    of_proxy, output = outcomes(root, host, proxied)
    expected = [test for test, passed in of_store.items() if passed]
    excepted = [test for test in expected if test.rsplit("::", 1)[-1] in EXCEPTIONS]
    expected = [test for test in expected if test not in excepted]
    missed = [test for test in expected if not of_proxy.get(test)]
    for test in missed:
        print(f"passes directly, and not through the proxy: {test}")
    if missed:
        print(output[-8000:])
    print(f"redis-py {VERSION}: {len(of_store)} tests, {len(expected)} pass directly and are judged, {len(excepted)} differ on purpose")
    passed, failed = len(expected) - len(missed), len(missed) if expected else 1
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

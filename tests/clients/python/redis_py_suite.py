"""redis-py's own command tests against a running server: all but the excluded ones have to pass."""

import re
import subprocess
import sys
import tarfile
from pathlib import Path

VERSION = "5.2.1"
FILES = ["test_commands.py", "test_pipeline.py", "test_encoding.py"]


def source(folder):
    """The source distribution, which brings the tests along; fetched once by pip."""
    unpacked = folder / f"redis-{VERSION}"
    if not unpacked.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-binary", "redis", "--no-deps"]
        subprocess.run([*pip, "--dest", str(folder), f"redis=={VERSION}"], check=True)
        with tarfile.open(folder / f"redis-{VERSION}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return unpacked


def excluded():
    lines = Path(__file__).with_name("redis-py-excluded.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith(("#", "["))]


def main():
    folder, host, port = Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
    root = source(folder)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "--tb=line", "-rfE"]
    command += [f"--redis-url=redis://{host}:{port}/0", "-m", "not redismod and not onlycluster"]
    command += [f"--deselect=tests/{test}" for test in excluded()]
    command += [f"tests/{name}" for name in FILES]
    result = subprocess.run(command, cwd=root, env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
    for line in result.stdout.splitlines():
        if line.startswith(("FAILED", "ERROR")):
            print(line)
    summary = result.stdout.strip().splitlines()[-1] if result.stdout.strip() else result.stderr
    count = lambda word: sum(int(number) for number in re.findall(rf"(\d+) {word}", summary))
    passed, failed = count("passed"), count("failed") + count("error")
    print(f"redis-py {VERSION}: {summary}; {len(excluded())} excluded by the list")
    if passed == 0:
        failed = max(failed, 1)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

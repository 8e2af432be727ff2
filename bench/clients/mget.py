"""MGETs of many keys by redis-py's cluster client, which splits them by slot. The program `mget` of crate `bench` starts this.

For each line of standard input, a number of seconds, it asks for as long and answers with a line of JSON.
"""

import argparse
import json
import random
import sys
import time

from redis.cluster import RedisCluster


def slice_of(client, arguments, seconds):
    """Asks until the time is over: what each MGET took, seconds, and how many values were not as they were set."""
    took, wrong = [], 0
    begun = now = time.perf_counter()
    while now - begun < seconds:
        numbers = random.sample(range(arguments.keys), arguments.batch)
        names = [f"key:{number:011d}" for number in numbers]
        asked = time.perf_counter()
        values = client.mget_nonatomic(names)
        now = time.perf_counter()
        took.append(now - asked)
        wrong += sum(value is None or len(value) != arguments.value_bytes for value in values)
    return took, now - begun, wrong


def main():
    parser = argparse.ArgumentParser()
    for name in ("--port", "--keys", "--batch", "--value-bytes"):
        parser.add_argument(name, type=int, required=True)
    arguments = parser.parse_args()
    client = RedisCluster(host="127.0.0.1", port=arguments.port)
    random.seed(1)
    for line in sys.stdin:
        took, seconds, wrong = slice_of(client, arguments, float(line))
        took.sort()
        rank = lambda percent: took[max(0, -(-len(took) * percent // 100) - 1)] * 1e6
        told = {"count": len(took), "seconds": seconds, "p50_us": rank(50), "p99_us": rank(99), "wrong": wrong}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()

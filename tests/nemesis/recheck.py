#!/usr/bin/env python3
"""Judges a history of `proof nemesis` again, by another way and in another language (AT-29).

    recheck.py FOLDER…        each with history.jsonl; prints what is wrong, ends with 1 if anything is

Crates/proof judges by places and one sweep. Here every read is held against the sets of what had been acknowledged before
it began and of what had not been sent before it ended, pair by pair: slower, and nothing in common but the file.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path

NEVER = float("inf")


def tokens_of(value):
    parts = value.split(",")
    if parts.pop() != "":
        raise ValueError(f"a torn value: {value[-60:]!r}")
    return parts


def judge_tokens(operations):
    """Strings that grow by unique tokens, appended or set by comparisons."""
    sent, acknowledged, refused, reads = {}, {}, set(), []
    for one in operations:
        if one["f"] in ("append", "swap"):
            token = one["token"].rstrip(",")
            if token in sent:
                yield f"the token {token} was sent twice: the history itself is wrong"
            sent[token] = one["begun"]
            if one["answer"] == "ok":
                acknowledged[token] = one["ended"]
            if one["answer"] in ("refused", "differs"):
                refused.add(token)
            if one["f"] == "swap" and one["answer"] == "ok":
                # It read `old`, and left old and the token.
                reads.append((one["begun"], one["ended"], tokens_of(one["old"]) + [token], one))
        elif one["answer"] == "ok":
            reads.append((one["begun"], one["ended"], tokens_of(one["value"]), one))
    for begun, ended, value, one in reads:
        seen = set(value)
        if len(seen) != len(value):
            yield f"a token is there twice: {one}"
        if not seen <= sent.keys():
            yield f"nobody sent {seen - sent.keys()}: {one}"
            continue
        if seen & refused:
            yield f"refused, and there: {seen & refused}: {one}"
        if any(sent[token] > ended for token in seen):
            yield f"read before it was sent: {one}"
        missing = {token for token, at in acknowledged.items() if at < begun} - seen
        if missing:
            yield f"acknowledged before and not there: {missing}: {one}"
    # One order: sorted by length each is the beginning of the next.
    by_length = sorted(reads, key=lambda read: len(read[2]))
    for (_, _, shorter, one), (_, _, longer, other) in zip(by_length, by_length[1:]):
        if longer[: len(shorter)] != shorter:
            yield f"two orders: {one} and {other}"
    # What was seen stays.
    by_begin = sorted(reads, key=lambda read: read[0])
    by_end = sorted(reads, key=lambda read: read[1])
    longest, at = 0, 0
    for begun, _, value, one in by_begin:
        while by_end[at][1] < begun:
            longest = max(longest, len(by_end[at][2]))
            at += 1
        if len(value) < longest:
            yield f"{longest} tokens had been seen before: {one}"
    # An append says how long the value is then, and a token stands where its append says.
    if by_length:
        order = by_length[-1][2]
        ends, length = {}, 0
        for token in order:
            length += len(token) + 1
            ends[token] = length
        places = {token: index for index, token in enumerate(order)}
        for one in operations:
            token = one.get("token", "").rstrip(",")
            if one["f"] == "append" and one["answer"] == "ok" and ends.get(token, one["number"]) != one["number"]:
                yield f"it stands elsewhere: {one}"
            if one["f"] == "swap" and token in places and one["answer"] != "differs":
                if tokens_of(one["old"]) != order[: places[token]]:
                    yield f"set upon another value: {one}"
        # Who was appended after another's acknowledgement stands behind it.
        placed = [(sent[token], acknowledged.get(token, NEVER), place, token) for token, place in places.items()]
        for begun, _, place, token in placed:
            for _, ended, other_place, other in placed:
                if ended < begun and other_place > place:
                    yield f"{token} began after {other} was acknowledged, and stands before it"


def judge_counter(operations):
    """INCR and GET of one number."""
    increments = [one for one in operations if one["f"] == "incr"]
    confirmed = sum(one["answer"] == "ok" for one in increments)
    doubtful = sum(one["answer"] == "unknown" for one in increments)
    told = [one["number"] for one in increments if one["answer"] == "ok"]
    if len(set(told)) != len(told):
        yield "two increments were told the same"
    seen = [one for one in operations if one["answer"] == "ok"]
    if not seen:
        return
    last = max(seen, key=lambda one: one["begun"])
    if not confirmed <= last["number"] <= confirmed + doubtful:
        yield f"{confirmed} confirmed, {doubtful} in doubt, and in the end {last['number']}"
    for one in seen:
        before = sum(other["ended"] < one["begun"] for other in increments if other["answer"] == "ok")
        if one["number"] < before + (one["f"] == "incr"):
            yield f"{before} had been confirmed before: {one}"
        begun = sum(other["begun"] <= one["ended"] for other in increments if other["answer"] != "refused")
        if one["number"] > begun:
            yield f"only {begun} had been sent: {one}"
    by_begin = sorted(seen, key=lambda one: one["begun"])
    by_end = sorted(seen, key=lambda one: one["ended"])
    highest, at = 0, 0
    for one in by_begin:
        while by_end[at]["ended"] < one["begun"]:
            highest = max(highest, by_end[at]["number"])
            at += 1
        if one["number"] < highest + (one["f"] == "incr"):
            yield f"{highest} had been seen before: {one}"


def judge_register(operations):
    """SET and GET of unlike values. Who saw which is known: values are put in a row, each as soon as all are there that had to be there
    before, and what cannot be put there is in a circle."""
    writes = {one["token"]: one for one in operations if one["f"] == "put"}
    # Of each value, in which moments somebody had it for certain: when it had returned, and when it began.
    spans = defaultdict(list)
    spans[""].append((0, 0))
    for token, one in writes.items():
        if one["answer"] == "ok":
            spans[token].append((one["begun"], one["ended"]))
    for one in operations:
        if one["f"] != "read" or one["answer"] != "ok":
            continue
        value = one["value"]
        if value:
            write = writes.get(value)
            if write is None:
                yield f"nobody sent {value}: {one}"
                continue
            if write["answer"] == "refused":
                yield f"refused, and there: {one}"
            if write["begun"] > one["ended"]:
                yield f"read before it was sent: {one}"
            spans[value].append((write["begun"], NEVER))
        spans[value].append((one["begun"], one["ended"]))
    returned = {value: min(end for _, end in of) for value, of in spans.items()}
    begun = {value: max(begin for begin, _ in of) for value, of in spans.items()}
    left = set(spans)
    while left:
        # A value may be next if no other one that is left has returned before somebody began with this one.
        by_return = sorted(left, key=returned.__getitem__)[:2]
        free = [value for value in left if all(other == value or returned[other] >= begun[value] for other in by_return)]
        if not free:
            yield f"each was there before another: {sorted(left, key=returned.__getitem__)[:6]}"
            return
        left.difference_update(free)


def judge(folder):
    keys = defaultdict(list)
    count = 0
    for line in (folder / "history.jsonl").open():
        one = json.loads(line)
        keys[one["key"]].append(one)
        count += 1
    problems = []
    for key, operations in sorted(keys.items()):
        rule = {"c": judge_counter, "r": judge_register}.get(key[0], judge_tokens)
        problems += [f"{key}: {problem}" for problem in rule(operations)]
    for problem in problems[:12]:
        print(f"  {problem[:600]}")
    print(f"{folder}: {count} operations on {len(keys)} keys judged again, {len(problems)} wrong")
    return not problems


def main(folders):
    if not folders:
        sys.exit(__doc__)
    verdicts = [judge(Path(folder)) for folder in folders]
    print(f"{sum(verdicts)} passed, {len(verdicts) - sum(verdicts)} failed")
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

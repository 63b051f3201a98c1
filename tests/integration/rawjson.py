# SPDX-License-Identifier: MIT
"""Finds values in JSON text as bytes, so that a test can say which bytes may differ."""

import json
import re

STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.S)
WORD = re.compile(rb'[^\s,\]}:"{\[]+')
MARK = re.compile(rb'["{}\[\]]')
SPACE = re.compile(rb'[ \t\r\n]*')


class Malformed(Exception):
    """The bytes are not the JSON that was expected at this place."""


def skip_space(data, at):
    return SPACE.match(data, at).end()


def value_end(data, at):
    """Where the value that begins at `at` ends."""
    first = data[at:at + 1]
    if first == b'"':
        match = STRING.match(data, at)
        if match is None:
            raise Malformed("unended string")
        return match.end()
    if first not in (b'{', b'['):
        match = WORD.match(data, at)
        if match is None:
            raise Malformed(f"no value at byte {at}")
        return match.end()
    depth = 0
    while True:
        match = MARK.search(data, at)
        if match is None:
            raise Malformed("unended container")
        mark = match.group()
        if mark == b'"':
            at = STRING.match(data, match.start()).end()
            continue
        at = match.end()
        depth += 1 if mark in b'{[' else -1
        if depth == 0:
            return at


def members(data, at=0):
    """(name, start of the member, start and end of its value) of the object at `at`."""
    at = skip_space(data, at)
    if data[at:at + 1] != b'{':
        return
    at = skip_space(data, at + 1)
    while data[at:at + 1] == b'"':
        start = at
        at = value_end(data, at)
        name = json.loads(data[start:at])
        at = skip_space(data, at)
        at = skip_space(data, at + 1)  # the colon
        end = value_end(data, at)
        yield name, start, at, end
        at = skip_space(data, end)
        if data[at:at + 1] != b',':
            return
        at = skip_space(data, at + 1)


def elements(data, at):
    """(start, end) of the values in the array at `at`."""
    at = skip_space(data, at)
    if data[at:at + 1] != b'[':
        return
    at = skip_space(data, at + 1)
    while data[at:at + 1] not in (b']', b''):
        end = value_end(data, at)
        yield at, end
        at = skip_space(data, end)
        if data[at:at + 1] == b',':
            at = skip_space(data, at + 1)


def find(data, path, at=0):
    """The (start, end) of the value at "a.b.c", or None."""
    span = (skip_space(data, at), None)
    for step in path.split('.'):
        for name, _, start, end in members(data, span[0]):
            if name == step:
                span = (start, end)
                break
        else:
            return None
    return span


def raw(data, path):
    """The bytes of the value at "a.b.c", or None."""
    span = find(data, path)
    return None if span is None else data[span[0]:span[1]]


def replace(data, path, value):
    """The text with the value at the path replaced; unchanged if there is no such value."""
    span = find(data, path)
    return data if span is None else data[:span[0]] + value + data[span[1]:]


def without_member(data, at, name):
    """The text without one member, and its comma, of the object at `at`."""
    found = list(members(data, at))
    for index, (member, start, _, end) in enumerate(found):
        if member != name:
            continue
        if index + 1 < len(found):
            return data[:start] + data[found[index + 1][1]:]
        if index > 0:
            return data[:found[index - 1][3]] + data[end:]
        return data[:start] + data[end:]
    return data

# SPDX-License-Identifier: MIT
"""
Compares what one side saw in a direct conversation with what it saw through the broker, byte for
byte except for the broker's table of edits:

    both              id; $/cancel_request.params.requestId; elicitation/create.params.requestId
    editor -> agent   initialize: protocolVersion, pinned to 1
    agent -> editor   initialize result: protocolVersion; _meta.broker; args and env of
                      authMethods of type terminal: no args, and a token in env

The comparison parses and rewrites nothing: it cuts the allowed bytes out of the text, and checks
for each cut that these bytes are what the table says.
"""

import json
import re

import rawjson

LOGIN_ENV = re.compile(br'\{"ACP_BROKER_LOGIN":"[0-9a-f]{32}"\}')
PLACEHOLDER = b'<id>'


class Difference(AssertionError):
    """The two conversations differ where they may not."""


def is_minted(raw_id):
    """The broker mints small integers that are not negative."""
    return raw_id.isdigit() and int(raw_id) < 2 ** 31


class Side:
    """One hop as one of its ends received it, with the requests that this end has sent on it."""

    def __init__(self, received, sent):
        self.received = [line.rstrip(b'\r') for line in received if line.strip()]
        self.sent_ids = [rawjson.raw(line, 'id') for line in sent if is_request(line)]
        # The ids of the requests received, in their order.
        self.ids = [rawjson.raw(line, 'id') for line in self.received if is_request(line)]


def method_of(line):
    raw = rawjson.raw(line, 'method')
    return json.loads(raw) if raw is not None else None


def is_request(line):
    try:
        return method_of(line) is not None and rawjson.raw(line, 'id') is not None
    except (rawjson.Malformed, ValueError):
        return False


def replace_request_id(line, ids):
    """
    Replaces a requestId. It must name a request that travels the same way, by its id on this hop.
    """
    named = rawjson.raw(line, 'params.requestId')
    if named is None:
        return line
    if named not in ids:
        raise Difference(f'requestId {named!r} names no request of this hop')
    number = ids.index(named)
    return rawjson.replace(line, 'params.requestId', b'<request-%d>' % number)


def without_broker_meta(line, reference):
    """The line without result._meta.broker, and without result._meta if the reference has none."""
    for name in ('version', 'backend', 'capabilities'):
        if rawjson.raw(line, f'result._meta.broker.{name}') is None:
            raise Difference(f'_meta.broker has no {name}: {line!r}')
    meta = rawjson.find(line, 'result._meta')
    line = rawjson.without_member(line, meta[0], 'broker')
    if rawjson.raw(reference, 'result._meta') is None:
        if rawjson.raw(line, 'result._meta') != b'{}':
            raise Difference(f'_meta has more than broker: {line!r}')
        line = rawjson.without_member(line, rawjson.find(line, 'result')[0], '_meta')
    return line


def without_args_and_env(method):
    for name in ('args', 'env'):
        if rawjson.raw(method, name) is not None:
            method = rawjson.without_member(method, 0, name)
    return method


def with_original_logins(line, reference):
    """The line with the args and env that the agent gave its terminal methods."""
    methods = rawjson.find(line, 'result.authMethods')
    if methods is None:
        return line
    spans = list(rawjson.elements(line, methods[0]))
    originals = [reference[start:end] for start, end in rawjson.elements(
        reference, rawjson.find(reference, 'result.authMethods')[0])]
    for (start, end), original in reversed(list(zip(spans, originals, strict=True))):
        method = line[start:end]
        if rawjson.raw(original, 'type') != b'"terminal"':
            continue
        env = rawjson.raw(method, 'env')
        if rawjson.raw(method, 'args') != b'[]' or not LOGIN_ENV.fullmatch(env):
            raise Difference(f'a terminal method has more than a token: {method!r}')
        if without_args_and_env(method) != without_args_and_env(original):
            raise Difference(f'a terminal method has changed: {method!r}')
        line = line[:start] + original + line[end:]
    return line


def normal_request(line, side):
    """A request or notification that was received, without the hop's own ids."""
    method = method_of(line)
    if is_request(line):
        line = rawjson.replace(line, 'id', PLACEHOLDER)
    if method == '$/cancel_request':
        line = replace_request_id(line, side.ids)
    if method == 'elicitation/create':
        line = replace_request_id(line, side.sent_ids)
    return line


def show(line):
    return line if len(line) < 600 else line[:300] + b' ... ' + line[-200:]


def compare_line(direct, broker, direct_side, broker_side, initialize_id):
    """Raises Difference unless the two lines are the same message."""
    try:
        if method_of(direct) is None:
            is_version = rawjson.raw(direct, 'result.protocolVersion') is not None
            if is_version and rawjson.raw(direct, 'id') == initialize_id:
                if rawjson.raw(broker, 'result.protocolVersion') != b'1':
                    raise Difference(f'the editor was not answered version 1: {broker!r}')
                broker = with_original_logins(without_broker_meta(broker, direct), direct)
                direct = rawjson.replace(direct, 'result.protocolVersion', b'1')
        else:
            if is_request(broker) and not is_minted(rawjson.raw(broker, 'id')):
                raise Difference(f'the id is not one the broker mints: {show(broker)!r}')
            if method_of(direct) == 'initialize':
                if rawjson.raw(broker, 'params.protocolVersion') != b'1':
                    raise Difference(f'the agent was not asked for version 1: {broker!r}')
                direct = rawjson.replace(direct, 'params.protocolVersion', b'1')
            direct = normal_request(direct, direct_side)
            broker = normal_request(broker, broker_side)
    except rawjson.Malformed as problem:
        raise Difference(f'{problem}: {show(direct)!r} {show(broker)!r}') from None
    if direct != broker:
        raise Difference(f'direct:  {show(direct)!r}\nbroker:  {show(broker)!r}')


def compare_side(direct, broker, initialize_id=None):
    """
    Compares two Sides. initialize_id is the raw id of the editor's initialize request, if this
    compares the editor's end.
    """
    for number, (one, other) in enumerate(zip(direct.received, broker.received)):
        try:
            compare_line(one, other, direct, broker, initialize_id)
        except Difference as problem:
            raise Difference(f'message {number}: {problem}') from None
    if len(direct.received) != len(broker.received):
        longer = max(direct.received, broker.received, key=len)
        at = min(len(direct.received), len(broker.received))
        raise Difference(f'{len(direct.received)} messages directly, {len(broker.received)} '
                         f'through the broker; the first of the others: {show(longer[at])!r}')
    if len(set(broker.ids)) != len(broker.ids):
        raise Difference(f'an id was minted twice: {broker.ids}')


def name_requests(lines):
    """
    Returns the lines of one hop, given as (goes to the agent, bytes), in two lists, one for each
    direction. Replaces every id by the number of its request in its direction, so that two hops
    with different ids can be compared. An answer names the request that it answers.
    """
    open_ids = {True: {}, False: {}}  # for each direction of requests: id -> its number
    counts = {True: 0, False: 0}
    named = {True: [], False: []}
    for to_agent, line in lines:
        line = line.rstrip(b'\r')
        if not line.strip():
            continue
        raw_id = rawjson.raw(line, 'id')
        if is_request(line):
            open_ids[to_agent][raw_id] = b'<request-%d>' % counts[to_agent]
            counts[to_agent] += 1
            line = rawjson.replace(line, 'id', open_ids[to_agent][raw_id])
        elif method_of(line) is None:
            number = open_ids[not to_agent].get(raw_id)
            if number is None:
                raise Difference(f'answers no request: {show(line)!r}')
            line = rawjson.replace(line, 'id', number)
        goes_with = {'$/cancel_request': to_agent, 'elicitation/create': not to_agent}
        if method_of(line) in goes_with and rawjson.raw(line, 'params.requestId') is not None:
            number = open_ids[goes_with[method_of(line)]].get(rawjson.raw(line, 'params.requestId'))
            if number is None:
                raise Difference(f'requestId names no request: {show(line)!r}')
            line = rawjson.replace(line, 'params.requestId', number)
        named[to_agent].append(line)
    return named


def compare_hops(editor_hop, agent_hop):
    """
    Compares what entered the broker with what left it in one run: every message, in order, byte for
    byte except for the table of edits. Lines are (goes to the agent, bytes).
    """
    outer, inner = name_requests(editor_hop), name_requests(agent_hop)
    for source, target in ((outer[True], inner[True]), (inner[False], outer[False])):
        for number, (came, went) in enumerate(zip(source, target)):
            if method_of(came) == 'initialize':
                came = rawjson.replace(came, 'params.protocolVersion', b'1')
            elif rawjson.raw(went, 'result._meta.broker') is not None:
                went = with_original_logins(without_broker_meta(went, came), came)
                came = rawjson.replace(came, 'result.protocolVersion', b'1')
            if came != went:
                raise Difference(f'message {number}:\ncame {show(came)!r}\nwent {show(went)!r}')
        if len(source) != len(target):
            raise Difference(f'{len(source)} messages came and {len(target)} went; the last that '
                             f'came: {show(source[-1])!r}; the last that went: '
                             f'{show(target[-1]) if target else None!r}')

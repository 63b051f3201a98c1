# SPDX-License-Identifier: MIT
"""
Checks the traffic of a hop against ACP's own JSON schema (v1, stable), which comes with the npm
package that tests/interop installs. Its definitions say who implements a method (x-side) and which
method it is (x-method). The schema allows unknown members; other tests check that these survive.
"""

import json
import os
import pathlib

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMA = ROOT / 'tests/interop/node_modules/acp-schema/schema/v1/schema.json'

TO_AGENT, TO_EDITOR = 'agent', 'client'  # the receiver of a message: the x-side of its method


def available():
    return SCHEMA.is_file()


class Schema:
    """The definitions, by side, method and kind of message."""

    def __init__(self, path=SCHEMA):
        document = json.loads(path.read_text())
        self.definitions = document['$defs']
        self.names = {}  # (side, method, 'Request' | 'Response' | 'Notification') -> name
        for name, definition in self.definitions.items():
            if 'x-method' in definition:
                kind = next(kind for kind in ('Request', 'Response', 'Notification')
                            if name.endswith(kind))
                self.names[definition['x-side'], definition['x-method'], kind] = name
        self.validators = {}

    def problems(self, name, value):
        """The problems of a value with this definition, one line for each."""
        if name not in self.validators:
            self.validators[name] = jsonschema.Draft202012Validator(
                {'$ref': f'#/$defs/{name}', '$defs': self.definitions})
        return [f'{name}: {"/".join(map(str, error.absolute_path))}: {error.message[:300]}'
                for error in self.validators[name].iter_errors(value)]

    def methods(self, side):
        return {method for found, method, _ in self.names if found in (side, 'protocol')}


class Hop:
    """The messages between two programs, in order; `problems` collects what is wrong with them."""

    def __init__(self, schema):
        self.schema = schema
        self.waiting = {TO_AGENT: {}, TO_EDITOR: {}}  # id -> method of the unanswered requests
        self.problems = []
        self.unknown = set()  # methods the schema does not have
        self.checked = {}     # definition -> how often it was checked

    def complain(self, line, text):
        self.problems.append(f'{text}\n    {line[:400]!r}')

    def feed(self, to, line):
        """Takes one line that goes to the agent or to the editor."""
        try:
            message = json.loads(line.decode('utf-8'))
        except ValueError as error:
            self.complain(line, f'no JSON: {error}')
            return
        if not isinstance(message, dict) or message.get('jsonrpc') != '2.0':
            self.complain(line, 'no JSON-RPC 2.0 object')
            return
        if 'id' in message:
            self.check(line, 'RequestId', message['id'])
        if 'method' in message:
            self.take_call(to, line, message)
        else:
            self.take_answer(to, line, message)

    def check(self, line, name, value):
        self.checked[name] = self.checked.get(name, 0) + 1
        for problem in self.schema.problems(name, value):
            self.complain(line, problem)

    def name_of(self, side, method, kind):
        names = self.schema.names
        return names.get((side, method, kind)) or names.get(('protocol', method, kind))

    def take_call(self, to, line, message):
        method = message['method']
        kind = 'Request' if 'id' in message else 'Notification'
        if kind == 'Request':
            number = json.dumps(message['id'])
            if number in self.waiting[to]:
                self.complain(line, 'the id is in use')
            self.waiting[to][number] = method
        name = self.name_of(to, method, kind)
        if name is None:
            self.unknown.add(method)
            return
        self.check(line, name, message.get('params', {}))

    def take_answer(self, to, line, message):
        asked = TO_EDITOR if to == TO_AGENT else TO_AGENT  # the receiver of the request
        number = json.dumps(message.get('id'))
        method = self.waiting[asked].pop(number, None)
        if method is None:
            self.complain(line, 'answers no open request')
            return
        if ('result' in message) == ('error' in message):
            self.complain(line, 'neither result nor error, or both')
        elif 'error' in message:
            self.check(line, 'Error', message['error'])
        else:
            name = self.name_of(asked, method, 'Response')
            if name is not None:
                self.check(line, name, message['result'])

    def unanswered(self):
        return [(to, number, method) for to, waiting in self.waiting.items()
                for number, method in waiting.items()]


def required():
    """Whether a missing schema is a failure instead of a reason to skip."""
    return os.environ.get('ACP_INTEROP_REQUIRED') == '1'

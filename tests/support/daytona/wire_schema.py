# SPDX-License-Identifier: MIT
"""
Compares what went over the wire, in both directions, with schema.json, which is taken from the
service's document. Where the service is known to differ, ALLOWED has an entry; any other difference
is a violation. So is an undeclared member or query parameter.
"""

import json
import pathlib
import re
import urllib.parse

import jsonschema

SCHEMA = json.loads((pathlib.Path(__file__).resolve().parent / 'schema.json').read_text())
CALLS, TYPES = SCHEMA['calls'], SCHEMA['types']
ERROR = {'type': 'object', 'additionalProperties': False,
         'required': ['statusCode', 'error', 'message'],
         'properties': {'path': {'type': 'string'}, 'timestamp': {'type': 'string'},
                        'statusCode': {'type': 'integer'}, 'error': {'type': 'string'},
                        'message': {'type': 'string'}}}

# Allowed violations, as patterns, with what was observed.
ALLOWED = {
    # A value that was never set reads as null, although the document promises a string.
    r'\S+ answer /networkAllowList: null is not string',
    r'\S+ answer /domainAllowList: null is not string',
    r'\S+ answer /errorReason: null is not string',
    r'list answer /items/\*/errorReason: null is not string',
    # Items of a list lack it, although the document requires it.
    r'list answer /items/\*: lacks networkBlockAll',
    # A sandbox that was built from a Dockerfile without a context.
    r'\S+ answer /buildInfo/contextHashes: null is not array',
    # The answer to labels is the whole sandbox instead of the labels.
    r'labels answer /: has \w+',
    # The interval calls answer 201; the document says 200.
    r'(autostop|autoarchive|autodelete) answer status 201',
    # An invalid token belongs to no sandbox.
    r'ssh-validate answer /sandboxId: null is not string',
}



def pointer(path):
    return '/' + '/'.join('*' if isinstance(part, int) else str(part) for part in path)


def describe(error):
    """
    Describes the violations in one error of jsonschema, in words that do not depend on values.
    """
    where = pointer(error.absolute_path)
    if error.validator == 'type':
        kind = 'null' if error.instance is None else type(error.instance).__name__
        return [f'{where}: {kind} is not {error.validator_value}']
    if error.validator == 'required':
        return [f'{where}: lacks {name}' for name in error.validator_value
                if name not in error.instance]
    if error.validator == 'additionalProperties':
        known = error.schema['properties']
        return [f'{where}: has {name}' for name in error.instance if name not in known]
    return [f'{where}: {error.message}']


def check(value, schema):
    whole = {**schema, 'types': TYPES}
    found = []
    for error in jsonschema.Draft7Validator(whole).iter_errors(value):
        found += describe(error)
    return sorted(set(found))  # "required" comes once for each missing member


def from_query(texts, schema):
    """A query parameter as a value of its type; the text itself if it does not fit the type."""
    kind = schema.get('type')
    if kind == 'array':
        return texts
    if kind == 'number' and re.fullmatch(r'-?\d+(\.\d+)?', texts[0]):
        return float(texts[0])
    if kind == 'boolean' and texts[0] in ('true', 'false'):
        return texts[0] == 'true'
    return texts[0]


def query_violations(call, url):
    asked = urllib.parse.parse_qs(urllib.parse.urlsplit(url).query, keep_blank_values=True)
    declared = call.get('query', {})
    found = [f'query lacks {name}' for name, schema in declared.items()
             if schema['required'] and name not in asked]
    for name, texts in asked.items():
        if name not in declared:
            found.append(f'query has {name}')
            continue
        schema = {key: value for key, value in declared[name].items() if key != 'required'}
        found += [f'query {name}: {text}'
                  for text in check(from_query(texts, declared[name]), schema)]
    return found


def request_violations(call, exchange):
    found = query_violations(call, exchange['url'])
    headers, body = exchange['requestHeaders'], exchange['requestBody']
    if not headers.get('authorization', '').startswith('Bearer '):
        found.append('has no bearer')
    declared = call.get('body')
    if body == '':
        return found + (['lacks a body'] if declared and declared['required'] else [])
    if not declared:
        return found + ['has a body']
    if headers.get('content-type', '').split(';')[0] != 'application/json':
        found.append('is no application/json')
    return found + check(json.loads(body), declared['schema'])


def answer_violations(call, exchange):
    status, text = exchange['status'], exchange['responseBody']
    if status >= 400:
        return [f'{status} {one}' for one in check(json.loads(text), ERROR)]
    found = []
    declared = call['answers'].get(str(status), ...)
    if declared is ...:
        found.append(f'status {status}')
        declared = next(iter(call['answers'].values()))
    if declared is None:
        return found + (['has a body'] if text else [])
    return found + check(json.loads(text), declared)


def violations(exchange, request=True, answer=True):
    """All violations in the two messages of one call, allowed or not."""
    name = exchange['name']
    if name not in CALLS:
        return [f'{name}: {exchange["method"]} {exchange["url"]} is no call that is known']
    call = CALLS[name]
    found = []
    if request:
        found += [f'{name} request {one}' for one in request_violations(call, exchange)]
    if answer and exchange['status'] is not None:
        found += [f'{name} answer {one}' for one in answer_violations(call, exchange)]
    return found


def not_allowed(exchanges, allowed, **which):
    """(violations that no pattern allows, patterns that were never met)"""
    found = {one for exchange in exchanges for one in violations(exchange, **which)}
    met = {pattern for pattern in allowed if any(re.fullmatch(pattern, one) for one in found)}
    return sorted(one for one in found
                  if not any(re.fullmatch(pattern, one) for pattern in met)), allowed - met

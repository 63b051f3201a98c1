# SPDX-License-Identifier: MIT
"""A session under a policy, and checks of what its editor is shown and told."""

import json
import pathlib

import jsonschema

from acp import RpcError
from case import Case

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPLAIN = json.loads((ROOT / 'docs' / 'schemas' / 'policy-explain.json').read_text())


def no_window(params):
    raise RpcError(-32603, 'no window is open')


def checked(part, value):
    """The value, after a check that it fits a part of the schema."""
    schema = dict(EXPLAIN, **{'$ref': '#/$defs/' + part})
    jsonschema.Draft202012Validator(schema).validate(value)
    return value


class PolicyCase(Case):
    def open(self, *flags, policy=('mode = ask-all',), broker=(), **keys):
        """A client with a session under a policy; `broker` has lines for the [broker] section."""
        options = self.config(policy=policy, **keys)
        if broker:
            path = self.dir / 'config'
            path.write_text(path.read_text() + '[broker]\n' + ''.join(
                f'\t{line}\n' for line in broker))
        client = self.broker(*flags, options=options)
        client.initialize()
        session = client.new_session(self.work)
        return client, session

    def questions(self, client):
        return [params for method, params in client.host.seen
                if method == 'session/request_permission']

    def chooses(self, client, kind):
        client.host.permission = kind

    def updates(self, client, kind):
        return [m.params['update'] for m in client.received if m.method == 'session/update'
                and m.params['update']['sessionUpdate'] == kind]

    def notices(self, client):
        return [update['title'] for update in self.updates(client, 'tool_call')
                if update['toolCallId'].startswith('acp-broker-notice-')]

    def explain(self, client, session, operation, **params):
        params = checked('params', dict(params, sessionId=session, operation=operation))
        return checked('result', client.call('_broker/policy/explain', params))

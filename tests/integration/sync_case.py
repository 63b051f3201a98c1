# SPDX-License-Identifier: MIT
"""
A session whose agent works in a copy of the workspace, and checks of what its editor is shown.
"""

import contextlib
import fcntl
import json
import pathlib
import re
import threading

import jsonschema

import case
import sync_room

from case import Case
from processes import PATIENCE

RUNNING = 'Syncing workspace'
QUIET = re.compile(r'^[^;]*: synced \(\w+\): [^;]*$')


# Read at once: a test that becomes another user may not be able to read the checkout afterwards.
SCHEMAS = {path.stem: json.loads(path.read_text()) for path in
           (pathlib.Path(__file__).resolve().parents[2] / 'docs' / 'schemas').glob('*.json')}


def checked(name, part, value):
    """The value, after a check that it fits this part of a schema."""
    schema = {**SCHEMAS[name], '$ref': f'#/$defs/{part}'}
    jsonschema.Draft202012Validator(schema).validate(value)
    return value


def fitting(name, result):
    """The result of one of the broker's own methods, after a check that it fits its schema."""
    return checked(name, 'result', result)


class SyncCase(Case):
    def setUp(self):
        super().setUp()
        self.state = self.dir / 'home/state/acp-broker'

    def copied(self, profile='copy', capabilities=None, policy=(), **keys):
        """A client whose agent works in a copy of the workspace."""
        lines = [f'[profile "{profile}"]', '\tisolation = copy']
        values = dict(case.DEADLINES, **{k.replace('_', '-'): v for k, v in keys.items()})
        lines += [f'\t{name} = {value}' for name, value in values.items()]
        if policy:
            lines += [f'[policy "{profile}"]', *(f'\t{line}' for line in policy)]
        config = self.dir / f'config-{profile}'
        config.write_text('\n'.join(lines) + '\n')
        client = self.broker(options=['--config', str(config), '--profile', profile])
        client.initialize(capabilities)
        return client

    def opened(self, **keys):
        client = self.copied(**keys)
        return client, client.new_session(self.work)

    def runtime(self, client, session):
        return pathlib.Path(self.status(client, session)['runtimeRoot'])

    def status(self, client, session):
        return fitting('session-status', client.call('_broker/session/status',
                                                     {'sessionId': session}))

    def records(self):
        return [json.loads(path.read_text()) for path in (self.state / 'sessions').glob('*.json')]

    def tree(self):
        """What is in the workspace: names and contents."""
        return {str(path.relative_to(self.work)): path.read_text()
                for path in sorted(self.work.rglob('*'))
                if path.is_file() and '.git' not in path.parts}

    def shown(self, client, session=None):
        """
        The notices that the broker has shown: (session, kind of update, number, title, status).
        """
        updates = [(m.params['sessionId'], m.params['update']) for m in client.received
                   if m.method == 'session/update']
        return [(s, u['sessionUpdate'], u['toolCallId'], u['title'], u['status'])
                for s, u in updates if u.get('toolCallId', '').startswith('acp-broker-notice')
                and session in (None, s)]

    def notices(self, client):
        """
        The notices with news: those that do not just say that a sync is under way or went well.
        """
        return [title for _, _, _, title, _ in self.shown(client)
                if title != RUNNING and not QUIET.search(title)]

    def parked(self, name):
        """The parked versions of files with this name."""
        return [path.read_text() for path in sync_room.parked_files(self.state)
                if path.name == name]

    @contextlib.contextmanager
    def held_store(self):
        """Holds the store's lock, so that no sync of the workspace begins."""
        store, = (self.state / 'stores').iterdir()
        with open(store / 'acp-broker.lock', 'r+b') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def wait_running(self, client, session=None, after=0):
        """Waits until the editor is shown that a sync is under way, after this many messages."""
        return client.wait_for(lambda m: m.method == 'session/update'
                               and m.params['update'].get('title') == RUNNING
                               and session in (None, m.params['sessionId']), after=after)


class TurnCase(SyncCase):
    """Adds what the agent has received, and syncs that wait when the agent says so."""

    def heard(self, method):
        """How often the agent received this method."""
        return sum(b'"%s"' % method.encode() in line for line in self.journal('<'))

    def hold_when_asked(self, client):
        """
        Locks the store from the moment in which the agent asks for a permission; returns a function
        that releases the lock.
        """
        holding = self.held_store()
        held = threading.Event()
        self.addCleanup(holding.__exit__, None, None, None)
        outcome = {'outcome': {'outcome': 'cancelled'}}

        def reply(_):
            holding.__enter__()
            held.set()
            return outcome

        def release():
            self.assertTrue(held.wait(PATIENCE))
            holding.__exit__(None, None, None)
        client.host.replies['session/request_permission'] = reply
        return release

    def wait_held(self, client, session=None):
        """
        Waits until the sync after such a prompt is shown; on a slow machine the one before it is
        shown, too.
        """
        asked = client.wait_for(lambda m: m.method == 'session/request_permission')
        return self.wait_running(client, session, client.messages.index(asked))

    def ended(self, client):
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0)

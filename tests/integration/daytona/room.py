# SPDX-License-Identifier: MIT
"""
A session whose agent works in a sandbox of Daytona's stand-in, and checks of what is left of it.
"""

import json
import pathlib
import subprocess
import sys

sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[2] / 'support' / 'daytona')]

from stand_in import DaytonaCase  # noqa: E402  first: it adds the folder of the others
from acp import RpcError  # noqa: E402
from case import BROKER  # noqa: E402
from processes import PATIENCE  # noqa: E402

# Keys of the profile. Only link-grace passes during a test: a sandbox cannot see that its broker is
# gone, and gives up when it has got no heartbeat for this time. The other deadlines do not pass.
KEYS = {'link-grace': '6s', **{f'{name}-timeout': '10m' for name in (
    'connect', 'auth', 'login', 'channel', 'api', 'create', 'stop', 'prepare')}}

# For a test in which the service or its gateway does not answer: the broker gives up by itself.
GIVEN_UP = {'start-timeout': '30s', 'connect-timeout': '10s', 'auth-timeout': '15s',
            'login-timeout': '15s', 'channel-timeout': '15s', 'prepare-timeout': '30s',
            'api-timeout': '20s', 'create-timeout': '30s', 'stop-timeout': '20s'}


class Room(DaytonaCase):
    def environment(self):
        return {**super().environment(), 'DAYTONA_API_KEY': self.daytona.key}

    def config(self, deadlines=True, policy=None, backend='daytona', **keys):
        named = {name.replace('_', '-'): value for name, value in keys.items()}
        return super().config(deadlines, policy, backend,
                              **{'api-url': self.daytona.api, **KEYS, **named})

    # ---- sessions ----

    def greeted(self, *flags, host=None, **keys):
        client = self.broker(*flags, options=self.config(**keys), host=host)
        client.initialize(seconds=PATIENCE)
        return client

    def start_error(self, **keys):
        """Starts a broker that must fail at `initialize`; returns the error."""
        client = self.broker(options=self.config(**keys))
        with self.assertRaises(RpcError) as caught:
            client.initialize(seconds=PATIENCE)
        client.close_stdin()
        client.wait(PATIENCE)
        return caught.exception

    def open_session(self, client):
        return client.call('session/new', {'cwd': str(self.work), 'mcpServers': []},
                           seconds=PATIENCE)['sessionId']

    def opened(self, *flags, **keys):
        client = self.greeted(*flags, **keys)
        return client, self.open_session(client)

    def prompt(self, client, session, *commands):
        return client.prompt(session, *commands, seconds=PATIENCE)

    def end(self, client):
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0, client.stderr)

    def command(self, *words, **keys):
        options = self.config(**keys)
        if words[0] == 'sessions':  # of every profile
            options = options[:options.index('--profile')]
        return subprocess.run([BROKER, *options, *words], env=self.environment(),
                              capture_output=True, text=True, timeout=PATIENCE, cwd=self.work,
                              check=False, stdin=subprocess.DEVNULL)

    # ---- Daytona's side ----

    def boxes(self):
        """The sandboxes that exist. A sandbox that is being deleted does not count."""
        return [box for box in self.daytona.sandboxes() if box['state'] != 'destroying']

    def box(self):
        """The only sandbox that exists."""
        boxes = self.boxes()
        self.assertEqual(len(boxes), 1, boxes)
        return boxes[0]

    def runtime(self, client, session):
        status = client.call('_broker/session/status', {'sessionId': session})
        return pathlib.Path(status['runtimeRoot'])

    def tree(self):
        """What is in the workspace: names and contents."""
        return {str(path.relative_to(self.work)): path.read_text()
                for path in sorted(self.work.rglob('*'))
                if path.is_file() and '.git' not in path.parts}

    # ---- this machine's side ----

    def records(self):
        return [json.loads(path.read_text()) for path in (self.state / 'sessions').glob('*.json')]

    def notes(self):
        return sorted(path.stem for path in (self.state / 'daytona').glob('*.json'))

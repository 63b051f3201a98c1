# SPDX-License-Identifier: MIT
"""What tests share in which something goes wrong: how it is told, and what is left of it."""

import json
import subprocess

from acp import RpcError
from case import BROKER
from room import PATIENCE, Room


class Trouble(Room):
    def command(self, *words, **keys):
        return subprocess.run([BROKER, *self.config(**keys), *words], env=self.environment(),
                              capture_output=True, text=True, timeout=PATIENCE, cwd=self.work,
                              check=False, stdin=subprocess.DEVNULL)

    def refused(self, code, retryable, **keys):
        """The error of a start that fails."""
        client = self.broker(options=self.config(**keys))
        with self.assertRaises(RpcError) as caught:
            client.initialize(seconds=PATIENCE)
        self.check_error(caught.exception, code, retryable)
        self.assertEqual(caught.exception.data['stage'], 'prepare')
        client.close_stdin()
        client.wait(PATIENCE)
        return caught.exception

    def check_error(self, error, code, retryable):
        self.assertEqual((error.data['code'], error.data['retryable']), (code, retryable), error)

    def check_listed(self, **keys):
        """Every sandbox that costs something is shown; their names."""
        told = self.command('sandboxes', 'list', '--json', **keys)
        self.assertEqual(told.returncode, 0, told.stderr)
        shown = sorted(one['name'] for one in json.loads(told.stdout)['sandboxes'])
        self.assertEqual(shown, sorted(box['name'] for box in self.boxes()))
        return shown

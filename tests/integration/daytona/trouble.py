# SPDX-License-Identifier: MIT
"""What tests share in which something goes wrong: how it is told, and what is left of it."""

import json

from room import Room


class Trouble(Room):
    def refused(self, code, retryable, **keys):
        error = self.start_error(**keys)
        self.check_error(error, code, retryable)
        self.assertEqual(error.data['stage'], 'prepare')
        return error

    def check_error(self, error, code, retryable):
        self.assertEqual((error.data['code'], error.data['retryable']), (code, retryable), error)

    def check_listed(self, **keys):
        """Every sandbox that costs something is shown; their names."""
        told = self.command('sandboxes', 'list', '--json', **keys)
        self.assertEqual(told.returncode, 0, told.stderr)
        shown = sorted(one['name'] for one in json.loads(told.stdout)['sandboxes'])
        self.assertEqual(shown, sorted(box['name'] for box in self.boxes()))
        return shown

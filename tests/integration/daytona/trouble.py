# SPDX-License-Identifier: MIT
"""What tests of troubles share: how the broker reports a trouble, and what is left after it."""

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
        """Checks that every sandbox that costs something is listed; returns their names."""
        told = self.command('sandboxes', 'list', '--json', **keys)
        self.assertEqual(told.returncode, 0, told.stderr)
        shown = sorted(one['name'] for one in json.loads(told.stdout)['sandboxes'])
        self.assertEqual(shown, sorted(box['name'] for box in self.boxes()))
        return shown

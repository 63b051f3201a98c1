#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The life of a sandbox of Daytona's: made, found again, stopped, archived, deleted."""

import sys
import pathlib

sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[1] / 'integration')]

from case import main  # noqa: E402
from room import Room  # noqa: E402


class Life(Room):
    def test_a_session_runs_in_a_sandbox_that_is_stopped_after_it(self):
        (self.work / 'mine').write_text('from here\n')
        client, session = self.opened()
        box = self.box()
        self.assertEqual(box['state'], 'started')
        self.prompt(client, session, 'terminal cat mine; echo "from there" > theirs')
        self.assertIn('from here', client.wait_text('terminal/output ->'))
        self.assertEqual((self.work / 'theirs').read_text(), 'from there\n')
        self.end(client)
        self.assertEqual(self.box()['state'], 'stopped')


if __name__ == '__main__':
    main()

# SPDX-License-Identifier: MIT
"""The stand-in itself: it starts, says where it is, and leaves nothing when it ends."""

import pathlib
import unittest

import stand_in  # first: it says where the others are
import processes
from api_client import Api
from case import main


@stand_in.NEEDED
class StandInTest(unittest.TestCase):
    def test_its_end_ends_every_process_and_removes_every_folder(self):
        with stand_in.StandIn() as daytona:
            folder = daytona.folder
            api = Api(daytona)
            sandbox = api.make('one')
            command = ('sleep 1000 & (setsid sleep 1000 &) ; env -i setsid sleep 1000 & '
                       'echo started; exec >&-; sleep 1000')
            with api.ssh('one', command) as ssh:
                self.assertEqual(ssh.stdout.readline(), b'started\n')
                self.assertTrue(processes.wait_until(lambda: len(daytona.pids()) >= 4, 10))
                pids = daytona.pids()
                ssh.kill()
            self.assertEqual(daytona.sandbox(sandbox['id'])['pids'], pids, 'it kills nothing')
        self.assertEqual([pid for pid in pids if processes.is_running(pid)], [])
        self.assertFalse(pathlib.Path(folder).exists())


if __name__ == '__main__':
    main()

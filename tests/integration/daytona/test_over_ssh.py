# SPDX-License-Identifier: MIT
"""A session over the gateway as over any other SSH host: with a token for the user, and no key."""

import os

import room  # first: it adds the folders of the others
from api_client import Api
from case import main

SIZE = 900 * 1024  # more than the broker holds for a server, and less than half of a window


class OverSshTest(room.DaytonaCase):
    def setUp(self):
        super().setUp()
        api = Api(self.daytona)
        api.make('box')
        known = self.dir / 'known_hosts'
        known.write_text(f'[{self.daytona.ssh_host}]:{self.daytona.ssh_port} '
                         f'{self.daytona.host_key_line}\n')
        self.keys = {'host': self.daytona.ssh_host, 'port': self.daytona.ssh_port,
                     'user': api.token('box'), 'known-hosts': known, 'ssh-client': 'libssh2',
                     'ssh-config': '/dev/null', 'allow-none': 'true'}

    def turn(self):
        client = self.broker(options=self.config(backend='ssh', **self.keys))
        client.initialize()
        session = client.new_session(self.work)
        (self.work / 'here.txt').write_text('from here')
        client.prompt(session, 'terminal cat here.txt > there.txt')
        self.assertEqual((self.work / 'there.txt').read_text(), 'from here')
        client.finish()

    def test_a_turn_with_every_exit_status_told(self):
        self.daytona.settings(exitLostEvery=0)
        self.turn()

    def test_a_turn_with_every_exit_status_lost(self):
        self.daytona.settings(exitLostEvery=1)
        self.turn()


    def test_input_goes_on_although_the_server_says_nothing(self):
        """Its window is so large that it does not widen it, and nobody asks whether it lives."""
        self.keys.update({'alive-interval': 'never', 'channel-timeout': '10m'})
        (self.work / 'large').write_bytes(os.urandom(SIZE))
        self.turn()


if __name__ == '__main__':
    main()

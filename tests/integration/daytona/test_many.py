#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Many sandboxes at once, and many brokers with one."""

import pathlib
import signal
import sys

sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[1])]

from case import main  # noqa: E402
from room import Room  # noqa: E402
import processes  # noqa: E402

MANY = 20
PATIENCE = 2 * processes.PATIENCE  # for twenty of everything


class Many(Room):
    def all_opened(self, options, places):
        """Opens a session for each place, with one broker for each, all at the same time."""
        clients = [self.broker(options=options, cwd=place) for place in places]
        greetings = [client.start('initialize', {
            'protocolVersion': 1, 'clientCapabilities': {}}) for client in clients]
        for client, greeting in zip(clients, greetings):
            client.answer(greeting, PATIENCE)
        begun = [client.start('session/new', {'cwd': str(place), 'mcpServers': []})
                 for client, place in zip(clients, places)]
        return [(client, client.answer(asked, PATIENCE)['sessionId'])
                for client, asked in zip(clients, begun)]

    def all_prompted(self, opened, commands):
        """Each session has a turn, all at the same time."""
        asked = [client.start_prompt(session, command)
                 for (client, session), command in zip(opened, commands)]
        for (client, _), turn in zip(opened, asked):
            self.assertEqual(client.answer(turn, PATIENCE)['stopReason'], 'end_turn')

    def ended(self, *clients):
        for client in clients:
            client.close_stdin()
        for client in clients:
            self.assertEqual(client.wait(PATIENCE), 0, client.stderr)

    def left_here(self):
        return sorted(path.name for path in (self.state / 'daytona').iterdir()
                      if path.name != 'known_hosts')

    def test_twenty_at_once_leave_nothing(self):
        places = [self.dir / f'place{number}' for number in range(MANY)]
        for number, place in enumerate(places):
            place.mkdir()
            (place / 'mine').write_text(f'{number}\n')
        options = self.config(persistence='transient', link_grace='10m', prepare_timeout='5m')
        opened = self.all_opened(options, places)
        self.assertEqual(len(self.boxes()), MANY)
        self.assertEqual(len({box['name'] for box in self.boxes()}), MANY)
        self.all_prompted(opened, ['terminal cat mine mine > twice'] * MANY)
        for number, place in enumerate(places):
            self.assertEqual((place / 'twice').read_text(), f'{number}\n{number}\n')
        self.ended(*(client for client, _ in opened))
        gone = processes.wait_until(lambda: not self.daytona.sandboxes(), PATIENCE)
        self.assertTrue(gone, self.daytona.sandboxes())
        self.assertEqual(self.left_here(), [])
        self.assertEqual(self.daytona.connections(), [])
        counts = self.daytona.counts()
        self.assertEqual((counts['create'], counts['delete']), (MANY, MANY))
        # The broker tries a slow start again, up to three times.
        self.assertIn(counts['ssh-access'], range(MANY, 4 * MANY + 1))

    def test_three_share_one_and_two_go_on_when_one_is_killed(self):
        self.daytona.fault('ssh-access', action='none', delay_ms=300, times=3)
        options = self.config(link_grace='1m')
        opened = self.all_opened(options, [self.work] * 3)
        self.assertEqual(len(self.boxes()), 1)
        self.all_prompted(opened, [f'terminal echo {name} > {name}1' for name in 'abc'])
        (first, _), (second, session), (third, _) = opened
        second.start_prompt(session, 'terminal echo b > b2; exec sleep 100')
        written = self.runtime(*opened[0]) / 'b2'
        self.assertTrue(processes.wait_until(written.exists, PATIENCE))
        processes.kill(second.pid, signal.SIGKILL)
        second.wait(PATIENCE)
        others = [opened[0], opened[2]]
        self.all_prompted(others, [f'terminal echo {name} > {name}3' for name in 'ac'])
        # Each connection had its own token, and none was voided before it was used.
        self.assertEqual(self.daytona.counts()['ssh-access'], 3)
        self.ended(first)
        self.assertEqual(self.box()['state'], 'started')
        self.ended(third)
        self.assertEqual(self.box()['state'], 'stopped')
        self.assertEqual(self.tree(), {name: f'{name[0]}\n'
                                       for name in ('a1', 'b1', 'c1', 'b2', 'a3', 'c3')})
        self.assertEqual(len(self.daytona.sandboxes(gone=True)), 1)


if __name__ == '__main__':
    main()

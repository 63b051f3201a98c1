#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Two brokers with one profile on one workspace: they share a sandbox, and two agents work at once.
"""

import threading

import case

from sync_case import SyncCase


class Shared(SyncCase):
    """Two brokers with one profile, in one sandbox."""
    TURNS = 4

    def both(self, act):
        """Each client does this at the same time as the other; returns both results."""
        results, threads = {}, []
        for name, pair in self.pairs.items():
            def run(name=name, pair=pair):
                results[name] = act(name, *pair)
            threads.append(threading.Thread(target=run))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    def begin(self, **keys):
        """Opens both sessions at once."""
        clients = {name: self.copied(**keys) for name in 'xy'}
        self.pairs = {name: (client, None) for name, client in clients.items()}
        sessions = self.both(lambda name, client, _: client.new_session(self.work))
        self.pairs = {name: (clients[name], sessions[name]) for name in 'xy'}
        roots = {self.runtime(client, session) for client, session in self.pairs.values()}
        self.assertEqual(len(roots), 1)
        return roots.pop()

    def prompt_both(self, turn):
        """
        Each agent makes a file and edits its line of a shared file; the user makes a file, too.
        """
        def act(name, client, session):
            line = {'x': 1, 'y': 20}[name]
            return client.prompt(session, f'terminal echo {turn} > {name}{turn}; sleep 0.1; '
                                 f'sed -i "{line}s/.*/{name} {turn}/" shared')
        (self.work / f'mine{turn}').write_text(f'{turn}\n')
        self.assertEqual(self.both(act), {name: {'stopReason': 'end_turn'} for name in 'xy'})

    def wanted(self, turns):
        lines = [f'line {number}' for number in range(1, 21)]
        lines[0], lines[-1] = (f'{name} {turns - 1}' for name in 'xy')
        files = {f'{name}{turn}': f'{turn}\n' for name in ('x', 'y', 'mine')
                 for turn in range(turns)}
        return {**files, 'shared': '\n'.join(lines) + '\n'}

    def end(self, name):
        client, _ = self.pairs[name]
        client.close_stdin()
        self.assertEqual(client.wait(), 0, client.stderr)

    def check(self, runtime):
        """
        Checks that nothing is lost, and that each sync, one after the other, made its own
        checkpoint.
        """
        self.assertEqual(self.tree(), self.wanted(self.TURNS))
        for client, session in self.pairs.values():
            client.call('_broker/sync', {'sessionId': session})
            self.assertEqual(self.notices(client), [])
        self.assertEqual({path.name: path.read_text() for path in runtime.iterdir()
                          if path.is_file()}, self.wanted(self.TURNS))
        client, session = self.pairs['x']
        found = client.call('_broker/checkpoint/list', {'sessionId': session})['checkpoints']
        numbers = [checkpoint['checkpoint'] for checkpoint in found]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))
        self.assertEqual({checkpoint['sessionId'] for checkpoint in found[1:]} - {None},
                         {session for _, session in self.pairs.values()})

    def work_together(self, **keys):
        (self.work / 'shared').write_text(''.join(f'line {n}\n' for n in range(1, 21)))
        runtime = self.begin(**keys)
        for turn in range(self.TURNS):
            self.prompt_both(turn)
        self.check(runtime)
        return runtime

    def test_both_answers_arrive_and_nothing_is_lost(self):
        runtime = self.work_together(persistence='reuse')
        self.end('y')
        client, session = self.pairs['x']
        client.prompt(session, 'terminal echo on > alone')
        (runtime / 'late').write_text('late\n')
        self.end('x')
        self.assertEqual(self.tree(), {**self.wanted(self.TURNS), 'alone': 'on\n',
                                       'late': 'late\n'})
        self.assertTrue(runtime.exists())  # a reused sandbox stays
        self.assertEqual([record['state'] for record in self.records()], ['stopped'] * 2)

    def test_the_last_one_out_ends_the_sandbox(self):
        runtime = self.work_together(persistence='transient')
        self.end('x')
        self.assertTrue(runtime.exists())  # the other broker works in it
        client, session = self.pairs['y']
        client.prompt(session, 'terminal echo on > alone')
        self.end('y')
        self.assertFalse(runtime.exists())
        self.assertEqual(self.tree(), {**self.wanted(self.TURNS), 'alone': 'on\n'})
        self.assertEqual([record['state'] for record in self.records()], ['stopped'] * 2)


if __name__ == '__main__':
    case.main()

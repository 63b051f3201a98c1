#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
copy-per = session: each session has a copy of its own. Where the copies are, and how they end.
"""

import json
import pathlib
import signal
import subprocess
import threading

import case
import processes
import sync_room

from acp import RpcError
from processes import PATIENCE
from sessions_case import SessionsCase

LINES = ''.join(f'line {number}\n' for number in range(1, 21))


def changed(*lines):
    """LINES, with these lines (number, text) replaced."""
    all_lines = LINES.splitlines()
    for number, text in lines:
        all_lines[number - 1] = text
    return '\n'.join(all_lines) + '\n'


class OwnCopyCase(SessionsCase):
    flags = ()

    def agent_argv(self, *flags):
        """
        The agent's session ids are all different, as real ones are, and it remembers its sessions.
        """
        return super().agent_argv('--own-names', '--sessions', str(self.dir / 'remembered'),
                                  *self.flags, *flags)

    def copied(self, need_auth=False, **keys):  # pylint: disable=arguments-differ
        self.flags = ('--need-auth',) if need_auth else ()
        return super().copied(**{'copy_per': 'session', **keys})

    def begin(self, **keys):
        """A client with two sessions in the workspace; returns their copies, too."""
        (self.work / 'shared').write_text(LINES)
        client = self.copied(**keys)
        sessions = [client.new_session(self.work) for _ in range(2)]
        return client, sessions, [self.runtime(client, session) for session in sessions]

    def both(self, client, sessions, commands):
        """Sends a prompt in each session at the same time."""
        results = [None, None]

        def run(which):
            results[which] = client.prompt(sessions[which], *commands[which], seconds=PATIENCE)
        threads = [threading.Thread(target=run, args=(which,)) for which in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [{'stopReason': 'end_turn'}] * 2)

    def ended(self, client, status=0):
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), status, client.stderr)

    def copies(self):
        """The folders of the sessions' copies, whatever is in them."""
        return sorted((self.state / 'copies').glob('*.*'))

    def load(self, client, session):
        client.call('session/load', {'sessionId': session, 'cwd': str(self.work),
                                     'mcpServers': []}, seconds=PATIENCE)

    def run_broker(self, config, words, env):
        done = subprocess.run([case.BROKER, '--config', str(config), *words], cwd=self.dir,
                              env=env, text=True, stdin=subprocess.DEVNULL, capture_output=True,
                              check=False, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, (words, done.stdout, done.stderr))
        return done.stdout

    def disk(self, *words):
        return self.run_broker(self.dir / 'config-copy', words, self.environment())


class OwnCopies(OwnCopyCase):
    # ---- two sessions at work ----

    def test_each_session_has_its_own_files_until_its_turn_ends(self):
        client, sessions, roots = self.begin()
        self.assertEqual(len(set(roots)), 2)
        self.assertEqual({root.name for root in roots}, {'work'})
        # Both turns are open while each edits the file; neither sees the other's edit.
        meet = [f'terminal sed -i "{line}s/.*/{name}/" shared; touch {self.dir}/{name}; '
                f'while [ ! -e {self.dir}/{other} ]; do sleep 0.01; done; '
                'for each in x y; do grep -qx $each shared && echo has-$each; done'
                for line, name, other in ((1, 'x', 'y'), (20, 'y', 'x'))]
        self.both(client, sessions, [[line] for line in meet])
        said = [''.join(client.texts(session)) for session in sessions]
        self.assertEqual([('has-x' in text, 'has-y' in text) for text in said],
                         [(True, False), (False, True)])
        self.assertEqual((self.work / 'shared').read_text(), changed((1, 'x'), (20, 'y')))
        self.assertEqual(self.notices(client), [])
        self.ended(client)
        self.assertEqual(self.tree(), {'shared': changed((1, 'x'), (20, 'y'))})
        self.assertEqual([record['state'] for record in self.records()], ['stopped'] * 2)
        self.assertEqual(self.copies(), [])

    def test_a_conflict_of_two_sessions_is_one_like_any_other(self):
        client, sessions, _ = self.begin()
        client.prompt(sessions[0], 'terminal echo here > other')
        meet = [f'terminal sed -i "5s/.*/{name}/" shared; touch {self.dir}/{name}; '
                f'while [ ! -e {self.dir}/{other} ]; do sleep 0.01; done'
                for name, other in (('x', 'y'), ('y', 'x'))]
        self.both(client, sessions, [[line] for line in meet])
        first = (self.work / 'shared').read_text()
        self.assertIn(first, (changed((5, 'x')), changed((5, 'y'))))
        lost = changed((5, 'y' if first == changed((5, 'x')) else 'x'))
        self.assertEqual(self.parked('shared'), [lost])
        self.ended(client)
        self.assertEqual((self.work / 'shared').read_text(), first)
        self.assertEqual(self.parked('shared'), [lost])

    def test_who_has_which_is_told(self):
        client, sessions, roots = self.begin()
        found = [self.status(client, session) for session in sessions]
        references = [status['reference'] for status in found]
        self.assertEqual(len(set(references)), 2)
        for status, root in zip(found, roots):
            self.assertIn(f'.{status["reference"]}/', str(root))
        wanted = {(session, str(root), reference) for session, root, reference
                  in zip(sessions, roots, references)}

        def told():
            return {(*entry['sessions'], entry['runtimeRoot'], entry['reference'])
                    for entry in self.listed()}
        self.assertTrue(processes.wait_until(lambda: told() == wanted, PATIENCE), told())
        text = self.sessions('list')
        for session, root in zip(sessions, roots):
            self.assertIn(session, text)
            self.assertIn(str(root), text)
        du = self.disk('du', '--json')
        self.assertEqual({entry['path'] for entry in json.loads(du)['holdings']
                          if entry['kind'] == 'copy'}, {str(root.parent) for root in roots})

    # ---- the end of one session ----

    def test_a_session_that_is_closed_takes_its_copy_along(self):
        client, sessions, roots = self.begin()
        client.prompt(sessions[0], 'terminal echo kept > new')
        (roots[0] / 'late').write_text('late\n')
        client.call('session/close', {'sessionId': sessions[0]})
        self.assertTrue(processes.wait_until(lambda: not roots[0].exists(), PATIENCE))
        self.wait_state('stopped')
        self.assertEqual((self.work / 'late').read_text(), 'late\n')
        client.prompt(sessions[1], 'terminal cat late')
        self.assertIn('late', ''.join(client.texts(sessions[1])))
        # The session gets the same path again, because the agent knows it by that path.
        self.load(client, sessions[0])
        self.assertEqual(self.runtime(client, sessions[0]), roots[0])
        self.assertEqual((roots[0] / 'late').read_text(), 'late\n')
        self.ended(client)
        self.assertEqual(self.copies(), [])

    def test_a_session_that_is_loaded_while_its_copy_is_collected(self):
        client, sessions, roots = self.begin()
        (roots[0] / 'late').write_text('late\n')
        client.call('session/close', {'sessionId': sessions[0]})
        self.load(client, sessions[0])
        self.assertEqual(self.runtime(client, sessions[0]), roots[0])
        self.assertEqual((roots[0] / 'late').read_text(), 'late\n')
        self.ended(client)
        self.assertEqual(self.copies(), [])

    def test_another_broker_loads_a_session_in_its_own_copy(self):
        client, sessions, roots = self.begin(persistence='reuse')
        (self.work / 'shared').write_text(changed((3, 'mine')))
        client.prompt(sessions[1], 'terminal echo built > made')
        self.ended(client)
        self.assertTrue(all(root.exists() for root in roots))
        client = self.copied(persistence='reuse')
        listed = client.call('session/list', {'cwd': str(self.work)})['sessions']
        self.assertEqual({(entry['sessionId'], entry['cwd']) for entry in listed},
                         {(session, str(self.work)) for session in sessions})
        fresh = client.new_session(self.work)
        for session in reversed(sessions):
            self.load(client, session)
        found = [self.runtime(client, session) for session in (*sessions, fresh)]
        self.assertEqual(found[:2], roots)
        self.assertNotIn(found[2], roots)
        self.ended(client)
        self.disk('prune', '--older', '0s')
        self.assertEqual(self.copies(), [])

    def test_a_session_that_could_not_be_opened_leaves_its_agent_to_the_next(self):
        client = self.copied(need_auth=True)
        new = {'cwd': str(self.work), 'mcpServers': []}
        with self.assertRaises(RpcError):
            client.call('session/new', new)
        client.call('authenticate', {'methodId': 'token'})
        sessions = [client.new_session(self.work) for _ in range(2)]
        self.assertEqual(len(set(self.agent_pids())), 2)
        self.assertEqual(len({self.runtime(client, session) for session in sessions}), 2)
        self.ended(client)
        self.assertEqual(self.copies(), [])

    # ---- a broker that is killed ----

    def edited(self):
        """A broker with two sessions, and edits in both copies and in the workspace."""
        client, sessions, roots = self.begin()
        client.prompt(sessions[0], 'say x')
        for name, root in zip('xy', roots):
            (root / f'{name}-there').write_text(f'{name}\n')
        (self.work / 'mine').write_text('mine\n')
        self.wait_state('active', 2)
        return client

    def test_what_a_killed_broker_left_is_collected_and_removed(self):
        client = self.edited()
        self.kill(client)
        self.assertEqual(len(self.copies()), 2)
        self.sessions('collect')
        self.assertEqual(self.tree(), {'shared': LINES, 'mine': 'mine\n', 'x-there': 'x\n',
                                       'y-there': 'y\n'})
        self.assertEqual(self.copies(), [])

    def test_a_broker_that_is_killed_before_a_session_leaves_an_empty_folder(self):
        client = self.copied()
        self.assertEqual(len(self.copies()), 1)
        self.kill(client)
        client = self.copied()
        client.new_session(self.work)
        self.assertTrue(processes.wait_until(lambda: len(self.copies()) == 1, PATIENCE),
                        self.copies())
        self.ended(client)
        self.assertEqual(self.copies(), [])


class Points(OwnCopyCase):
    """A broker with two sessions is killed at each point that a turn and the end reach."""
    POINTS = ('record.written', 'collect.asked', 'collect.answered', 'snapshot.taken',
              'merge.begun', 'slot.exchanged', 'base.setting', 'deliver.asked', 'deliver.done',
              'base.set', 'keeper.synced', 'keeper.done', 'keeper.ending', 'keeper.looked',
              'keeper.ended')

    def test_at_each_point(self):
        for point in case.selected(self.POINTS, 4):
            for when in ('turn', 'end'):
                with self.subTest(point=point, when=when):
                    self.cut(point, when)

    def cut(self, point, when):
        trial = self.dir / f'{point}-{when}'
        trial.mkdir()
        work = trial / 'work'
        work.mkdir()
        (work / 'shared').write_text(LINES)
        config = trial / 'config'
        config.write_text('[profile "copy"]\n\tisolation = copy\n\tcopy-per = session\n')
        env = {**self.environment(), 'XDG_STATE_HOME': str(trial / 'state'),
               'ACP_POINT': f'{point}:1:kill', 'ACP_POINT_WHEN': str(trial / 'now')}
        argv = [sync_room.POINTS, '--config', str(config), '--profile', 'copy', '--',
                *self.agent_argv()]
        client = self.start(argv, cwd=work, env=env)
        client.initialize()
        sessions = [client.new_session(work) for _ in range(2)]
        for name, session in zip('xy', sessions):
            client.prompt(session, f'terminal echo {name} > {name}', seconds=PATIENCE)
        roots = [pathlib.Path(client.call('_broker/session/status',
                                          {'sessionId': session})['runtimeRoot'])
                 for session in sessions]
        for name, root in zip('xy', roots):
            (root / f'{name}-late').write_text(f'{name}\n')
        (roots[0] / 'shared').write_text(changed((1, 'x')))
        (work / 'mine').write_text('mine\n')
        (trial / 'now').touch()
        if when == 'turn':
            client.start_prompt(sessions[0], 'terminal echo more > x-more')
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), -signal.SIGKILL)
        self.assert_nothing_runs()
        self.run_broker(config, ['sessions', 'collect'], env)
        found = {path.name for path in work.iterdir()} - {'x-more'}
        self.assertEqual((work / 'shared').read_text(), changed((1, 'x')))
        self.assertEqual(found, {'shared', 'mine', 'x', 'y', 'x-late', 'y-late'})
        self.assertEqual(list((trial / 'state/acp-broker/copies').glob('*.*')), [])


if __name__ == '__main__':
    case.main()

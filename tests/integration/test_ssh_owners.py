#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Whose run on a host it is: a broker ends what a killed broker of its own state folder has left
there, before it starts anything, and nothing else.
"""

import contextlib
import json
import os
import shutil
import signal
import unittest

import net
import processes

from case import BROKER, SANITIZED, main
from link_case import LinkCase
from processes import PATIENCE
from ssh_case import SshCase
from ssh_scene import Scene
from together import Together, tests_of

AT_ONCE = 4
LONG = '300s'  # longer than any test waits
ENDED = 'still ran there'
ALONE = 'left alone'
FORGED = '0123456789abcdef0123456789abcdef'


class Owner(SshCase):
    more = {}

    def setUp(self):
        super().setUp()
        self.other = self.dir / 'other'
        self.other.mkdir()
        self.other_state = self.dir / 'home/other-state'

    def config(self, *args, **keys):
        return super().config(*args, **{'persistence': 'reuse', 'transport': 'git',
                                        'link-grace': LONG, 'orphan-grace': LONG,
                                        **self.more, **keys})

    def agents(self):
        return {pid for pid in self.remote() if processes.name_of(pid) == 'scripted-agent'}

    def notes(self, state=None):
        return sorted((state or self.state).glob('runs/*.json'))

    def begin(self, work=None, state=None, options=None, **more):
        env = {**self.environment(), **({'XDG_STATE_HOME': str(state)} if state else {}),
               **more.pop('env', {})}
        client = self.broker(options=options or self.config(), env=env, **more)
        client.initialize()
        return client, client.new_session(work or self.work)

    def begin_elsewhere(self):
        """Another broker with the same configuration, but with another state folder."""
        return self.begin(self.other, self.other_state)

    def busy(self, client, session):
        """A turn that goes on until somebody writes to the FIFO."""
        gate = self.sshd.home / 'go'
        os.mkfifo(gate)
        root = self.runtime(client, session)
        waiting = client.start_prompt(
            session, 'pid', f'terminal echo there > made; read line < {gate}', 'pid')
        self.assertTrue(processes.wait_until((root / 'made').exists), client.stderr)
        return waiting, gate

    def kill(self, client):
        """
        The agents that go on without their broker. Its guards are killed, too, as they are when its
        machine fails.
        """
        before = self.agents()
        os.kill(client.pid, signal.SIGSTOP)
        for pid in processes.descendants(client.pid):
            processes.kill(pid)
        os.kill(client.pid, signal.SIGKILL)
        client.wait(PATIENCE)
        self.assertEqual(self.agents(), before)
        self.assertEqual(len(before), 1)
        return before

    def kill_broker(self, client):
        """Kills the broker alone; its guard goes on."""
        os.kill(client.pid, signal.SIGKILL)
        client.wait(PATIENCE)

    def killed(self):
        client, session = self.begin()
        self.busy(client, session)
        return self.kill(client)

    def end(self, client):
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0, client.stderr)

    def finish_turn(self, client, session, turn):
        waiting, gate = turn
        gate.write_text('word\n')
        self.assertEqual(client.answer(waiting)['stopReason'], 'end_turn')
        pids = [text for text in client.texts(session) if text.startswith('pid ')]
        self.assertEqual(pids, [pids[0]] * 2)

    def check_next_ends(self, before):
        """
        The next broker of this state folder ends these agents before it starts its own. It may also
        have a note of the connection over which it collects what the killed broker has left.
        """
        left = set(self.notes())
        client, _ = self.begin()
        client.wait_log(ENDED, PATIENCE)
        self.assertFalse(before & self.agents())
        self.assertEqual(len(self.agents()), 1)
        self.assertTrue(processes.wait_until(lambda: left.isdisjoint(self.notes())))
        self.assertTrue(self.notes())
        self.end(client)
        self.assertEqual(self.notes(), [])
        self.assert_nothing_runs()

    def change_note(self, **values):
        """Changes the only note; returns its old text."""
        note, = self.notes()
        text = note.read_text()
        note.write_text(json.dumps({**json.loads(text), **values}))
        return note, text


class Outliving(Owner):
    more = {'outlives': 'auto'}

    def test_the_next_start_ends_what_a_killed_broker_left(self):
        self.check_next_ends(self.killed())

    def test_a_second_window_leaves_the_run_of_the_first_alone(self):
        client, session = self.begin()
        turn = self.busy(client, session)
        second, other = self.begin(self.other)
        second.prompt(other, 'say hello')
        self.assertEqual(len(self.notes()), 2)
        self.end(second)
        self.assertNotIn(ENDED, second.stderr)
        self.finish_turn(client, session, turn)
        self.end(client)
        self.assertEqual(self.notes(), [])

    def test_a_broker_with_another_state_folder_leaves_it_alone(self):
        before = self.killed()
        client, session = self.begin_elsewhere()
        client.prompt(session, 'say hello')
        self.end(client)
        self.assertNotIn(ENDED, client.stderr)
        self.assertEqual(self.agents(), before)
        self.check_next_ends(before)

    def test_a_copied_note_ends_nothing_that_a_living_broker_uses(self):
        client, session = self.begin()
        turn = self.busy(client, session)
        copied = self.other_state / 'acp-broker'
        shutil.copytree(self.state / 'runs', copied / 'runs')
        second, other = self.begin_elsewhere()
        second.wait_log(ALONE, PATIENCE)
        second.prompt(other, 'say hello')
        self.end(second)
        self.assertEqual(len(self.notes(copied)), 1)  # a broker may be gone the next time
        self.finish_turn(client, session, turn)
        self.end(client)

    def test_the_note_of_another_machine_is_left_alone(self):
        before = self.killed()
        note, text = self.change_note(machine='elsewhere', boot='another')
        client, _ = self.begin()
        self.assertEqual(before - self.agents(), set())
        self.end(client)
        self.assertNotIn(ENDED, client.stderr)
        self.assertEqual(self.notes(), [note])
        note.write_text(text)
        self.check_next_ends(before)

    def test_a_machine_that_was_restarted_ends_it(self):
        before = self.killed()
        self.change_note(boot='another')
        self.check_next_ends(before)

    def test_a_note_of_another_host_is_left_alone(self):
        before = self.killed()
        note, text = self.change_note(place='test someone@elsewhere:22')
        client, _ = self.begin()
        self.assertEqual(before - self.agents(), set())
        self.end(client)
        note.write_text(text)
        self.check_next_ends(before)

    def test_a_note_that_names_the_folder_of_another_run_ends_nothing(self):
        client, session = self.begin()
        turn = self.busy(client, session)
        note, = self.notes()
        forged = self.other_state / f'acp-broker/runs/{FORGED}.json'
        forged.parent.mkdir(parents=True, mode=0o700)
        forged.write_text(json.dumps({**json.loads(note.read_text()), 'token': FORGED}))
        second, other = self.begin_elsewhere()
        second.prompt(other, 'say hello')
        self.end(second)
        self.assertNotIn(ALONE, second.stderr)
        self.finish_turn(client, session, turn)
        self.end(client)

    def test_an_agent_that_replaces_the_folder_of_its_run_is_ended(self):
        victim = self.sshd.home / 'victim'
        victim.mkdir()
        (victim / 'precious').touch()
        client, session = self.begin()
        client.prompt(session, 'terminal cd ~/.cache/acp-broker-*; for run in alive.*; do '
                               f'rm -r $run; ln -s {victim} $run; done')
        self.busy(client, session)
        self.check_next_ends(self.kill(client))
        self.assertTrue((victim / 'precious').exists())


class Heir(Owner):
    """A killed broker's guard has what the broker left ended."""

    more = {'outlives': 'auto'}

    def check_ends(self, client, session):
        self.busy(client, session)
        before = self.agents()
        self.assertEqual(len(before), 1)
        self.kill_broker(client)
        self.assertTrue(processes.wait_until(lambda: not before & self.agents(), PATIENCE))
        self.assertTrue(processes.wait_until(lambda: not self.notes(), PATIENCE))
        self.assert_nothing_runs()

    def test_the_guard_has_it_ended(self):
        self.check_ends(*self.begin())

    def test_that_needs_no_secret_of_the_profile(self):
        """Nobody keeps the variables for the program that does it."""
        options = self.config(secret_env='AGENT_KEY', mcp='tool')
        path = self.dir / 'config'
        path.write_text(f'{path.read_text()}[mcp "tool"]\n\tcommand = /bin/true\n'
                        '\tsecret-env = TOOL_KEY\n')
        secrets = {'AGENT_KEY': 'sesame', 'TOOL_KEY': 'sesame'}
        self.check_ends(*self.begin(options=options, env=secrets))

    def test_relative_names_begin_where_the_broker_was_started(self):
        self.config()
        options = ['--config', './config', '--profile', 'test', '--workspace', 'work']
        self.check_ends(*self.begin(options=options, cwd=self.dir))


class HeirByOpenssh(Heir):
    ssh_client = 'openssh'


class HeirWithLog(Heir):
    """The broker logs to a file, and so does the program."""

    def setUp(self):
        super().setUp()
        self.log = self.dir / 'log'

    def broker_argv(self, *options, agent):
        return ['sh', '-c', f'exec "$0" "$@" 2>> {self.log}',
                *super().broker_argv(*options, agent=agent)]

    def check_ends(self, client, session):
        super().check_ends(client, session)
        self.assertTrue(processes.wait_until(self.said), self.log.read_text())

    def said(self):
        """The program's lines about what it has ended."""
        return [line for line in self.log.read_text().splitlines()
                if 'heir: ' in line and ENDED in line]


class HeirSeen(Scene, Owner):
    """The same, through a proxy that counts the connections, and with gates."""

    more = {'outlives': 'auto'}

    def programs(self):
        """The broker's processes of this test. The environment of one that starts is empty."""
        home = f'HOME={self.dir / "home"}'.encode()
        for pid in processes.all_pids():
            with contextlib.suppress(OSError):
                environ = processes.read_file(f'/proc/{pid}/environ')
                if os.readlink(f'/proc/{pid}/exe') == BROKER and (not environ or home in environ):
                    yield pid

    def have_ended(self):
        """One may start another while we look, but not twice."""
        return not any(self.programs()) and not any(self.programs())

    def test_it_connects_to_nothing_if_no_run_is_left(self):
        client, session = self.begin()
        self.busy(client, session)
        before = self.agents()
        note, text = self.change_note(place='test someone@elsewhere:22')
        accepted = self.proxy.accepted
        self.kill_broker(client)
        self.assertTrue(processes.wait_until(self.have_ended, PATIENCE))
        self.assertEqual(self.proxy.accepted, accepted)
        self.assertEqual(self.agents(), before)
        note.write_text(text)
        self.check_next_ends(before)

    def test_it_ends_runs_of_a_profile_that_the_broker_only_collects(self):
        self.killed()
        self.shut('collect')
        self.config()
        path = self.dir / 'config'
        path.write_text(f'{path.read_text()}[profile "near"]\n\tbackend = local\n')
        client, _ = self.begin(self.other, options=['--config', str(path), '--profile', 'near'])
        self.wait_reached('collect')
        self.kill_broker(client)
        self.assertTrue(processes.wait_until(lambda: not self.remote(), PATIENCE),
                        processes.describe(self.remote()))
        self.open_gates()
        client, _ = self.begin()
        self.end(client)
        self.assertEqual((self.work / 'made').read_text(), 'there\n')


class OutlivingByOpenssh(Outliving):
    ssh_client = 'openssh'


class Dropped(Scene, Owner):
    """The host does not learn that the connection is lost, and the broker is killed."""

    def test_the_next_start_ends_what_goes_on_there(self):
        client, session = self.begin()
        self.busy(client, session)
        self.proxy.drop()
        self.check_next_ends(self.kill(client))


class DroppedOfScripts(Dropped):
    runner = 'never'


@unittest.skipUnless(net.can_be_made(), 'there are no network namespaces')
class Unnoticed(LinkCase, Owner):
    """
    The packets of a connection get lost, and the session ends before anybody has noticed that.
    """

    more = {'outlives': 'auto'}
    # Nobody notices the loss, and the broker does not wait long for what does not come.
    unnoticed = {'alive-interval': '1m', 'alive-count': '10', 'sync': 'none',
                 'stop-eof-timeout': '300ms', 'stop-term-timeout': '300ms',
                 'stop-kill-timeout': '300ms'}

    def test_the_next_start_ends_what_the_end_of_the_session_has_not_reached(self):
        client, session = self.begin(options=self.config(**self.unnoticed))
        client.prompt(session, 'say hello')
        before = self.agents()
        self.assertEqual(len(before), 1)
        self.chain.lose_packets(0, 'right', True)
        self.chain.lose_packets(1, 'left', True)
        client.close_stdin()
        client.wait(PATIENCE)
        self.assertNotIn('reconnecting', client.stderr)
        self.assertEqual(self.agents(), before)
        self.assertEqual(len(self.notes()), 1)
        self.cut_address(1)  # what was under way does not arrive later
        self.check_next_ends(before)


class UnnoticedOfScripts(Unnoticed):
    more = {}
    runner = 'never'


class UnnoticedByOpenssh(Unnoticed):
    ssh_client = 'openssh'


class TurnGrace(Scene, Owner):
    # The runner may have heard the broker 5 s ago, or more on a busy machine.
    more = {'outlives': 'auto', 'link-grace': '20s', 'turn-grace': LONG}

    def test_an_open_turn_waits_longer_than_an_idle_agent(self):
        client, session = self.begin()
        idle, _ = self.begin(self.other)
        turn = self.busy(client, session)
        self.assertEqual(len(self.agents()), 2)
        self.proxy.refuses = True
        self.proxy.cut()
        self.assertTrue(processes.wait_until(lambda: len(self.agents()) == 1, PATIENCE),
                        idle.stderr)
        self.proxy.refuses = False
        self.finish_turn(client, session, turn)
        self.end(client)
        idle.close_stdin()
        idle.wait(PATIENCE)


def load_tests(loader, _tests, _pattern):
    classes = [Outliving, HeirWithLog, HeirSeen, Dropped, DroppedOfScripts, Unnoticed,
               UnnoticedOfScripts, TurnGrace]
    if not SANITIZED:
        classes += [OutlivingByOpenssh, HeirByOpenssh, UnnoticedByOpenssh]
    return Together(AT_ONCE, tests_of(loader, classes))


if __name__ == '__main__':
    main()

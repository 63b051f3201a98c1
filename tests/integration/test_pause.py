#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
_broker/session/pause and resume: which processes stand still, what goes on, and how a pause ends.
"""

import os
import shutil
import signal
import time
import unittest

import case
import processes
import ssh_case

from host import NEVER
from pause_case import OWN_CGROUP, Pausing, groups, is_held
from processes import PATIENCE
from sync_case import SyncCase, checked


class Copy(Pausing, SyncCase):
    def held(self):
        """Whether the processes that the broker has started for the agent stand still, as a set."""
        agent = self.agent_pids()[-1]
        return {is_held(pid) for pid in [agent, *processes.descendants(agent)]}

    def remembering(self):
        """A session that the agent can restore after it was started again."""
        config = self.dir / 'config-copy'
        lines = [f'\t{name} = {value}' for name, value in case.DEADLINES.items()]
        config.write_text('\n'.join(['[profile "copy"]', '\tisolation = copy', *lines]) + '\n')
        client = self.broker('--sessions', str(self.dir / 'memory'),
                             options=['--config', str(config), '--profile', 'copy'])
        client.initialize()
        return client, client.new_session(self.work)

    def test_an_agent_with_all_it_has_started_stands_still_and_goes_on(self):
        client, session = self.opened()
        self.assert_pauses(client, session, self.runtime(client, session))

    def test_its_files_are_synced_meanwhile(self):
        client, session = self.opened()
        root = self.runtime(client, session)
        self.pause(client, session)
        self.assertEqual(self.held(), {True})
        self.assertEqual([record['state'] for record in self.records()], ['paused'])
        (root / 'theirs').write_text('1')
        (self.work / 'mine').write_text('2')
        client.call('_broker/sync', {'sessionId': session}, seconds=PATIENCE)
        self.assertEqual(self.tree(), {'mine': '2', 'theirs': '1'})
        self.assertEqual((root / 'mine').read_text(), '2')
        self.assertEqual([record['state'] for record in self.records()], ['paused'])
        self.assertEqual(self.held(), {True})
        self.resume(client, session)
        self.assertEqual(self.held(), {False})

    def test_the_states_are_told(self):
        client = self.copied(capabilities={'_meta': {'broker': {'state': True}}})
        session = client.new_session(self.work)
        client.wait_for(lambda m: m.method == '_broker/session/state'
                        and m.params['state'] == 'active', PATIENCE)
        self.pause(client, session)
        self.resume(client, session)
        told = [checked('session-state', 'params', m.params) for m in client.received
                if m.method == '_broker/session/state']
        self.assertEqual([(p['previous'], p['state']) for p in told][-2:],
                         [('active', 'paused'), ('paused', 'active')])

    def test_a_tool_call_that_does_not_end_refuses_it_and_nothing_is_changed(self):
        client, session = self.opened(pause_drain_timeout='300ms')
        prompt = client.start_prompt(session, 'terminal echo >started; exec sleep 600')
        started = self.runtime(client, session) / 'started'
        self.assertTrue(processes.wait_until(started.exists, PATIENCE))
        message = self.refused(client, session, 'TOOLS_IN_FLIGHT')
        self.assertIn('term-1', message)
        self.assertIn('pause-drain-timeout', message)
        self.assertEqual(self.status(client, session)['state'], 'active')
        self.assertEqual(self.held(), {False})
        client.notify('session/cancel', {'sessionId': session})
        client.answer(prompt, PATIENCE)

    def test_one_that_ends_is_waited_for(self):
        client, session = self.opened()
        prompt = client.start_prompt(session, 'terminal echo >started; sleep 0.5; echo >ended')
        root = self.runtime(client, session)
        self.assertTrue(processes.wait_until((root / 'started').exists, PATIENCE))
        self.pause(client, session)
        self.assertTrue((root / 'ended').exists())
        self.resume(client, session)
        self.assertEqual(client.answer(prompt, PATIENCE), {'stopReason': 'end_turn'})

    def test_a_question_to_the_user_is_waited_for(self):
        client, session = self.opened(pause_drain_timeout='200ms')
        client.host.replies['session/request_permission'] = NEVER
        client.start_prompt(session, 'permission go')
        client.wait_for(lambda m: m.method == 'session/request_permission', PATIENCE)
        self.assertIn('to the editor', self.refused(client, session, 'TOOLS_IN_FLIGHT'))

    def test_a_prompt_under_way_goes_on_afterwards_however_long_it_takes(self):
        client, session = self.opened(idle_timeout='3s')
        prompt = client.start_prompt(session, 'say first', 'sleep 4000', 'say second')
        client.wait_text('first', PATIENCE)
        self.pause(client, session)
        time.sleep(4.5)  # longer than the agent may be silent, and than its sleep
        self.assertNotIn('second', client.texts(session))
        self.resume(client, session)
        self.assertEqual(client.answer(prompt, PATIENCE), {'stopReason': 'end_turn'})
        self.assertIn('second', client.texts(session))

    def test_a_resume_takes_back_a_pause_that_waits(self):
        client, session = self.opened()
        client.start_prompt(session, 'terminal echo >started; exec sleep 600')
        started = self.runtime(client, session) / 'started'
        self.assertTrue(processes.wait_until(started.exists, PATIENCE))
        paused = client.start('_broker/session/pause', {'sessionId': session})
        self.refused(client, session, 'SESSION_PAUSED', 'session/prompt', prompt=[])
        self.resume(client, session)
        self.failure(client.response(paused, PATIENCE), 'PAUSE_INTERRUPTED')

    def test_the_end_of_a_session_lets_its_agent_go_on(self):
        client, session = self.opened()
        other = client.new_session(self.work)
        paused = self.ask(client, session, 'pause')
        self.assertEqual(sorted(paused['sessions']), sorted([session, other]))
        client.call('session/close', {'sessionId': other}, seconds=PATIENCE)
        client.prompt(session, 'say on', seconds=PATIENCE)

    def test_the_end_collects_what_a_paused_agent_has_left(self):
        for end in (lambda client: client.close_stdin(),
                    lambda client: os.kill(client.pid, signal.SIGTERM)):
            client, session = self.opened()
            root = self.runtime(client, session)
            ticks = self.with_daemon(client, session, root)
            self.pause(client, session)
            ticks.write_text('')
            (root / 'late').write_text('late')
            end(client)
            self.assertEqual(client.wait(PATIENCE), 0)
            self.assertEqual((self.work / 'late').read_text(), 'late')
            self.assertEqual({record['state'] for record in self.records()}, {'stopped'})
            self.assertNotIn('SIGKILL', client.stderr)
            (self.work / 'late').unlink()

    def test_an_agent_that_dies_while_it_is_paused_is_no_longer_paused_and_comes_back(self):
        client, session = self.remembering()
        ticks = self.with_daemon(client, session, self.runtime(client, session))
        self.pause(client, session)
        os.kill(self.agent_pids()[-1], signal.SIGKILL)
        self.assertTrue(processes.wait_until(
            lambda: [record['state'] for record in self.records()] == ['active'], PATIENCE))
        self.resume(client, session)
        self.failure(client.response(client.start('_broker/session/pause',
                                                  {'sessionId': session})), 'AGENT_EXITED')
        processes.wait_at_rest(lambda: self.size(ticks))  # it ends with its agent
        client.prompt(session, 'say on', seconds=PATIENCE)
        self.assertEqual(client.texts(session)[-1], 'on')
        self.assertEqual(self.status(client, session)['state'], 'active')
        self.pause(client, session)
        self.resume(client, session)

    def test_a_prompt_under_way_is_answered_when_its_paused_agent_dies(self):
        client, session = self.remembering()
        prompt = client.start_prompt(session, 'say first', 'sleep 60000')
        client.wait_text('first', PATIENCE)
        self.pause(client, session)
        os.kill(self.agent_pids()[-1], signal.SIGKILL)
        self.failure(client.response(prompt, PATIENCE), 'AGENT_EXITED')
        client.prompt(session, 'say on', seconds=PATIENCE)

    def test_one_that_was_not_read_to_its_end_before_it_died_is_answered_as_well(self):
        client, session = self.remembering()
        prompt = client.start_prompt(session, 'say first', 'stream 100000000 200')
        client.wait_text('first', PATIENCE)
        self.pause(client, session)
        os.kill(self.agent_pids()[-1], signal.SIGKILL)
        self.failure(client.response(prompt, PATIENCE), 'AGENT_EXITED')
        self.resume(client, session)
        self.failure(client.response(client.start('_broker/session/pause',
                                                  {'sessionId': session})), 'AGENT_EXITED')
        client.prompt(session, 'say on', seconds=PATIENCE)
        self.assertEqual(client.texts(session)[-1], 'on')

    def test_a_killed_broker_leaves_nothing_frozen_and_the_next_one_collects(self):
        client, session = self.opened()
        root = self.runtime(client, session)
        self.with_daemon(client, session, root)
        self.pause(client, session)
        (root / 'late').write_text('late')
        os.kill(client.pid, signal.SIGKILL)
        client.wait(PATIENCE)
        self.assert_nothing_runs()
        self.assertEqual([record['state'] for record in self.records()], ['paused'])
        self.copied()
        self.assertTrue(processes.wait_until((self.work / 'late').exists, PATIENCE))

    def kill_with_all_that_watch(self, client):
        """
        Kills the broker, its spawner and its guards, after stopping all of them; other processes
        stay frozen.
        """
        watching = [client.pid, *(pid for pid in processes.descendants(client.pid)
                                  if processes.name_of(pid) == 'acp-guard')]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in watching:
                os.kill(pid, number)
        client.wait(PATIENCE)

    @unittest.skipUnless(OWN_CGROUP, 'no cgroup can be made below the own one')
    def test_what_broker_spawner_and_guards_left_frozen_is_ended_by_the_next_broker(self):
        client, session = self.opened()
        root = self.runtime(client, session)
        self.with_daemon(client, session, root)
        self.pause(client, session)
        (root / 'late').write_text('late')
        self.kill_with_all_that_watch(client)
        left = self.running()  # frozen, unless a broker of another test has already found them
        self.copied()
        self.assertTrue(processes.wait_until(
            lambda: not any(processes.is_running(pid) for pid in left), PATIENCE),
            processes.describe(left))
        self.assert_no_group_is_left()
        self.assertTrue(processes.wait_until((self.work / 'late').exists, PATIENCE))

    @unittest.skipUnless(OWN_CGROUP, 'no cgroup can be made below the own one')
    def test_what_a_living_broker_has_paused_is_not_taken_for_left(self):
        client, session = self.opened()
        ticks = self.with_daemon(client, session, self.runtime(client, session))
        self.pause(client, session)
        of_the_living = groups()
        dead, dead_session = self.opened()
        self.pause(dead, dead_session)
        of_the_dead = groups() - of_the_living
        self.assertTrue(of_the_dead)
        self.kill_with_all_that_watch(dead)
        self.copied()
        self.assertTrue(processes.wait_until(
            lambda: not any(group.exists() for group in of_the_dead), PATIENCE))
        self.assert_still(ticks)
        self.resume(client, session)
        self.assert_grows(ticks)


class Plain(Pausing, case.Case):
    def test_an_agent_without_a_record_is_paused_as_well(self):
        client = self.broker()
        offered = client.initialize()['_meta']['broker']['capabilities']['methods']
        self.assertLessEqual({'_broker/session/pause', '_broker/session/resume'}, set(offered))
        session = client.new_session(self.work)
        self.pause(client, session)
        self.assertTrue(is_held(self.agent_pids()[-1]))
        self.resume(client, session)
        client.prompt(session, 'say on', seconds=PATIENCE)


@unittest.skipUnless(OWN_CGROUP and os.getuid() == 0, 'takes root and a cgroup to give away')
class Delegated(Pausing, case.Case):
    """
    A user other than root, in a cgroup that belongs to that user, as systemd's Delegate= does, or
    not.
    """

    user = 65534

    def setUp(self):
        self.group = OWN_CGROUP / f'acp-test-{os.getpid()}'
        self.group.mkdir()
        self.addCleanup(lambda: self.assertTrue(processes.wait_until(self.removed, PATIENCE)))
        super().setUp()

    def removed(self):
        """
        Removes the group; succeeds when no process is in it, and nothing of a broker is left below
        it.
        """
        try:
            self.group.rmdir()
        except OSError:
            return False
        return True

    def delegate(self):
        for name in ('', 'cgroup.procs', 'cgroup.subtree_control', 'cgroup.threads'):
            os.chown(self.group / name, self.user, self.user)

    def broker_argv(self, *options, agent):
        """Copies the programs to a place where that user may read them."""
        programs = [shutil.copy(program, self.dir) for program in (case.BROKER, agent[0])]
        self.environment()
        for path in (self.dir, *self.dir.rglob('*')):
            os.chown(path, self.user, self.user)
        enter = f'echo $$ >{self.group}/cgroup.procs && exec "$@"'
        become = ['setpriv', f'--reuid={self.user}', f'--regid={self.user}', '--clear-groups']
        return ['sh', '-c', enter, 'sh', *become, programs[0], *options, '--',
                programs[1], *agent[1:]]

    def paused_by(self):
        client = self.broker(options=self.config(toolhost='broker'))
        client.initialize()
        session = client.new_session(self.work)
        ticks = self.with_daemon(client, session, self.work)
        by = self.ask(client, session, 'pause')['by']
        self.assert_still(ticks)
        held = {'frozen 1' in path.read_text()
                for path in self.group.glob('acp-broker-*/cgroup.events')}
        self.resume(client, session)
        self.assert_grows(ticks)
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0)
        return by, held

    def test_in_a_cgroup_of_their_own_it_is_frozen_by_one_below(self):
        self.delegate()
        self.assertEqual(self.paused_by(), ('cgroup', {True}))

    def test_in_one_that_is_not_theirs_it_is_stopped_by_signals(self):
        self.assertEqual(self.paused_by(), ('signals', set()))


class BySignals(Pausing, SyncCase):
    """No cgroup can be made."""

    by = 'signals'

    def broker_argv(self, *options, agent):
        hide = 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"'
        flags = '-m' if os.getuid() == 0 else '-rm'
        return ['unshare', flags, 'sh', '-c', hide, 'sh',
                *super().broker_argv(*options, agent=agent)]

    def test_an_agent_with_all_it_has_started_stands_still_and_goes_on(self):
        client, session = self.opened()
        self.assert_pauses(client, session, self.runtime(client, session))
        self.pause(client, session)
        self.assertEqual(processes.stat_of(self.agent_pids()[-1])[1], 'T')
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0)
        self.assertNames(client.stderr, 'by signals | no cgroup')


class Far(Pausing, ssh_case.SshCase):
    def test_what_runs_on_another_host_stands_still_and_goes_on(self):
        client, session = self.opened()
        root = self.runtime(client, session)
        self.assert_pauses(client, session, root)
        self.pause(client, session)
        (root / 'late').write_text('late')
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0)
        self.assertEqual((self.work / 'late').read_text(), 'late')

    def test_what_is_in_another_cgroup_there_is_stopped_by_signals(self):
        client, session = self.opened()
        ticks = self.with_daemon(client, session, self.runtime(client, session))
        agent = self.agent_pids()[-1]
        if OWN_CGROUP:
            other = OWN_CGROUP / f'acp-test-{os.getpid()}'
            other.mkdir()
            self.addCleanup(other.rmdir)
            (other / 'cgroup.procs').write_text(str(agent))
        answer = self.ask(client, session, 'pause')
        self.assertEqual((answer['paused'], answer['by']), (True, 'signals'))
        self.assertEqual(processes.stat_of(agent)[1], 'T')
        self.assert_still(ticks)
        self.resume(client, session)
        self.assert_grows(ticks)
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0)

    def test_a_killed_broker_leaves_nothing_frozen_there(self):
        client, session = self.opened()
        self.with_daemon(client, session, self.runtime(client, session))
        self.pause(client, session)
        os.kill(client.pid, signal.SIGKILL)
        client.wait(PATIENCE)
        self.assertTrue(processes.wait_until(lambda: not self.remote(), PATIENCE),
                        processes.describe(self.remote()))


@unittest.skipIf(case.SANITIZED, 'the ssh program is not ours')
class FarByProgram(Far):
    ssh_client = 'openssh'


if __name__ == '__main__':
    case.main()

#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A broker that starts finishes the work of brokers that are gone, beside its own session."""

import fcntl
import os
import signal
import subprocess
import unittest

import case
import processes
import sync_room
from sessions_case import SessionsCase
from processes import PATIENCE

# The points at which we kill a session, or the collect of its files. A session first of all writes
# its record, so a session that is killed there has left nothing.
POINTS = ('keeper.saved:1', 'keeper.synced:1', 'record.written:2', 'deliver.asked:1',
          'base.setting:1', 'base.set:1', 'slot.exchanged:1', 'checkpoint.added:1')


class Recovery(SessionsCase):
    def elsewhere(self, client=None):
        """A session in another workspace with the same profile."""
        client = client or self.copied()
        other = self.dir / 'other'
        other.mkdir(exist_ok=True)
        return client, client.new_session(other)

    def wait_log(self, client, facts):
        client.wait_log(facts, PATIENCE)

    def ended(self, client):
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0)

    def assert_removed(self, runtime, client):
        """
        The client's agent was started in the folder, so the folder stays until the agent ends.
        """
        self.assertTrue(processes.wait_until(
            lambda: not runtime.exists() or not os.listdir(runtime), PATIENCE))
        self.ended(client)
        self.assertFalse(runtime.exists())

    def test_in_the_same_workspace(self):
        runtime = self.left()
        client, session = self.opened()
        self.assertEqual(self.runtime(client, session), runtime)
        self.assert_both()
        self.wait_state('stopped')
        self.edit_both(runtime, 'b')
        client.prompt(session, 'say hello')
        self.assert_both('b')
        self.ended(client)
        self.assertEqual([r['state'] for r in self.records()], ['stopped'] * 2)

    def test_beside_a_session_elsewhere(self):
        self.left()
        client, session = self.elsewhere()
        self.wait_state('stopped')
        self.assert_both()
        client.prompt(session, 'say hello')
        self.wait_log(client, 'is collected')
        self.ended(client)

    def test_without_any_session(self):
        self.left()
        self.copied()
        self.wait_state('stopped')
        self.assert_both()

    def test_what_is_transient_ends(self):
        runtime = self.left(persistence='transient')
        client, _ = self.elsewhere()
        self.wait_state('stopped')
        self.assert_removed(runtime, client)
        self.assert_both()

    def test_what_is_transient_and_used_again_stays(self):
        runtime = self.left(persistence='transient')
        client, session = self.opened(persistence='transient')
        self.wait_state('stopped')
        self.assert_both()
        self.edit_both(runtime, 'b')
        client.prompt(session, 'say hello')
        self.assert_both('b')
        self.ended(client)
        self.assertFalse(runtime.exists())

    def test_a_living_one_is_not_touched(self):
        first, session = self.opened()
        runtime = self.runtime(first, session)
        self.wait_state('active')
        self.edit_both(runtime)
        (self.dir / 'third').mkdir()
        gone = self.copied()
        gone.new_session(self.dir / 'third')
        self.wait_state('active', 2)
        gone.process.kill()
        gone.wait(PATIENCE)
        self.elsewhere()
        self.wait_state('stopped')  # the record of the third workspace
        self.assertFalse((self.work / 'a-there').exists())
        self.assertFalse((runtime / 'a-here').exists())
        first.prompt(session, 'say hello')
        self.assert_both()

    def test_what_fails_is_said_and_tried_again(self):
        runtime = self.left(persistence='transient')
        moved = self.dir / 'moved'
        self.work.rename(moved)
        options = ['--config', str(self.dir / 'config-copy'), '--profile', 'copy']
        client = self.broker(options=options, cwd=self.dir)
        client.initialize()
        self.elsewhere(client)
        self.wait_state('failed')
        self.wait_log(client, 'is not collected')
        self.ended(client)
        self.assertIn('the sandbox stays', client.stderr)
        self.assertTrue((runtime / 'a-there').exists())
        moved.rename(self.work)
        client, _ = self.elsewhere()
        self.assert_removed(runtime, client)
        self.assert_both()

    def test_the_end_does_not_wait(self):
        self.left()
        with self.held_store():
            client = self.copied()
            self.assertTrue(processes.wait_until(
                lambda: any(e['process'] == client.process.pid for e in self.listed()), PATIENCE))
            self.ended(client)
            self.assertFalse((self.work / 'a-there').exists())
        self.copied()
        self.wait_state('stopped')
        self.assert_both()

    def test_it_is_bounded(self):
        self.left()
        with self.held_store():
            client = self.copied(recovery_timeout='1s')
            self.assertTrue(processes.wait_until(
                lambda: 'recovery-timeout' in client.stderr, PATIENCE), client.stderr)
            self.assertTrue(processes.wait_until(
                lambda: not any(e['isHeld'] for e in self.listed()), PATIENCE))
            self.elsewhere(client)


class OtherProfiles(SessionsCase):
    """
    The next broker finishes what is left, with the settings of the profile that the record names.
    """

    def with_profiles(self, **profiles):
        """A broker with the first of these profiles; its configuration has no others."""
        lines = []
        for name, keys in profiles.items():
            lines += [f'[profile "{name}"]', *(f'\t{key}' for key in keys)]
        path = self.dir / 'config-all'
        path.write_text('\n'.join(lines) + '\n')
        options = ['--config', str(path), '--profile', next(iter(profiles))]
        client = self.broker(options=options)
        client.initialize()
        return client

    def wait_log(self, client, facts):
        client.wait_log(facts, PATIENCE)

    def test_a_broker_of_another_profile_finishes_it(self):
        runtime = self.left(persistence='transient')
        client = self.with_profiles(other=['isolation = copy', 'sync = none'],
                                    copy=['isolation = copy', 'exclude = *.none'])
        self.wait_state('stopped')
        self.wait_log(client, 'is collected')
        self.assert_both()
        self.assertFalse(runtime.exists())

    def test_one_whose_agent_works_in_the_workspace_itself(self):
        self.left()
        client = self.with_profiles(plain=['backend = local'], copy=['isolation = copy'])
        self.wait_log(client, 'is collected')
        self.assert_both()

    def test_its_own_profile_comes_first(self):
        self.left(profile='mine')
        older, = self.records()
        other = self.dir / 'second'
        other.mkdir()
        client = self.copied(profile='theirs')
        client.new_session(other)
        self.wait_state('active', 2)
        self.kill(client)
        client = self.with_profiles(mine=['isolation = copy'], theirs=['isolation = copy'])
        self.wait_state('stopped', 2)
        self.wait_log(client, f'of {other} | broker is gone | is collected')
        done = [line for line in client.stderr.splitlines() if 'is collected' in line]
        self.assertEqual([older['id'] in line for line in done], [True, False], done)

    def test_what_no_profile_is_for_is_named_and_left(self):
        runtime = self.left()
        record = self.the_one()['id']
        client = self.with_profiles(plain=['backend = local'])
        self.wait_log(client, f'session {record} of {self.work} | broker is gone | '
                              'profile "copy" | not have')
        client = self.with_profiles(plain=['backend = local'],
                                    copy=['backend = ssh', 'host = nowhere.invalid'])
        self.wait_log(client, 'profile "copy" | backend local | backend ssh')
        self.assertEqual((self.the_one()['state'], (runtime / 'a-there').exists()),
                         ('active', True))

    def test_one_that_fails_is_not_in_the_way_of_the_next(self):
        self.left(profile='first')
        other = self.dir / 'second'
        other.mkdir()
        client = self.copied(profile='second')
        client.new_session(other)
        self.wait_state('active', 2)
        self.kill(client)
        moved = self.dir / 'moved'
        other.rename(moved)
        client = self.with_profiles(plain=['backend = local'], first=['isolation = copy'],
                                    second=['isolation = copy'])
        self.wait_state('failed')
        self.wait_state('stopped')
        self.assert_both()

    def test_one_that_outlasts_the_time_for_it_is_not_first_for_ever(self):
        """
        The record with the locked store is the newer one; the lock lasts longer than a recovery may
        take.
        """
        other = self.dir / 'second'
        other.mkdir()
        self.left()
        stores = set((self.state / 'stores').iterdir())
        client = self.copied()
        session = client.new_session(other)
        (self.runtime(client, session) / 'late').write_text('late')
        self.wait_state('active', 2)
        store, = set((self.state / 'stores').iterdir()) - stores
        self.kill(client)
        keys = ['isolation = copy', 'recovery-timeout = 1s', 'sync-lock-timeout = 60s']
        with open(store / 'acp-broker.lock', 'r+b') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            client = self.with_profiles(copy=keys)
            self.wait_log(client, 'not done within 1 s')
            client.close_stdin()
            client.wait(PATIENCE)
            patient = ['isolation = copy', 'recovery-timeout = 10m', 'sync-lock-timeout = 10m']
            self.with_profiles(copy=patient)  # the locked record would not let the other pass
            self.wait_state('stopped')
        self.assert_both()

    def test_nothing_is_made_where_there_never_was_anything(self):
        client = self.with_profiles(plain=['backend = local'])
        session = client.new_session(self.work)
        client.prompt(session, 'say hello', 'sleep 1500')
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0)
        self.assertEqual([path.name for path in self.state.rglob('*')], ['plain'])


class Killed(unittest.TestCase):
    """A session, and then the collect of what it left, are killed anywhere: nothing is lost."""

    def collect(self, room, **more):
        argv = [sync_room.POINTS, '--config', str(room.path), 'sessions', 'collect']
        return subprocess.run(argv, env=room.environment(**more), text=True, cwd=room.dir,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              timeout=PATIENCE)

    def room(self):
        room = sync_room.Room()
        room.setUp()
        self.addCleanup(room.doCleanups)
        room.make_and_sync(2)
        return room

    def check(self, room):
        """Checks that everything is on both sides before any further session."""
        done = self.collect(room)
        self.assertEqual(done.returncode, 0, done.stderr)
        turn = room.work / f'turn{room.number}'
        for side in (room.local, room.remote):
            if turn.exists():
                side[turn.name] = sync_room.look(turn)
        wanted = sync_room.merged(room.base, room.local, room.remote)
        for root in (room.work, room.runtime):
            room.assert_same(sync_room.tree(root)[0], wanted, str(root))
        room.check()

    def test_a_session_that_is_killed(self):
        for point in POINTS:
            with self.subTest(point=point):
                room = self.room()
                room.edit()
                _, status = room.session(ACP_POINT=f'{point}:kill')
                self.assertEqual(status, -signal.SIGKILL)
                room.assert_nothing_runs()
                self.check(room)

    def test_a_collect_that_is_killed(self):
        for point in POINTS:
            with self.subTest(point=point):
                room = self.room()
                client, _ = room.open()
                room.edit()
                client.process.kill()
                client.wait(PATIENCE)
                done = self.collect(room, ACP_POINT=f'{point}:kill')
                self.assertEqual(done.returncode, -signal.SIGKILL, done.stderr)
                room.assert_nothing_runs()
                self.check(room)


if __name__ == '__main__':
    case.main()

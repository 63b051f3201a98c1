#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Sessions on hosts that differ from OpenSSH with its defaults: other servers, one channel for each
connection, folders in which nothing may be executed or written.
"""

import os
import pwd
import shutil
import subprocess
import unittest

import acp
import processes
import system_bus

from case import main
from processes import PATIENCE
from ssh_case import SshCase
from sshd import Dropbear, Sshd, TinySshd
from together import Together, tests_of

AT_ONCE = 3
SIZE = 3 << 20

# Words for Sshd's prefix; $3 is the folder of the server. The folders of the user are mount points,
# so that each may have its own flags.
SCENE = ['unshare', '--mount', 'sh', '-c']
MOUNTS = 'for d in "$3/home" "$3/run"; do mkdir "$d"; mount --bind "$d" "$d"; done; '
PLACES = ('"$3/home"', '"$3/run"', '/dev/shm', '/tmp')  # in which the runner is put, by this order


def remounted(flag, places):
    return ''.join(f'mount --bind {one} {one}; mount -o remount,bind,{flag} {one}; '
                   for one in places)


def can_mount():
    return os.getuid() == 0 and subprocess.run(
        ['unshare', '--mount', 'true'], check=False, capture_output=True).returncode == 0


class There(SshCase):
    ssh_client = 'auto'

    def programs(self):
        """The files of the runners there."""
        return {os.readlink(f'/proc/{pid}/exe') for pid in self.remote()
                if processes.name_of(pid).startswith('acp-runner')}

    def work_there(self, **keys):
        """
        A session that moves files both ways, and starts and kills commands. Returns the broker's
        warnings, and the files of the runners.
        """
        content = os.urandom(SIZE)
        (self.work / 'mine').write_bytes(content)
        client = self.broker(options=self.config(**keys))
        told = client.initialize()['_meta']['broker']
        session = client.new_session(self.work)
        root = self.runtime(client, session)
        programs = self.programs()
        client.prompt(session, 'terminal-kill sleep 1000', 'terminal cat mine > theirs; exit 3',
                      f'write {root}/note there\\n', f'read {root}/note')
        self.assertEqual((self.work / 'theirs').read_bytes(), content)
        self.assertEqual((self.work / 'note').read_text(), 'there\n')
        self.assertTrue(any('"exitCode":3' in text for text in client.texts(session)))
        (self.work / 'theirs').unlink()
        client.prompt(session, 'terminal ls > seen')
        self.assertEqual((self.work / 'seen').read_text().split(), ['mine', 'note', 'seen'])
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0, client.stderr)
        self.assert_nothing_runs()
        return told, programs


class Servers(There):
    def check(self, client):
        told, programs = self.work_there(ssh_client=client)
        self.assertEqual(len(programs), 1)
        self.assertTrue(told['outlives'].startswith('link-grace'), told)

    def check_loss(self, client):
        """The agent and its command go on without the connection."""
        gate = self.sshd.home / 'go'
        os.mkfifo(gate)
        broker, session = self.opened(ssh_client=client)
        root = self.runtime(broker, session)
        waiting = broker.start_prompt(
            session, 'pid', f'terminal echo > made; read line < {gate}; echo said $line', 'pid')
        self.assertTrue(processes.wait_until((root / 'made').exists))
        self.sshd.kill_connections()
        self.assertTrue(processes.wait_until(lambda: 'reconnected after' in broker.stderr),
                        broker.stderr)
        gate.write_text('word\n')
        self.assertEqual(broker.answer(waiting)['stopReason'], 'end_turn')
        pids = [text for text in broker.texts(session) if text.startswith('pid ')]
        self.assertEqual(pids, [pids[0]] * 2)
        self.assertTrue(any('said word' in text for text in broker.texts(session)))
        broker.close_stdin()
        self.assertEqual(broker.wait(PATIENCE), 0, broker.stderr)
        self.assert_nothing_runs()


class OneChannel(Servers):
    sshd_config = 'MaxSessions 1'

    def test_by_libssh2(self):
        self.check('libssh2')

    def test_by_ssh(self):
        self.check('openssh')

    def test_a_lost_connection(self):
        self.check_loss('auto')


@unittest.skipUnless(can_mount(), 'only root can give this server a user of the test')
class ByDropbear(Servers):
    def make_sshd(self):
        return Dropbear()

    def test_by_libssh2(self):
        self.check('libssh2')

    def test_by_ssh(self):
        self.check('openssh')

    def test_a_lost_connection(self):
        self.check_loss('libssh2')


@unittest.skipUnless(can_mount(), 'only root can give this server a user of the test')
class ByTinySshd(Servers):
    def make_sshd(self):
        return TinySshd()

    def test_by_libssh2(self):
        """They have no cipher in common."""
        client = self.broker(options=self.config(ssh_client='libssh2'))
        with self.assertRaises(acp.RpcError) as caught:
            client.initialize()
        self.assertEqual(caught.exception.data['code'], 'SSH_UNSUPPORTED')
        self.assertNames(caught.exception.message, 'chacha20-poly1305 | ssh-client')

    def test_by_the_client_that_the_broker_chooses(self):
        self.check('auto')

    def test_a_lost_connection(self):
        self.check_loss('auto')


@unittest.skipUnless(can_mount(), 'only root can mount folders with other flags')
class Folders(There):
    flags = ''

    def make_sshd(self):
        return Sshd(prefix=[*SCENE, MOUNTS + self.flags + 'exec "$@"', 'sh'])


class NoExecHome(Folders):
    flags = remounted('noexec', PLACES[:2])

    def test_the_runner_is_somewhere_else(self):
        told, programs = self.work_there()
        self.assertEqual({path.split('/acp-broker')[0] for path in programs}, {'/dev/shm'})
        self.assertTrue(told['outlives'].startswith('link-grace'), told)


class NoExec(Folders):
    flags = remounted('noexec', PLACES)

    def test_scripts_do_the_work_and_the_reason_is_told(self):
        told, programs = self.work_there(outlives='auto')
        self.assertEqual(programs, set())
        self.assertNames(told['outlives'], 'no | runner | executed')


class ReadOnlyHome(Folders):
    flags = remounted('ro', PLACES[:1])

    def test_another_folder_takes_the_workspaces(self):
        place = self.sshd.folder / 'run/places'
        told, programs = self.work_there(runtime_root=place)
        self.assertEqual(len(programs), 1)
        self.assertTrue(told['outlives'].startswith('link-grace'), told)

    def test_without_one_the_error_names_the_folder_and_the_key(self):
        client = self.broker(options=self.config())
        client.initialize()
        with self.assertRaises(acp.RpcError) as caught:
            client.new_session(self.work)
        self.assertNames(caught.exception.message,
                         f'{self.sshd.home} | .local/share/acp-broker | runtime-root')


@unittest.skipUnless(can_mount() and system_bus.PROGRAM and shutil.which('busctl'),
                     'only root can give this server a user of the test')
class Logout(There):
    """systemd-logind may end what a login has started. The stand-in says so, and ends nothing."""

    sshd_config = 'PermitUserEnvironment yes'

    def setUp(self):
        super().setUp()
        self.bus = self.enterContext(system_bus.SystemBus(self.dir))
        (self.sshd.home / '.ssh').mkdir(mode=0o700)
        (self.sshd.home / '.ssh/environment').write_text(
            f'XDG_SESSION_ID=7\nDBUS_SYSTEM_BUS_ADDRESS={self.bus.address}\n')

    def outlives(self, exclude, only, every):
        self.bus.kills.update(KillExcludeUsers=exclude, KillOnlyUsers=only,
                              KillUserProcesses=every)
        client = self.broker(options=self.config(outlives='auto'))
        told = client.initialize()['_meta']['broker']
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0, client.stderr)
        self.assertTrue(processes.wait_until(lambda: not self.remote()))
        return told['outlives']

    def test_a_run_that_would_be_ended_is_tied_to_its_connection(self):
        me = pwd.getpwuid(os.getuid()).pw_name
        for exclude, only, every in ((['nobody'], [], True), (['nobody'], ['ann', me], False)):
            with self.subTest(exclude=exclude, only=only):
                self.assertNames(self.outlives(exclude, only, every),
                                 f'no | {me} | KillUserProcesses')

    def test_a_run_that_is_spared_goes_on(self):
        me = pwd.getpwuid(os.getuid()).pw_name
        for exclude, only, every in (([], [], True), (['ann', me], [me], True),
                                     (['nobody'], ['ann'], True), (['nobody'], [], False)):
            with self.subTest(exclude=exclude, only=only):
                self.assertNames(self.outlives(exclude, only, every), 'link-grace')


def load_tests(loader, _tests, _pattern):
    return Together(AT_ONCE, tests_of(loader, [
        OneChannel, ByDropbear, ByTinySshd, NoExecHome, NoExec, ReadOnlyHome, Logout]))


if __name__ == '__main__':
    main()

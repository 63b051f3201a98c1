#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A workspace and its runtime on another host, synced over a real sshd on loopback."""

import json
import os
import pathlib
import re
import stat
import subprocess
import time
import unittest

import case
import processes
import slow_proxy

from acp import RpcError
from test_ssh import SECONDS, SshCase

MIB = 1 << 20
PROBE = re.compile(rb'\.acp-broker-sync-room\.[0-9]+\.tmp')
NAMES = (b'new\nline', b'"quoted\\', b"it's", b'-n', b'--delete', b'*', b'#h', b'!e', b':(top)x',
         b' ', b'a:b', b'raw\xff\xfe', b'\xc3\xa9', b'$(touch x)', b'[x]', b'~', b'%i')


def look(root):
    """
    The content below a directory: {name: what it is}. Names are bytes, because a name may have any.
    """
    found = {}
    root = os.fsencode(root)
    for folder, folders, files in os.walk(root):
        if b'.git' in folders:
            folders.remove(b'.git')
        for name in files + [name for name in folders if os.path.islink(folder + b'/' + name)]:
            path = folder + b'/' + name
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                what = ('link', os.readlink(path))
            else:
                with open(path, 'rb') as file:
                    what = ('run' if status.st_mode & 0o100 else 'file', file.read())
            found[path[len(root) + 1:]] = what
    return found


def put(root, name, content=b''):
    path = os.fsencode(root) + b'/' + name
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as file:
        file.write(content)
    return path


class FarSync(SshCase):
    transport = 'git'

    def setUp(self):
        super().setUp()
        if self.__class__.__name__ == 'FarSync':
            self.skipTest('only what is made of it')

    def opened(self, **keys):
        client = self.far(**{'transport': self.transport, **keys})
        session = self.open_session(client)
        return client, session, self.runtime(client, session)

    def sync(self, client, session):
        return client.call('_broker/sync', {'sessionId': session}, seconds=SECONDS)

    def refuse_sync(self, client, session):
        with self.assertRaises(RpcError) as caught:
            self.sync(client, session)
        return caught.exception

    def assert_alike(self, root):
        self.assertEqual(look(self.work), look(root))


class Trees(FarSync):
    """What a sync brings, with both transports and both clients."""

    def fill(self, root, text):
        for name in NAMES:
            put(root, name, text + name)
            put(root, b'd/' + name + b'/' + name, text)
        os.chmod(put(root, b'run', text), 0o755)
        put(root, b'd/empty')
        put(root, b'crlf', b'x\r\ny\n')
        for target, name in (('../nowhere', 'dangling'), ('/etc/passwd', 'out'), ('d', 'folder'),
                             ('/', 'root'), ('-n', '-l')):
            os.symlink(target, f'{root}/{name}')

    def test_every_kind_of_file_travels_both_ways(self):
        self.fill(self.work, b'mine')
        client, session, root = self.opened()
        self.assert_alike(root)
        self.assertEqual(self.status(client, session)['transport'], self.transport)
        for name in NAMES[:5]:
            os.unlink(os.fsencode(root) + b'/' + name)
            put(root, b'd/' + name + b'/' + name, b'theirs')
            put(root, b'new/' + name, b'theirs')
        (root / 'run').chmod(0o644)
        (root / 'crlf').chmod(0o755)
        (root / 'out').unlink()
        (root / 'out').mkdir()
        (root / 'out/passwd').write_text('not that one\n')
        (root / 'folder').unlink()
        os.symlink('/tmp', root / 'folder')
        there = look(root)
        self.sync(client, session)
        self.assertEqual(look(root), there)
        self.assert_alike(root)
        self.assertIn(b'out/passwd', look(self.work))
        (self.work / 'out/passwd').unlink()
        (self.work / 'out').rmdir()
        (self.work / 'out').write_text('a file again\n')
        for name in NAMES:
            os.unlink(put(self.work, b'd/' + name + b'/' + name))
        here = look(self.work)
        self.sync(client, session)
        self.assertEqual(look(self.work), here)
        self.assert_alike(root)
        self.end(client)

    def test_each_of_two_directories_has_a_folder_of_its_own_there(self):
        other = self.dir / 'other'
        for root in (self.work, other):
            put(root, b'mine', b'of ' + root.name.encode() + b'\n')
        client = self.far(transport=self.transport)
        client.initialize(seconds=SECONDS)
        session = client.call('session/new', {
            'cwd': str(self.work), 'additionalDirectories': [str(other)], 'mcpServers': []},
            seconds=SECONDS)['sessionId']
        opened, = [json.loads(line)['params'] for line in self.journal('<')
                   if b'"session/new"' in line]
        there = [pathlib.Path(opened['cwd']), *map(pathlib.Path, opened['additionalDirectories'])]
        self.assertEqual([root.name for root in there], ['work', 'other'])
        client.prompt(session, f'terminal cat mine {there[1]}/mine; echo there > new; '
                      f'rm {there[1]}/mine; echo there too > {there[1]}/new', seconds=SECONDS)
        self.assertIn('of work\\nof other\\n', client.wait_text('terminal/output ->'))
        for root, far, added in ((self.work, there[0], b'there\n'),
                                 (other, there[1], b'there too\n')):
            self.assertEqual(look(root)[b'new'], ('file', added))
            self.assertEqual(look(root), look(far))
        self.assertNotIn(b'mine', look(other))
        put(self.work, b'mine', b'again\n')
        put(other, b'more', b'again\n')
        client.prompt(session, 'say here', seconds=SECONDS)
        for root, far in zip((self.work, other), there):
            self.assertEqual(look(root), look(far))
            put(far, b'late', b'late\n')
        self.end(client)
        for root, far in zip((self.work, other), there):
            self.assertIn(b'late', look(root))
            self.assertEqual(look(root), look(far))

    def test_what_both_sides_changed_is_merged_or_kept_twice(self):
        lines = [f'line {number}\n' for number in range(20)]
        (self.work / 'both').write_text(''.join(lines))
        (self.work / 'text').write_text('base\n')
        (self.work / 'gone').write_text('gone\n')
        client, session, root = self.opened()
        (root / 'both').write_text(''.join(['agent\n', *lines[1:]]))
        (self.work / 'both').write_text(''.join([*lines[:-1], 'person\n']))
        (root / 'text').write_text('agent\n')
        (self.work / 'text').write_text('person\n')
        (root / 'gone').unlink()
        self.sync(client, session)
        merged = ''.join(['agent\n', *lines[1:-1], 'person\n'])
        for side in (self.work, root):
            self.assertEqual((side / 'both').read_text(), merged)
            self.assertEqual((side / 'text').read_text(), 'person\n')
            self.assertFalse((side / 'gone').exists())
        self.assertEqual(self.parked('text'), ['agent\n'])
        for side in (self.work, root):
            self.assertEqual(list(side.glob('text?*')), [])
        self.end(client)

    def test_each_turn_is_a_checkpoint_to_go_back_to(self):
        (self.work / 'a').write_text('0\n')
        client, session, root = self.opened()
        for turn in '12':
            client.prompt(session, f'terminal echo {turn} > a; echo {turn} > new{turn}',
                          seconds=SECONDS)
        client.call('_broker/checkpoint/rollback', {'sessionId': session, 'checkpoint': 2},
                    seconds=SECONDS)
        self.assertEqual(self.tree(), {'a': '1\n', 'new1': '1\n'})
        self.assert_alike(root)
        self.end(client)


class ByRsync(Trees):
    transport = 'rsync'


class ByGitThroughProgram(Trees):
    client_name = 'openssh'


class ByRsyncThroughProgram(Trees):
    client_name = 'openssh'
    transport = 'rsync'


class ByProxy(FarSync):
    def setUp(self):
        super().setUp()
        self.proxy = slow_proxy.SlowProxy(self.server.port)
        self.proxy.__enter__()
        self.addCleanup(self.proxy.__exit__)
        self.ssh_config = self.server.folder / 'through'
        self.ssh_config.write_text(self.server.alias('box', port=self.proxy.port))


class RoundTrips(ByProxy):
    ROUND_TRIP = 0.8  # seconds; longer than everything else takes

    def test_an_unchanged_sync_is_two_at_most(self):
        (self.work / 'file').write_text('mine\n')
        client, session, root = self.opened()
        self.sync(client, session)
        self.proxy.delay = self.ROUND_TRIP / 2

        def few():
            """Tries several times: a look right after a change is not kept for the next sync."""
            began = time.monotonic()
            self.sync(client, session)
            return (time.monotonic() - began) / self.ROUND_TRIP < 2.9
        self.assertTrue(processes.wait_until(few))
        (root / 'file').write_text('other\n')
        self.sync(client, session)
        self.assert_alike(root)
        self.assertEqual((self.work / 'file').read_text(), 'other\n')
        self.proxy.delay = 0
        self.end(client)


class RoundTripsByRsync(RoundTrips):
    transport = 'rsync'


class Cut(ByProxy):
    """
    The connection is reset in the middle of a transfer, with both transports. Nothing outlives it,
    so the sync fails and the session is over.
    """

    def opened(self, **keys):
        return super().opened(outlives='never', **keys)

    def ended_badly(self, client):
        client.close_stdin()
        client.wait(SECONDS)

    def test_a_cut_delivery_leaves_whole_files_and_is_finished_by_the_next_run(self):
        old, new = os.urandom(4 * MIB), os.urandom(5 * MIB)
        put(self.work, b'big', old)
        client, session, root = self.opened()
        put(self.work, b'big', new)
        put(self.work, b'more/file', os.urandom(3 * MIB))
        self.proxy.cut_after = 3 * MIB
        self.refuse_sync(client, session)
        self.assertIn((root / 'big').read_bytes(), (old, new))
        self.assert_whole(root, {b'big': (old, new),
                                 b'more/file': ((self.work / 'more/file').read_bytes(),)})
        self.ended_badly(client)
        client, session, root = self.opened()
        self.assert_alike(root)
        self.assertEqual((root / 'big').read_bytes(), new)
        self.end(client)

    def test_a_cut_collect_leaves_whole_files_and_is_finished_by_the_next_run(self):
        old, new, more = os.urandom(4 * MIB), os.urandom(5 * MIB), os.urandom(3 * MIB)
        put(self.work, b'big', old)
        client, session, root = self.opened()
        put(root, b'big', new)
        put(root, b'more/file', more)
        self.proxy.cut_after = 3 * MIB
        self.refuse_sync(client, session)
        self.assert_whole(self.work, {b'big': (old, new), b'more/file': (more,)})
        self.ended_badly(client)
        client, session, root = self.opened()
        self.assert_alike(root)
        self.assertEqual((self.work / 'big').read_bytes(), new)
        self.end(client)

    def test_a_cut_in_the_middle_of_a_slow_sync_is_made_good_at_the_end(self):
        """
        The connection delays 100 ms each way, and still does so when the broker connects once more.
        """
        old, new, mine = os.urandom(4 * MIB), os.urandom(5 * MIB), os.urandom(MIB)
        put(self.work, b'big', old)
        client, session, root = self.opened()
        put(root, b'big', new)
        put(self.work, b'mine', mine)
        self.proxy.delay = 0.1
        self.proxy.cut_after = 3 * MIB
        self.refuse_sync(client, session)
        self.assert_whole(self.work, {b'big': (old, new), b'mine': (mine,)})
        self.assert_whole(root, {b'big': (new,), b'mine': (mine,)})
        self.end(client)
        self.assertEqual(look(self.work), {b'big': ('file', new), b'mine': ('file', mine)})
        self.assert_alike(root)

    def assert_whole(self, root, known):
        for name, (_, content) in look(root).items():
            if PROBE.fullmatch(name) and content == b'':
                continue  # of a script that was killed meanwhile; the next one removes it
            self.assertIn(name, known)
            self.assertIn(content, known[name], name)

    def test_without_sync_nothing_travels(self):
        put(self.work, b'a', os.urandom(2 * MIB))
        client, session, root = self.opened(sync='none')
        client.prompt(session, 'terminal ls -A; echo 2 > b', seconds=SECONDS)
        self.assertEqual(list(look(root)), [b'b'])
        self.end(client)
        self.assertEqual(list(look(self.work)), [b'a'])
        self.assertFalse((self.state / 'stores').exists())
        self.assertLess(self.proxy.total(), MIB)


class CutByRsync(Cut):
    transport = 'rsync'


class Programs(FarSync):
    """A host that lacks a program."""

    transport = 'auto'

    def without(self, *names):
        """The programs of the host, except these."""
        tools = self.server.home / 'tools'
        tools.mkdir()
        for folder in ('/usr/bin', '/bin', '/usr/local/bin'):
            for program in os.listdir(folder):
                if program not in names and not os.path.lexists(tools / program):
                    os.symlink(f'{folder}/{program}', tools / program)
        (self.server.home / '.profile').write_text(
            f'PATH=$HOME/bin:{tools}; export PATH\n')

    def test_a_host_without_git_is_synced_by_rsync(self):
        self.without('git')
        (self.work / 'mine').write_text('mine\n')
        client, session, root = self.opened()
        self.assertEqual(self.status(client, session)['transport'], 'rsync')
        (root / 'theirs').write_text('theirs\n')
        self.sync(client, session)
        self.assertEqual(self.tree(), {'mine': 'mine\n', 'theirs': 'theirs\n'})
        client.wait_log('synced by rsync')
        self.end(client)

    def test_a_host_with_git_is_synced_by_git(self):
        """Its tags and remotes are synced, too, and a submodule with its own history."""
        (self.work / 'mine').write_text('mine\n')
        for command in ('init -q -b main', 'init -q lib', '-C lib commit -q --allow-empty -m lib',
                        'add .', 'commit -qm one', 'tag -am v1 v1',
                        'remote add origin https://t0ken@example.org/a.git'):
            subprocess.run(['git', '-c', 'user.name=A', '-c', 'user.email=a@b', *command.split()],
                           cwd=self.work, check=True, capture_output=True)
        (self.work / 'lib' / 'a').write_text('1\n')
        client, session, root = self.opened()
        self.assertEqual(self.status(client, session)['transport'], 'git')
        client.prompt(session, 'terminal git describe >said; git remote -v >>said; '
                      'git -C lib -c user.name=B -c user.email=b@b commit -q --allow-empty -m x; '
                      'git -C lib log --format=%s >>said; echo 2 > lib/a; '
                      'git add mine lib; git status --porcelain -uno >>said', seconds=SECONDS)
        said = (self.work / 'said').read_text().splitlines()
        self.assertEqual(said[:3], ['v1', 'origin\thttps://example.org/a.git (fetch)',
                                    'origin\thttps://example.org/a.git (push)'])
        self.assertEqual(said[3:], ['x', 'lib', 'M  lib'])
        self.assertEqual((self.work / 'lib' / 'a').read_text(), '2\n')
        self.end(client)

    def test_a_part_of_a_repository_has_git(self):
        top = self.work
        (top / 'way/part').mkdir(parents=True)
        (top / 'way/part/mine').write_text('mine\n')
        (top / 'out').write_text('out\n')
        for command in ('init -q -b main', 'add .', 'commit -qm one'):
            subprocess.run(['git', '-c', 'user.name=A', '-c', 'user.email=a@b', *command.split()],
                           cwd=top, check=True, capture_output=True)
        self.work = top / 'way/part'
        client, session, root = self.opened()
        client.prompt(session, 'terminal echo 2 > mine; git status --porcelain >said; '
                      'git -c user.name=B -c user.email=b@b commit -qam two; '
                      'git diff --name-only HEAD~1 >>said; ls -A ../.. >>said', seconds=SECONDS)
        self.assertEqual((self.work / 'said').read_text().splitlines(),
                         [' M way/part/mine', '?? way/part/said', 'way/part/mine', '.git', 'way'])
        self.end(client)

    def test_a_host_without_both_is_told_with_what_it_lacks(self):
        self.without('git', 'rsync')
        for transport in ('rsync', 'auto'):
            client = self.far(transport=transport)
            with self.assertRaises(RpcError) as caught:
                self.open_session(client)
            self.assertEqual(caught.exception.data['code'], 'SYNC_TOOL_MISSING')
            self.assertNames(caught.exception.message, 'the sandbox | no rsync')
            self.ended(client)

    def ended(self, client):
        client.close_stdin()
        client.wait(SECONDS)

    def test_this_machine_without_rsync_is_named(self):
        tools = self.dir / 'here'
        tools.mkdir()
        for program in ('sh', 'env', 'ssh', 'git', 'ls', 'cat'):
            os.symlink(f'/usr/bin/{program}', tools / program)
        self.path = str(tools)
        client = self.far(transport='rsync')
        with self.assertRaises(RpcError) as caught:
            self.open_session(client)
        self.assertEqual(caught.exception.data['code'], 'SYNC_TOOL_MISSING')
        self.assertNames(caught.exception.message, 'this machine | no rsync')
        self.ended(client)

    def environment(self):
        env = super().environment()
        return {**env, 'PATH': getattr(self, 'path', env['PATH'])}


class Persistence(FarSync):
    transport = 'rsync'

    def test_what_lies_beside_a_transient_folder_is_gone_with_it(self):
        (self.work / 'a').write_text('a\n')
        client, session, root = self.opened(persistence='transient')
        (self.work / 'a').write_text('aa\n')
        self.sync(client, session)
        (root / 'late').write_text('late\n')
        self.end(client)
        self.assertEqual(self.tree(), {'a': 'aa\n', 'late': 'late\n'})
        self.assertEqual(list(root.parent.parent.iterdir()), [])
        self.assertLessEqual(self.server.names_in_home(), {'bin', '.profile', '.local'})


del SshCase  # it has no tests to run
if not case.WHOLE:
    del ByRsyncThroughProgram  # each half runs in another class

if __name__ == '__main__':
    case.main()

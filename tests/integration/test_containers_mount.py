#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`mount = same-path`: a container that has the workspace itself (containers.py)."""

import os
import shutil
import subprocess

import processes

from acp import RpcError
from case import AGENT, main
from containers import IMAGE, Containers
from worktree_attacks import Scene, forge_repository

OWNER = 12345  # of the workspace, while the engine runs as root


class Mounted(Containers):
    def setUp(self):
        super().setUp()
        self.git('init', '-q')
        (self.work / '.envrc').write_text('mine\n')
        (self.work / 'sub').mkdir()
        (self.work / 'sub/.mcp.json').write_text('mine\n')
        (self.work / 'file').write_text('one\n')
        self.give()

    def give(self, owner=OWNER):
        subprocess.run(['chown', '-R', f'{owner}:{owner}', str(self.work)], check=True)

    def git(self, *words):
        return subprocess.run(['git', '-c', 'safe.directory=*', '-c', 'user.name=u', '-c',
                               'user.email=u@example.org', *words], cwd=self.work, check=True,
                              text=True, capture_output=True).stdout

    def config(self, deadlines=True, policy=None, backend='container', **keys):
        return super().config(deadlines, policy, backend,
                              **{'image': IMAGE, 'mount': 'same-path', **keys})

    @staticmethod
    def initialized(client):
        return client.response(client.start('initialize', {
            'protocolVersion': 1, 'clientCapabilities': {}}))

    def shell(self, client, session, line):
        """Runs the line in a terminal of the agent; returns its output."""
        before = len(client.texts(session))
        client.prompt(session, f'terminal {line}')
        return '\n'.join(client.texts(session)[before:])

    def wait_notices(self, client, count):
        self.assertTrue(processes.wait_until(lambda: len(self.notices(client)) >= count))
        return self.notices(client)

    def notices(self, client):
        return [update['title'] for update in (
                    message.params['update'] for message in client.received
                    if message.method == 'session/update')
                if update['sessionUpdate'] == 'tool_call' and 'outside of the' in update['title']]

    def assert_pins_hold(self):
        self.assertEqual((self.work / '.envrc').read_text(), 'mine\n')
        self.assertEqual((self.work / 'sub/.mcp.json').read_text(), 'mine\n')
        self.assertFalse((self.work / '.git/hooks/post-commit').exists())
        self.assertTrue((self.work / '.git/HEAD').exists())

    ATTACK = ('echo EVIL >>.envrc; echo EVIL >n; mv n .envrc; rm -f .envrc; mv sub gone; '
              'echo EVIL >>sub/.mcp.json; echo EVIL >.git/hooks/post-commit; mv .git .g; '
              'umount .git; git commit -q --allow-empty -m x')


class Files(Mounted):
    def test_an_edit_is_there_at_once_and_belongs_to_the_workspaces_owner(self):
        client = self.broker(options=self.config())
        told = client.initialize()['_meta']['broker']['capabilities']
        self.assertEqual((told['confined'], told['separate_files'], told['isolated']),
                         (True, False, False))
        session = client.new_session(self.work)
        turn = client.start_prompt(session, 'terminal pwd; id -u; echo two >>file; echo x >made; '
                                            'until [ -e seen ]; do sleep 0.1; done; cat seen')
        self.assertTrue(processes.wait_until((self.work / 'made').exists))
        self.assertEqual((self.work / 'file').read_text(), 'one\ntwo\n')
        (self.work / 'seen').write_text('from here\n')
        client.answer(turn)
        said = '\n'.join(client.texts(session))
        self.assertIn(f'"{self.work}\\n{OWNER}\\nfrom here\\n"', said)
        client.prompt(session, f'write {self.work}/sub/served text')
        for name in ('made', 'sub/served', 'file'):
            seen = (self.work / name).stat()
            self.assertEqual((seen.st_uid, seen.st_gid), (OWNER, OWNER), name)
        self.assertIn(f'{self.work} true', self.seen(
            '{{range .Mounts}}{{.Destination}} {{.RW}};{{end}}'))
        self.end(client)
        self.assertEqual(self.running_containers(), [])
        self.assert_nothing_runs()

    def test_what_tools_run_is_not_written(self):
        client, session = self.opened()
        self.shell(client, session, self.ATTACK + '; echo two >>file')
        client.prompt(session, f'write {self.work}/.envrc EVIL',
                      f'write {self.work}/.git/hooks/post-commit EVIL',
                      f'write {self.work}/new text')
        self.assert_pins_hold()
        self.assertEqual((self.work / 'file').read_text(), 'one\ntwo\n')
        self.assertEqual((self.work / 'new').read_text(), 'text')
        self.end(client)

    def test_git_write_lets_it_commit(self):
        client, session = self.opened(git_write='true')
        self.shell(client, session, 'git add file; git -c user.name=a -c user.email=a@example.org '
                                    'commit -q -m first; echo EVIL >>.envrc')
        self.assertEqual(self.git('log', '--format=%s'), 'first\n')
        self.assertEqual((self.work / '.envrc').read_text(), 'mine\n')
        self.end(client)

    def test_an_agent_in_a_worktree_writes_nothing_into_its_repository(self):
        shutil.rmtree(self.work / '.git')
        self.give(0)
        scene = Scene(self.dir / 'home', self.work)
        scene.outside(self)
        client, session = self.opened()
        scene.attack(self, client, session)
        self.end(client)

    def test_a_forged_repository_shows_nothing(self):
        """Agents of two workspaces in one folder make that folder look like a repository."""
        home = self.dir / 'home'
        self.work = forge_repository(home)
        (home / 'file').write_text('mine\n')
        for path in (home / 'file', *(home / 'worktrees').rglob('*')):
            os.chown(path, OWNER, OWNER)
        for git_write in ('false', 'true'):
            client, session = self.opened(git_write=git_write, persistence='transient')
            said = self.shell(client, session, f'cat {home}/file; echo EVIL >>{home}/file; pwd')
            self.assertIn(f'{self.work}\\n', said)
            self.assertNotIn('mine', said)
            self.assertEqual((home / 'file').read_text(), 'mine\n')
            self.assertNotIn(f'{home};', self.seen('{{range .Mounts}}{{.Destination}};{{end}}'))
            self.end(client)

    def test_what_comes_is_told_and_so_is_a_pin_that_is_lost(self):
        client, session = self.opened()
        self.shell(client, session, 'mkdir new; git init -q new; echo EVIL >new/.envrc')
        self.assertNames(self.wait_notices(client, 1)[0], 'new/.git | git | new/.envrc | direnv')
        (self.work / 'n').write_text('other\n')
        (self.work / 'n').rename(self.work / '.envrc')
        self.shell(client, session, 'true')
        told = self.wait_notices(client, 2)[-1]
        self.assertNames(told, '.envrc | direnv')
        self.assertNotIn('.mcp.json', told)
        self.end(client)

    def test_a_pin_that_another_brokers_session_has_lost_is_told(self):
        one, session = self.opened()
        (self.work / 'n').write_text('other\n')
        (self.work / 'n').rename(self.work / '.envrc')
        self.give()
        two, second = self.opened()
        self.assertEqual(len(self.containers()), 1)
        self.shell(two, second, 'echo two >>.envrc')
        self.assertEqual((self.work / '.envrc').read_text(), 'other\ntwo\n')
        told = self.wait_notices(two, 1)[0]
        self.assertNames(told, '.envrc | direnv')
        self.assertNotIn('.mcp.json', told)
        self.assertNotIn('.git', told)
        self.end(two)
        self.end(one)

    def test_nobody_there_becomes_root(self):
        """Not even in a workspace of root's, where the agent has root's number."""
        self.give(0)
        client, session = self.opened()
        said = self.shell(client, session, 'id -u; grep -E "Cap(Eff|Bnd)|NoNew" /proc/1/status; '
                                           'chown 1 file; mknod made b 8 0')
        none = '0' * 16
        self.assertIn(f'CapEff:\\t{none}\\nCapBnd:\\t{none}\\nNoNewPrivs:\\t1\\n', said)
        self.assertEqual((self.work / 'file').stat().st_uid, 0)
        self.assertFalse((self.work / 'made').exists())
        self.shell(client, session, self.ATTACK)
        self.assert_pins_hold()
        self.end(client)


class Places(Mounted):
    def test_a_folder_whose_name_has_every_sign(self):
        old, self.work = self.work, self.work.parent / 'a b:c,d="e" %i \'f\''
        old.rename(self.work)
        client, session = self.opened()
        self.shell(client, session, self.ATTACK + '; echo two >>file')
        self.assert_pins_hold()
        self.assertEqual((self.work / 'file').read_text(), 'one\ntwo\n')
        self.end(client)

    def test_names_that_the_engine_would_change_are_refused(self):
        """And an agent cannot use that to write another file than the one that is mounted."""
        for name, quoted in ((b'x\r\n', '"x\\r\\n"'), (b'x\xff', '"x\\377"')):
            folder = os.path.join(os.fsencode(self.work), name)
            os.mkdir(folder)
            with open(os.path.join(folder, b'.envrc'), 'w', encoding='utf-8') as file:
                file.write('mine\n')
            error = self.refused('CONFIG_INVALID')
            self.assertNames(error['message'],
                             f'{self.work}/{quoted[1:-1]} | mount = none')
            shutil.rmtree(folder)
        (self.work / 'x\n').mkdir()
        (self.work / 'x\n/.envrc').write_text('mine\n')
        self.give()
        client, session = self.opened()
        self.shell(client, session, 'for f in x*; do echo EVIL >>"$f/.envrc"; done; '
                                    'echo two >>file')
        self.assertEqual((self.work / 'x\n/.envrc').read_text(), 'mine\n')
        self.assertEqual((self.work / 'file').read_text(), 'one\ntwo\n')
        self.end(client)

    def test_a_path_with_a_link_is_refused_by_its_name(self):
        link = self.dir / 'link'
        link.symlink_to(self.work)
        client = self.broker(options=self.config())
        client.initialize()
        with self.assertRaises(RpcError) as caught:
            client.new_session(link)
        self.assertNames(str(caught.exception), f'{link} | symbolic link | {self.work}')
        client.new_session(self.work / 'sub')  # a folder in it needs no other container
        self.assertEqual(len(self.containers()), 1)
        self.end(client)

    def test_sessions_of_two_workspaces_have_two_containers(self):
        other = self.dir / 'other'
        other.mkdir()
        (other / '.envrc').write_text('mine\n')
        client, session = self.opened()
        second = client.new_session(other)
        for one in (session, second):
            self.shell(client, one, 'ls; echo EVIL >>.envrc; echo x >made')
        self.assertTrue((self.work / 'made').exists())
        self.assertTrue((other / 'made').exists())
        self.assertEqual((other / '.envrc').read_text(), 'mine\n')
        self.assertEqual(len(self.containers()), 2)
        self.end(client)
        self.assertEqual(self.running_containers(), [])

    def test_a_link_that_comes_while_the_container_starts(self):
        """As an agent of another session could put it there: the engine follows it."""
        outside = self.dir / 'outside'
        outside.mkdir()
        (outside / '.mcp.json').write_text('secret\n')
        os.chown(outside, OWNER, OWNER)
        self.agent_argv = lambda: ['/bin/sh', '-c',
                                   f'touch {self.work}/started {self.work}/sub/made; exec "$@"',
                                   'sh', AGENT]
        client = self.with_podman(f"""if [ "$1" = run ]; then
            mv '{self.work}/sub' '{self.work}/gone'
            ln -s '{outside}' '{self.work}/sub'
        fi""")
        error = self.failure(self.initialized(client), 'EXEC_MADE_OTHERWISE')
        self.assertNames(error['message'], f'{self.work}/sub')
        client.finish()
        self.assertEqual(os.listdir(outside), ['.mcp.json'])
        self.assertFalse((self.work / 'started').exists())
        self.assertEqual((self.containers(), self.notes()), ([], []))

    def test_a_repository_that_is_replaced_while_the_container_starts(self):
        """The engine follows the link to another folder, and then the repository is back."""
        shutil.rmtree(self.work / '.git')
        self.give(0)
        scene = Scene(self.dir / 'home', self.work)
        outside = self.dir / 'outside'
        outside.mkdir()
        client = self.with_podman(f"""if [ "$1" = run ]; then
            mv '{scene.common}' '{scene.common}.old'; ln -s '{outside}' '{scene.common}'
            {shutil.which('podman')} "$@"; status=$?
            rm '{scene.common}'; mv '{scene.common}.old' '{scene.common}'; exit $status
        fi""", git_write='true')
        error = self.failure(self.initialized(client), 'EXEC_MADE_OTHERWISE')
        self.assertNames(error['message'], f'{scene.common}')
        client.finish()
        self.assertEqual((self.containers(), self.notes()), ([], []))

    def test_a_folder_that_its_user_may_not_use_has_no_other_file(self):
        os.chown(self.work / 'sub', 0, 0)
        (self.work / 'sub').chmod(0o700)
        client = self.broker(options=self.config())
        error = self.failure(self.initialized(client), 'SANDBOX_UNAVAILABLE')
        self.assertNames(error['message'], f'{self.work}/sub/.mcp.json | Permission denied')
        self.assertNotIn('another file', error['message'])
        client.finish()

    def test_folders_that_would_undo_the_confinement(self):
        for folder, facts in ((self.dir / 'home', 'workspace | --workspace'),
                              (self.work / '.git', f'{self.work}/.git | mount = none')):
            before, self.work = self.work, folder
            error = self.refused('CONFIG_INVALID')
            self.work = before
            self.assertNames(error['message'], facts)
        self.assertEqual((self.containers(), self.notes()), ([], []))

    def test_volumes_of_the_image_in_the_workspace_are_ignored(self):
        changes = [word for name in ('.vscode', '.git/hooks')
                   for word in ('--change', f'VOLUME {self.work}/{name}')]
        done = self.podman('import', *changes, str(self.dir / 'root.tar'), IMAGE)
        self.assertEqual(done.returncode, 0, done.stderr)
        (self.work / '.git/hooks/mine').write_text('mine\n')
        client, session = self.opened()
        self.assertIn('mine', self.shell(client, session, 'ls .git/hooks'))
        self.end(client)
        self.assertFalse((self.work / '.vscode').exists())

    def test_the_workspace_is_removed_meanwhile(self):
        client, session = self.opened()
        shutil.rmtree(self.work)
        self.shell(client, session, 'true')
        client.close_stdin()
        client.wait()
        self.assertEqual(self.running_containers(), [], client.stderr)
        self.assert_nothing_runs()


class Life(Mounted):
    def test_the_container_of_a_workspace_is_used_again_until_other_pins_are_needed(self):
        names = []
        for made in ('one', 'two', 'three'):
            client, session = self.opened()
            said = self.shell(client, session, f'cat $HOME/kept; echo {made} >>$HOME/kept')
            names.append(len(self.containers()))
            self.end(client)
            if made == 'two':
                self.assertIn('one', said)
                (self.work / '.gitattributes').write_text('mine\n')
        self.assertEqual(names, [1, 1, 2])
        self.assertEqual(self.running_containers(), [])

    def test_a_container_of_one_session_is_removed(self):
        client, session = self.opened(persistence='transient')
        self.shell(client, session, 'echo x >made')
        self.end(client)
        self.assertTrue((self.work / 'made').exists())
        self.assertEqual((self.containers(), self.notes()), ([], []))

    def test_checkpoints_are_kept_if_the_profile_says_so(self):
        client, session = self.opened(checkpoints='true', persistence='transient')
        self.shell(client, session, 'echo two >>file')
        self.end(client)
        self.assertEqual((self.work / 'file').read_text(), 'one\ntwo\n')
        self.assertEqual((self.containers(), self.notes()), ([], []))

    def test_the_broker_is_killed_and_the_next_one_removes_the_container(self):
        client, session = self.opened(persistence='transient')
        client.start_prompt(session, 'terminal echo there > made; sleep 600')
        left, = self.containers()
        self.wait_for_sleep(left)
        os.kill(client.pid, 9)
        client.wait()
        client, _ = self.opened(persistence='transient')
        self.assertTrue(processes.wait_until(
            lambda: left not in self.containers()
            and left not in [note['name'] for note in self.notes()]))
        self.end(client)
        self.assertEqual((self.containers(), self.notes()), ([], []))
        self.assertEqual((self.work / 'made').read_text(), 'there\n')


class Refused(Mounted):
    def test_a_container_that_is_there_already(self):
        options = Containers.config(self, container='mine', mount='same-path')
        error = self.run_broker('check', *options, '--', AGENT, status=2)
        self.assertNames(error.stdout + error.stderr, 'mount | same-path | container')
        done = self.run_broker('check', *self.config(git_write='true'), '--', AGENT)
        self.assertNames(done.stdout, 'mounts the workspace | read-only')

    def test_an_engine_elsewhere(self):
        client = self.start(self.broker_argv(*self.config(), agent=[AGENT]), env={
            **self.environment(), 'CONTAINER_HOST': 'ssh://there/run/podman.sock'})
        error = self.failure(client.response(client.start('initialize', {
            'protocolVersion': 1, 'clientCapabilities': {}})), 'CONFIG_INVALID')
        client.finish()
        self.assertNames(error['message'], 'CONTAINER_HOST | ssh://there')


if __name__ == '__main__':
    main()

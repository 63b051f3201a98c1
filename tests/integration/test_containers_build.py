#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`dockerfile = PATH`: the engine builds the image of the containers."""

import os
import shutil
import signal

import processes

from case import main
from containers import IMAGE, Containers
from processes import PATIENCE

OTHER_GROUP = 4711
RECIPE = f'FROM {IMAGE}\nCOPY note /note\n'


class Builds(Containers):
    def setUp(self):
        super().setUp()
        self.folder = self.dir / 'recipe'
        self.fill(self.folder)
        self.log = self.dir / 'commands'

    def broker_argv(self, *options, agent):
        return [*getattr(self, 'wrapper', ()), *super().broker_argv(*options, agent=agent)]

    def fill(self, folder):
        folder.mkdir()
        (folder / 'Dockerfile').write_text(RECIPE)
        (folder / 'note').write_text('first')

    def logged(self, dockerfile=None, **keys):
        """A broker whose engine logs the names of its commands."""
        fake = self.dir / 'bin'
        if fake.exists():
            shutil.rmtree(fake)
        self.log.write_text('')
        client = self.with_podman(f'echo "$1" >>{self.log}',
                                  dockerfile=dockerfile or self.folder / 'Dockerfile', **keys)
        client.initialize()
        return client

    def builds(self):
        return self.log.read_text().split().count('build')

    def said(self, client):
        session = client.new_session(self.work)
        client.prompt(session, 'terminal cat /note')
        return client.wait_text('terminal/output ->')

    def refused_file(self, dockerfile, **keys):
        return self.refused('DOCKERFILE_REFUSED', dockerfile=dockerfile, **keys)['message']


class Images(Builds):
    def test_an_image_is_built_once_for_each_content(self):
        client = self.logged()
        self.assertIn('first', self.said(client))
        self.assertIn('Building the image: STEP', client.stderr)
        self.end(client)
        self.assertEqual(self.builds(), 1)
        client = self.logged()
        self.assertIn('first', self.said(client))
        self.end(client)
        self.assertEqual((self.builds(), len(self.containers())), (0, 1))
        (self.folder / 'note').write_text('second!')
        client = self.logged()
        self.assertIn('second!', self.said(client))
        self.end(client)
        self.assertEqual((self.builds(), len(self.containers())), (1, 2))
        self.assert_nothing_runs()

    def test_a_build_that_fails_says_why(self):
        (self.folder / 'Dockerfile').write_text(f'FROM {IMAGE}\nCOPY missing-one /x\n')
        error = self.refused('EXEC_COMMAND_FAILED', dockerfile=self.folder / 'Dockerfile')
        self.assertNames(error['message'], 'build | podman | missing-one')
        self.assertEqual((self.containers(), self.notes()), ([], []))
        self.assert_nothing_runs()

    def test_a_file_that_is_missing(self):
        client = self.broker(options=self.config(dockerfile=self.folder / 'none'))
        error = client.response(client.start('initialize', {
            'protocolVersion': 1, 'clientCapabilities': {}})).value['error']
        client.finish()
        self.assertNames(error['message'], f'dockerfile | {self.folder}/none')


class Recovery(Builds):
    """A broker was killed; the work is in a container of an image that is no longer described."""

    def killed(self, **keys):
        client = self.logged(**keys)
        session = client.new_session(self.work)
        client.start_prompt(session, 'terminal echo there > made; sleep 600')
        name, = self.containers()
        self.wait_for_sleep(name)
        os.kill(client.pid, signal.SIGKILL)
        client.wait()
        return name

    def test_another_dockerfile_is_not_built_to_find_the_work(self):
        name = self.killed(persistence='transient')
        (self.folder / 'note').write_text('second!')
        client = self.logged(persistence='transient')
        client.wait_log('is collected', PATIENCE)
        self.assertEqual((self.work / 'made').read_text(), 'there\n')
        self.assertTrue(processes.wait_until(lambda: name not in self.containers()))
        self.end(client)
        self.assertEqual(self.builds(), 1)  # for its own session
        self.assertEqual((self.containers(), self.notes()), ([], []))

    def test_a_dockerfile_that_is_gone_loses_no_work(self):
        self.killed(persistence='transient')
        shutil.rmtree(self.folder)
        config = self.config(dockerfile=self.folder / 'Dockerfile', persistence='transient')
        self.run_broker(*config[:2], 'sessions', 'collect')
        self.assertEqual((self.work / 'made').read_text(), 'there\n')
        self.assertEqual((self.containers(), self.notes()), ([], []))


class Trust(Builds):
    def test_a_dockerfile_in_the_workspace_is_refused_unless_the_user_trusts_it(self):
        self.fill(self.work / 'box')
        path = self.work / 'box/Dockerfile'
        self.assertNames(self.refused_file(path), f'{path} | {self.work} | dockerfile-in-workspace')
        self.assertEqual(self.containers(), [])
        client = self.logged(path, **{'dockerfile-in-workspace': 'true'})
        self.assertIn('first', self.said(client))
        self.end(client)

    def test_a_link_is_refused_wherever_it_is(self):
        """An agent could make it lead elsewhere, also one that works in another folder."""
        for link in (self.work / 'link', self.dir / 'link'):
            link.symlink_to(self.folder)
            self.assertNames(self.refused_file(link / 'Dockerfile'),
                             f'{link} | {self.folder}/Dockerfile | dockerfile-in-workspace')

    def test_each_file_of_the_build_is_looked_at(self):
        path = self.folder / 'scripts'
        path.mkdir()
        path.chmod(0o777)
        self.assertNames(self.refused_file(self.folder / 'Dockerfile'), f'{path} | o-w')

    def test_a_file_that_every_user_can_write_is_refused(self):
        for path in (self.folder / 'Dockerfile', self.folder):
            before = path.stat().st_mode
            path.chmod(before | 0o002)
            self.assertNames(self.refused_file(self.folder / 'Dockerfile'), f'{path} | chmod o-w')
            path.chmod(before)

    def test_a_file_that_another_group_can_write_is_refused(self):
        for path in (self.folder / 'Dockerfile', self.folder, self.folder / 'note'):
            os.chown(path, -1, OTHER_GROUP)
            path.chmod(path.stat().st_mode | 0o020)
            self.assertNames(self.refused_file(self.folder / 'Dockerfile'), f'{path} | chmod g-w')
            os.chown(path, -1, os.getegid())
        client = self.logged()  # with the umask 002, each file is writable for one's own group
        self.assertIn('first', self.said(client))
        self.end(client)

    def test_a_file_that_a_shared_primary_group_can_write_is_refused(self):
        """The primary group has another member, or is one for many users."""
        path = self.folder / 'Dockerfile'
        path.chmod(path.stat().st_mode | 0o020)
        for number, entry in enumerate(('root:x:0:someone', 'users:x:0:')):
            groups = self.dir / f'group{number}'
            groups.write_text(f'{entry}\n')
            self.wrapper = ('unshare', '--mount', 'sh', '-c',
                            f'mount --bind {groups} /etc/group && exec "$@"', 'sh')
            self.assertNames(self.refused_file(path), f'{path} | chmod g-w')

    def test_a_file_that_a_second_user_of_the_primary_group_can_write_is_refused(self):
        path = self.folder / 'Dockerfile'
        path.chmod(path.stat().st_mode | 0o020)
        users = self.dir / 'users'
        users.write_text('root:x:0:0:root:/root:/bin/sh\nkim:x:4711:0::/:/bin/sh\n')
        self.wrapper = ('unshare', '--mount', 'sh', '-c',
                        f'mount --bind {users} /etc/passwd && exec "$@"', 'sh')
        self.assertNames(self.refused_file(path), f'{path} | chmod g-w')

    def test_a_folder_above_that_every_user_can_write_is_refused(self):
        inner = self.folder / 'inner'
        self.fill(inner)
        self.folder.chmod(0o777)
        self.assertNames(self.refused_file(inner / 'Dockerfile'), f'{self.folder} | chmod o-w')
        self.folder.chmod(0o1777)  # nobody can rename the entry of another user there
        client = self.logged(inner / 'Dockerfile')
        self.assertIn('first', self.said(client))
        self.end(client)

    def test_a_session_in_the_folder_of_the_dockerfile_is_refused(self):
        client = self.logged()
        message = client.start('session/new', {'cwd': str(self.folder), 'mcpServers': []})
        error = self.failure(client.response(message), 'DOCKERFILE_REFUSED')
        self.assertNames(error['message'], f'{self.folder} | dockerfile')
        self.end(client)


if __name__ == '__main__':
    main()

#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Files from which git would run commands do not leave a sandbox, with either transport."""

import subprocess

import case

from processes import PATIENCE
from sync_case import SyncCase

# A repository without .git: git takes any folder with these files for one, and runs commands that
# its config names.
MAKE = ('mkdir -p {0}/objects {0}/refs; touch {0}/objects/x {0}/refs/x; '
        'echo ref: refs/heads/m > {0}/HEAD; '
        "printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = .\\n"
        "\\tfsmonitor = \"touch ran; :\"\\n' > {0}/config")
STATUS = ['git', '-c', 'safe.bareRepository=all', 'status']


class Withheld:
    transport = None

    def held(self, **keys):
        client = self.copied(transport=self.transport, **keys)
        return client, client.new_session(self.work)

    def git_status(self, folder):
        """
        Whether git takes the folder for a repository; a command that git ran would leave a file.
        """
        done = subprocess.run([*STATUS, '--porcelain'], cwd=folder, check=False,
                              env=self.environment(), stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=PATIENCE)
        self.assertEqual([str(path) for path in self.work.rglob('ran')], [])
        return done.returncode == 0

    def test_a_repository_of_the_agents_stays_in_the_sandbox(self):
        (self.work / 'a').write_text('mine\n')
        client, session = self.held()
        client.prompt(session, f'terminal {MAKE.format("d/evil.git")}; {MAKE.format(".")}; '
                      'echo b > d/b')
        self.assertEqual(self.tree(), {'a': 'mine\n', 'd/b': 'b\n'})
        self.assertFalse(self.git_status(self.work))
        self.assertFalse(self.git_status(self.work / 'd'))
        told = self.notices(client)[-1]
        self.assertNames(told, 'HEAD | config | d/evil.git | 2 more')
        runtime = self.runtime(client, session)
        self.assertTrue((runtime / 'd/evil.git/config').exists())
        (self.work / 'a').write_text('changed\n')
        client.prompt(session, 'terminal cp a c')
        self.assertEqual(self.tree(), {'a': 'changed\n', 'c': 'changed\n', 'd/b': 'b\n'})
        self.assertEqual(self.notices(client)[-1], told)
        self.assertTrue((runtime / 'd/evil.git/config').exists())
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0, client.stderr)
        # The next broker finds it unchanged.
        client, session = self.held()
        client.prompt(session, 'terminal cat d/evil.git/HEAD; echo d > e')
        self.assertEqual(sorted(self.tree()), ['a', 'c', 'd/b', 'e'])
        self.assertNames(self.notices(client)[0], 'HEAD | config | d/evil.git | 2 more')
        self.assertTrue((runtime / 'd/evil.git/config').exists())

    def test_a_repository_of_the_users_keeps_its_configuration(self):
        subprocess.run(['git', 'init', '-q', '--bare', '--template=', 'mine'], cwd=self.work,
                       check=True, stdin=subprocess.DEVNULL, env=self.environment())
        (self.work / 'mine/refs/x').write_text('x\n')
        before = (self.work / 'mine/config').read_text()
        client, session = self.held()
        client.prompt(session, 'terminal cd mine; printf "\\tfsmonitor = x\\n" >> config; '
                      'mkdir hooks; echo > hooks/update; echo y > refs/y; rm refs/x')
        self.assertEqual((self.work / 'mine/config').read_text(), before)
        self.assertFalse((self.work / 'mine/hooks').exists())
        self.assertEqual((self.work / 'mine/refs/y').read_text(), 'y\n')
        self.assertFalse((self.work / 'mine/refs/x').exists())
        self.assertNames(self.notices(client)[-1], 'mine/config | mine/hooks')

    def test_a_transient_sandbox_is_kept_for_it(self):
        client, session = self.held(persistence='transient')
        client.prompt(session, f'terminal {MAKE.format("evil.git")}; echo b > b')
        runtime = self.runtime(client, session)
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 1)
        self.assertNames(client.stderr, 'evil.git | sessions discard')
        self.assertTrue((runtime / 'evil.git/config').exists())
        self.assertEqual(self.tree(), {'b': 'b\n'})


class ByGit(Withheld, SyncCase):
    transport = 'git'

    def test_the_attack_works_where_nobody_prevents_it(self):
        subprocess.run(['sh', '-c', MAKE.format('.')], cwd=self.work, check=True)
        subprocess.run(STATUS, cwd=self.work, check=False, env=self.environment(),
                       stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)
        self.assertTrue((self.work / 'ran').exists())


class ByRsync(Withheld, SyncCase):
    transport = 'rsync'

    def broker_argv(self, *options, agent):
        return [case.BROKER, *options, '--', *agent]


if __name__ == '__main__':
    case.main()

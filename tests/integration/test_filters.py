#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Repositories whose files have filters: no commit of the agent's has content that a commit of the
user's would not have.
"""

import os
import pathlib
import shutil
import subprocess
import unittest

import case

from repository_case import RepositoryCase

SECRET = 'PASSWORD=hunter2'
COMMIT = 'git -c user.name=B -c user.email=b@b commit -q'


def needs(program):
    return unittest.skipUnless(shutil.which(program), f'{program} is not installed')


class FilterCase(RepositoryCase):
    def begin(self, **files):
        """
        A repository with these files, each as its filter makes it; opens a session with a copy of
        it.
        """
        self.write(self.work, **files)
        self.git('add', '-A')
        self.git('commit', '-qm', 'first')
        self.assertEqual(self.git('status', '--porcelain'), '')
        client, session = self.opened()
        return client, session, self.runtime(client, session)

    def there(self, runtime, command, fails=False):
        """Runs a command of the agent's in the copy; returns its output."""
        done = subprocess.run(['sh', '-ec', command], cwd=runtime, env=self.environment(),
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)
        self.said = done.stderr.decode('latin-1')
        printed = done.stdout.decode('latin-1')
        self.assertEqual(done.returncode != 0, fails, f'{command}: {printed}{self.said}')
        return printed

    def assert_unchanged(self, runtime, *names):
        """
        Checks that the files are the same as here and unchanged for git, and that a commit of
        everything has none of them.
        """
        for name in names:
            self.assertEqual((runtime / name).read_bytes(), (self.work / name).read_bytes())
        self.assertEqual(self.there(runtime, 'git status --porcelain'), '')
        (runtime / 'other').write_text('other\n')
        self.there(runtime, f'git add -A; {COMMIT} -am other')
        self.assertEqual(self.there(runtime, 'git diff --name-only HEAD~1'), 'other\n')
        self.assertEqual(self.there(runtime, 'git status --porcelain'), '')

    def assert_no_object_has(self, folder, secret):
        """Checks that no object of a repository contains the secret."""
        all_of_it = subprocess.run(
            ['git', f'--git-dir={folder}', 'cat-file', '--batch', '--batch-all-objects',
             '--unordered'], env=self.environment(), capture_output=True, check=True).stdout
        self.assertNotIn(secret.encode(), all_of_it)

    def told(self, client):
        return [text for text in self.notices(client) if 'git filters' in text]

    def wait_told(self, client):
        """Waits for the notice about the filters, which may come after an answer; returns it."""
        client.wait_for(lambda m: m.method == 'session/update'
                        and 'git filters' in m.params['update'].get('title', ''), 60)
        told = self.told(client)
        self.assertEqual(len(told), 1, self.notices(client))
        return told


class Blocked(FilterCase):
    """Filters whose program or key only the user has."""

    def keep_out(self, client, session, secret, *names, is_whole=True):
        """
        Checks that the agent's commits have the filtered files as they were, whatever it does with
        git.
        """
        name = names[0]
        runtime = self.runtime(client, session)
        told = self.wait_told(client)
        for affected in names:
            self.assertIn(affected, told[0])
        self.assert_unchanged(runtime, *names)
        (runtime / name).write_text(f'{secret} changed\n')
        self.there(runtime, f'git add {name}')
        self.assertIn(name, self.said)
        self.assertEqual(self.there(runtime, 'git status --porcelain'), '')
        (runtime / name).write_text(f'{secret} changed again\n')
        self.there(runtime, f'echo 2 > other; {COMMIT} -am more; {COMMIT} --allow-empty {name} '
                   '-m again; git stash list')
        self.assertEqual(self.there(runtime, 'git diff --name-only HEAD~2'), 'other\n')
        fresh = pathlib.Path(name).parent / ('new' + pathlib.Path(name).suffix)
        (runtime / fresh).write_text(f'{secret} new\n')
        self.there(runtime, 'git add -A', fails=True)
        self.assertIn(f':(exclude){fresh}', self.said)
        self.there(runtime, f'git add -N {fresh}; {COMMIT} -am new', fails=True)
        self.there(runtime, f'git rm -q --cached {fresh}; rm {fresh}')
        if is_whole:
            self.there(runtime, f'rm {name}; git checkout -q -- {name}; git checkout -q -b side '
                       'HEAD~1; git reset -q --hard; git checkout -q main; git reset -q')
        else:
            (runtime / name).write_bytes((self.work / name).read_bytes())
        self.assertEqual(self.there(runtime, f'git add {name}; git status --porcelain'), '')
        for affected in names:
            self.assertEqual((runtime / affected).read_bytes(),
                             (self.work / affected).read_bytes())
        client.prompt(session, 'say x', seconds=60)
        self.assertEqual(self.git('status', '--porcelain'), '?? other\n')
        self.assertEqual(self.told(client), told)
        self.ended(client)
        self.git('fetch', '-q', str(self.store()), '+refs/acp-broker/agent/*:refs/agent/*')
        for branch in self.git('for-each-ref', '--format=%(refname)', 'refs/agent').split():
            for affected in names:
                self.assertEqual(self.git('rev-parse', f'{branch}:{affected}'),
                                 self.git('rev-parse', f'HEAD:{affected}'))

    def store(self):
        store, = (self.state / 'stores').iterdir()
        return store

    @needs('git-crypt')
    def test_git_crypt(self):
        self.git('init', '-q')
        subprocess.run(['git-crypt', 'init'], cwd=self.work, env=self.environment(), check=True,
                       capture_output=True)
        (self.work / '.gitattributes').write_text('secrets/** filter=git-crypt diff=git-crypt\n')
        client, session, runtime = self.begin(
            a='1\n', secrets__prod=f'{SECRET}\n', secrets__test='second\n')
        self.assertFalse((runtime / '.git/git-crypt').exists())
        self.assert_no_object_has(runtime / '.git', SECRET)
        self.keep_out(client, session, SECRET, 'secrets/prod', 'secrets/test')
        self.assert_no_object_has(runtime / '.git', SECRET)

    def test_an_edit_has_no_diff_stages_what_was_there_and_outlives_a_switch(self):
        self.git('init', '-q', '-b', 'main')
        self.git('config', 'filter.turn.clean', 'tr a-z b-za')
        self.git('config', 'filter.turn.smudge', 'tr b-za a-z')
        (self.work / '.gitattributes').write_text('env filter=turn\n')
        _, _, runtime = self.begin(a='1\n', env='mine\n')
        (runtime / 'env').write_text('mine\nedited\n')
        said = ''
        for command in ('', 'git checkout -qb side', f'echo 2 > a; {COMMIT} -m two a',
                        'git checkout -q main'):
            self.there(runtime, command)
            # git knows of the change only by the file's times, and may compare the content, too.
            self.assertIn(self.there(runtime, 'git status --porcelain'), (' M env\n', ''))
            said += self.said
            self.assertEqual(self.there(runtime, 'git diff'), '')
            said += self.said
            self.assertEqual((runtime / 'env').read_text(), 'mine\nedited\n')
        self.there(runtime, 'git add env')
        self.assertNames(said + self.said, 'acp-broker | env | filter')
        self.assertEqual(self.there(runtime, 'git status --porcelain; git diff --cached'), '')
        self.assertEqual((runtime / 'env').read_text(), 'mine\nedited\n')

    def test_a_filter_that_is_a_script_in_the_repository_with_a_password(self):
        self.git('init', '-q')
        script = self.work / '.git/crypt/transcrypt'
        script.parent.mkdir()
        script.write_text('#!/bin/sh\nexec tr a-zA-Z n-za-mN-ZA-M\n')
        script.chmod(0o755)
        folder = '"$(git rev-parse --git-common-dir)"/crypt/transcrypt'
        for name, value in (('filter.crypt.clean', f'{folder} clean context=default %f'),
                            ('filter.crypt.smudge', f'{folder} smudge context=default %f'),
                            ('filter.crypt.required', 'true'),
                            ('transcrypt.password', 'the password')):
            self.git('config', name, value)
        (self.work / '.gitattributes').write_text('*.key filter=crypt\n')
        client, session, runtime = self.begin(a='1\n')
        self.assertEqual(self.told(client), [])
        self.ended(client)
        self.write(self.work, **{'b': '1\n'})
        (self.work / 'prod.key').write_text(f'{SECRET}\n')
        self.git('add', '-A')
        self.git('commit', '-qm', 'second')
        client, session = self.opened()
        runtime = self.runtime(client, session)
        self.keep_out(client, session, SECRET, 'prod.key')
        for path in runtime.rglob('*'):
            if path.is_file():
                self.assertNotIn(b'the password', path.read_bytes(), path)

    def test_a_filter_of_attributes_that_stand_in_no_file_of_the_workspace(self):
        self.git('init', '-q')
        (self.work / '.git/info').mkdir(exist_ok=True)
        (self.work / '.git/info/attributes').write_text('*.ipynb filter=nbstripout\n')
        self.git('config', 'filter.nbstripout.clean', 'sed /output/d')
        self.git('config', 'filter.nbstripout.smudge', 'cat')
        (self.work / 'a.ipynb').write_text('input\noutput\n')
        client, session, runtime = self.begin(a='1\n')
        self.assertEqual(self.git('show', 'HEAD:a.ipynb'), 'input\n')
        self.keep_out(client, session, 'output', 'a.ipynb', is_whole=False)

    def test_a_filter_and_attributes_of_the_users_own_configuration(self):
        home = self.dir / 'home'
        home.mkdir()
        (home / '.gitconfig').write_text('[filter "indent"]\n\tclean = expand\n'
                                         '[core]\n\tattributesFile = ~/attributes\n')
        (home / 'attributes').write_text('*.c filter=indent\n')
        self.git('init', '-q')
        (self.work / 'a.c').write_text('\tint a;\n')
        client, session, runtime = self.begin(a='1\n')
        self.keep_out(client, session, '\tint b', 'a.c', is_whole=False)

    def test_a_repository_names_no_other_file_of_the_users_as_attributes(self):
        home = self.dir / 'home'
        home.mkdir()
        (home / 'password').write_text(f'*.c text # {SECRET}\n')
        self.git('init', '-q')
        self.git('config', 'core.attributesFile', str(home / 'password'))
        client, session, runtime = self.begin(a='1\n')
        self.assertEqual((runtime / 'a').read_text(), '1\n')
        self.assertFalse((runtime / '.git/HEAD').is_file())
        self.assertTrue(any('core.attributesFile' in text for text in self.notices(client)),
                        self.notices(client))
        self.assertEqual([path for path in self.state.rglob('*') if path.is_file()
                          and SECRET.encode() in path.read_bytes()], [])

    def test_a_filter_of_a_file_that_the_users_own_configuration_includes(self):
        home = self.dir / 'home'
        (home / 'dotfiles').mkdir(parents=True)
        (home / '.gitconfig').write_text('[include]\n\tpath = ~/dotfiles/git\n'
                                         f'[includeIf "gitdir:{self.work}/"]\n\tpath = ~/here\n')
        (home / 'dotfiles/git').write_text('[filter "rot"]\n\tclean = tr a-z n-za-m\n'
                                           '\tsmudge = tr a-z n-za-m\n[core]\n'
                                           '\texcludesFile = ~/dotfiles/ignore\n')
        (home / 'dotfiles/ignore').write_text('.env\n')
        (home / 'here').write_text('[user]\n\temail = here@example.com\n')
        self.git('init', '-q')
        (self.work / '.gitattributes').write_text('*.key filter=rot\n')
        (self.work / 'a.key').write_text('secret\n')
        (self.work / '.env').write_text('ignored\n')
        client, session, runtime = self.begin(a='1\n')
        self.assertEqual(self.git('show', 'HEAD:a.key'), 'frperg\n')
        self.assertEqual(self.there(runtime, 'git check-ignore .env'), '.env\n')
        self.assertEqual(self.there(runtime, 'git config user.email'), 'here@example.com\n')
        self.keep_out(client, session, 'secret', 'a.key')

    def test_a_filter_and_attributes_of_a_configuration_that_the_environment_names(self):
        home = self.dir / 'home' / 'config' / 'git'
        home.mkdir(parents=True)
        (home / 'config').write_text('[filter "indent"]\n\tclean = expand\n')
        (home / 'attributes').write_text('*.c filter=indent\n')
        self.git('init', '-q')
        (self.work / 'a.c').write_text('\tint a;\n')
        client, session, runtime = self.begin(a='1\n')
        self.keep_out(client, session, '\tint b', 'a.c', is_whole=False)

    def test_a_filter_of_the_global_configuration_that_the_environment_names(self):
        environment = {**self.environment(), 'GIT_CONFIG_GLOBAL': str(self.dir / 'global')}
        self.environment = lambda: environment
        (self.dir / 'global').write_text('[filter "late"]\n\tclean = tr a b\n')
        self.git('init', '-q')
        (self.work / '.gitattributes').write_text('*.x filter=late\n')
        (self.work / 'f.x').write_text('aaa\n')
        client, session, runtime = self.begin(a='1\n')
        self.assertEqual(self.git('show', 'HEAD:f.x'), 'bbb\n')
        self.keep_out(client, session, 'aab', 'f.x', is_whole=False)

    def test_a_name_that_a_shell_would_run(self):
        name = '$(touch${IFS}ran);"\'`'
        self.git('init', '-q')
        self.git('config', f'filter.{name}.clean', 'tr a b')
        (self.work / '.gitattributes').write_text(f'*.x filter={name}\n')
        (self.work / "it's $(touch ran).x").write_text('aaa\n')
        client, session, runtime = self.begin(a='1\n')
        self.assert_unchanged(runtime, "it's $(touch ran).x")
        self.assertFalse((runtime / 'ran').exists())
        self.ended(client)

    def test_filters_come_and_go_with_the_users_configuration(self):
        self.git('init', '-q')
        (self.work / '.gitattributes').write_text('*.x filter=late\n')
        client, session, runtime = self.begin(a='1\n', b='1\n')
        self.git('config', 'filter.late.clean', 'tr a b')
        (self.work / 'f.x').write_text('aaa\n')
        self.git('add', '-A')
        self.git('commit', '-qm', 'second')
        client.prompt(session, 'say x', seconds=60)
        self.wait_told(client)
        self.assert_unchanged(runtime, 'f.x')
        self.git('config', '--unset', 'filter.late.clean')
        client.prompt(session, 'say y', seconds=60)
        (runtime / 'new.x').write_text('aaa\n')
        self.there(runtime, f'git add new.x; {COMMIT} -m new')


class Carried(FilterCase):
    """Filters that need no secret and exist in the copy work as they do here."""

    @needs('git-lfs')
    def test_git_lfs(self):
        self.git('init', '-q')
        self.git('lfs', 'install', '--local')
        self.git('lfs', 'track', '*.bin')
        (self.work / 'a.bin').write_bytes(b'large\0' * 1000)
        client, session, runtime = self.begin(a='1\n')
        self.assertIn('git-lfs.github.com', self.git('show', 'HEAD:a.bin'))
        self.assertEqual(self.told(client), [])
        self.assert_unchanged(runtime, 'a.bin')
        (runtime / 'new.bin').write_bytes(b'new\0' * 1000)
        self.there(runtime, f'git add -A; {COMMIT} -m new')
        self.assertIn('git-lfs.github.com', self.there(runtime, 'git show HEAD:new.bin'))
        self.there(runtime, 'git checkout -q HEAD~1; git checkout -q -; git reset -q --hard')
        self.assertEqual((runtime / 'new.bin').read_bytes(), b'new\0' * 1000)
        client.prompt(session, 'say x', seconds=60)
        self.assertEqual((self.work / 'new.bin').read_bytes(), b'new\0' * 1000)
        self.ended(client)

    @needs('git-lfs')
    def test_git_lfs_that_is_missing_there(self):
        programs = self.dir / 'bin'
        self.git('init', '-q')
        self.git('lfs', 'install', '--local')
        self.git('lfs', 'track', '*.bin')
        (self.work / 'a.bin').write_bytes(b'large\0' * 1000)
        self.write(self.work, a='1\n')
        self.git('add', '-A')
        self.git('commit', '-qm', 'first')
        programs.mkdir()
        for folder in ('/usr/bin', '/bin'):
            for name in os.listdir(folder):
                if name != 'git-lfs' and not (programs / name).exists():
                    (programs / name).symlink_to(f'{folder}/{name}')
        environment = {**self.environment(), 'PATH': str(programs)}
        self.environment = lambda: environment
        client, session = self.opened()
        runtime = self.runtime(client, session)
        self.wait_told(client)
        self.assert_unchanged(runtime, 'a.bin')
        (runtime / 'new.bin').write_bytes(b'new\0' * 1000)
        self.there(runtime, 'git add -A', fails=True)
        self.ended(client)

    def test_ident_and_the_encoding_of_a_work_tree(self):
        self.git('init', '-q')
        (self.work / '.gitattributes').write_text('*.c ident\n*.txt working-tree-encoding=UTF-16\n')
        (self.work / '.git/info').mkdir(exist_ok=True)
        (self.work / '.git/info/attributes').write_text('*.h ident\n')
        for name in 'a.c', 'a.h':
            (self.work / name).write_text('$Id$\n')
        (self.work / 'a.txt').write_bytes('text\n'.encode('utf-16'))
        self.write(self.work, a='1\n')
        self.git('add', '-A')
        self.git('commit', '-qm', 'first')
        for name in 'a.c', 'a.h':
            (self.work / name).unlink()
            self.git('checkout', name)
            self.assertIn('$Id: ', (self.work / name).read_text())
        client, session, runtime = self.begin(b='1\n')
        self.assertEqual(self.told(client), [])
        self.assert_unchanged(runtime, 'a.c', 'a.h', 'a.txt')
        (runtime / 'a.h').write_text((runtime / 'a.h').read_text() + 'more\n')
        (runtime / 'a.txt').write_bytes('other\n'.encode('utf-16'))
        self.there(runtime, f'{COMMIT} -am more')
        self.assertEqual(self.there(runtime, 'git show HEAD:a.h'), '$Id$\nmore\n')
        self.assertEqual(self.there(runtime, 'git show HEAD:a.txt'), 'other\n')
        self.ended(client)

    def test_line_ends_as_the_user_has_them(self):
        self.git('init', '-q')
        self.git('config', 'core.autocrlf', 'true')
        (self.work / 'a.txt').write_bytes(b'one\r\ntwo\r\n')
        client, session, runtime = self.begin(a='1\r\n')
        self.assertEqual(self.git('show', 'HEAD:a.txt'), 'one\ntwo\n')
        self.assert_unchanged(runtime, 'a.txt')
        self.ended(client)


if __name__ == '__main__':
    case.main()

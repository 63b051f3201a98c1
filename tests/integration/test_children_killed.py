#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The programs that a broker starts on this machine for a sync (`git ls-files`, `git pack-objects`,
rsync) are killed with SIGKILL: before they have done anything, in the middle, and just before their
end. The next sync, by another broker, finds every file where it has to be.
"""

import shutil
import subprocess

import case
import sync_room
from acp import RpcError
from processes import PATIENCE

# Runs instead of the real program. Once it is armed, the next matching call dies by SIGKILL.
SCRIPT = '''#!/bin/sh
case " $* " in
*" --server "*) exec {real} "$@" ;;
{pattern}) ;;
*) exec {real} "$@" ;;
esac
mv {folder}/armed {folder}/killed 2>/dev/null || exec {real} "$@"
case $(cat {folder}/killed) in
half) {real} "$@" | head -c 100 ;;
after) {real} "$@" ;;
esac
kill -9 $$
'''

LS_FILES = ('git', '*" ls-files -z --cached "*')
PACK_OBJECTS = ('git', '*" pack-objects --revs "*')
VERSION = ('rsync', '" --version "')
PULL = ('rsync', '*" ./mirror/ "')
PUSH = ('rsync', '*" ./mirror/ "?*')


class Child(sync_room.Room):
    def environment(self, **more):
        env = super().environment(**more)
        return {**env, 'PATH': f'{self.dir}/bin:{env["PATH"]}'}

    def put_before(self, name, pattern):
        program = self.dir / 'bin' / name
        program.parent.mkdir()
        program.write_text(SCRIPT.format(real=shutil.which(name), pattern=pattern,
                                         folder=self.dir))
        program.chmod(0o755)

    def arm(self, how):
        (self.dir / 'armed').write_text(how)

    def git(self, *words):
        subprocess.run(['git', '-C', str(self.work), '-c', 'user.name=A', '-c', 'user.email=a@b',
                        *words], check=True, capture_output=True)

    def prepare(self, program, transport):
        """A repository whose index libgit2 cannot read, with a tracked file that is ignored."""
        self.path.write_text(self.path.read_text() + f'\ttransport = {transport}\n')
        self.make(2)
        (self.work / '.gitignore').write_text('*.log\n')
        (self.work / 'kept.log').write_text('tracked all the same\n')
        self.git('add', '-f', '.')
        self.git('commit', '-qm', 'second')
        self.git('update-index', '--split-index')
        self.put_before(*program)

    def prompt(self, client, session):
        """The broker may refuse the prompt; then it has to say why."""
        try:
            client.prompt(session, f'terminal echo {self.number} > turn{self.number}',
                          seconds=PATIENCE)
        except RpcError as error:
            self.assertTrue(error.message)

    def killed_in_first(self, how):
        self.edit_nothing()
        self.arm(how)
        self.session()

    def killed_in_turn(self, how):
        client, session = self.open()
        self.edit()
        (self.work / 'g0/commit').write_text('committed\n')
        (self.work / 'later.log').write_text('the index has to be asked about this one, too\n')
        self.git('add', '-A', '-f')
        self.git('commit', '-qm', 'third')
        self.git('update-index', '--split-index')
        self.local, _ = sync_room.tree(self.work)
        self.arm(how)
        self.prompt(client, session)
        self.close(client)

    def killed_in_end(self, how):
        client, _ = self.open()
        self.edit()
        self.arm(how)
        self.close(client)

    def trial(self, program, phase, how, transport):
        self.prepare(program, transport)
        getattr(self, f'killed_in_{phase}')(how)
        self.assertTrue((self.dir / 'killed').exists(), 'nothing was killed')
        self.check()


class Git(Child):
    """With the git transport."""


class Rsync(Child):
    """With the rsync transport."""


def add(room, name, program, phase, how):
    def test(self):
        self.trial(program, phase, how, room.__name__.lower())
    setattr(room, f'test_{name}_in_{phase}_{how}', test)


for a_phase in ('first', 'turn', 'end'):
    for a_how in ('before', 'half', 'after') if a_phase != 'end' else ():
        add(Git, 'ls_files', LS_FILES, a_phase, a_how)
        add(Git, 'pack_objects', PACK_OBJECTS, a_phase, a_how)
    for a_how in ('before', 'after'):
        add(Rsync, 'pull', PULL, a_phase, a_how)
        add(Rsync, 'push', PUSH, a_phase, a_how)
for a_how in ('before', 'after'):
    add(Rsync, 'version', VERSION, 'first', a_how)


if __name__ == '__main__':
    case.main()

#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A workspace and its isolated copy, synced by rsync."""

import os
import pathlib
import shutil

import case
import processes

from sync_case import SyncCase


class ByRsync(SyncCase):
    programs = None  # a folder of programs that goes before all others in PATH

    broker_program = case.BROKER

    def broker_argv(self, *options, agent):
        return [self.broker_program, *options, '--', *agent]

    def environment(self):
        env = super().environment()
        return {**env, 'PATH': f'{self.programs}:{env["PATH"]}'} if self.programs else env

    def opened(self, **keys):
        return super().opened(transport='rsync', **keys)

    def test_what_both_sides_do_travels_around_the_turns(self):
        (self.work / 'a.txt').write_text('mine\n')
        (self.work / 'run').write_text('#!/bin/sh\n')
        (self.work / 'run').chmod(0o755)
        client, session = self.opened()
        client.prompt(session, 'terminal cat a.txt; echo new > b.txt; mkdir d; echo x > d/c.txt')
        self.assertIn('mine', client.wait_text('terminal/output ->'))
        self.assertEqual(self.tree(), {'a.txt': 'mine\n', 'b.txt': 'new\n', 'd/c.txt': 'x\n',
                                       'run': '#!/bin/sh\n'})
        self.assertTrue(os.access(self.runtime(client, session) / 'run', os.X_OK))
        (self.work / 'later.txt').write_text('later\n')
        (self.work / 'a.txt').unlink()
        client.prompt(session, 'terminal ls; mv run ran')
        self.assertFalse((self.runtime(client, session) / 'a.txt').exists())
        self.assertTrue(os.access(self.work / 'ran', os.X_OK))
        self.assertEqual(self.status(client, session)['transport'], 'rsync')

    def test_few_runs_of_rsync_are_needed(self):
        started = self.dir / 'started'
        program = self.dir / 'bin/rsync'
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\n[ "$1" != --server ] || echo x >> {started}\n'
                           f'exec {shutil.which("rsync")} "$@"\n')
        program.chmod(0o755)
        self.programs = program.parent
        for number in range(20):
            (self.work / f'f{number}').write_text('1')
        client, session = self.opened()
        runtime = self.runtime(client, session)
        for edited, name, most in ((None, '', 1), (runtime, 'f', 1), (self.work, 'new', 2),
                                   (self.work, 'f', 3), (None, '', 1)):
            for number in range(10 if edited else 0):
                (edited / f'{name}{number}').write_text(f'{edited} {most}')
            started.write_text('')
            client.call('_broker/sync', {'sessionId': session})
            count = len(started.read_text().split())
            self.assertTrue(1 <= count <= most, f'{edited} {name}: {count}')
            for number in range(10):
                self.assertEqual((runtime / f'f{number}').read_text(),
                                 (self.work / f'f{number}').read_text())
            self.assertEqual((runtime / 'new3').exists(), (self.work / 'new3').exists())

    def test_another_version_may_be_installed_meanwhile(self):
        self.broker_program = str(self.dir / 'acp-broker')
        shutil.copy(case.BROKER, self.broker_program)
        (self.work / 'a.txt').write_text('1')
        client, session = self.opened()
        os.unlink(self.broker_program)
        shutil.copy(case.BROKER, self.broker_program)
        (self.work / 'a.txt').write_text('22')
        client.prompt(session, 'terminal cp a.txt b.txt')
        self.assertEqual((self.work / 'b.txt').read_text(), '22')

    def test_a_conflict_keeps_both_versions(self):
        (self.work / 'text').write_text('base\n')
        client, session = self.opened()
        (self.runtime(client, session) / 'text').write_text('agent\n')
        (self.work / 'text').write_text('person\n')
        client.prompt(session, 'say x')
        self.assertEqual((self.work / 'text').read_text(), 'person\n')
        self.assertEqual(self.parked('text'), ['agent\n'])
        self.assertEqual((self.runtime(client, session) / 'text').read_text(), 'person\n')

    def test_what_is_ignored_stays_where_it_is(self):
        (self.work / '.gitignore').write_text('node_modules/\n')
        client, session = self.opened()
        runtime = self.runtime(client, session)
        (runtime / 'node_modules').mkdir()
        (runtime / 'node_modules/m').write_text('m')
        client.prompt(session, 'say x')
        self.assertEqual(self.tree(), {'.gitignore': 'node_modules/\n'})
        self.assertTrue((runtime / 'node_modules/m').exists())

    def test_the_last_changes_are_collected_at_the_end(self):
        client, session = self.opened()
        (self.runtime(client, session) / 'last').write_text('last\n')
        client.finish()
        self.assertEqual(self.tree(), {'last': 'last\n'})

    def test_a_link_that_git_refuses_keeps_a_transient_copy(self):
        (self.work / 'a').write_text('a\n')
        client, session = self.opened(persistence='transient')
        root = self.runtime(client, session)
        client.prompt(session, 'terminal ln -s a .gitmodules')
        client.prompt(session, 'terminal mkdir sub; echo 1 > sub/elsewhere')
        client.close_stdin()
        self.assertEqual(client.wait(), 1, client.stderr)
        self.assertIn('.gitmodules', client.stderr)
        self.assertEqual(os.readlink(root / '.gitmodules'), 'a')
        self.assertEqual((self.work / 'sub/elsewhere').read_text(), '1\n')

    def test_no_rsync_outlives_a_killed_broker(self):
        (self.work / 'a').write_bytes(os.urandom(20 << 20))
        client, session = self.opened()
        (self.runtime(client, session) / 'b').write_bytes(os.urandom(200 << 20))
        client.start_prompt(session, 'say x')
        self.assertTrue(processes.wait_until(self.rsyncs, step=0.01))
        client.process.kill()
        self.assertTrue(processes.wait_until(lambda: not self.rsyncs()), self.rsyncs())
        self.assertIn((self.work / 'a').stat().st_size, [20 << 20])

    def rsyncs(self):
        """The rsync processes of this test, found by their directory."""
        found = []
        for process in pathlib.Path('/proc').glob('[0-9]*'):
            try:
                words = (process / 'cmdline').read_bytes().split(b'\0')
                place = os.readlink(process / 'cwd')
            except OSError:
                continue
            name = words[0].rsplit(b'/')[-1]
            if name in (b'rsync', b'shell') and place.startswith(str(self.dir)):
                found.append(words)
        return found


if __name__ == '__main__':
    case.main()

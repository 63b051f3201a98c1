#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Unusual files in the sandbox: they stop neither the other files nor the next prompt."""

import os
import subprocess

from case import main
from sync_case import RUNNING, SyncCase

# root without the capabilities that let it ignore the permissions of files
ORDINARY = ['setpriv', '--bounding-set=-dac_override,-dac_read_search'] if os.getuid() == 0 else []


class Unusual(SyncCase):
    def setUp(self):
        super().setUp()
        self.programs = self.dir / 'bin'
        self.programs.mkdir()
        self.addCleanup(subprocess.run, ['chmod', '-R', 'u+w', self.dir], check=False)

    def environment(self):
        env = super().environment()
        return {**env, 'PATH': f'{self.programs}:{env["PATH"]}'}

    def broker_argv(self, *options, agent):
        return [*ORDINARY, *super().broker_argv(*options, agent=agent)]

    def program(self, name, script):
        path = self.programs / name
        path.write_text(f'#!/bin/sh\n{script}\n')
        path.chmod(0o755)

    def files(self, **contents):
        for name, content in contents.items():
            path = self.work / name.replace('__', '/')
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)

    def test_a_read_only_folder_gets_what_the_user_does_in_it(self):
        self.files(ro__a='1', gen__b='1', gen__c='1')
        client, session = self.opened()
        client.prompt(session, 'terminal chmod 555 ro gen')
        self.files(ro__a='2', ro__new='2')
        for name in 'bc':
            (self.work / 'gen' / name).unlink()
        client.prompt(session, 'say x')
        there = self.runtime(client, session)
        self.assertEqual((there / 'ro/a').read_text() + (there / 'ro/new').read_text(), '22')
        self.assertEqual(list(there.rglob('[bc]')), [])
        self.assertEqual(list(self.work.rglob('[bc]')), [])
        self.assertEqual(self.notices(client), [])
        self.assertEqual(os.stat(there / 'ro').st_mode & 0o777, 0o555)

    def test_what_cannot_be_brought_there_is_named_and_the_prompt_goes_on(self):
        self.files(ro__a='1', b='1')
        client, session = self.opened()
        there = self.runtime(client, session)
        self.program('chmod', 'exit 1')
        (there / 'ro').chmod(0o555)
        self.files(ro__a='2', b='2')
        client.prompt(session, 'terminal cat b ro/a')
        self.assertIn('21', client.wait_text('terminal/output ->'))
        titles = [m.params['update'].get('title') for m in client.received
                  if m.method == 'session/update']
        notice, = self.notices(client)
        self.assertNames(notice, 'sandbox | ro/a')
        self.assertEqual([title for title in titles[:titles.index(notice)]
                          if title != RUNNING], [])  # the prompt's first update
        (there / 'ro').chmod(0o755)
        client.prompt(session, 'say y')
        self.assertEqual((there / 'ro/a').read_text(), '2')
        self.assertEqual(len(self.notices(client)), 1)

    def test_a_fast_writer_keeps_its_file_and_stops_nothing(self):
        self.files(log='1\n', b='1')
        client, session = self.opened()
        there = self.runtime(client, session)
        self.files(log='mine\n', b='2')
        write = f'case " $* " in *" checkout "*) date +%N >{there}/log ;; esac'
        self.program('git', f'PATH=${{PATH#*:}}\n{write}\nexec git "$@"')
        client.prompt(session, 'say x')
        self.assertEqual((there / 'b').read_text(), '2')
        self.assertNotEqual((there / 'log').read_text(), 'mine\n')
        self.assertEqual((self.work / 'log').read_text(), 'mine\n')
        self.assertNames(self.notices(client)[0], 'sandbox | log')
        (self.programs / 'git').unlink()
        client.prompt(session, 'say y')
        self.assertEqual((there / 'log').read_text(), 'mine\n')


if __name__ == '__main__':
    main()

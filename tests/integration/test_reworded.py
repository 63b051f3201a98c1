#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tests/support/tools/reworded.py finds the tests that break when messages are reworded."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from case import main

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = ('tests/support/tools/reworded.py', 'tests/support/tools/phrases.py',
         'tests/integration/facts.py')
OLD = 'error_set(err, "sandbox %s was stopped meanwhile: start it again", id);\n'
OTHER = 'error_set(err, "process %d has stopped", id);\n'
TEST = 'assert_names(text, "box-1 | stopped");\nassert_names(text, "start it again");\n'


class Reworded(unittest.TestCase):
    """A small checkout with two messages, and a test that compares facts."""

    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())).resolve()
        for name in FILES:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        self.git('init', '-q')
        self.write('base/a.c', OLD)
        self.write('base/b.c', OTHER)
        self.write('tests/unit/test_a.c', TEST)
        self.commit()

    def write(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def git(self, *words):
        settings = {'GIT_CONFIG_GLOBAL': '/dev/null', 'GIT_CONFIG_NOSYSTEM': '1'}
        subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=a@example.org', *words],
                       cwd=self.root, env={**os.environ, **settings}, check=True)

    def commit(self):
        self.git('add', '-A')
        self.git('commit', '-q', '-m', 'change')

    def found(self, *arguments):
        ran = subprocess.run(['python3', '-B', str(self.root / FILES[0]), *arguments],
                             capture_output=True, text=True)
        self.assertEqual(ran.stderr, '')
        self.assertEqual(ran.returncode, 'test_a.c' in ran.stdout)
        return ran.stdout

    def test_a_message_that_stays_is_not_named(self):
        self.assertNotIn('base/a.c', self.found())

    def test_words_that_no_message_has_any_more_are_named(self):
        self.write('base/a.c', OLD.replace('start it again', 'restart it'))
        self.assertIn('tests/unit/test_a.c:2: "start it" is', self.found())

    def test_a_fact_that_only_another_message_still_has_is_named(self):
        self.write('base/a.c', OLD.replace('was stopped', 'does not run'))
        self.assertIn('tests/unit/test_a.c:1: "stopped"', self.found())

    def test_a_fact_that_the_new_words_keep_is_not_named(self):
        self.write('base/a.c', OLD.replace('was stopped meanwhile', 'has stopped'))
        self.assertNotIn('test_a.c', self.found())

    def test_a_message_that_moved_is_not_named(self):
        self.write('base/a.c', '')
        self.write('base/c.c', OLD)
        self.git('add', '-A')
        self.assertNotIn('test_a.c', self.found())

    def test_a_range_of_commits_is_compared(self):
        self.write('base/a.c', OLD.replace('was stopped', 'does not run'))
        self.commit()
        self.write('base/b.c', '')
        self.commit()
        self.assertIn('tests/unit/test_a.c:1: "stopped"', self.found('HEAD~2..HEAD~1'))
        self.assertNotIn('base/a.c', self.found('HEAD~1..HEAD'))


if __name__ == '__main__':
    main()

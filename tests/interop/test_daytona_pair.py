#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The reference pair with its agent in a sandbox of Daytona's stand-in: compared with the direct
conversation; and through turns with syncs, back to a checkpoint and forward again.
"""

import json
import pathlib
import shlex
import shutil
import subprocess
import sys

sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[1] / name)
                 for name in ('integration', 'integration/daytona')]

import test_reference_pair  # noqa: E402
from case import BROKER, main  # noqa: E402
from model import Step  # noqa: E402
from pair import NEEDED  # noqa: E402
from processes import PATIENCE  # noqa: E402
from room import Room  # noqa: E402

# The files that a sandbox gets by `copy`, and the commands that `setup` runs there; then its agent
# is a command in its home.
BRING_AGENT = '''
mkdir -p ~/bin
cat > ~/bin/claude-code-acp <<END
#!/bin/sh
. ~/.agent-login
exec {agent}
END
chmod +x ~/bin/claude-code-acp
'''
BROUGHT = ['sh', '-c', 'exec ~/bin/claude-code-acp']


class InSandbox(Room, test_reference_pair.Far):
    """The agent gets the environment of the sandbox and the profile."""

    backend = 'daytona'
    test_by_the_broker_where_every_path_is_another = None

    def variables(self):
        return {'ANTHROPIC_BASE_URL': self.model.url, 'ANTHROPIC_API_KEY': 'x',
                'DISABLE_AUTOUPDATER': '1', 'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC': '1'}

    def settings(self):
        settings = super().settings()
        del settings['runtime_root']
        return settings

    def broker_argv(self, *options, agent):
        return super(test_reference_pair.Far, self).broker_argv(*options, agent=agent)

    def workspace_there(self):
        """The agent's path of the workspace, once it exists."""
        home = pathlib.Path(self.box()['home'])
        return next(home.glob('.local/share/acp-broker/workspaces/*/work'))


@NEEDED
class Compared(InSandbox):
    def settings(self):
        variables = [f'{name}={value}' for name, value in self.variables().items()]
        return dict(super().settings(), env=variables)

    def test_the_conversation_is_the_direct_one(self):
        self.run_direct()
        self.fresh()
        client, session = self.opened(**self.settings())
        self.root = self.runtime(client, session)
        self.end(client)
        shutil.copy(self.work / 'notes.txt', self.root)
        self.run_pair(through_broker=True)
        self.check()
        self.assertEqual([path.name for path in self.work.iterdir()], ['notes.txt'])
        self.assertEqual(self.daytona.counts()['create'], 1)


@NEEDED
class InStep(InSandbox):
    def setUp(self):
        super().setUp()
        self.fresh()
        (self.dir / 'bring').write_text(BRING_AGENT.format(
            agent=shlex.join(test_reference_pair.AGENT)))
        login = ''.join(f'export {name}={shlex.quote(value)}\n'
                        for name, value in self.variables().items())
        (self.dir / 'login').write_text(login)

    def settings(self):
        return dict(super().settings(), sync='turn-bidirectional', setup='sh ~/.bring-agent',
                    copy=[f'{self.dir}/bring:.bring-agent', f'{self.dir}/login:.agent-login'])

    def turn(self, *steps):
        """Plays one prompt of the client: that is a whole session of the broker."""
        self.model.steps = steps
        for hop in ('editor', 'agent'):
            self.log(hop).unlink(missing_ok=True)
        command = shlex.join(self.agent_command(BROUGHT, through_broker=True))
        result = self.run_program(
            [*test_reference_pair.CLIENT, '--cwd', str(self.work), '--approve-all', '--format',
             'json', '--agent', command, 'exec', 'Please do it all'])
        self.assertEqual(self.model.problems, [])
        self.assertIn('"stopReason":"end_turn"', result.stdout)
        self.check_schema('editor')
        self.check_schema('agent')
        self.assert_nothing_runs()
        if self.box()['state'] != 'stopped':  # the client kills a broker after 1.6 s
            self.command('sessions', 'collect')
        self.assertEqual(self.box()['state'], 'stopped')

    def run_there(self, command):
        return Step('Bash', command=command, description='shell', timeout=60000)

    def command(self, *words):
        result = subprocess.run([BROKER, *words], env=self.environment(), capture_output=True,
                                text=True, timeout=PATIENCE, cwd=self.work, check=False,
                                stdin=subprocess.DEVNULL)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def notes(self, _):
        return str(self.workspace_there() / 'notes.txt')

    def test_turns_and_the_way_back(self):
        self.turn(Step('Read', file_path=self.notes),
                  Step('Edit', file_path=self.notes, old_string='eins', new_string='one'),
                  self.run_there('echo new > new.txt'))
        first = {'new.txt': 'new\n', 'notes.txt': 'one\nzwei\n'}
        self.assertEqual(self.tree(), first)
        (self.work / 'notes.txt').write_text('one\ntwo\n')
        self.turn(self.run_there('cat notes.txt > seen.txt; rm new.txt'))
        second = {'notes.txt': 'one\ntwo\n', 'seen.txt': 'one\ntwo\n'}
        self.assertEqual(self.tree(), second)
        self.check_way_back(first)
        self.turn(self.run_there('cat *.txt > after.txt'))
        self.assertEqual(self.tree(), {**first, 'after.txt': 'new\none\nzwei\n'})
        self.assertEqual(self.daytona.counts()['create'], 1)

    def check_way_back(self, first):
        points = json.loads(self.command('checkpoints', 'list', '--json'))['checkpoints']
        turns = [str(point['checkpoint']) for point in points if point['turn']]
        self.assertEqual(len(turns), 2, points)
        changed = self.command('checkpoints', 'diff', *turns)
        for name in ('new.txt', 'notes.txt', 'seen.txt'):
            self.assertIn(name, changed)
        self.command('checkpoints', 'rollback', turns[0])
        self.assertEqual(self.tree(), first)


if __name__ == '__main__':
    main()

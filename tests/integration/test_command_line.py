#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The command line and the configuration file, from the user's point of view: `test_command_line.py
[BROKER]`, or the binary that ACP_BROKER names.
"""

import json
import os
import pathlib
import pty
import re
import socket
import subprocess
import sys

import jsonschema

if len(sys.argv) > 1 and not sys.argv[1].startswith('-'):
    os.environ['ACP_BROKER'] = sys.argv.pop(1)

from processes import PATIENCE, wait_until
from case import AGENT, BROKER, Case, main

USAGE = 2
INITIALIZE = (b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":'
              b'{"protocolVersion":1,"clientCapabilities":{}}}\n')
ROOT = pathlib.Path(__file__).resolve().parents[2]
LOG = json.loads((ROOT / 'docs' / 'schemas' / 'log.json').read_text())
SCHEMA = json.loads((ROOT / 'docs' / 'schemas' / 'check.json').read_text())


class CommandLine(Case):
    def run_broker(self, *words, stdin=b'', cwd=None, env=None):
        """Runs the broker to its end, with `stdin` as its whole input."""
        return subprocess.run([BROKER, *words], input=stdin, capture_output=True,
                              cwd=cwd or self.work, env=env or self.environment(),
                              timeout=PATIENCE, check=False)

    def config_path(self):
        path = self.dir / 'home' / 'config' / 'acp-broker' / 'config'
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def write_config(self, text):
        path = self.config_path()
        path.write_text(text)
        return path

    def mistake(self, expected, *words, env=None):
        """
        Checks that the broker prints one line with these facts on stderr, and nothing else, and
        exits with 2.
        """
        result = self.run_broker(*words, env=env)
        self.check_line(result.stderr.decode(), expected)
        self.assertEqual(result.stdout, b'')
        self.assertEqual(result.returncode, USAGE)

    def checked(self, *words, status=0, env=None):
        """The lines of `check`, as a list of label and text; a continued line keeps its label."""
        result = self.run_broker('check', *words, env=env)
        self.assertEqual(result.stderr, b'')
        self.assertEqual(result.returncode, status, result.stdout)
        pairs = []
        for line in result.stdout.decode().splitlines():
            label = line[:20].strip() or pairs[-1][0]
            pairs.append((label, line[20:]))
        return pairs

    def checked_json(self, *words, status=0, env=None):
        """The object that `check --json` prints; checks that it fits its schema."""
        result = self.run_broker('check', '--json', *words, env=env)
        self.assertEqual(result.stderr, b'')
        self.assertEqual(result.returncode, status, result.stdout)
        told = json.loads(result.stdout)
        schema = dict(SCHEMA, **{'$ref': '#/$defs/result'})
        jsonschema.Draft202012Validator(schema).validate(told)
        return told

    def values(self, pairs, label):
        return [text for name, text in pairs if name == label]


class Log(CommandLine):
    """--log-format json: every line of the log is an object, even those about mistakes."""

    def logged(self, text):
        schema = dict(LOG, **{'$ref': '#/$defs/result'})
        lines = [json.loads(line) for line in text.splitlines()]
        for line in lines:
            jsonschema.Draft202012Validator(schema).validate(line)
            self.assertRegex(line['time'], r'\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z')
        return lines

    def test_the_lines_of_a_session_are_objects(self):
        for words, config in ((['--log-format', 'json'], ''),
                              ([], '[broker]\n\tlog-format = json\n')):
            self.write_config(config)
            result = self.run_broker(*words, '--', str(AGENT), stdin=INITIALIZE)
            lines = self.logged(result.stderr)
            self.assertEqual((result.returncode, lines[0]['level']), (0, 'info'))
            self.assertIn('agent', lines[0]['text'])

    def test_what_goes_wrong_is_an_object_with_its_code(self):
        self.write_config('[broker]\n\tlog-level = loud\n')
        result = self.run_broker('--log-format=json', '--', 'agent')
        line, = self.logged(result.stderr)
        self.assertEqual((result.returncode, line['level'], line['code']),
                         (2, 'error', 'CONFIG_INVALID'))
        self.assertNames(line['text'], 'broker.log-level | "loud"')
        result = self.run_broker('--log-format=json', '--profil')
        self.assertEqual(self.logged(result.stderr)[0]['code'], 'CONFIG_INVALID')
        self.write_config('')
        self.mistake('--log-format | text | json | "xml"', '--log-format', 'xml', 'check')


class Words(CommandLine):
    def helped(self, *words):
        result = self.run_broker(*words)
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        text = result.stdout.decode()
        lines = text.splitlines()
        self.assertLessEqual(max(map(len, lines)), 80)
        columns = {re.match(r'.*? {2,}(?=[^ ])', line.lstrip()).end() + len(line)
                   - len(line.lstrip()) for line in lines if line.lstrip().startswith('-')}
        self.assertLessEqual(len(columns), 1, text)  # all options' helps begin in one column
        return text

    def test_help_lists_the_options_of_a_session_and_all_commands(self):
        for words in (['--help'], ['help'], ['-h']):
            text = self.helped(*words)
            for option in ('--profile NAME', '--workspace DIR', '--config FILE', '--trace FILE',
                           '--log-level LEVEL', '--toolhost MODE', '-h, --help', '-V, --version',
                           ' check ', 'sessions list', '-- AGENT'):
                self.assertIn(option, text)
            self.assertNotIn('--stat', text)

    def test_help_of_a_command_lists_its_options_alone(self):
        for words in (['help', 'checkpoints', 'show'], ['checkpoints', 'show', '-h'],
                      ['--help', 'checkpoints', 'show', '3']):
            text = self.helped(*words)
            for part in ('checkpoints show', ' N', '--stat', '--workspace DIR', '--config FILE'):
                self.assertIn(part, text)
            for part in ('--trace', '--json', 'checkpoints list', '-- AGENT'):
                self.assertNotIn(part, text)
        self.assertNotIn('--workspace', self.helped('help', 'sessions', 'list'))
        self.assertIn('-- AGENT', self.helped('help', 'check'))

    def test_help_of_a_group_lists_its_commands(self):
        for words in (['help', 'conflicts'], ['conflicts', '--help']):
            text = self.helped(*words)
            for part in ('conflicts list', 'conflicts take ID|PATH local|runtime'):
                self.assertIn(part, text)
            self.assertNotIn('commits', text)

    def test_version_is_one_line(self):
        for word in ('--version', '-V', 'version'):
            result = self.run_broker(word)
            self.assertEqual((result.returncode, result.stderr), (0, b''))
            self.assertRegex(result.stdout.decode(), r'\Aacp-broker \d+\.\d+\.\d+\n\Z')

    def test_help_and_version_need_no_good_configuration(self):
        self.write_config('[nonsense')
        self.assertEqual(self.run_broker('--help').returncode, 0)
        self.assertEqual(self.run_broker('--version').returncode, 0)

    def test_mistakes_on_the_command_line(self):
        missing = str(self.dir / 'missing')
        for expected, words in (
                ('unknown option --profil: did you mean --profile?', ['--profil', 'x']),
                ('unknown option -v | acp-broker --help | after --', ['-v']),
                ('--profile: expected --profile NAME', ['--profile']),
                ('--config: expected --config FILE', ['--config', '--', 'agent']),
                ('--help takes no value', ['--help=1']),
                ('unknown command "chekc": did you mean check?', ['chekc']),
                ('unknown command "my-agent" | check | checkpoints | conflicts | commits | '
                 'sessions | sandboxes | help | version | acp-broker -- my-agent',
                 ['my-agent']),
                ('one command | check | help', ['check', 'help']),
                ('--: expected | acp-broker -- AGENT [ARG...]',
                 ['--']),
                ('--log-level | error | warning | info | debug | "loud"',
                 ['--log-level', 'loud', '--', 'agent']),
                ('--toolhost | auto | editor | broker | "me"',
                 ['--toolhost=me', '--', 'agent']),
                (f'--config {missing}: no such file', ['--config', missing, '--', 'agent']),
                (f'--workspace {missing}: No such file or directory',
                 ['--workspace', missing, '--', 'agent']),
                (f'--profile: no [profile "x"] | no configuration file {self.config_path()}',
                 ['--profile', 'x', '--', 'agent'])):
            with self.subTest(words=words):
                self.mistake(expected, *words)
                if '--' in words:
                    self.mistake(expected, 'check', *words)

    def test_what_does_not_run_here_is_not_confined_here(self):
        self.write_config('[profile "far"]\n\tbackend = ssh\n\thost = box\n')
        self.mistake('--confine | profile far | backend = ssh | backend = local',
                     '--profile', 'far', '--confine', '--', 'agent')

    def test_a_container_needs_an_image_and_a_profile_that_leaves_the_backend_open(self):
        self.write_config('[profile "far"]\n\tbackend = ssh\n\thost = box\n'
                          '[profile "copy"]\n\tisolation = copy\n'
                          '[profile "there"]\n\tbackend = container\n\tcontainer = mine\n'
                          '[profile "hosts"]\n\tnetwork = ask\n')
        self.mistake('--container box | profile far | backend = ssh',
                     '--profile', 'far', '--container', 'box', '--', 'agent')
        self.mistake('--container box | isolation | profile copy',
                     '--profile', 'copy', '--container', 'box', '--', 'agent')
        self.mistake('--container | image | container | only one',
                     '--profile', 'there', '--container', 'box', '--', 'agent')
        self.mistake('--container | network = ask',
                     '--profile', 'hosts', '--container', 'box', '--', 'agent')
        self.mistake('--confine | backend = container', '--confine', '--container', 'box', '--',
                     'agent')
        for image in ('-v', 'a b', '/etc:/etc', 'a%i'):
            self.mistake('--container | image', f'--container={image}', '--', 'agent')
        self.mistake('--container | IMAGE', '--container', '--', 'agent')

    def test_an_editor_runs_no_commands_of_a_confined_agent(self):
        self.write_config('[profile "held"]\n\tconfine = yes\n\teditor-terminals = true\n')
        self.mistake('editor-terminals | confine = yes', '--profile', 'held', '--', 'agent')

    def test_no_agent_says_how_to_name_one(self):
        self.mistake('no agent is named | --agent NAME | acp-broker agents | -- COMMAND | '
                     f'[profile "local"] | {self.config_path()}')
        self.mistake('--agent | "cluade" | did you mean "claude"?', '--agent', 'cluade')
        self.mistake('--agent claude | its command after --', '--agent', 'claude', '--', 'agent')

    def test_without_a_home_the_broker_still_runs_an_agent(self):
        env = self.environment()
        del env['HOME'], env['XDG_CONFIG_HOME']
        pairs = self.checked('--', AGENT, env=env)
        self.assertEqual(self.values(pairs, 'configuration'), ['none: HOME is not set'])


class Output(CommandLine):
    def test_a_message_is_written_at_once(self):
        """Else the lines of programs that share a log would mix."""
        path = self.write_config('[bro')
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with ours, theirs:
            status = subprocess.run([BROKER, 'check'], stdin=subprocess.DEVNULL, stderr=theirs,
                                    env=self.environment(), timeout=PATIENCE, check=False)
            self.assertEqual(status.returncode, USAGE)
            self.check_line(ours.recv(65536).decode(), f'{path}:1')


class Input(CommandLine):
    def test_commands_do_not_wait_for_an_input_that_never_ends(self):
        for words in (['check'], ['check', '--', 'true'], ['sessions', 'list'],
                      ['sessions', 'collect'], ['sandboxes', 'list'], ['checkpoints', 'list'],
                      ['conflicts', 'list'], ['--help']):
            with self.subTest(words), subprocess.Popen(
                    [BROKER, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, cwd=self.work, env=self.environment()) as command:
                try:
                    self.assertIn(command.wait(PATIENCE), (0, 1, USAGE))
                finally:
                    command.kill()


class File(CommandLine):
    def test_mistakes_in_the_file(self):
        path = str(self.config_path())
        for text, expected in (
                ('[broker]\nprofile = local\n[bro\n',
                 f'{path}:3: missing \']\' in section header'),
                ('[include]\npath = /x\n',
                 f'{path}:2 | [include]'),
                ('profile = x\n',
                 f'{path}: profile | section | [broker]'),
                ('[brokr]\nprofile = x\n',
                 f'{path}: unknown section [brokr] | did you mean [broker]?'),
                ('[agent]\ncommand = x\n',
                 f'{path}: agent.command: expected a name: [agent "NAME"]'),
                ('[broker]\nprofile\n',
                 f'{path}: broker.profile: expected a value: profile = …'),
                ('[broker]\nprofile = x\n',
                 f'{path}: broker.profile: no [profile "x"] in {path}'),
                ('[profile "unused"]\nbakend = local\n',
                 f'{path}: profile.unused.bakend | unknown key | did you mean backend?'),
                ('[profile "unused"]\nbackend = moon\n',
                 f'{path}: profile.unused.backend | local | ssh | daytona | "moon"'),
                ('[profile "unused"]\nbackend = fake\n',
                 f'{path}: profile.unused.backend | local | ssh | daytona | "fake"'),
                ('[profile "unused"]\nlog-level = info\n',
                 f'{path}: profile.unused.log-level: expected in [broker], not in [profile "…"]'),
                ('[profile "unused"]\nisolation = full\n',
                 f'{path}: profile.unused.isolation: expected none or copy, got "full"'),
                ('[profile "unused"]\nmax-queue = lots\n',
                 f'{path}: profile.unused.max-queue: expected a size from 1k to 1g, got "lots"'),
                ('[profile "unused"]\nagent = a\n',
                 f'{path}: profile.unused.agent: no [agent "a"] in {path}'),
                ('[agent "a"]\ncommand = two words\n',
                 f'{path}: agent.a.command | program alone | arg ='),
                ('[agent "a"]\narg = x\n', f'{path}: agent.a: expected command = PROGRAM'),
                ('[profile "local"]\nsecret-env = NO_SUCH_VARIABLE\n',
                 f'{path}: profile.local.secret-env | NO_SUCH_VARIABLE | environment'),
                ('[policy "local"]\ndeny = wirte\n',
                 f'{path}: policy.local: deny | read | write | terminal | grant | * | pattern | '
                 '"wirte"'),
                ('[policy "lokal"]\nmode = pass\n',
                 f'{path}: policy.lokal | policy = lokal | profile')):
            with self.subTest(text=text):
                self.write_config(text)
                self.mistake(expected, '--', AGENT)
                self.mistake(expected, 'check', '--', AGENT)

    def test_a_secret_in_the_wrong_place_is_not_printed(self):
        for text in ('[profile "local"]\nsecret-env = API_KEY=hunter2\n',
                     '[profile "local"]\nsecret-env = hunter2-hunter2\n',
                     '[profile "local"]\nenv = hunter2-hunter2\n'):
            self.write_config(text)
            result = self.run_broker('check', '--', AGENT)
            self.assertEqual(result.returncode, USAGE)
            self.assertNotIn(b'hunter2', result.stdout + result.stderr)

    def test_only_a_readable_regular_file_will_do(self):
        path = self.config_path()
        path.mkdir()
        self.mistake(f'{path} | it is a directory', '--', AGENT)
        path.rmdir()
        os.mkfifo(path)
        self.mistake(f'{path} | regular file', '--', AGENT)
        path.unlink()
        path.write_bytes(b'#' * (1 << 20) + b'#')
        self.mistake(f'{path} | at most 1 MiB', '--', AGENT)
        path.write_bytes(b'[broker]\nprofile = lo\0cal\n')
        self.mistake(f'{path}:2 | NUL', '--', AGENT)

    def test_a_file_inside_the_workspace_is_refused(self):
        inside = self.work / 'config'
        inside.write_text('[policy "local"]\nmode = approve-all\n')
        self.mistake(f'{inside} | workspace {self.work} | --config',
                     '--config', str(inside), '--workspace', str(self.work), '--', AGENT)

    def test_nothing_in_the_workspace_is_looked_for(self):
        for name in ('.acp-broker', 'acp-broker', '.config/acp-broker'):
            folder = self.work / name
            folder.mkdir(parents=True)
            (folder / 'config').write_text('[nonsense')
        pairs = self.checked('--', AGENT)
        self.assertEqual(self.values(pairs, 'configuration'),
                         [f'{self.config_path()} (does not exist)'])

    def test_a_mistake_reaches_an_editor_that_sent_a_request(self):
        self.write_config('[nonsense "x"]\na = b\n')
        request = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}\n'
        result = self.run_broker('--', AGENT, stdin=request)
        self.assertEqual(result.returncode, USAGE)
        self.assertEqual(result.stdout, b'')
        self.assertEqual(len(result.stderr.splitlines()), 1)


class Check(CommandLine):
    def test_a_variable_that_is_named_as_a_secret_is_printed_without_its_value(self):
        self.write_config(
            f'[agent "scripted"]\n\tcommand = {AGENT}\n\tenv = API_KEY=hunter2=\n\tenv = A=1\n'
            '[profile "default"]\n\tagent = scripted\n\tenv = MY_TOKEN=hunter3\n\tmcp = m\n'
            '[mcp "m"]\n\tcommand = npx\n\tenv = DB_PASSWORD=hunter4\n')
        pairs = self.checked('--profile', 'default')
        self.assertNotIn('hunter', str(pairs))
        shown = self.values(pairs, 'env')
        self.assertEqual(len(shown), 4)
        for text, facts in zip(shown, ('"API_KEY=" | not shown', '"A=1"',
                                       '"MY_TOKEN=" | not shown', '"DB_PASSWORD=" | not shown')):
            self.assertNames(text, facts)

    def test_programs_get_one_object(self):
        path = self.write_config(
            f'[agent "scripted"]\n\tcommand = {AGENT}\n\tenv = API_KEY=hunter2=\n\tenv = A=1=\n'
            '[profile "devbox"]\n\tagent = scripted\n\tenv = B_TOKEN=hunter3\n'
            '\tmcp = m\n\tmcp = n\n\tisolation = copy\n\texclude = a\n\texclude = b\n'
            '\tmax-queue = 32k\n'
            '\tsecret-env = SECRET_KEY\n'
            '[mcp "m"]\n\tcommand = npx\n\targ = x\n\tenv = DB_PASSWORD=hunter4\n'
            '[mcp "n"]\n\turl = https://u:hunter5@example.org/mcp\n'
            '\theader = Authorization: hunter6\n'
            '[policy "devbox"]\n\tdeny = write **/.git/**\n')
        env = {**self.environment(), 'SECRET_KEY': 'hunter7'}
        told = self.checked_json('--profile', 'devbox', env=env)
        self.assertNotIn('hunter', json.dumps(told))
        self.assertEqual(told['configuration'], str(path))
        self.assertEqual(told['agent'], {'name': 'scripted', 'argv': [AGENT], 'program': AGENT})
        self.assertEqual({name: told['env'][name] for name in ('API_KEY', 'A', 'B_TOKEN')},
                         {'API_KEY': None, 'A': '1=', 'B_TOKEN': None})
        self.assertEqual(told['secretEnv'], ['SECRET_KEY'])
        self.assertEqual([server['name'] for server in told['mcp']], ['m', 'n'])
        self.assertEqual(told['mcp'][0]['env'], {'DB_PASSWORD': None})
        self.assertEqual(told['mcp'][1]['headers'], ['Authorization'])
        self.assertEqual(told['policy'], ['mode = pass', 'deny = write **/.git/**'])
        for key, values in (('isolation', ['copy']), ('exclude', ['a', 'b']),
                            ('max-queue', ['32k']), ('max-requests', ['1024'])):
            self.assertEqual(told['settings'][key], values)
        self.assertNotIn('env', told['settings'])

    def test_programs_see_an_agent_that_is_not_there(self):
        told = self.checked_json('--', 'no-such-agent', status=1)
        self.assertEqual(told['agent'],
                         {'name': 'no-such-agent', 'argv': ['no-such-agent'], 'program': None})

    def test_what_was_understood_is_printed_word_by_word(self):
        path = self.write_config(
            '[broker]\n\tprofile = devbox\n\tlog-level = debug\n'
            f'[agent "scripted"]\n\tcommand = {AGENT}\n\targ = "two  words; # and \\"quotes\\""\n'
            '\targ =\n\tenv = A=1\n'
            '[profile "devbox"]\n\tagent = scripted\n\tenv = B=2 3\n\tsecret-env = SECRET_KEY\n'
            '\tmax-queue = 32k\n\tidle-timeout = 10m\n\ttoolhost = editor\n'
            '[policy "devbox"]\n\tallow = read\n\tdeny = write **/.git/**\n\tmode = ask-all\n')
        env = self.environment()
        env['SECRET_KEY'] = 'hunter2'
        result = self.run_broker('check', env=env)
        self.assertNotIn(b'hunter2', result.stdout)
        self.assertIn(b'\nauthenticate-timeout 30m\n', result.stdout)  # as long as a label may be
        pairs = self.checked(env=env)
        for label, texts in (
                ('configuration', [str(path)]),
                ('profile', ['"devbox"']),
                ('backend', ['local']),
                ('workspace', ['as the editor says']),
                ('agent', ['"scripted"']),
                ('argv[0]', [f'"{AGENT}"']),
                ('argv[1]', ['"two  words; # and \\"quotes\\""']),
                ('argv[2]', ['""']),
                ('program', [AGENT]),
                ('env', ['"A=1"', '"B=2 3"']),
                ('secret-env', ['SECRET_KEY']),
                ('toolhost', ['editor']),
                ('policy', ['mode = ask-all', 'deny = write **/.git/**', 'allow = read']),
                ('max-queue', ['32k']),
                ('max-message', ['64m']),
                ('idle-timeout', ['10m']),
                ('permission-timeout', ['never']),
                ('log-level', ['debug'])):
            self.assertEqual(self.values(pairs, label), texts, label)

    def test_the_command_line_wins(self):
        self.write_config('[broker]\n\tlog-level = debug\n\ttrace = here\n'
                          '[profile "local"]\n\ttoolhost = editor\n')
        pairs = self.checked('--toolhost', 'auto', '--log-level=error', '--trace', 'there',
                             '--workspace', str(self.work), '--', AGENT, '--x')
        self.assertEqual(self.values(pairs, 'toolhost'), ['auto'])
        self.assertEqual(self.values(pairs, 'log-level'), ['error'])
        self.assertEqual(self.values(pairs, 'trace'), ['there'])
        self.assertEqual(self.values(pairs, 'workspace'), [str(self.work)])
        self.assertEqual(self.values(pairs, 'argv[1]'), ['"--x"'])
        self.assertFalse((self.work / 'there').exists())

    def test_the_agents_program_is_looked_for(self):
        folder = self.dir / 'bin'
        folder.mkdir()
        env = self.environment()
        env['PATH'] = f'/nonexistent::{folder}'
        pairs = self.checked('--', 'my-agent', status=1, env=env)
        self.assertEqual(self.values(pairs, 'program'), [f'not found on PATH ({env["PATH"]})'])
        program = folder / 'my-agent'
        program.write_text('#!/bin/sh\n')
        pairs = self.checked('--', 'my-agent', status=1, env=env)
        program.chmod(0o755)
        pairs = self.checked('--', 'my-agent', env=env)
        self.assertEqual(self.values(pairs, 'program'), [str(program)])
        pairs = self.checked('--', str(folder), status=1, env=env)
        self.assertNames(*self.values(pairs, 'program'), 'not found | not executable')
        self.write_config(f'[profile "local"]\nenv = PATH={folder}\n')
        env['PATH'] = '/nonexistent'
        pairs = self.checked('--', 'my-agent', env=env)
        self.assertEqual(self.values(pairs, 'program'), [str(program)])

    def test_check_prints_what_was_said_of_a_copy(self):
        self.write_config('[profile "local"]\n\tisolation = copy\n\tsync = session-bidirectional\n'
                          '\tpersistence = transient\n\texclude = *.tmp\n\texclude = "a b"\n')
        pairs = self.checked('--', AGENT)
        self.assertEqual(self.values(pairs, 'sync'), ['"session-bidirectional"'])
        self.assertEqual(self.values(pairs, 'persistence'), ['"transient"'])
        self.assertEqual(self.values(pairs, 'exclude'), ['"*.tmp"', '"a b"'])
        self.assertEqual(self.values(pairs, 'isolation'), ['"copy"'])
        self.assertEqual(self.values(pairs, 'include'), [])
        self.assertEqual(self.values(pairs, 'max-files'), ['150000'])

    def test_check_says_that_mcp_exec_has_no_effect(self):
        far = '[profile "far"]\nbackend = ssh\nhost = box\nmcp-exec = yes\n'
        self.write_config('[profile "local"]\nmcp-exec = yes\n' + far)
        self.assertEqual(self.values(self.checked('--', AGENT), 'warning'), [])
        for words in (['--', 'codex-acp'], ['--profile', 'far', '--', 'agent']):
            result = self.run_broker('check', *words)
            warning = [line for line in result.stdout.decode().splitlines()
                       if line.startswith('warning')]
            self.assertEqual(len(warning), 1, result.stdout)
            self.assertNames(warning[0], 'mcp-exec | no effect')

    def test_check_starts_nothing_and_writes_nothing(self):
        before = sorted(pathlib.Path(self.work).rglob('*'))
        self.checked('--trace', str(self.work / 'trace'), '--', AGENT, '--pids',
                     str(self.dir / 'pids'))
        self.assertEqual(sorted(pathlib.Path(self.work).rglob('*')), before)
        self.assertEqual(self.agent_pids(), [])


class Run(CommandLine):
    def test_the_configured_agent_is_run_with_its_arguments(self):
        argv = self.agent_argv()
        lines = '\n'.join(f'\targ = {word}' for word in argv[1:])
        self.write_config('[broker]\n\tagent = scripted\n'
                          f'[agent "scripted"]\n\tcommand = {argv[0]}\n{lines}\n')
        client = self.start([BROKER])
        client.initialize()
        session = client.new_session(self.work)
        client.prompt(session, 'say hello')
        self.assertEqual(client.texts(), ['hello'])
        self.assertEqual(len(self.agent_pids()), 1)

    def test_a_broker_has_no_library_that_it_does_not_need(self):
        self.write_config('[broker]\n\tlog-level = info\n')
        client = self.broker(options=[])
        client.initialize()
        with open(f'/proc/{client.pid}/maps', encoding='utf-8') as maps:
            text = maps.read()
        for library in ('libgit2', 'libssh2', 'libcurl', 'libcrypto'):
            self.assertNotIn(library, text)


class Terminal(CommandLine):
    def start_on_terminal(self, *words):
        """
        Starts a broker with a terminal as its stdin; returns the terminal, the broker and its
        stderr.
        """
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        self.out, self.errors = self.dir / 'out', self.dir / 'errors'
        with open(self.out, 'wb') as out, open(self.errors, 'wb') as errors:
            broker = subprocess.Popen([BROKER, *words], stdin=theirs, stdout=out, stderr=errors,
                                      cwd=self.work, env=self.environment())
        os.close(theirs)
        self.addCleanup(broker.wait)
        self.addCleanup(broker.kill)
        self.wait_for(self.errors, 'Ctrl-D')
        return ours, broker, self.errors.read_text()

    def wait_for(self, path, text):
        self.assertTrue(wait_until(lambda: text in path.read_text()), path.read_text())

    def end(self, terminal, broker):
        os.write(terminal, b'\x04')
        self.assertEqual(broker.wait(PATIENCE), 0, self.errors.read_text())

    def test_a_user_in_a_terminal_is_told_what_this_is(self):
        terminal, broker, text = self.start_on_terminal('--', AGENT, '--flag')
        self.assertNames(text, f'editor | acp-broker -- {AGENT} | acp-broker check | --help')
        self.end(terminal, broker)
        self.assertEqual(self.out.read_text(), '')

    def test_a_client_on_a_terminal_is_served(self):
        terminal, broker, _ = self.start_on_terminal('--', AGENT)
        os.write(terminal, b'{"jsonrpc":"2.0","id":1,"method":"initialize",'
                 b'"params":{"protocolVersion":1,"clientCapabilities":{}}}\n')
        self.wait_for(self.out, '\n')
        answer = json.loads(self.out.read_text())
        self.assertEqual((answer['id'], answer['result']['protocolVersion']), (1, 1))
        self.end(terminal, broker)

    def test_a_login_in_a_terminal_is_told_nothing(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        self.addCleanup(os.close, theirs)
        done = subprocess.run([BROKER, '--', AGENT], stdin=theirs, capture_output=True, check=False,
                              env=dict(self.environment(), ACP_BROKER_LOGIN='0f' * 16),
                              timeout=PATIENCE, cwd=self.work, text=True)
        self.assertNames(done.stderr, 'ACP_BROKER_LOGIN')  # it names no note
        self.assertNotIn('--help', done.stderr)

    def test_others_are_told_nothing(self):
        self.assertEqual(self.run_broker('--', AGENT).stderr, b'')


class PolicyExplain(CommandLine):
    def setUp(self):
        super().setUp()
        self.write_config('[profile "p"]\n\tbackend = local\n\tguard-paths = .envrc\n'
                          '[policy "p"]\n\tmode = approve-reads\n\tallow = write **\n'
                          '\tdeny = write **/secret/**\n\task = terminal rm **\n')

    def explained(self, *words, cwd=None):
        result = self.run_broker('policy', 'explain', '--json', '--profile', 'p', *words, cwd=cwd)
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        told = json.loads(result.stdout)
        return told['decision'], told['rule'], told['source'], told['guarded']

    def test_the_line_that_decides_is_named(self):
        (self.work / 'secret').mkdir()
        (self.work / 'link').symlink_to('secret')
        (self.work / 'sub').mkdir()
        deny = ('reject-once', 'deny = write **/secret/**', 'rule', False)
        for words, told in (
                (['read', 'a'], ('allow-once', 'mode = approve-reads', 'mode', False)),
                (['write', 'a'], ('allow-once', 'allow = write **', 'rule', False)),
                (['write', '.envrc'], ('allow-once', 'allow = write **', 'rule', True)),
                (['write', 'secret/new/a'], deny),
                (['write', 'link/a'], deny),
                (['write', str(self.work / 'secret/a')], deny),
                (['fs/write_text_file', 'link/a'], deny),
                (['terminal', '--', 'rm', '-rf', 'x'], ('pending', 'ask = terminal rm **', 'rule',
                                                        False)),
                (['terminal', 'ls'], ('pending', 'mode = approve-reads', 'mode', False)),
                (['grant', 'edit', 'link/a'], deny),
                (['grant', 'read', 'a'], ('allow-once', 'mode = approve-reads', 'mode', False))):
            with self.subTest(words=words):
                self.assertEqual(self.explained(*words), told)
        self.assertEqual(self.explained('--workspace', str(self.work), 'write', 'link/a', cwd='/'),
                         deny)

    def test_it_is_told_to_people(self):
        result = self.run_broker('policy', 'explain', '--profile', 'p', 'write', '.envrc')
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        facts = dict(line.split(None, 1) for line in
                     result.stdout.decode().replace('because of', 'because').splitlines())
        self.assertEqual(facts['decision'], 'allow')
        self.assertEqual(facts['because'], 'allow = write **')
        self.assertIn('guard-paths', facts)

    def network(self, profile, *lines):
        self.write_config(f'[profile "{profile}"]\n\tconfine = yes\n' +
                          ''.join(f'\t{line}\n' for line in lines) +
                          f'[policy "{profile}"]\n\tmode = approve-reads\n')

    def connecting(self, target):
        decision, rule, source, _ = self.explained('connect', target)
        return decision, rule, source

    def keep(self, *hosts):
        state = self.dir / 'home/state/acp-broker'
        state.mkdir(parents=True, exist_ok=True)
        (state / 'hosts.json').write_text(json.dumps({'hosts': [
            {'profile': profile, 'host': host, 'port': port, 'since': '2026-01-31T12:00:00.000Z'}
            for profile, host, port in hosts]}))

    def test_a_connection_is_explained_by_the_network_keys(self):
        self.network('p', 'network = ask', 'allow-host = *.a.example:443',
                     'allow-cidr = 10.0.0.0/8', 'allow-host = localhost:5432')
        self.keep(('p', 'kept.example', 22), ('q', 'other.example', 443))
        asked = ('pending', 'network = ask', 'mode')
        refused = ('reject-once', 'network = ask', 'mode')
        for target, told in (
                ('x.a.example', ('allow-once', 'allow-host = *.a.example:443', 'rule')),
                ('X.A.Example:443', ('allow-once', 'allow-host = *.a.example:443', 'rule')),
                ('x.a.example:80', asked), ('a.example', asked), ('93.184.215.14:22', asked),
                ('kept.example:22', ('allow-always', 'remembered: always allow', 'remembered')),
                ('kept.example', asked), ('other.example', asked),
                ('10.1.2.3', ('allow-once', 'allow-cidr = 10.0.0.0/8', 'rule')),
                ('192.168.1.1', refused), ('169.254.169.254:80', refused),
                ('[::1]:80', refused), ('localhost:80', refused),
                ('localhost:5432', ('allow-once', 'allow-host = localhost:5432', 'rule'))):
            with self.subTest(target=target):
                self.assertEqual(self.connecting(target), told)
        self.network('p', 'network = blocked')
        self.assertEqual(self.connecting('a.example'), ('reject-once', 'network = blocked', 'mode'))
        self.network('p')
        self.assertEqual(self.connecting('a.example'), ('allow-once', 'network = open', 'mode'))

    def test_kept_hosts_are_listed_and_forgotten(self):
        empty = self.run_broker('policy', 'list', '--json')
        self.assertEqual(json.loads(empty.stdout), {'hosts': []})
        self.keep(('p', 'a.example', 443), ('p', 'a.example', 22), ('q', 'a.example', 443),
                  ('q', '2001:db8::1', 443), ('q', 'b.example', 443))
        schema = json.loads((ROOT / 'docs/schemas/policy-list.json').read_text())
        schema['$ref'] = '#/$defs/result'
        told = json.loads(self.run_broker('policy', 'list', '--json', '--profile', 'p').stdout)
        jsonschema.Draft202012Validator(schema).validate(told)
        self.assertEqual([(each['profile'], each['host'], each['port']) for each in told['hosts']],
                         [('p', 'a.example', 443), ('p', 'a.example', 22)])
        for words, status in ((['a.example:22'], 0), (['--profile', 'q', 'a.example'], 0),
                              (['[2001:db8::1]:443'], 0), (['a.example:22'], 1)):
            self.assertEqual(self.run_broker('policy', 'forget', *words).returncode, status, words)
        lines = self.run_broker('policy', 'list').stdout.decode().splitlines()
        self.assertEqual([line.split()[:2] for line in lines[1:]],
                         [['p', 'a.example:443'], ['q', 'b.example:443']])
        for word in ('', 'a b', 'https://a.example', 'a.example:0', 'a.example:70000', '[::1',
                     'a.example\x1b[2J'):
            self.mistake('policy forget | example.com:443', 'policy', 'forget', word)

    def test_mistakes(self):
        for expected, words in (('policy explain | read | write | terminal | grant | delete',
                                 ['delete', 'a']),
                                ('policy explain read | one path', ['read', 'a', 'b']),
                                ('policy explain | OPERATION WORD...', ['read'])):
            self.mistake(expected, 'policy', 'explain', *words)


if __name__ == '__main__':
    main()

#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`acp-broker exec`: one prompt from a shell, its answer, its policy, its ends."""

import json
import os
import pty
import shutil
import signal
import subprocess

import processes
from case import BROKER, Case, main
from processes import PATIENCE

CANCELLED = 130
PROMPT_MAX = 1024 * 1024


class Exec(Case):
    def argv(self, prompt, *options, agent=None, broker=BROKER):
        return [broker, 'exec', *options, prompt, '--', *(agent or self.agent_argv())]

    def run_exec(self, *words, stdin=b'', **more):
        return subprocess.run(self.argv(*words, **more), input=stdin, capture_output=True,
                              cwd=self.work, env=self.environment(), timeout=PATIENCE, check=False)

    def begin(self, *words, stdout=subprocess.PIPE, **more):
        """Starts a prompt; the test ends it."""
        process = subprocess.Popen(self.argv(*words, **more), stdin=subprocess.PIPE, stdout=stdout,
                                   stderr=subprocess.PIPE, cwd=self.work, env=self.environment())
        self.addCleanup(self.reap, process)
        return process

    def reap(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=PATIENCE)

    def answer(self, *words, status=0, **more):
        done = self.run_exec(*words, **more)
        self.assertEqual(done.returncode, status, done)
        return done.stdout.decode(), done.stderr.decode()

    def lines(self, *words, status=0):
        out, err = self.answer(*words, '--format=json', status=status)
        return [json.loads(line) for line in out.splitlines()], err

    def sent(self, method):
        found = [json.loads(line) for line in self.journal('<')]
        return [one['params'] for one in found if one.get('method') == method]


class Answers(Exec):
    def test_words_go_to_stdout_and_tool_calls_to_stderr(self):
        out, err = self.answer('say one\nthink secret\nplan secret\npermission Do it\nsay two')
        self.assertRegex(out, r'\Aone\n.*two\n\Z')
        self.assertNotIn('secret', out + err)
        hint, call = err.splitlines()
        self.assertNames(hint, '<6>exec | no policy | --approve')
        self.assertEqual(call, '<6>tool call: Do it')
        _, err = self.answer('permission Do it\npermission Do more', '--approve', 'all')
        self.assertEqual(err.splitlines(), ['<6>tool call: Do it', '<6>tool call: Do more'])

    def test_the_status_is_the_stop_reason(self):
        for reason, status in (('max_tokens', 3), ('max_turn_requests', 4), ('refusal', 5)):
            self.assertEqual(self.answer(f'say x\nstop {reason}', status=status), ('x\n', ''))
        out, err = self.answer('stop bored', status=1)
        self.assertEqual(out, '')
        self.check_line(err, 'exec | bored')

    def test_the_session_is_where_it_was_started_and_the_client_serves_nothing(self):
        self.assertEqual(self.answer('cwd')[0], f'cwd {self.work}\n')
        self.assertEqual(self.sent('session/new'), [{'cwd': str(self.work), 'mcpServers': []}])
        other = self.dir / 'other'
        other.mkdir()
        self.answer('cwd', '--workspace', str(other), '--toolhost', 'editor')
        self.assertEqual(self.sent('session/new')[0]['cwd'], str(other))
        self.assertEqual(self.sent('initialize')[0]['clientCapabilities'], {})

    def test_json_has_every_update_and_the_result(self):
        lines, err = self.lines(
            'say one\npermission Do it\n'
            'result {"stopReason":"max_tokens","usage":{"totalTokens":7}}', status=3)
        self.assertEqual(err, '')
        updates, result = lines[:-1], lines[-1]
        self.assertEqual({line['method'] for line in updates}, {'session/update'})
        self.assertEqual([line['params']['update']['sessionUpdate'] for line in updates],
                         ['agent_message_chunk', 'tool_call', 'tool_call_update',
                          'agent_message_chunk'])
        words = ''.join(line['params']['update']['content']['text'] for line in updates
                        if line['params']['update']['sessionUpdate'] == 'agent_message_chunk')
        self.assertEqual(result, {'stopReason': 'max_tokens', 'usage': {'totalTokens': 7},
                                  'text': words.replace('one', 'one\n'), 'isTextCut': False})

    def test_an_error_is_one_line_and_in_json_the_result(self):
        error = {'code': -32000, 'message': 'log in first', 'data': {'detail': 'a\x1b[31mb\nc'}}
        _, err = self.answer('error ' + json.dumps(error), status=1)
        self.check_line(err, 'session/prompt | log in first | -32000 | a^[[31mb c')
        lines, _ = self.lines('error ' + json.dumps(error), status=1)
        self.assertEqual(lines, [{'error': error}])
        _, err = self.answer('x', agent=['/nowhere/agent'], status=1)
        self.check_line(err, 'initialize | /nowhere/agent | AGENT_NOT_FOUND')

    def test_the_log_has_the_code_of_an_error(self):
        for error, agent, code in ((-32603, None, 'AGENT_ERROR'), (-32000, None, 'LOGIN_NEEDED'),
                                   (0, ['/nowhere/agent'], 'AGENT_NOT_FOUND')):
            words = 'error ' + json.dumps({'code': error, 'message': 'no'})
            _, err = self.answer(words, '--log-format', 'json', status=1, agent=agent)
            self.assertEqual([json.loads(line)['code'] for line in err.splitlines()][-1], code)

    def test_control_characters_of_an_answer_drive_no_terminal(self):
        ours, theirs = pty.openpty()
        words = 'update ' + json.dumps({
            'sessionUpdate': 'agent_message_chunk',
            'content': {'type': 'text', 'text': 'a\x1b]0;x\x07b\u009bc\td'}})
        process = self.begin(words, stdout=theirs)
        os.close(theirs)
        self.assertEqual(process.wait(PATIENCE), 0)
        self.assertEqual(os.read(ours, 4096), b'a^[]0;x^Gb<9b>c\td\r\n')
        os.close(ours)
        raw = 'a\x1b]0;x\x07b\u009bc\td\n'
        self.assertEqual(self.answer(words)[0], raw)

    def test_a_stop_reason_and_a_title_drive_no_terminal(self):
        hostile = 'ev\x1b[2Jil\nb\u202ec'
        _, err = self.answer('result ' + json.dumps({'stopReason': hostile}), status=1)
        self.check_line(err, 'exec | ev^[[2Jil b<U+202E>c')
        _, err = self.answer('update ' + json.dumps({
            'sessionUpdate': 'tool_call', 'toolCallId': '1', 'title': hostile}))
        self.assertIn('ev\\x1B[2Jil\\x0Ab\\xE2\\x80\\xAEc', err)


class Prompts(Exec):
    def test_a_dash_reads_stdin(self):
        self.assertEqual(self.answer('-', stdin=b'say \xc3\xa4\nsay \xff!')[0], 'ä\ufffd!\n')
        self.assertEqual(self.sent('session/prompt')[0]['prompt'],
                         [{'type': 'text', 'text': 'say ä\nsay \ufffd!'}])

    def test_what_is_no_prompt_is_a_mistake(self):
        for words, stdin, facts in ((['  '], b'', 'prompt | empty'),
                                    (['-'], b' \n', 'stdin | empty'),
                                    (['-'], b'x' * (PROMPT_MAX + 1), f'stdin | {PROMPT_MAX}'),
                                    (['x', '--format', 'xml'], b'', '--format | text | json'),
                                    (['x', '--approve', 'x'], b'', '--approve | reads | none'),
                                    (['x', '--profile', 'p'], b'', 'profile | "p"'),
                                    (['x', 'y'], b'', 'exec | PROMPT|-')):
            out, err = self.answer(*words, stdin=stdin, status=2)
            self.assertEqual(out, '')
            self.check_line(err, facts)
        self.assertEqual(self.agent_pids(), [])

    def test_a_program_that_was_replaced_meanwhile_is_its_own_broker(self):
        old = self.dir / 'acp-broker-of-today'
        shutil.copy2(BROKER, old)
        process = self.begin('-', broker=str(old))
        self.assertTrue(processes.wait_until(
            lambda: os.readlink(f'/proc/{process.pid}/exe') == str(old)))
        old.unlink()
        old.write_text('#!/bin/sh\nexit 9\n')
        old.chmod(0o755)
        out, _ = process.communicate(b'say same', timeout=PATIENCE)
        self.assertEqual((out, process.returncode), (b'same\n', 0))


class Policies(Exec):
    def setUp(self):
        super().setUp()
        self.file = self.work / 'file'
        self.file.write_text('old')
        self.prompt = f'read {self.file}\nwrite {self.file} new\npermission Do it'

    def outcome(self, *options):
        """
        Whether the agent could read and write the file, and got the permission that it asked for.
        """
        self.file.write_text('old')
        out, _ = self.answer(self.prompt, *options)
        return ('"content":"old"' in out, self.file.read_text() == 'new', '"yes"' in out)

    def test_approve_is_the_policy_where_there_is_none(self):
        self.assertEqual(self.outcome(), (False, False, False))
        self.assertEqual(self.outcome('--approve', 'none'), (False, False, False))
        self.assertEqual(self.outcome('--approve', 'reads'), (True, False, False))
        self.assertEqual(self.outcome('--approve', 'all'), (True, True, True))

    def test_what_is_written_in_a_copy_is_here_at_the_end(self):
        options = self.config(isolation='copy', persistence='transient')
        self.answer('terminal printf new > file', *options, '--approve=all')
        self.assertEqual(self.file.read_text(), 'new')

    def test_the_policy_of_the_profile_holds_and_its_questions_are_refused(self):
        options = self.config(policy=['mode = approve-all'])
        self.assertEqual(self.outcome(*options), (True, True, True))
        self.assertEqual(self.outcome(*options, '--approve', 'reads'), (True, False, False))
        options = self.config(policy=['deny = read **', 'ask = grant'])
        self.assertEqual(self.outcome(*options, '--approve=all'), (False, True, False))
        _, err = self.answer('permission Do it', *options)
        self.assertNames(err, '--approve | Do it')


class Ends(Exec):
    def hanging(self, prompt):
        """Starts a prompt that hangs; returns the process once the agent has said something."""
        process = self.begin(f'say here\n{prompt}', *self.config())
        self.assertEqual(os.read(process.stdout.fileno(), 4), b'here')
        return process

    def end(self, process, status=CANCELLED):
        _, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, status, err)
        self.assert_nothing_runs()
        return err.decode()

    def test_a_signal_cancels_the_prompt(self):
        process = self.hanging('hang')
        process.send_signal(signal.SIGINT)
        self.end(process)
        self.assertEqual(len(self.sent('session/cancel')), 1)

    def test_a_second_signal_ends_the_session(self):
        process = self.hanging('deaf\nhang')
        process.send_signal(signal.SIGTERM)
        self.assertTrue(processes.wait_until(lambda: self.sent('session/cancel')))
        process.send_signal(signal.SIGTERM)
        self.end(process)

    def test_a_reader_that_leaves_ends_it_quietly(self):
        for prompt in ('hang', 'stream 100000 5000'):
            process = self.hanging(prompt)
            process.stdout.close()
            process.stdout = None
            self.assertEqual(self.end(process), '')

    def test_a_slow_reader_gets_all(self):
        process = self.hanging('stream 3000 1000')
        out, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(len(out), 3000 * 1000 + 1)

    def test_nothing_outlives_it(self):
        process = self.hanging('hang')
        process.kill()
        process.wait(PATIENCE)
        self.assert_nothing_runs()

    def test_a_broker_that_is_killed_is_an_error(self):
        process = self.hanging('hang')
        for pid in processes.all_pids():
            if processes.parent_of(pid) == process.pid:
                processes.kill(pid)
        _, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 1)
        self.assertNames(err.decode(), 'exec | SIGKILL')


if __name__ == '__main__':
    main()

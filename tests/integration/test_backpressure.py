#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A reader stops: nothing is lost, nothing comes out of order, and memory stays bounded."""

import json
import os
import signal
import threading
import time

import processes
from case import SANITIZED, Case, main

MIB = 1 << 20
ALLOWED = 24 * MIB  # beyond idle, and besides the one message in hand


class Gauge:
    """The largest private memory of a process while the gauge runs, above what it was at first."""

    def __init__(self, pid):
        self.pid = pid
        self.idle = self.peak = processes.private_bytes(pid)
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.stop.wait(0.02):
            self.peak = max(self.peak, processes.private_bytes(self.pid))

    def above_idle(self):
        self.stop.set()
        self.thread.join()
        return self.peak - self.idle


class Backpressure(Case):
    def open(self, sessions=1, **keys):
        client = self.broker(options=self.config(**keys))
        client.initialize()
        self.agent = self.agent_pids()[-1]
        return [client, *(client.new_session(self.work) for _ in range(sessions))]

    def assert_bounded(self, gauge, message_bytes=0):
        above = gauge.above_idle()
        if not SANITIZED:
            self.assertLess(above, ALLOWED + message_bytes,
                            f'{above / MIB:.1f} MiB above {gauge.idle / MIB:.1f} MiB')

    def wait_still(self, client):
        """Waits until the agent sends no more and the editor can write no more."""
        path = self.journal_path()
        processes.wait_at_rest(lambda: (os.path.getsize(path), client.outgoing.qsize()))

    def wait_journal(self, wanted, direction='<'):
        self.assertTrue(processes.wait_until(
            lambda: any(wanted in line for line in self.journal(direction)), step=0.1), wanted)

    def read_again(self):
        os.kill(self.agent, signal.SIGUSR1)


class SlowAtTheEnd(Backpressure):
    """The editor closes its side before it has read everything that is sent to it."""
    SIZE = 1000

    def open_flooded(self, count, *before, **keys):
        client = self.broker(options=self.config(**keys))
        client.initialize()
        session = client.new_session(self.work)
        client.pause()
        return client, client.start_prompt(session, *before, f'stream {count} {self.SIZE}')

    def wait_said(self):
        """Waits until the agent has answered the prompt."""
        self.wait_journal(b'"stopReason"', '>')

    def read_slowly(self, client):
        """Reads to the end, in pieces with a pause after each; returns the number of updates."""
        def ended():
            client.resume()
            client.pause()
            return client.process.poll() is not None
        processes.wait_until(ended)
        client.resume()
        self.assertEqual(client.wait(), 0, client.stderr)
        for thread in client.threads:
            thread.join(processes.PATIENCE)
        return sum(b'agent_message_chunk' in message.line for message in client.received)

    def test_what_was_said_arrives_however_slowly_it_is_read(self):
        client, prompt = self.open_flooded(3000)
        self.wait_said()
        client.close_stdin()
        self.assertEqual(self.read_slowly(client), 3000)
        self.assertEqual(client.answer(prompt), {'stopReason': 'end_turn'})

    def test_an_agent_that_still_has_more_to_say_may_say_it(self):
        client, prompt = self.open_flooded(30_000)  # more than queue and pipes hold
        self.wait_still(client)
        client.close_stdin()
        count = self.read_slowly(client)
        self.assertIn('stopReason', client.answer(prompt))
        said = sum(b'agent_message_chunk' in line for line in self.journal('>'))
        self.assertEqual(count, said)

    def test_an_editor_that_takes_nothing_is_told(self):
        for drain_timeout in ('300ms', '0s'):
            client, _ = self.open_flooded(3000, drain_timeout=drain_timeout)
            self.wait_said()
            client.close_stdin()
            self.assertEqual(client.wait(), 1, client.stderr)
            self.assertIn('does not read', client.stderr)

    def test_a_second_signal_does_not_wait_for_a_slow_editor(self):
        client, _ = self.open_flooded(3000)
        self.wait_said()
        client.process.terminate()
        client.wait_log('exited with status 0')
        client.process.terminate()
        self.assertEqual(client.wait(), 1, client.stderr)

    def test_a_second_signal_while_the_agent_still_runs_does_not_wait_for_the_editor_either(self):
        client, _ = self.open_flooded(3000, 'ignore-eof')
        self.wait_said()
        client.process.terminate()
        client.wait_log('TERM, ending')
        client.process.terminate()
        self.assertEqual(client.wait(), 1, client.stderr)
        self.assertIn('does not read', client.stderr)


class EditorStops(Backpressure):
    COUNT, SIZE = 100_000, 200

    def numbers(self, client, session):
        return [int(text[:8]) for text in client.texts(session)]

    def test_a_hundred_thousand_updates_wait_for_the_editor(self):
        client, session, other = self.open(sessions=2)
        waiting = client.start_prompt(other, 'say ready', 'hang')
        client.wait_text('ready')
        gauge = Gauge(client.pid)
        client.pause()
        prompt = client.start_prompt(session, f'stream {self.COUNT} {self.SIZE}')
        self.wait_still(client)
        sent = len(self.journal('>'))
        self.assertLess(sent, self.COUNT)  # the agent itself has to wait; nothing is thrown away

        # A cancel reaches the agent while the editor does not read.
        client.notify('session/cancel', {'sessionId': other})
        self.wait_journal(b'session/cancel')
        self.assert_bounded(gauge)

        client.resume()
        self.assertEqual(client.answer(prompt), {'stopReason': 'end_turn'})
        self.assertEqual(client.answer(waiting), {'stopReason': 'cancelled'})
        self.assertEqual(self.numbers(client, session), list(range(self.COUNT)))

    def test_the_turn_that_floods_can_be_cancelled(self):
        client, session = self.open()
        client.pause()
        prompt = client.start_prompt(session, f'stream {self.COUNT} {self.SIZE}')
        self.wait_still(client)
        client.notify('session/cancel', {'sessionId': session})
        self.wait_journal(b'session/cancel')
        client.resume()
        self.assertEqual(client.answer(prompt), {'stopReason': 'cancelled'})
        numbers = self.numbers(client, session)
        self.assertEqual(numbers, list(range(len(numbers))))
        self.assertLess(len(numbers), self.COUNT)

    def test_a_replay_waits_for_the_editor(self):
        count, size = 50_000, 1000  # twice what the broker may hold
        client = self.broker('--load-replay', str(count), '--load-size', str(size),
                             options=self.config(session_timeout='5s'))
        client.initialize()
        session = client.new_session(self.work)
        gauge = Gauge(client.pid)
        client.pause()
        load = client.start('session/load', {'sessionId': session, 'cwd': str(self.work),
                                             'mcpServers': []})
        prompt = client.start_prompt(session, 'say after')
        self.wait_still(client)
        time.sleep(6)  # the broker must not take the editor's slowness for the agent's silence
        client.resume()
        answer = client.response(load)
        self.assertNotIn('error', answer.value)
        self.assertEqual(client.answer(prompt), {'stopReason': 'end_turn'})
        self.assert_bounded(gauge)
        place = client.messages.index(answer)
        replay = [m.params['update'] for m in client.messages[:place]
                  if m.method == 'session/update']
        self.assertEqual([update['sessionUpdate'] for update in replay],
                         ['user_message_chunk', 'agent_message_chunk'] * (count // 2))
        said = [update['content']['text'].split(' ', 1) for update in replay]
        self.assertEqual([int(number) for number, _ in said], list(range(count)))
        self.assertEqual({len(text) for _, text in said}, {size})
        self.assertEqual(client.texts(session)[-1], 'after')

    def test_large_updates_are_bounded_as_well(self):
        client, session = self.open()
        gauge = Gauge(client.pid)
        client.pause()
        prompt = client.start_prompt(session, *[f'diff {4 * MIB}'] * 20)
        self.wait_still(client)
        client.resume()
        client.answer(prompt)
        self.assert_bounded(gauge, 4 * MIB)
        diffs = [message for message in client.received if message.method == 'session/update']
        self.assertEqual(len(diffs), 20)
        for message in diffs:
            self.assertEqual(len(message.params['update']['content'][0]['newText']), 4 * MIB)


    def test_what_large_messages_needed_is_given_back(self):
        client, session = self.open()
        client.prompt(session, 'say ready')
        idle = processes.private_bytes(client.pid)
        client.prompt(session, *[f'diff {MIB}'] * 10)
        if not SANITIZED:  # sanitizers keep freed memory for a while
            self.assertTrue(processes.wait_until(
                lambda: processes.private_bytes(client.pid) - idle < MIB // 2, step=0.1),
                processes.private_bytes(client.pid) - idle)
        client.prompt(session, 'say after')


class AgentStops(Backpressure):
    def stopped(self, **keys):
        client, session = self.open(**keys)
        client.prompt(session, 'stop-reading')
        return client, session, Gauge(client.pid)

    def note(self, number, size):
        return json.dumps({'jsonrpc': '2.0', 'method': '_note', 'params': {
            'number': number, 'text': 'x' * size}}, separators=(',', ':')).encode()

    def test_64_mib_of_notifications_wait_for_the_agent(self):
        client, session, gauge = self.stopped()
        notes = [self.note(number, 65536) for number in range(1024)]
        for note in notes:
            client.send_line(note)
        client.notify('session/cancel', {'sessionId': session})
        self.wait_still(client)
        self.read_again()
        self.wait_journal(b'session/cancel')
        self.assert_bounded(gauge)
        received = [line for line in self.journal('<') if b'"_note"' in line]
        self.assertEqual(received, notes)
        self.assertIn(b'session/cancel', self.journal('<')[-1])
        client.prompt(session, 'say after')

    def test_one_message_of_60_mib(self):
        client, session, gauge = self.stopped()
        size = 60 * MIB
        note = self.note(0, size)
        client.send_line(note)
        client.notify('session/cancel', {'sessionId': session})
        self.wait_still(client)
        self.read_again()
        self.wait_journal(b'session/cancel')
        self.assert_bounded(gauge, size)
        self.assertEqual(self.journal('<')[-2], note)

    def test_64_mib_of_requests_are_each_answered_once(self):
        client, session, gauge = self.stopped()
        before = len(client.messages)
        ids = [client.start('_echo', {'text': 'y' * 65536}) for _ in range(1024)]
        # The broker still answers requests that are not for the agent.
        client.response(client.start('_broker/no_such_method'))
        client.notify('session/cancel', {'sessionId': session})
        self.read_again()
        refused = []
        for raw_id in ids:
            answer = client.response(raw_id)
            if 'error' in answer.value:
                self.failure(answer, 'RESOURCE_LIMIT_EXCEEDED')
                refused.append(raw_id)
        self.assert_bounded(gauge)
        self.assertGreater(len(refused), 0)
        self.assertLess(len(refused), len(ids))
        answered = [message.id for message in client.messages[before:]
                    if message.is_response and not message.sent]
        self.assertEqual(len(answered), len(set(answered)))
        # The requests that the broker did not refuse reached the agent, and so did the cancel.
        kept = [raw_id for raw_id in ids if raw_id not in refused]
        self.assertEqual(len([line for line in self.journal('<') if b'"_echo"' in line]), len(kept))
        self.wait_journal(b'session/cancel')
        client.prompt(session, 'say after')

    def test_many_small_messages_while_both_sides_are_slow(self):
        client, session = self.open()
        gauge = Gauge(client.pid)
        client.pause()
        prompt = client.start_prompt(session, 'stop-reading', 'stream 50000 100')
        for number in range(20000):
            client.send_line(self.note(number, 100))
        self.wait_still(client)
        self.read_again()
        client.resume()
        self.assertEqual(client.answer(prompt)['stopReason'], 'end_turn')
        client.prompt(session, 'say after')
        numbers = [int(text[:8]) for text in client.texts(session)[:-1]]
        self.assertEqual(numbers, list(range(50000)))
        notes = [json.loads(line)['params']['number'] for line in self.journal('<')
                 if b'"_note"' in line]
        self.assertEqual(notes, list(range(20000)))
        self.assert_bounded(gauge)


if __name__ == '__main__':
    main()

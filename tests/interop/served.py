# SPDX-License-Identifier: MIT
"""
The part of a conversation that the broker itself serves with `toolhost = broker`: the calls, which
stay on the agent's hop, and the terminals that it shows to the editor instead. The rest of both
hops is compared like any other conversation. Lines are (goes to the agent, bytes).
"""

import json

import rawjson

METHODS = {'fs/read_text_file', 'fs/write_text_file', 'terminal/create', 'terminal/output',
           'terminal/wait_for_exit', 'terminal/kill', 'terminal/release'}

SHOWN = b'"<shown>"'  # stands for content that has a terminal
CONTENT = 'params.update.content'
OWN_KEYS = {'sessionUpdate', 'toolCallId', 'content'}  # of the broker's own updates


class Call:
    """A call of the agent's for a file or a terminal, with its answer."""

    def __init__(self, method, params):
        self.method, self.params, self.answer = method, params, None

    @property
    def result(self):
        return self.answer['result']


def take_calls(lines):
    """The calls for files and terminals in order, and all other lines."""
    calls, waiting, others = [], {}, []
    for to_agent, line in lines:
        message = json.loads(line)
        if not to_agent and message.get('method') in METHODS:
            waiting[json.dumps(message['id'])] = Call(message['method'], message['params'])
            calls.append(waiting[json.dumps(message['id'])])
        elif to_agent and 'method' not in message and json.dumps(message['id']) in waiting:
            waiting.pop(json.dumps(message['id'])).answer = message
        else:
            others.append((to_agent, line))
    return calls, others


def terminals_of(calls):
    """The ids of the terminals, in the order of their creation."""
    return [call.result['terminalId'] for call in calls if call.method == 'terminal/create']


def with_names(lines, names):
    """The lines, with each string of `names` replaced by its counterpart."""
    for name, meaning in names:
        lines = [(to_agent, line.replace(name.encode(), meaning.encode()))
                 for to_agent, line in lines]
    return lines


def name_terminals(lines, calls):
    return with_names(lines, [(terminal, f'<terminal {number}>')
                              for number, terminal in enumerate(terminals_of(calls))])


def update_of(line):
    message = json.loads(line)
    return message['params']['update'] if message.get('method') == 'session/update' else {}


def shows_terminal(update):
    return any(item.get('type') == 'terminal' for item in update.get('content') or []
               if isinstance(item, dict))


def hide_terminals(lines):
    """
    The lines of an agent, with SHOWN instead of content that has a terminal; and the set of those
    lines.
    """
    hidden = [(to_agent, rawjson.replace(line, CONTENT, SHOWN)
               if shows_terminal(update_of(line)) else line) for to_agent, line in lines]
    return hidden, {line for (_, line), (_, before) in zip(hidden, lines) if line != before}


def take_shown(lines, expected):
    """
    The counterpart of hide_terminals for the editor: what each tool call showed, in order; and the
    lines with SHOWN wherever `expected` has it, without the broker's own updates.
    """
    shown, others = {}, []
    for to_agent, line in lines:
        update = update_of(line)
        hidden = rawjson.replace(line, CONTENT, SHOWN) if 'content' in update else line
        if not to_agent and hidden in expected:
            shown[update['toolCallId']] = [update['content']]
            others.append((to_agent, hidden))
        elif set(update) == OWN_KEYS and update['toolCallId'] in shown:
            shown[update['toolCallId']].append(update['content'])
        else:
            others.append((to_agent, line))
    return shown, others

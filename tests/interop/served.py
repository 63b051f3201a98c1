# SPDX-License-Identifier: MIT
"""
What of a conversation the broker serves itself where `toolhost = broker`: the calls that stay on
the agent's hop, and the terminals that the editor is shown instead. What is left of either hop is
compared as any other conversation. Lines are (goes to the agent, bytes).
"""

import json

import rawjson

METHODS = {'fs/read_text_file', 'fs/write_text_file', 'terminal/create', 'terminal/output',
           'terminal/wait_for_exit', 'terminal/kill', 'terminal/release'}

SHOWN = b'"<shown>"'  # stands for content in which a terminal is
CONTENT = 'params.update.content'
OWN_KEYS = {'sessionUpdate', 'toolCallId', 'content'}  # of an update that is the broker's own


class Call:
    """A call of the agent's for a file or a terminal, and its answer."""

    def __init__(self, method, params):
        self.method, self.params, self.answer = method, params, None

    @property
    def result(self):
        return self.answer['result']


def take_calls(lines):
    """The calls for files and terminals in their order, and the lines that are none of them."""
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
    """The ids of the terminals, in the order in which they were created."""
    return [call.result['terminalId'] for call in calls if call.method == 'terminal/create']


def with_names(lines, names):
    """The lines with each string of `names` replaced by what it stands for."""
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
    """The lines of an agent, with SHOWN in place of content that has a terminal; those lines."""
    hidden = [(to_agent, rawjson.replace(line, CONTENT, SHOWN)
               if shows_terminal(update_of(line)) else line) for to_agent, line in lines]
    return hidden, {line for (_, line), (_, before) in zip(hidden, lines) if line != before}


def take_shown(lines, expected):
    """
    The editor's side of hide_terminals: what each tool call showed, in its order, and the lines
    with SHOWN where `expected` has it, less the updates that are the broker's own.
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

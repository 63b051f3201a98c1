#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""One whole session through the broker, printed for a user: ./dev demo."""

import json
import os
import pathlib
import shutil
import sys
import tempfile

import processes
from acp import Client
from case import AGENT, BROKER
from host import Host

PROMPT = (
    'say I will look at the shopping list first.',
    'read {work}/shopping.txt',
    'plan add what is missing, then count the lines',
    'permission May I add bread to shopping.txt?',
    'write {work}/shopping.txt milk\\neggs\\nbread\\n',
    'terminal wc -l < shopping.txt && uname -s',
    'say Done:', 'say the list', 'say now has', 'say bread on it.',
)
WIDTH = 100


def short(text, width=WIDTH):
    text = str(text).replace('\n', '\\n')
    return text if len(text) <= width else text[:width - 1] + '…'


def of_update(params):
    update = params['update']
    kind = update['sessionUpdate']
    content = update.get('content')
    if isinstance(content, dict):
        return f'{kind}: {content["text"]}'
    words = [update.get(name) for name in ('title', 'status')]
    if kind == 'plan':
        words = [entry['content'] for entry in update['entries']]
    if isinstance(content, list) and content and content[0]['type'] == 'terminal':
        words.append('its output is in ' + content[0]['terminalId'])
    return f'{kind}: ' + ', '.join(filter(None, words))


def of_permission(params):
    names = ', '.join(option['name'] for option in params['options'])
    return f'{params["toolCall"]["title"]}  ({names})'


SUMMARIES = {
    'session/update': of_update,
    'session/request_permission': of_permission,
    'session/prompt': lambda params: 'a script of what the agent shall do',
    'initialize': lambda params: f'protocol version {params["protocolVersion"]}',
    'session/new': lambda params: params['cwd'],
    'fs/read_text_file': lambda params: params['path'],
    'fs/write_text_file': lambda params: params['path'],
    'terminal/create': lambda params: params['command'],
}


def describe(message):
    if message.is_response:
        value = message.value
        return '  = ' + short(json.dumps(value.get('result', value.get('error')),
                                         ensure_ascii=False))
    summary = SUMMARIES.get(message.method, lambda params: params.get('terminalId', ''))
    return f'{message.method:28} {short(summary(message.params), WIDTH - 28)}'


class Printer:
    """Prints the messages that have come and gone since the last flush."""

    def __init__(self, client):
        self.client, self.place = client, 0

    def flush(self):
        for message in self.client.messages[self.place:]:
            arrow = 'editor -> agent' if message.sent else 'editor <- agent'
            print(f'  {arrow}  {describe(message)}')
        self.place = len(self.client.messages)


def title(text):
    print(f'\n{text}\n{"-" * len(text)}')


def converse(client, work):
    printer = Printer(client)
    title('The editor starts the broker where it would start the agent')
    print(f'  $ {shutil.which(BROKER) or BROKER} -- {AGENT}\n')
    result = client.initialize()
    printer.flush()
    broker = result['_meta']['broker']
    print(f'\n  It speaks with {result["agentInfo"]["name"]} {result["agentInfo"]["version"]}, '
          f'through acp-broker {broker["version"]}, backend {broker["backend"]}.')
    title('A session in the workspace, and one prompt')
    session = client.new_session(work)
    client.prompt(session, *(line.format(work=work) for line in PROMPT))
    printer.flush()


def end(client, work):
    title('The end')
    mine = [client.pid, *processes.descendants(client.pid)]
    print('  Processes of the session while it ran:')
    for pid in mine:
        print(f'    {pid:8} {processes.name_of(pid)}')
    client.close_stdin()
    status = client.wait()
    left = [pid for pid in mine if processes.is_running(pid)]
    print(f'  The editor closed stdin; the broker exited with status {status}; '
          f'{len(left)} of these processes are left.')
    print('  shopping.txt now reads: '
          + ', '.join((work / 'shopping.txt').read_text().split()))
    return status == 0 and not left


def main():
    with tempfile.TemporaryDirectory(prefix='acp-demo-') as directory:
        work = pathlib.Path(directory) / 'work'
        work.mkdir()
        (work / 'shopping.txt').write_text('milk\neggs\n')
        env = dict(os.environ, HOME=directory, XDG_CONFIG_HOME=directory, XDG_STATE_HOME=directory)
        client = Client([BROKER, '--', AGENT], cwd=work, env=env, host=Host(cwd=work))
        try:
            converse(client, work)
            good = end(client, work)
        finally:
            client.finish()
    sys.exit(0 if good else 1)


if __name__ == '__main__':
    main()

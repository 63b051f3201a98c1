#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Checks that includes point only downwards and are written from the root, and what files know."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]

# A folder, and the other folders that it may include. A file belongs to the longest one that
# contains it.
LAYERS = {
    'base': [],
    'acp': ['base'],
    'providers': ['base'],
    'sync': ['base', 'providers'],
    'broker/policy': ['base', 'acp'],
    'broker/toolhost': ['base', 'acp', 'providers', 'sync'],
    'broker/config': ['base', 'providers', 'sync', 'broker/policy', 'broker/toolhost'],
    'broker/ledger': ['base', 'providers', 'sync', 'broker/config'],
    'broker/agent': ['base', 'acp', 'providers', 'broker/toolhost', 'broker/config'],
    'broker/desk': ['base', 'acp'],
    'broker/session': ['base', 'acp', 'providers', 'sync', 'broker/policy', 'broker/toolhost',
                       'broker/config', 'broker/ledger', 'broker/agent', 'broker/desk'],
    'broker/gate': ['base', 'acp', 'providers', 'sync', 'broker/policy', 'broker/ledger',
                    'broker/desk', 'broker/session'],
    'broker/methods': ['base', 'providers', 'sync', 'broker/policy', 'broker/ledger',
                       'broker/desk', 'broker/session', 'broker/gate'],
    'broker/relay': ['base', 'acp', 'providers', 'sync', 'broker/policy', 'broker/toolhost',
                     'broker/config', 'broker/ledger', 'broker/agent', 'broker/desk',
                     'broker/session', 'broker/gate', 'broker/methods'],
    'broker/client': ['base', 'acp'],
    'broker/chat': ['base', 'acp', 'broker/client'],
    'broker/init': ['base', 'broker/chat'],
    'broker/cli': ['base', 'acp', 'providers', 'sync', 'broker/policy', 'broker/toolhost',
                   'broker/config', 'broker/ledger', 'broker/agent', 'broker/desk',
                   'broker/session', 'broker/gate', 'broker/methods', 'broker/relay',
                   'broker/client', 'broker/chat', 'broker/init'],
}
LAYERS['tests'] = list(LAYERS)
TOPS = sorted({folder.partition('/')[0] for folder in LAYERS})

# Only one file of broker/ knows which providers exist. conformance/ does not belong to a provider.
PROVIDER_FOLDERS = re.compile(r'^providers/(?!conformance/)[^/]+/')
KNOWS_PROVIDERS = 'broker/cli/main.c'
# `local` is an ordinary word, and the name of a profile. Daytona's sandboxes are reached by SSH.
NAMES_NO_OTHER = 'providers/local/'
BACKEND = re.compile(r'(?<![a-z0-9])(?:ssh|daytona)(?![a-z0-9])', re.I)

# Only the tables of methods know what the methods of a version of ACP are called: sync, policy and
# the stages depend on what a row says (struct method). The rest of these write names.
KNOW_NO_METHODS = ('desk', 'gate', 'methods', 'policy', 'relay', 'session')
METHOD_NAME = re.compile(r'(?<!\\)"((?:session|fs|terminal|elicitation|\$)/\w*)"')
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)
KNOW_METHODS = {
    'broker/relay/relay_methods.c': 'the table of the editor\'s',
    'broker/relay/relay_agent_methods.c': 'the table of the agent\'s',
    'broker/policy/policy.c': 'for people: the audit file',
    'broker/session/usage.c': 'for people: the counters',
    'broker/session/answer.c': 'written: the end of a turn',
    'broker/session/choices.c': 'written: what tells an agent of a choice',
    'broker/session/question.c': 'written: a question of the broker\'s own',
    'broker/session/session_update.c': 'written: a notice of the broker\'s own',
}

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def folder_of(name):
    """The folder of LAYERS that a file belongs to, or None."""
    parents = [str(parent) for parent in pathlib.PurePath(name).parents]
    return next((parent for parent in parents if parent in LAYERS), None)


def sources():
    for top in TOPS:
        for path in sorted((ROOT / top).rglob('*.[ch]')):
            if 'node_modules' not in path.parts:
                path = path.relative_to(ROOT)
                yield path, folder_of(path)


def includes(path):
    return INCLUDE.findall((ROOT / path).read_text())


def upward():
    """Includes that point up or sideways."""
    for path, folder in sources():
        for name in includes(path):
            target = folder_of(name)
            if folder and target and target != folder and target not in LAYERS[folder]:
                yield f'{path}: {folder}/ may not include "{name}"'


def not_from_root():
    """
    Includes, as seen from the root, of files that do not exist and are not generated from others.
    """
    for path, _ in sources():
        for name in includes(path):
            if not (ROOT / name.removesuffix('.inc')).is_file():
                yield f'{path}: "{name}" is no file below the root'


def homeless():
    """Files in no folder of LAYERS: no rule applies to them."""
    for path, folder in sources():
        if not folder:
            yield f'{path}: is in no folder of LAYERS'


def too_knowing():
    """Files of broker/ that include headers of one provider, or those for implementers."""
    for path, _ in sources():
        if path.parts[0] != 'broker' or str(path) == KNOWS_PROVIDERS:
            continue
        for name in includes(path):
            if PROVIDER_FOLDERS.match(name) or name == 'providers/impl.h':
                yield f'{path}: "{name}" is for providers; use providers/provider.h'


def backends_named():
    """Names of single providers outside their folders and outside the one place that adds them."""
    for path, folder in sources():
        own = PROVIDER_FOLDERS.match(str(path))
        if folder == 'tests' or str(path) == KNOWS_PROVIDERS or own and own[0] != NAMES_NO_OTHER:
            continue
        for name in BACKEND.findall(COMMENT.sub('', (ROOT / path).read_text())):
            yield f'{path}: "{name}": ask the provider (providers/provider.h)'


def methods_named():
    """Names of methods outside the tables; and exceptions that no file needs any more."""
    for path, folder in sources():
        if folder not in [f'broker/{name}' for name in KNOW_NO_METHODS]:
            continue
        names = METHOD_NAME.findall(COMMENT.sub('', (ROOT / path).read_text()))
        if names and str(path) not in KNOW_METHODS:
            yield f'{path}: "{names[0]}": ask the method\'s row instead (broker/session/method.h)'
        elif not names and str(path) in KNOW_METHODS:
            yield f'{path}: names no method; take it out of KNOW_METHODS'


def main():
    passed = failed = 0
    for rule in (homeless, upward, not_from_root, too_knowing, backends_named, methods_named):
        complaints = list(rule())
        for complaint in complaints:
            print(complaint)
        passed += not complaints
        failed += bool(complaints)
    print(f'cases: {passed} passed, {failed} failed, 0 skipped')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()

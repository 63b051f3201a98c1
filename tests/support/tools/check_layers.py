#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Checks that includes point only downwards, and are written from the root."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]

# A folder, and the folders besides itself that it may include.
LAYERS = {
    'base': [],
    'acp': ['base'],
    'providers': ['base'],
    'sync': ['base', 'providers'],
    'broker': ['base', 'acp', 'providers', 'sync'],
    'tests': ['base', 'acp', 'providers', 'sync', 'broker'],
}

# Only one file of broker/ knows which providers there are.
PROVIDER_FOLDERS = re.compile(r'^providers/[^/]+/')
KNOWS_PROVIDERS = 'broker/cli/main.c'

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def sources():
    for folder in LAYERS:
        for path in sorted((ROOT / folder).rglob('*.[ch]')):
            if 'node_modules' not in path.parts:
                yield path.relative_to(ROOT), folder


def includes(path):
    return INCLUDE.findall((ROOT / path).read_text())


def upward():
    """Includes that point up or sideways."""
    for path, folder in sources():
        for name in includes(path):
            target = name.split('/')[0]
            if target in LAYERS and target != folder and target not in LAYERS[folder]:
                yield f'{path}: {folder}/ may not include "{name}"'


def not_from_root():
    """Includes of files that are not there, nor are made of ones that are, from the root."""
    for path, _ in sources():
        for name in includes(path):
            if not (ROOT / name.removesuffix('.inc')).is_file():
                yield f'{path}: "{name}" is no file below the root'


def too_knowing():
    """Files above the provider interface that reach round it to one provider."""
    for path, folder in sources():
        if folder != 'broker' or str(path) == KNOWS_PROVIDERS:
            continue
        for name in includes(path):
            if PROVIDER_FOLDERS.match(name) or name == 'providers/impl.h':
                yield f'{path}: "{name}" is for providers; use providers/provider.h'


def main():
    passed = failed = 0
    for rule in (upward, not_from_root, too_knowing):
        complaints = list(rule())
        for complaint in complaints:
            print(complaint)
        passed += not complaints
        failed += bool(complaints)
    print(f'cases: {passed} passed, {failed} failed, 0 skipped')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()

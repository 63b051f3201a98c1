#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Checks the house rules that neither the compiler nor clang-format knows."""

import pathlib
import re
import subprocess
import sys

from phrases import sentences_compared

ROOT = pathlib.Path(__file__).resolve().parents[3]
PRODUCT = ('base', 'acp', 'providers', 'sync', 'broker')
FOLDERS = (*PRODUCT, 'tests', 'docs')
SUFFIXES = ('.c', '.h', '.py', '.mjs', '.sh')

FILE_LINES, FILE_LINES_MAX = 500, 800
FUNCTION_LINES, FUNCTION_LINES_MAX = 60, 80
COLUMNS_MAX = 100

BANNED = re.compile(r'\b(strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|alloca|gets)\s*\(')
GETENV = re.compile(r'\b(secure_)?getenv\s*\(')
UNFINISHED = re.compile(r'\b(TO' r'DO|FIX' r'ME|X' r'XX|HA' r'CK)\b')
SPDX = 'SPDX-License-Identifier: MIT'
# A snprintf that may cut a text at the end of its array; one that formats only numbers always fits.
UNCHECKED = re.compile(r'(?<=[;{}])\s*(v?snprintf)\((?:[^;"]|"(?:\\.|[^"\\])*")*;')
FORMATS_TEXT = re.compile(r'%[-0-9.*]*s')
FUNCTION_NAME = re.compile(r'([a-z_][a-z0-9_]*)\(')


def tracked():
    """Every source file of ours, including those that are not committed yet."""
    found = [ROOT / name for name in ('dev', '.ci/run') if (ROOT / name).is_file()]
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob('*')):
            if path.suffix in SUFFIXES and 'node_modules' not in path.parts:
                found.append(path)
    return [(path.relative_to(ROOT), path.read_text().splitlines()) for path in found]


def without_text(line):
    """A line of C without its strings and comments."""
    line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
    return re.sub(r'/\*.*?\*/|//.*', '', line)


def licence(files):
    for path, lines in files:
        if not any(SPDX in line for line in lines[:3]):
            yield f'{path}: no line "{SPDX}"'


def file_length(files):
    for path, lines in files:
        if len(lines) > FILE_LINES_MAX:
            yield f'{path}: {len(lines)} lines; more than {FILE_LINES_MAX}'
        elif len(lines) > FILE_LINES:
            print(f'warning: {path}: {len(lines)} lines; the house style asks for {FILE_LINES}')


def functions(lines):
    """(name, line, length) of the functions of a C file, whose braces stand in column 1."""
    start = name = None
    for number, line in enumerate(lines, 1):
        if line == '{' and start is None:
            head = number - 2
            while head > 0 and lines[head].startswith(('\t', ' ')):
                head -= 1
            match = FUNCTION_NAME.search(lines[head])
            start, name = number, match.group(1) if match else '?'
        elif line.startswith('}') and start is not None:
            yield name, start, number - start - 1
            start = None


def function_length(files):
    for path, lines in files:
        if path.suffix != '.c':
            continue
        for name, number, length in functions(lines):
            if length > FUNCTION_LINES_MAX:
                yield (f'{path}:{number}: {name} has {length} lines; '
                       f'more than {FUNCTION_LINES_MAX}')
            elif length > FUNCTION_LINES:
                print(f'warning: {path}:{number}: {name} has {length} lines; '
                      f'the house style asks for {FUNCTION_LINES}')


def banned_functions(files):
    for path, lines in files:
        if path.suffix not in ('.c', '.h'):
            continue
        for number, line in enumerate(lines, 1):
            match = BANNED.search(without_text(line))
            if match:
                yield f'{path}:{number}: {match.group(1)} is banned'


def environment_read_in_main_only(files):
    for path, lines in files:
        if path.parts[0] not in PRODUCT or path.name == 'main.c':
            continue
        for number, line in enumerate(lines, 1):
            if GETENV.search(without_text(line)):
                yield f'{path}:{number}: the environment is read in main alone'


def nothing_unfinished(files):
    for path, lines in files:
        for number, line in enumerate(lines, 1):
            if UNFINISHED.search(line):
                yield f'{path}:{number}: says that something is unfinished'


def line_length(files):
    for path, lines in files:
        for number, line in enumerate(lines, 1):
            if len(line.expandtabs(8)) > COLUMNS_MAX:
                yield f'{path}:{number}: longer than {COLUMNS_MAX} columns'


def white_space(files):
    for path, lines in files:
        for number, line in enumerate(lines, 1):
            if line != line.rstrip():
                yield f'{path}:{number}: white space at the end'


def nothing_cut_silently(files):
    """
    A text for people shows where it was cut; a text that the program uses must be whole
    (base/text.h).
    """
    for path, lines in files:
        if path.parts[0] not in PRODUCT or path.suffix not in ('.c', '.h'):
            continue
        text = re.sub(r'/\*.*?\*/|//[^\n"]*$',
                      lambda comment: '\n' * comment.group().count('\n') + ';',
                      '\n'.join(lines), flags=re.S | re.M)
        for match in UNCHECKED.finditer(text):
            formats = ''.join(re.findall(r'"(?:\\.|[^"\\])*"', match.group()))
            if match.group(1) == 'vsnprintf' or FORMATS_TEXT.search(formats):
                number = text.count('\n', 0, match.start(1)) + 1
                yield (f'{path}:{number}: whoever cuts a text says so: text_format, text_append '
                       'or text_whole of base/text.h')


def one_kind_of_error(files):
    """A failure that a peer is told is a struct error, too (acp/failure.h)."""
    for path, lines in files:
        for number, line in enumerate(lines, 1):
            if path.suffix in ('.c', '.h') and re.search(r'\bstruct failure\b', line):
                yield f'{path}:{number}: struct error has all that is told'


def facts_compared(files):
    """It must be possible to reword a message without changing tests."""
    return sentences_compared(files, PRODUCT)


def formatted(files):
    """clang-format must not want to change anything."""
    paths = [str(path) for path, _ in files if path.suffix in ('.c', '.h')]
    result = subprocess.run(['clang-format', '--dry-run', '-Werror', *paths], cwd=ROOT,
                            capture_output=True, text=True)
    for line in result.stderr.splitlines():
        if 'error:' in line:
            yield line


RULES = (licence, file_length, function_length, banned_functions, environment_read_in_main_only,
         nothing_unfinished, nothing_cut_silently, one_kind_of_error, line_length, white_space,
         facts_compared, formatted)


def main():
    files = tracked()
    passed = failed = 0
    for rule in RULES:
        complaints = list(rule(files))
        for complaint in complaints:
            print(complaint)
        passed += not complaints
        failed += bool(complaints)
    print(f'cases: {passed} passed, {failed} failed, 0 skipped')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()

# SPDX-License-Identifier: MIT
"""
Today's agents: what each needs so that the scripted model can drive it. That is its command and
variables, its modes, and how it writes a file and runs a command. The versions are those of
package.json.
"""

import dataclasses
import json
import pathlib

from model import Step
from pair import NODE

MODULES = pathlib.Path(__file__).resolve().parent / 'node_modules'
URI = 'https://agentclientprotocol.com/protocol/session-modes#'


@dataclasses.dataclass
class Agent:
    """`write` makes the model's step from a path, and `run` from a shell line."""

    name: str       # agentInfo.name
    version: str    # agentInfo.version
    command: list
    variables: object  # a function of the model's URL
    asking: list    # the modes in which it asks; a policy prefers the first
    others: list
    start: str
    write: object
    run: object
    settings: dict = dataclasses.field(default_factory=dict)  # files below HOME, and their text


def node(*words):
    return [str(NODE), str(MODULES / words[0]), *words[1:]]


def codex_variables(url):
    provider = {'name': 'scripted', 'base_url': f'{url}/v1', 'wire_api': 'responses',
                'env_key': 'CODEX_API_KEY'}
    return {'CODEX_API_KEY': 'x', 'NO_BROWSER': '1', 'MODEL_PROVIDER': 'scripted',
            'CODEX_CONFIG': json.dumps({'model': 'gpt-5.5', 'model_provider': 'scripted',
                                        'model_providers': {'scripted': provider}})}


def codex_write(path):
    name = pathlib.Path(path).name
    patch = f'*** Begin Patch\n*** Add File: {name}\n+written\n*** End Patch\n'
    return Step('apply_patch', input=patch)


CODEX = Agent(
    '@agentclientprotocol/codex-acp', '2.6.0',
    node('@agentclientprotocol/codex-acp/dist/index.js'), codex_variables,
    ['read-only'], ['workspace-write', 'agent', 'agent-full-access'], 'agent', codex_write,
    lambda line: Step('exec_command', cmd=line, sandbox_permissions='require_escalated',
                      justification='it writes'))

CLAUDE = Agent(
    '@agentclientprotocol/claude-agent-acp', '0.101.0',
    node('@agentclientprotocol/claude-agent-acp/dist/index.js'),
    lambda url: {'ANTHROPIC_BASE_URL': url, 'ANTHROPIC_API_KEY': 'x', 'DISABLE_AUTOUPDATER': '1',
                 'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC': '1'},
    ['default'], ['plan', 'acceptEdits', 'auto'], 'auto',
    lambda path: Step('Write', file_path=path, content='written\n'),
    lambda line: Step('Bash', command=line, description='runs'))

# With its own model name, the agent does not ask another model which one fits the task.
GEMINI = Agent(
    'gemini-cli', '0.61.0',
    node('@google/gemini-cli/bundle/gemini.js', '--acp', '--model', 'gemini-2.5-pro'),
    lambda url: {'GEMINI_API_KEY': 'x', 'GOOGLE_GEMINI_BASE_URL': url},
    ['default', 'plan'], ['autoEdit', 'yolo'], 'default',
    lambda path: Step('write_file', file_path=path, content='written\n'),
    lambda line: Step('run_shell_command', command=line))

QWEN = Agent(
    'qwen-code', '0.24.4', node('@qwen-code/qwen-code/cli-entry.js', '--acp'),
    lambda url: {'OPENAI_API_KEY': 'x', 'OPENAI_BASE_URL': f'{url}/v1',
                 'OPENAI_MODEL': 'scripted'},
    ['default', 'plan'], ['auto-edit', 'auto', 'yolo'], 'auto',
    lambda path: Step('write_file', file_path=path, content='written\n'),
    lambda line: Step('run_shell_command', command=line, is_background=False),
    # Otherwise the agent would ask a model after each turn to write down what is worth remembering.
    {'.qwen/settings.json': '{"memory": {"enableManagedAutoMemory": false}}'})


def opencode_variables(url, **settings):
    provider = {'npm': '@ai-sdk/openai-compatible', 'name': 'scripted',
                'options': {'baseURL': f'{url}/v1', 'apiKey': 'x'},
                'models': {'scripted': {'name': 'scripted'}}}
    return {'OPENCODE_DISABLE_AUTOUPDATE': '1', 'OPENCODE_DISABLE_MODELS_FETCH': '1',
            'OPENCODE_CONFIG_CONTENT': json.dumps({
                'model': 'scripted/scripted', 'autoupdate': False,
                'provider': {'scripted': provider}, **settings})}


OPENCODE = Agent(
    'OpenCode', '1.18.33', [str(MODULES / 'opencode-linux-x64/bin/opencode'), 'acp'],
    opencode_variables, [], ['build', 'plan'], 'build',
    lambda path: Step('write', filePath=path, content='written\n'),
    lambda line: Step('bash', command=line, description='runs'))

# With a model of the user's, no GitHub account is needed; `copilot help providers` describes it.
# The name of the model decides which tools it is offered.
COPILOT = Agent(
    'Copilot', '1.0.102', node('@github/copilot/npm-loader.js', '--acp'),
    lambda url: {'COPILOT_OFFLINE': 'true', 'COPILOT_AUTO_UPDATE': 'false',
                 'COPILOT_PROVIDER_BASE_URL': f'{url}/v1', 'COPILOT_PROVIDER_API_KEY': 'x',
                 'COPILOT_MODEL': 'claude-sonnet-4.5'},
    [URI + 'agent', URI + 'plan'], [URI + 'autopilot'], URI + 'agent',
    lambda path: Step('create', path=path, file_text='written\n'),
    lambda line: Step('bash', command=line, description='runs'))

"""Shell completion: a script made from the parser, which completes without starting Python.

argcomplete would start the command at every TAB (about a third of a second) and be one more dependency, for
commands, options and paths that are known beforehand.
"""

from __future__ import annotations

import argparse
from typing import Final, NamedTuple

from ckptfmt._cli.arguments import Arguments, make_parser
from ckptfmt._cli.output import Output

_BASH: Final = """\
_ckptfmt() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} command=${{COMP_WORDS[1]}} words= paths=1
    if [ "$COMP_CWORD" -eq 1 ]; then
        words='{commands}' paths=
        case "$word" in -*) words='{options}' ;; esac
    else
        case "$command ${{COMP_WORDS[COMP_CWORD - 1]}} $word" in
{cases}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    if [ -z "$words" ] && [ -n "$paths" ]; then
        local IFS=$'\\n'
        COMPREPLY=($(compgen -f -- "$word"))
        compopt -o filenames 2>/dev/null
    fi
}}
complete -F _ckptfmt ckptfmt
"""
_ZSH: Final = """\
(( $+functions[compdef] )) || {
    autoload -Uz compinit && compinit -i
}
autoload -Uz bashcompinit && bashcompinit
"""


class _Words(NamedTuple):
    """What can follow one command, besides paths and ids: its options, what the options with a choice can be
    (option → choices), and the choices of its own argument."""

    purpose: str
    options: list[str]
    choices: dict[str, list[str]]
    argument: list[str]


def completion(arguments: Arguments, output: Output) -> int:
    """Print the script for one shell."""
    script = {"bash": _bash, "zsh": _zsh, "fish": _fish}[arguments.shell](_commands())
    for line in script.rstrip("\n").split("\n"):
        output.line(line)
    output.result({"shell": arguments.shell, "script": script})
    return 0


def _options() -> list[str]:
    """Those that stand before a command."""
    return [option for action in make_parser()._actions for option in action.option_strings]


def _commands() -> dict[str, _Words]:
    found = {}
    for action in make_parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            purposes = {each.dest: each.help or "" for each in action._choices_actions}
            for name, command in action.choices.items():
                found[name] = _words(purposes[name], command)
    return found


def _words(purpose: str, command: argparse.ArgumentParser) -> _Words:
    words = _Words(purpose, [], {}, [])
    for action in command._actions:
        choices = [] if action.choices is None else [str(choice) for choice in action.choices]
        words.options.extend(action.option_strings)
        if action.option_strings and choices:
            words.choices.update(dict.fromkeys(action.option_strings, choices))
        elif choices:
            words.argument.extend(choices)
    return words


def _bash(commands: dict[str, _Words]) -> str:
    cases = []
    for name, words in commands.items():
        for option, choices in words.choices.items():
            cases.append(f"            '{name} {option} '*) words='{' '.join(choices)}' ;;")
        cases.append(f"            '{name} '*' -'*) words='{' '.join(words.options)}' ;;")
        if words.argument:
            cases.append(f"            '{name} '*) words='{' '.join(words.argument)}' paths= ;;")
    return _BASH.format(commands=" ".join(commands), options=" ".join(_options()), cases="\n".join(cases))


def _zsh(commands: dict[str, _Words]) -> str:
    return _ZSH + _bash(commands)


def _fish(commands: dict[str, _Words]) -> str:
    lines = [f"complete -c ckptfmt -n __fish_use_subcommand {_fish_option(each)}" for each in _options()]
    for name, words in commands.items():
        lines.append(f"complete -c ckptfmt -n __fish_use_subcommand -f -a {name} -d '{words.purpose}'")
        here = f"complete -c ckptfmt -n '__fish_seen_subcommand_from {name}'"
        for option in words.options:
            known = words.choices.get(option)
            values = f" -x -a '{' '.join(known)}'" if known else ""
            lines.append(f"{here} {_fish_option(option)}{values}")
        lines += [f"{here} -f -a {word}" for word in words.argument]
    return "\n".join(lines) + "\n"


def _fish_option(option: str) -> str:
    return f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"

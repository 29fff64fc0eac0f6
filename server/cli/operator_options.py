# SPDX-License-Identifier: Apache-2.0
"""Options for what is done to frames, the same for graphs, tables and diffs, and the parameters of the API they become."""

from collections.abc import Callable, Mapping

import click

from server.profile.packages import Unit
from server.query.operators import Operators

Command = Callable[..., None]

_FRAMES = {
    "focus": "Only stacks with such a frame: =NAME, ~REGEX, or a part of the name; likewise the next three.",
    "ignore": "Only stacks without such a frame.",
    "callers": "Who calls these frames.",
    "callees": "What these frames call.",
}
_FLAGS = {
    "hide_kernel": "Count the kernel's time for who went there.",
    "collapse": "Show a function that calls itself as one frame.",
    "invert": "Leaf first.",
}
UNITS = tuple(str(unit) for unit in Unit)


def with_operators(command: Command) -> Command:
    """Give a click command the options; they arrive as keywords of these names."""
    for name, explanation in reversed(_FLAGS.items()):
        command = click.option(f"--{name.replace('_', '-')}", name, is_flag=True, help=explanation)(command)
    command = click.option("--group", default="", help="A level above the frames: thread, or a label such as host or version.")(command)
    for name, explanation in reversed(_FRAMES.items()):
        command = click.option(f"--{name}", name, default="", help=explanation)(command)
    return command


def operators_of(given: Mapping[str, object], unit: str = "") -> Operators:
    """Make the operators of the options, for what is compared without a server."""
    frames = {name: str(given[name]) for name in _FRAMES}
    return Operators(
        **frames,
        unit=Unit(unit) if unit else Unit.FUNCTION,
        is_without_kernel=bool(given["hide_kernel"]),
        is_collapsed=bool(given["collapse"]),
        is_inverted=bool(given["invert"]),
    )


def operator_parameters(given: Mapping[str, object], unit: str = "") -> dict[str, str]:
    """Make parameters of the options; only of those that were given."""
    chosen = {name: str(given[name]) for name in (*_FRAMES, "group") if given[name]}
    chosen |= {name: "1" for name in _FLAGS if given[name]}
    return chosen | ({"by": unit} if unit else {})

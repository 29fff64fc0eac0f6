# SPDX-License-Identifier: Apache-2.0
"""Every frame operator once, with what it makes of one small service before and after a deploy: the same in the API and the commands."""

from dataclasses import dataclass

from tests.server.query.fakes import START_NS, FakeStore

OLD, NEW = 'cpu{version="1"}', 'cpu{version="2"}'
PARSE, GET, SEND = "json::parse;json::parse;read_[k]", "db::get;json::parse", "send"


@dataclass(frozen=True, slots=True)
class Case:
    """An operator as parameters of the API and as options, and its folded stacks with the counts of both versions."""

    parameters: dict[str, str]
    stacks: dict[str, tuple[int, int]]

    @property
    def options(self) -> list[str]:
        """As the commands take it."""
        named = {name: f"--{name.replace('_', '-')}" for name in self.parameters}
        return [word for name, value in self.parameters.items() for word in ([named[name]] if value == "1" else [named[name], value])]

    @property
    def graph(self) -> str:
        """Folded stacks of both versions together."""
        return "".join(f"{stack} {sum(counts)}\n" for stack, counts in sorted(self.stacks.items()))

    @property
    def diff(self) -> str:
        """Folded stacks with two counts."""
        return "".join(f"{stack} {a} {b}\n" for stack, (a, b) in sorted(self.stacks.items()))


def operator_store() -> FakeStore:
    """Version 1: 7 parse on host a, 5 get on host b. Version 2: 23 parse on host a, and another service sends 2 on host b."""
    store = FakeStore()
    parse, get = ["main", "json::parse", "json::parse", "read_[k]"], ["main", "db::get", "json::parse"]
    store.add([("shop", "a", "w", parse, 7), ("shop", "b", "io", get, 5)], START_NS, "1")
    store.add([("shop", "a", "w", parse, 23), ("mail", "b", "io", ["main", "send"], 2)], START_NS, "2")
    return store


def _under(parse: str, get: str, send: str) -> dict[str, tuple[int, int]]:
    return {f"{parse};main;{PARSE}": (7, 23), f"{get};main;{GET}": (5, 0), f"{send};main;{SEND}": (0, 2)}


CASES = (
    Case({"focus": "get"}, {f"main;{GET}": (5, 0)}),
    Case({"ignore": "~^db::"}, {f"main;{PARSE}": (7, 23), f"main;{SEND}": (0, 2)}),
    Case({"callers": "=json::parse"}, {"json::parse;main": (7, 23), "json::parse;db::get;main": (5, 0)}),
    Case({"callees": "=json::parse"}, {PARSE: (7, 23), "json::parse": (5, 0)}),
    Case({"by": "package"}, {"app;json;kernel_[k]": (7, 23), "app;db;json": (5, 0), "app": (0, 2)}),
    Case({"by": "binary"}, {"app;kernel_[k]": (7, 23), "app": (5, 2)}),
    Case({"hide_kernel": "1"}, {"main;json::parse;json::parse": (7, 23), f"main;{GET}": (5, 0), f"main;{SEND}": (0, 2)}),
    Case({"collapse": "1"}, {"main;json::parse;read_[k]": (7, 23), f"main;{GET}": (5, 0), f"main;{SEND}": (0, 2)}),
    Case(
        {"invert": "1"},
        {"read_[k];json::parse;json::parse;main": (7, 23), "json::parse;db::get;main": (5, 0), "send;main": (0, 2)},
    ),
    Case({"group": "service"}, _under("shop", "shop", "mail")),
    Case({"group": "host"}, _under("a", "b", "b")),
    Case({"group": "zone"}, _under("z-a", "z-b", "z-b")),
    Case({"group": "thread"}, _under("w", "io", "io")),
    Case(
        {"group": "version"},
        {f"1;main;{PARSE}": (7, 0), f"1;main;{GET}": (5, 0), f"2;main;{PARSE}": (0, 23), f"2;main;{SEND}": (0, 2)},
    ),
    Case(
        {"callers": "=json::parse", "group": "host", "collapse": "1"},
        {"a;json::parse;main": (7, 23), "b;json::parse;db::get;main": (5, 0)},
    ),
)

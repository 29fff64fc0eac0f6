# SPDX-License-Identifier: Apache-2.0
"""The rules of the house that a machine can check: layers, borders, sizes, docstrings, names, documented settings."""

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import fields
from fnmatch import fnmatch
from pathlib import Path

import pytest

from agent.config import Settings as AgentSettings
from server.config import Settings as ServerSettings

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("agent", "server")

# What a package may import of its own side; a name stands for the package and all below it.
_AGENT_LOW = {"agent.records", "agent.errors", "agent.jail"}
AGENT_LAYERS = {
    "agent.records": {"agent.records"},
    "agent.kernel": {"agent.kernel", *_AGENT_LOW},
    "agent.profilers": {"agent.profilers", "agent.kernel", *_AGENT_LOW},
    "agent.process": {"agent.process", *_AGENT_LOW},
    "agent.unwind": {"agent.unwind", *_AGENT_LOW},
    "agent.collect": {"agent.collect", *_AGENT_LOW},
    "agent.ship": {"agent.ship", *_AGENT_LOW},
    "agent.errors": set(),
    "agent.jail": set(),
    "agent.clock": {"agent.errors"},
    "agent.config": {"agent.errors"},
    "agent.health": {"agent.config", "agent.__version__", *_AGENT_LOW},
    "agent.runner": {"agent"},
    "agent.cli": {"agent"},
}
SERVER_LAYERS = {
    "server.errors": set(),
    "server.config": {"server.errors"},
    "server.profile": {"server.profile", "server.errors"},
    "server.store": {"server.store", "server.profile", "server.errors"},
    "server.symbols": {"server.symbols", "server.store", "server.profile", "server.errors"},
    "server.auth": {"server.auth", "server.store", "server.errors"},
    "server.query": {"server.query", "server.symbols", "server.store", "server.profile", "server.errors"},
    "server.fleet": {"server.fleet", "server.query", "server.symbols", "server.store", "server.profile", "server.errors"},
    "server.http": {
        "server.http",
        "server.interop",
        *{f"server.{p}" for p in ("fleet", "query", "symbols", "auth", "store", "profile", "errors")},
    },
    "server.ingest": {"server.ingest", *{f"server.{p}" for p in ("fleet", "query", "symbols", "auth", "store", "profile", "errors")}},
    "server.interop": {"server.interop", "server.query", "server.profile", "server.errors"},
    "server.upkeep": {"server.errors"},
    "server.app": {"server"},
    "server.cli": {"server"},
}
# One border module per (package, library).
BORDERS = {
    "bcc": {"agent/kernel/loader_child.py"},
    "grpc": {"agent/ship/client.py", "server/ingest/service.py", "server/app.py"},
    "flask": {"server/http/*"},
    "waitress": {"server/app.py"},
    "elftools": {"server/symbols/elf.py"},
    "sqlalchemy": {"server/store/*", "migrations/*", "migrations/versions/*"},
    "alembic": {"server/store/migrate.py", "migrations/*", "migrations/versions/*"},
    "re2": {"server/query/*"},
    "multi_demangle": {"server/symbols/demangle.py"},
    "prometheus_client": {"server/http/*"},
}
CODE = re.compile(r"\.(py|c|h|js|css|proto|sh)$")


def _tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.splitlines() if (ROOT / name).is_file()]


def _modules(*packages: str) -> list[Path]:
    return [path for path in _tracked() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in packages]


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _is_in(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


@pytest.mark.parametrize("layers", [AGENT_LAYERS, SERVER_LAYERS], ids=PACKAGES)
def test_imports_go_down_only(layers: dict[str, set[str]]) -> None:
    side = next(iter(layers)).partition(".")[0]
    wrong = []
    for path in _modules(side):
        own = _name(path)
        allowed = next((below for package, below in layers.items() if _is_in(own, package)), None)
        if allowed is None:
            assert own == side, f"{own} has no layer"
            continue
        for imported in _imports(path):
            if _is_in(imported, side) and not any(_is_in(imported, low) or _is_in(low, imported) for low in allowed):
                wrong.append(f"{own} imports {imported}")
    assert not wrong


def test_agent_and_server_share_only_the_wire() -> None:
    wrong = [f"{_name(p)} imports {i}" for p in _modules("agent") for i in _imports(p) if _is_in(i, "server")]
    wrong += [f"{_name(p)} imports {i}" for p in _modules("server") for i in _imports(p) if _is_in(i, "agent")]
    wrong += [
        f"{_name(p)} imports {i}" for p in _modules("migrations", "proto") for i in _imports(p) if _is_in(i, "server") or _is_in(i, "agent")
    ]
    assert not wrong


@pytest.mark.parametrize("library", sorted(BORDERS))
def test_each_library_has_its_border(library: str) -> None:
    wrong = []
    for path in _modules(*PACKAGES, "migrations"):
        relative = path.relative_to(ROOT)
        if any(fnmatch(str(relative), border) for border in BORDERS[library]):
            continue
        if any(_is_in(imported, library) for imported in _imports(path)):
            wrong.append(str(relative))
    assert not wrong, f"{library} is imported outside {sorted(BORDERS[library])}"


def test_no_file_is_longer_than_400_lines() -> None:
    long = {
        str(p.relative_to(ROOT)): n
        for p in _tracked()
        if CODE.search(p.name) and "_pb2" not in p.name and (n := len(p.read_text().splitlines())) > 400
    }
    assert not long


def test_every_module_says_what_it_is() -> None:
    silent = [
        str(p.relative_to(ROOT))
        for p in _modules(*PACKAGES, "migrations", "tests", "proto", "bpf", "web")
        if "_pb2" not in p.name and p.read_text().strip() and not ast.get_docstring(ast.parse(p.read_text()))
    ]
    assert not silent


def test_no_module_is_a_drawer_for_odds_and_ends() -> None:
    drawers = {"utils", "util", "helpers", "common", "misc", "base", "manager"}
    assert not [str(p.relative_to(ROOT)) for p in _tracked() if p.stem in drawers]


def test_every_code_file_names_its_licence() -> None:
    files = [p for p in _tracked() if CODE.search(p.name) and "_pb2" not in p.name and p.read_text().strip()]
    assert not [str(p.relative_to(ROOT)) for p in files if "SPDX-License-Identifier:" not in p.read_text()[:300]]
    assert not [p.name for p in files if p.relative_to(ROOT).parts[0] == "bpf" and "GPL-2.0" not in p.read_text()[:300]]


def test_tests_mirror_the_code() -> None:
    stray = []
    for path in _modules("tests"):
        parts = path.relative_to(ROOT / "tests").parts
        if parts[0] in PACKAGES and path.name.startswith("test_"):
            mirrored = ROOT.joinpath(*parts[:-1], path.name.removeprefix("test_"))
            if not mirrored.exists():
                stray.append(str(path.relative_to(ROOT)))
    assert not stray, "each of these tests a file that does not exist"


def test_every_setting_is_documented() -> None:
    readme = (ROOT / "README.md").read_text()
    missing = [row.name for settings in (AgentSettings, ServerSettings) for row in fields(settings) if f"`{row.name}`" not in readme]
    assert not missing


def test_every_message_field_and_rpc_has_a_comment() -> None:
    bare = []
    for path in (ROOT / "proto/emberwatch/v1").glob("*.proto"):
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            declares = re.match(r"\s*(message|enum|service|rpc)\s|\s*(repeated )?[\w.]+ \w+ = \d+;|\s*[A-Z_0-9]+ = \d+;", line)
            if declares and not lines[number - 1].strip().startswith("//"):
                bare.append(f"{path.name}:{number + 1}")
    assert not bare


def test_the_page_never_makes_markup_from_values() -> None:
    forbidden = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(")
    assert not [str(p.relative_to(ROOT)) for p in _tracked() if p.suffix == ".js" and "web" in p.parts and forbidden.search(p.read_text())]


def test_bpf_sources_hold_no_forbidden_construct() -> None:
    """BPF_STACK_TRACE drops on collision; LRU maps evict counters in batches; kprobes on scheduler and locks can hang a host."""
    forbidden = re.compile(r"BPF_STACK_TRACE|lru_hash|LRU|kprobe__|KPROBE")
    assert not [p.name for p in (ROOT / "bpf").rglob("*.[ch]") if forbidden.search(p.read_text())]


def test_no_kprobe_is_ever_attached() -> None:
    """Tracepoints and uprobes only: a kprobe needs a symbol whose name compilers change (.isra.0, .cold: A7), and can hang a host (A20)."""
    forbidden = re.compile(r"attach_kprobe|attach_kretprobe|kprobe_events|BPF_PROG_TYPE_KPROBE")
    assert not [str(p.relative_to(ROOT)) for p in _modules(*PACKAGES, "bpf") if forbidden.search(p.read_text())]


def test_files_of_others_are_never_mapped_into_the_agent() -> None:
    """A file that is cut while it is mapped ends the process with SIGBUS; BPF maps are the kernel's memory, not files, and a file of our
    own without a name is cut by nobody."""
    mapping = [str(p.relative_to(ROOT)) for p in _modules("agent") if any(_is_in(imported, "mmap") for imported in _imports(p))]
    assert set(mapping) <= {"agent/kernel/ring.py", "agent/kernel/unwind_maps.py", "agent/kernel/symbol_table.py"}


def test_no_child_imports_from_the_folder_it_was_started_in() -> None:
    """`python -m` puts the working directory first on the path: a folder "agent" in it would be run, as root. -P or -I keep it out."""
    unsafe = re.compile(r"sys\.executable, \"-(?![PI]\")")
    assert not [str(p.relative_to(ROOT)) for p in _modules(*PACKAGES) if unsafe.search(p.read_text())]


def test_a_todo_carries_its_issue() -> None:
    bare = [
        f"{p.relative_to(ROOT)}:{n}"
        for p in _tracked()
        if CODE.search(p.name) and p != Path(__file__).resolve()
        for n, line in enumerate(p.read_text().splitlines(), 1)
        if re.search(r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\))", line)
    ]
    assert not bare

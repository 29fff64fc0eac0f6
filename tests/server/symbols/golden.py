# SPDX-License-Identifier: Apache-2.0
"""A corpus of programs built in many ways, and what another tool says of their addresses.

The other tools are llvm-symbolizer where it is installed, else binutils' addr2line. Names are compared as they are shown, aliases of
one symbol being one function; lines exactly, files where there is a line. addr2line calls the innermost of several frames by the
name of the symbol there: that counts as the same.
"""

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from server.symbols.demangle import shown_names
from server.symbols.resolve import Placed
from server.symbols.table import Table
from server.symbols.unfold import unfold
from tests.server.symbols.programs import run_tool

Frame = tuple[str, str, int]
"""(linkage name, base name of the file, line); "" and 0 for what is not known."""

_PARTS = re.compile(r"(\.(cold|localalias|(part|isra|constprop|lto_priv|cold)\.\d+))+$")

C_SOURCE = """
#include <stdio.h>
#include <stdlib.h>
static inline __attribute__((always_inline)) int deepest(int x) {
  if (x % 7 == 3)
    printf("%d", x);
  return x * 23;
}
static inline __attribute__((always_inline)) int middle(int x) { return deepest(x + 1) + deepest(x * 3); }
static int __attribute__((noinline)) once(int x) {
  int sum = 0;
  for (int i = 0; i < x; i++)
    sum += middle(i) ^ x;
  return sum;
}
int __attribute__((noinline)) twice(int x) { return once(x) + middle(x); }
static int recursive(int x) { return x < 2 ? x : recursive(x - 1) + middle(x - 2); }
int unused(int x) { return recursive(x) * 7; }
int main(int count, char **words) {
  (void)words;
  if (count > 23)
    abort();
  return twice(count) + recursive(count) == 7;
}
"""

CPP_SOURCE = """
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
namespace shop {
struct Item {
  std::string name;
  int price;
  Item(const char *n, int p) : name(n), price(p) {}
  virtual ~Item() {}
  virtual int total(int count) const { return price * count; }
};
struct Reduced : Item {
  using Item::Item;
  int total(int count) const override { return Item::total(count) - 1; }
};
template <typename T> T sum(const std::vector<T> &values) {
  T all{};
  for (const T &value : values)
    all += value;
  return all;
}
int __attribute__((noinline)) parse(const char *text) {
  if (!text[0])
    throw std::runtime_error("nothing to parse");
  return text[0] - '0';
}
}
static int apply(int (*f)(int), int x) { return f(x); }
int main(int count, char **words) {
  std::map<std::string, int> seen;
  std::vector<int> prices;
  shop::Reduced item("tea", count);
  for (int i = 0; i < count; i++) {
    seen[words[i]] += item.total(i);
    prices.push_back(apply([](int x) { return x * x + 1; }, i));
  }
  try {
    return shop::parse(words[0]) + shop::sum(prices) + (int)seen.size();
  } catch (const std::exception &error) {
    return (int)std::string(error.what()).size();
  }
}
"""


@dataclass(frozen=True, slots=True)
class Functions:
    """Functions by readelf: names by start, and their ranges."""

    names: dict[int, set[str]]
    ranges: list[tuple[int, int]]

    def at(self, address: int) -> set[str]:
        """All names of what holds an address."""
        return {name for start, end in self.ranges if start <= address < end for name in self.names[start]}


def functions(path: Path) -> Functions:
    """Sized functions of the symbol table."""
    names: dict[int, set[str]] = {}
    ranges = set()
    for line in run_tool("readelf", "-sW", path).splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[3] in ("FUNC", "IFUNC") and fields[6].isdigit() and int(fields[2], 0):
            start = int(fields[1], 16)
            names.setdefault(start, set()).add(fields[7].partition("@")[0])
            ranges.add((start, start + int(fields[2], 0)))
    return Functions(names, sorted(ranges))


def sampled(found: Functions, most: int = 1500) -> list[int]:
    """Addresses of every function: its first byte and steps of a prime through the rest."""
    addresses = {address for start, end in found.ranges for address in range(start, end, 7)}
    ordered = sorted(addresses)
    starts = [start for start, _ in found.ranges]
    return sorted({*starts, *ordered[:: max(1, len(ordered) // most)]})


def by_addr2line(path: Path, addresses: Sequence[int]) -> list[list[Frame]]:
    """Chains as addr2line -i -f gives them, innermost first."""
    text = "\n".join(hex(address) for address in addresses)
    done = subprocess.run(["addr2line", "-a", "-i", "-f", "-e", path], input=text, capture_output=True, text=True, check=True)
    return chains_of(done.stdout)


def chains_of(printed: str) -> list[list[Frame]]:
    """Chains out of what addr2line -a -i -f prints, innermost first."""
    chains: list[list[str]] = []
    for line in printed.splitlines():
        if re.fullmatch(r"0x[0-9a-f]{16}", line):
            chains.append([])
        else:
            chains[-1].append(line)
    return [[_frame(name, place) for name, place in zip(chain[0::2], chain[1::2], strict=True)] for chain in chains]


def by_llvm(path: Path, addresses: Sequence[int]) -> list[list[Frame]]:
    """Chains as llvm-symbolizer gives them, innermost first."""
    command = ["llvm-symbolizer", "--functions=linkage", "--no-demangle", "--inlines", f"--obj={path}"]
    text = "".join(f"{address:#x}\n" for address in addresses)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    chains = [block.splitlines() for block in done.stdout.strip("\n").split("\n\n")]
    return [[_frame(name, place.rpartition(":")[0]) for name, place in zip(chain[0::2], chain[1::2], strict=True)] for chain in chains]


def by_table(table: Table, addresses: Sequence[int]) -> list[list[Frame]]:
    """Chains as ours, innermost first."""
    where = np.array(addresses, np.uint64)
    symbols = table.find(where)
    places = np.full(where.size, -1) if table.inlines is None else table.inlines.find(where)
    parts = unfold(Placed(where, symbols, places), table)
    chains: list[list[Frame]] = [[] for _ in addresses]
    for frame, symbol, name, file, line in zip(
        *(column.tolist() for column in (parts.frames, parts.symbols, parts.names, parts.files, parts.lines)), strict=True
    ):
        raw = table.raw_names(np.array([symbol]))[0] if symbol >= 0 else _text(table, name)
        chains[frame].insert(0, (raw.decode(), PurePosixPath(_text(table, file).decode()).name, line))
    return chains


def differences(known: Functions, addresses: Sequence[int], ours: list[list[Frame]], theirs: list[list[Frame]]) -> list[str]:
    """Where the two say different things, in words."""
    found = []
    for address, mine, other in zip(addresses, ours, theirs, strict=True):
        aliases = known.at(address)
        same = [_alike(aliases, a, b, is_innermost=i == 0 < len(mine) - 1) for i, (a, b) in enumerate(zip(mine, other, strict=False))]
        if len(mine) != len(other) or not all(same):
            found.append(f"{address:#x}: {mine} is not {other}")
    return found


def _alike(aliases: set[str], mine: Frame, other: Frame, *, is_innermost: bool) -> bool:
    names = {base_name(mine[0]), base_name(other[0])}
    if len(names) > 1:
        names = {shown.name for shown in shown_names(sorted(names))}
    is_one = len(names) == 1 or names <= {shown.name for shown in shown_names(sorted({base_name(name) for name in aliases}))}
    is_place = mine[2] == other[2] and (mine[1] == other[1] or not mine[2])
    return is_place and (is_one or (is_innermost and other[0] in aliases))


def base_name(name: str) -> str:
    """Without what compilers add to the name of a part of a function."""
    return _PARTS.sub("", name.partition("@")[0])


def _text(table: Table, number: int) -> bytes:
    return table.inlines.text(number) if table.inlines is not None else b""


def _frame(name: str, place: str) -> Frame:
    path, _, line = place.partition(" (discriminator")[0].rpartition(":")
    return name, "" if path == "??" else PurePosixPath(path).name, int(line) if line.isdigit() else 0

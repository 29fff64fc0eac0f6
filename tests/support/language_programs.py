# SPDX-License-Identifier: Apache-2.0
"""Programs of several languages and compilers that work for ever, with what makes their stacks hard: callbacks through libraries,
exceptions, threads, code made at run time between native code."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.unwind_programs import build

_CPP = r"""
#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
static volatile unsigned long sink;
struct Shape { virtual ~Shape() {} virtual unsigned long area(int n) = 0; };
struct Square : Shape {
	unsigned long area(int n) override { std::string s; for (int i = 0; i < n; i++) s += std::to_string(i); return s.size(); }
};
static int thrower(int n) { if (n % 20 == 7) throw std::runtime_error(std::string(n % 50, 'x')); return n; }
static int catcher(int n) { try { return thrower(n); } catch (const std::exception &e) { sink += e.what()[0]; return 1; } }
static void work()
{
	std::map<int, std::vector<int>> all;
	std::function<bool(int, int)> less = [](int a, int b) { sink += a; return a < b; };
	for (int i = 0; i < 200; i++) {
		std::vector<int> v(100);
		for (int j = 0; j < 100; j++) v[j] = (i * 7919 + j * 104729) % 1009;
		std::sort(v.begin(), v.end(), less);
		all[v[50]].swap(v);
		sink += catcher(i);
	}
	Square square;
	Shape *shape = &square;
	sink += shape->area(500);
}
int main() { std::thread other([] { for (;;) work(); }); for (;;) work(); }
"""
_RUST = r"""
use std::collections::HashMap;
fn fold(n: u64) -> u64 { (0..n).map(|x| x.wrapping_mul(x ^ 7)).filter(|x| x % 3 != 1).fold(0, |a, b| a.wrapping_add(b)) }
fn work(n: usize) -> u64 {
    let mut words: Vec<String> = (0..n).map(|i| format!("{:x}", i.wrapping_mul(2654435761))).collect();
    words.sort_by(|a, b| b.chars().rev().cmp(a.chars().rev()));
    let mut seen = HashMap::new();
    for word in &words { *seen.entry(word.len()).or_insert(0u64) += fold(word.len() as u64 * 50); }
    let caught = std::panic::catch_unwind(|| if n % 2 == 0 { fold(200) } else { 1 }).unwrap_or(0);
    seen.values().sum::<u64>() + caught
}
fn main() {
    let other = std::thread::spawn(|| { let mut sum = 0u64; loop { sum = sum.wrapping_add(work(501)); if sum == 23 { println!("x") } } });
    let mut sum = 0u64;
    loop { sum = sum.wrapping_add(work(700)); if sum == 7 { break } }
    let _ = other.join();
}
"""
_GO = r"""
package main

import (
	"encoding/json"
	"sort"
	"strings"
)

type item struct {
	Name string
	Size int
}

func work(n int) int {
	items := make([]item, n)
	for i := range items {
		items[i] = item{strings.Repeat("x", i%17), i * 7919 % 1009}
	}
	sort.Slice(items, func(a, b int) bool { return items[a].Size < items[b].Size })
	text, _ := json.Marshal(items)
	var back []item
	_ = json.Unmarshal(text, &back)
	return len(back)
}

func main() {
	sums := make(chan int)
	for i := 0; i < 3; i++ {
		go func() {
			for {
				sums <- work(500)
			}
		}()
	}
	for {
		<-sums
	}
}
"""
_JAVA = r"""
import java.util.*;
public class Load {
	static int work(int n) {
		List<String> words = new ArrayList<>();
		for (int i = 0; i < n; i++) words.add(Integer.toHexString(i * 0x9E3779B1));
		words.sort((a, b) -> new StringBuilder(a).reverse().toString().compareTo(new StringBuilder(b).reverse().toString()));
		Map<Integer, Integer> seen = new TreeMap<>();
		for (String word : words) seen.merge(word.hashCode() % 97, 1, Integer::sum);
		return seen.size();
	}
	public static void main(String[] arguments) {
		long sum = 0;
		while (sum >= 0) sum += work(3000);
	}
}
"""
_NODE = r"""
function work(n) {
	const words = Array.from({ length: n }, (_, i) => ((i * 2654435761) >>> 0).toString(16));
	words.sort((a, b) => (a.split('').reverse().join('') < b.split('').reverse().join('') ? -1 : 1));
	return JSON.parse(JSON.stringify({ words, deep: words.map((word) => word.replace(/[0-7]+/g, 'x')) })).deep.length;
}
for (let sum = 0; sum >= 0; ) sum += work(2000);
"""
_FLAGS = ("-O2", "-fomit-frame-pointer", "-pthread")


@dataclass(frozen=True, slots=True)
class LanguageProgram:
    """A program, and how to have it; `command` begins with what must be installed."""

    needs: str
    """The command that makes or runs it."""
    source: tuple[str, str] = ("", "")
    """Name of the file, and what is in it."""
    build: tuple[str, ...] = ()
    """Run in the folder of the source; none when it is run as it is."""
    command: tuple[str, ...] = ()

    @property
    def is_there(self) -> bool:
        """Whether what it needs is installed."""
        return shutil.which(self.needs) is not None or (Path(sys.executable).parent / self.needs).exists()

    def ready(self, folder: Path) -> list[str]:
        """Build it in a folder; the command to run there."""
        name, text = self.source
        if name:
            (folder / name).write_text(text)
        if self.build:
            subprocess.run([_found(self.build[0]), *self.build[1:]], cwd=folder, check=True, capture_output=True)
        first = self.command[0]
        return [str(folder / first[2:]) if first.startswith("./") else _found(first), *self.command[1:]]


CPP = LanguageProgram("g++", ("load.cc", _CPP), ("g++", *_FLAGS, "-o", "cpp", "load.cc"), ("./cpp",))
CLANG_CPP = LanguageProgram("clang++", ("load.cc", _CPP), ("clang++", *_FLAGS, "-o", "cpp_clang", "load.cc"), ("./cpp_clang",))
RUST = LanguageProgram("rustc", ("load.rs", _RUST), ("rustc", "-O", "-o", "rust", "load.rs"), ("./rust",))
GO = LanguageProgram("go", ("load.go", _GO), ("go", "build", "-o", "go_load", "load.go"), ("./go_load",))
JAVA = LanguageProgram("javac", ("Load.java", _JAVA), ("javac", "Load.java"), ("java", "-XX:+PreserveFramePointer", "-cp", ".", "Load"))
NODE = LanguageProgram("node", ("load.js", _NODE), (), ("node", "load.js"))


def compile_loop(folder: Path) -> list[str]:
    """g++ that compiles the C++ program again and again."""
    (folder / "load.cc").write_text(_CPP)
    return ["sh", "-c", "while :; do g++ -O2 -o compiled load.cc -pthread; done"]


def compiler(folder: Path, functions: int = 3000) -> list[str]:
    """g++'s own compiler in one process, with work for minutes: it optimises little before it has read all of these functions."""
    source, ready = folder / "many.cc", folder / "many.ii"
    body = "std::vector<int> v(a); for (int &x : v) x = a % {0}; std::sort(v.begin(), v.end(), [](int x, int y) {{ return x % {0} < y; }});"
    lines = [f"int f{number}(int a) {{{body.format(number + 2)} return v[a / 2]; }}" for number in range(functions)]
    source.write_text("\n".join(["#include <algorithm>", "#include <vector>", *lines]))
    subprocess.run(["g++", "-E", "-o", ready, source], check=True)
    program = subprocess.run(["g++", "-print-prog-name=cc1plus"], check=True, capture_output=True, text=True).stdout.strip()
    return [program, "-fpreprocessed", "-quiet", "-O2", "-o", "/dev/null", str(ready)]


def modes_by(folder: Path, compiler: str, *flags: str) -> Path:
    """The C program of unwind_programs by another compiler."""
    return build(folder, f"modes_{compiler}", *flags, compiler=compiler)


def _found(name: str) -> str:
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name) or name

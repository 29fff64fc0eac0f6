# SPDX-License-Identifier: Apache-2.0
"""Names as people read them: the golden table. What c++filt 2.40 prints is the measure; where `multi-demangle` differs and the
difference was kept or mended, a comment says so."""

from pathlib import Path

import pytest

from server.profile.names import CodeKind
from server.symbols.demangle import MAX_MANGLED_CHARS, MAX_SHOWN_BYTES, bounded, shown_names
from tests.server.symbols.programs import addresses_by_nm, compile_program

GOLDEN = [
    ("_Z4execIPFvvEEvT_", "void exec<void (*)()>(void (*)())", CodeKind.CPP),
    ("_ZZ3lamvENKUliE_clEi", "lam()::{lambda(int)#1}::operator()(int) const", CodeKind.CPP),
    ("_ZZ3lamvENK3$_0clEi", "lam()::$_0::operator()(int) const", CodeKind.CPP),
    ("_ZN12_GLOBAL__N_11AlsEi", "(anonymous namespace)::A::operator<<(int)", CodeKind.CPP),
    ("_ZNK12_GLOBAL__N_11AltERKS0_", "(anonymous namespace)::A::operator<((anonymous namespace)::A const&) const", CodeKind.CPP),
    ("_ZNK12_GLOBAL__N_11AcvbEv", "(anonymous namespace)::A::operator bool() const", CodeKind.CPP),
    # Mended: the library prints `operator_kb::operator ""(unsigned long long)`.
    ("_Zli3_kby", 'operator"" _kb(unsigned long long)', CodeKind.CPP),
    # Mended: the library prints `(unsigned long)6` for `6ul`.
    (
        "_Z6taggedIXtl12fixed_stringILm6EEtlA6_cLc97ELc59ELc98ELc32ELc99EEEEEii",
        "int tagged<fixed_string<6ul>{char [6]{(char)97, (char)59, (char)98, (char)32, (char)99}}>(int)",
        CodeKind.CPP,
    ),
    ("_Z3fooILln1EEvv", "void foo<-1l>()", CodeKind.CPP),
    # Mended: the library prints `{virtual override thunk({offset(-16)}, abc::f())}`.
    ("_ZThn16_N3abc1fEv", "non-virtual thunk to abc::f()", CodeKind.CPP),
    ("_ZTv0_n24_N3abc1fEv", "virtual thunk to abc::f()", CodeKind.CPP),
    ("_ZTch0_h16_NK3abc5cloneEv", "covariant return thunk to abc::clone() const", CodeKind.CPP),
    # Rust: both manglings give the same name. c++filt prints `[u64; 3: usize]`, llvm-cxxfilt leaves the legacy one half mangled.
    ("_RNvXCsgDUSTfVqwcj_3arrAyj3_NtB2_1T2go", "<[u64; 3] as arr::T>::go", CodeKind.RUST),
    ("_ZN51_$LT$$u5b$u64$u3b$$u20$3$u5d$$u20$as$u20$arr..T$GT$2go17h1e0d38716e93536eE", "<[u64; 3] as arr::T>::go", CodeKind.RUST),
    ("_RNvCs1_1ru7n_nga1b", "r::ünï", CodeKind.RUST),
    ("_ZN3std2io5error5Error3new17hbb46546882ad6265E", "std::io::error::Error::new", CodeKind.RUST),
    ("_ZN3std2io5error5Error3new17hbb46546882ad6265E.llvm.99", "std::io::error::Error::new", CodeKind.RUST),
    # The library, left to guess, takes this for Rust and prints `_GLOBAL__N_1::single_thread`.
    ("_ZN12_GLOBAL__N_113single_threadE", "(anonymous namespace)::single_thread", CodeKind.CPP),
    ("main", "main", CodeKind.NATIVE),
    ("_Z", "_Z", CodeKind.CPP),
    ("_R", "_R", CodeKind.NATIVE),
    ("", "", CodeKind.NATIVE),
]
GO_NAMES = [
    "net/http.(*liveSwitchReader).Read",
    "example.com/pkg.(*Cache[go.shape.string]).Get",
    "example.com/pkg.Pair[go.shape.int,go.shape.struct { a int; b string }].Swap[...]",
    "main.main.func1",
    "type:.eq.main.T",
    "main.part.1",
    "main·init",
]


@pytest.mark.parametrize(("raw", "shown", "code"), GOLDEN, ids=[row[0] or "empty" for row in GOLDEN])
def test_golden_names(raw: str, shown: str, code: CodeKind) -> None:
    [answer] = shown_names([raw])
    assert (answer.name, answer.code) == (shown, code)


def test_go_names_are_left_as_they_are() -> None:
    answers = shown_names(GO_NAMES, is_go=True)
    assert [a.name for a in answers] == GO_NAMES
    assert {a.code for a in answers if "." in a.name} == {CodeKind.GO}


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("_Z5parsePKc.cold", "parse(char const*)"),
        ("parse.cold.7", "parse"),
        ("part.constprop.0", "part"),
        ("foo.llvm.1234", "foo"),
        ("foo.constprop.0.isra.0", "foo"),
        ("foo.isra.0.constprop.1.cold", "foo"),
        ("foo.part.23", "foo"),
        ("foo.__uniq.123456.llvm.99", "foo"),
        ("_ZN3foo3barEv.isra.0.constprop.1", "foo::bar()"),
        ("finish_task_switch.isra.0", "finish_task_switch"),
        ("memcpy@@GLIBC_2.14", "memcpy"),
        ("memcpy@GLIBC_2.2.5", "memcpy"),
        ("memcpy@plt", "memcpy@plt"),
        ("_ZN3foo3barEv@plt", "foo::bar()@plt"),
        (".cold", ".cold"),
        ("@plt", "@plt"),
        ("foo.coldness", "foo.coldness"),
        ("foo.7", "foo.7"),
    ],
)
def test_compiler_suffixes_and_versions_are_cut_for_display(raw: str, shown: str) -> None:
    assert shown_names([raw])[0].name == shown


def test_names_of_several_languages_keep_their_order() -> None:
    raws = ["_RNvCs1_1ru7n_nga1b", "main", "_Z4execIPFvvEEvT_", "_ZN3std2io5error5Error3new17hbb46546882ad6265E", "main"]
    assert [s.name for s in shown_names(raws)] == [
        "r::ünï",
        "main",
        "void exec<void (*)()>(void (*)())",
        "std::io::error::Error::new",
        "main",
    ]


def test_long_names_are_cut_and_stay_different() -> None:
    whole, long_one, long_two = "x" * MAX_SHOWN_BYTES, "x" * MAX_SHOWN_BYTES + "1", "x" * MAX_SHOWN_BYTES + "2"
    assert bounded(whole) == whole
    assert bounded(long_one) != bounded(long_two)
    for name in (long_one, "ü" * MAX_SHOWN_BYTES):
        assert len(bounded(name).encode()) <= MAX_SHOWN_BYTES
        assert "…#" in bounded(name)


def test_a_mangled_name_over_the_limit_is_shown_as_it_is() -> None:
    name = "_Z" + "1a" * MAX_MANGLED_CHARS
    assert shown_names([name])[0].name.startswith("_Z1a1a")


def test_a_rust_program_of_this_machine(tmp_path: Path) -> None:
    source = """
    pub trait T { fn go(&self) -> u64; }
    impl T for [u64; 3] { #[inline(never)] fn go(&self) -> u64 { std::hint::black_box(self[0] * 7) } }
    fn main() { println!("{}", [1u64, 2, 3].go()); }
    """
    program = compile_program(source, tmp_path / "arr", "-O", "-Csymbol-mangling-version=v0", compiler="rustc", suffix=".rs")
    raws = [name for name in addresses_by_nm(program) if "arr" in name and name.endswith("2go")]
    assert [(s.name, s.code) for s in shown_names(raws)] == [("<[u64; 3] as arr::T>::go", CodeKind.RUST)]


def test_names_that_unfold_without_end_are_bounded() -> None:
    """Each level of this Rust name holds the one before twice; of this C++ name likewise."""
    rust, place = "INvC1a1bTjjE", 8  # The tuple (usize, usize) stands at byte 8 behind "_R".
    for _ in range(40):
        rust, place = f"{rust}TB{_base_62(place)}B{_base_62(place)}E", len(rust)
    cpp = "_Z1f1A" + "".join(f"F{s}{s}E" for s in ["S_", *[f"S{d}_" for d in "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"]])
    for shown in shown_names(["_R" + rust + "E", cpp]):
        assert len(shown.name.encode()) <= MAX_SHOWN_BYTES
    assert shown_names(["_R" + rust + "E"])[0].name.startswith("a::b::<(usize, usize), ((usize, usize), (usize, usize)), ")


def _base_62(number: int) -> str:
    """A back reference's number (RFC 2603): "_" is 0, else one less than the number in base 62."""
    digits, number = "", number - 1
    while number >= 0:
        digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[number % 62] + digits
        number = number // 62 or -1
    return digits + "_"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("$s4main3fooyyF", "main.foo() -> ()"),
        ("_$s4main3fooyyF", "main.foo() -> ()"),
        ("_D3std5stdio7writelnFZv", "std.stdio.writeln()"),
        ("_DYNAMIC", "_DYNAMIC"),
        ("$d.12", "$d.12"),
        ("_D3", "_D3"),
    ],
)
def test_names_of_swift_and_d(raw: str, shown: str) -> None:
    assert shown_names([raw])[0].name == shown


HOSTILE = {
    "nested names": "_Z" + "N" * 4000,
    "templates": "_ZN" + "1aI" * 1300 + "E" * 1300,
    "pointers": "_Z1f" + "P" * 4000 + "i",
    "functions": "_Z1f" + "FvFv" * 1000 + "E" * 2000,
    "packs": "_Z1fI" + "J" * 2000 + "E",
    "literals": "_Z1fIXtl" + "tl" * 2000 + "EEE",
    "rust crates": "_RNv" + "C" * 4000,
    "rust back references": "_R" + "NvB_" * 1000,
    "swift": "$s" + "4main" * 1000,
    "d": "_D" + "4main" * 1000,
    "doubling": "_Z1fSt4pairIiiE" + "".join(f"St4pairIS{n}_S{n}_E" for n in ["", *"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"]),
    "suffixes": "f" + ".isra.0" * 2000,
    "versions": "f" + "@@A" * 2000,
    "thunks": "_ZThn16_" * 500 + "f",
}


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names_come_to_an_end(raw: str) -> None:
    """C44: names that double at every step, nest 4,000 deep, or send back to themselves."""
    (shown,) = shown_names([raw])
    assert 0 < len(shown.name.encode()) <= 4096

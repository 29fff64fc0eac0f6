# SPDX-License-Identifier: Apache-2.0
# Everything is installed when it is missing and left alone when it is there.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEBIAN_BCC := /usr/lib/python3/dist-packages/bcc
APT := DEBIAN_FRONTEND=noninteractive apt-get

.PHONY: up test bench fuzz kernels proto lint clean

up: $(VENV)/installed
	@exec $(BIN)/emberwatch up

# Two processes: one takes the tests that need the kernel or a whole server to themselves, the other all the rest (tests/conftest.py).
# Compiled modules are kept, for hundreds of children import the same ones.
test: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/test-installed
	$(BIN)/ruff check -q .
	$(BIN)/ruff format --check -q .
	$(BIN)/mypy agent server proto/emberwatch/v1/columns.py proto/emberwatch/v1/unwind_table.py migrations
	$(BIN)/python -m pytest -q -n 2

bench: $(VENV)/bench-installed
	$(BIN)/python -m tests.bench

# Two versions of a service on this machine, live: some minutes, ends by itself.
soak: $(VENV)/test-installed
	$(BIN)/python -m pytest -q -p no:cacheprovider -o faulthandler_timeout=3600 tests/soak/live_deploy.py

# Damaged input for everything that reads files of others, 100,000 mutations in about a quarter of an hour. MUTATIONS=1000 for fewer.
fuzz: $(VENV)/test-installed
	$(BIN)/python -m tests.fuzz $(MUTATIONS)

# Debian's kernels under emulation, each with the tests of the BPF programs. KERNELS="6.1" for some.
kernels: $(VENV)/kernels-installed
	$(BIN)/python -m tests.kernels $(KERNELS)

# BCC is Debian's package: PyPI's "bcc" is another project. The environment sees only that one folder of the system's packages.
$(VENV)/installed: pyproject.toml
	@test -d $(DEBIAN_BCC) && $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  command -v apt-get >/dev/null || { echo "install python3-bpfcc and python3-venv, then run make again" >&2; exit 1; }; \
	  echo "install      python3-bpfcc python3-venv"; \
	  $(APT) update -qq && $(APT) install -y -qq --no-install-recommends python3-bpfcc python3-venv >/dev/null; }
	@echo "install      environment in $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e .
	@mkdir -p $(VENV)/bcc && ln -sfn $(DEBIAN_BCC) $(VENV)/bcc/bcc
	@echo "$(CURDIR)/$(VENV)/bcc" > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/emberwatch-bcc.pth"
	@touch $@

# What the tests build and look with, beside what the program needs. The compilers build the programs whose names,
# inlined calls and lines are compared with what llvm-symbolizer and addr2line say.
TEST_TOOLS := clang++:clang llvm-symbolizer:llvm ld.lld:lld rustc:rustc gcc:gcc g++:g++ ld:binutils chromium:chromium node:nodejs npm:npm clang-format:clang-format git:git openssl:openssl xz:xz-utils perl:perl debuginfod:debuginfod dwz:dwz
$(VENV)/test-installed: $(VENV)/installed Makefile
	@missing=; for pair in $(TEST_TOOLS); do command -v $${pair%%:*} >/dev/null || missing="$$missing $${pair##*:}"; done; \
	  test -e /usr/include/stdlib.h || missing="$$missing libc6-dev"; \
	  if [ -n "$$missing" ]; then echo "install     $$missing"; \
	    $(APT) update -qq && $(APT) install -y -qq --no-install-recommends $$missing >/dev/null; fi
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[test]'
	@npm install --silent --no-audit --no-fund --prefix $(VENV)/node typescript@5
	@touch $@

# Compilers and runtimes whose stacks are walked; Go's comes from PyPI.
BENCH_TOOLS := perf:linux-perf bpftrace:bpftrace musl-gcc:musl-tools javac:default-jdk-headless llvm-gsymutil-19:llvm-19
$(VENV)/bench-installed: $(VENV)/test-installed Makefile
	@missing=; for pair in $(BENCH_TOOLS); do command -v $${pair%%:*} >/dev/null || missing="$$missing $${pair##*:}"; done; \
	  test -e /usr/share/perl5/Devel/NYTProf/flamegraph.pl || missing="$$missing libdevel-nytprof-perl"; \
	  if [ -n "$$missing" ]; then echo "install     $$missing"; $(APT) update -qq && $(APT) install -y -qq --no-install-recommends $$missing >/dev/null; fi
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[bench]'
	@test -d $(VENV)/bench-names || { echo "install     librados2-dbg, unpacked in $(VENV)/bench-names"; mkdir -p $(VENV)/bench-names.new && \
	  cd $(VENV)/bench-names.new && apt-get download -qq librados2-dbg 2>/dev/null && dpkg-deb -x librados2-dbg_*.deb . && rm -f *.deb && \
	  cd $(CURDIR) && mv $(VENV)/bench-names.new $(VENV)/bench-names; }
	@npm install --silent --no-audit --no-fund --prefix $(VENV)/node d3-flame-graph@4 d3@7 speedscope
	@touch $@

$(VENV)/kernels-installed: $(VENV)/test-installed tests/kernels/install_qemu.sh
	@busybox --list 2>/dev/null | grep -qx insmod && ! ldd "$$(command -v busybox)" >/dev/null 2>&1 || { echo "install      busybox-static"; \
	  $(APT) update -qq && $(APT) install -y -qq --no-install-recommends busybox-static >/dev/null; }
	@sh tests/kernels/install_qemu.sh $(VENV)/kernels-apt
	@touch $@

# Code made from proto/: run after a change of a .proto file.
proto: $(VENV)/test-installed
	$(BIN)/python -m grpc_tools.protoc -Iproto --python_out=proto --pyi_out=proto proto/emberwatch/v1/*.proto
	$(BIN)/python -m grpc_tools.protoc -Iproto --grpc_python_out=proto proto/emberwatch/v1/collector.proto proto/emberwatch/v1/symbols.proto

clean:
	rm -rf $(VENV) build *.egg-info

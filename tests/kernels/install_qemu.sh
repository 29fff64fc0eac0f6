#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs QEMU; where the distribution's own is too old (tests/kernels/guest.py), that of its backports. The lists of packages for that go
# to the folder $1: those of the system stay as they are.
set -eu
export DEBIAN_FRONTEND=noninteractive
folder=$(realpath -m "$1")
fail() {
	echo "$1" >&2
	exit 1
}
is_new() { [ "$(qemu-system-x86_64 --version 2>/dev/null | sed -n 's/.* version \([0-9]*\).*/\1/p')" -ge 10 ] 2>/dev/null; }
repository() { apt-get indextargets --format '$(REPO_URI)' "Codename: $VERSION_CODENAME" 'Component: main' | head -1; }

is_new && exit 0
command -v apt-get >/dev/null || fail "install QEMU 10 or newer (qemu-system-x86_64), then run make again"
. /etc/os-release
[ -n "$(repository)" ] || apt-get update -qq
if ! command -v qemu-system-x86_64 >/dev/null; then
	echo "install      qemu-system-x86"
	apt-get update -qq
	apt-get install -y -qq --no-install-recommends qemu-system-x86 >/dev/null
	is_new && exit 0
fi
echo "install      qemu-system-x86 of $VERSION_CODENAME-backports"
mkdir -p "$folder/lists/partial"  # apt clears what it does not know out of its lists
printf 'deb %s %s main\n' "$(repository)" "$VERSION_CODENAME" "$(repository)" "$VERSION_CODENAME-backports" >"$folder/sources.list"
set -- -qq -o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$folder/lists"
apt-get "$@" update
apt-get "$@" install -y --no-install-recommends -t "$VERSION_CODENAME-backports" qemu-system-x86 >/dev/null
is_new || fail "the newest QEMU that $VERSION_CODENAME offers is too old: install QEMU 10 or newer, then run make again"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs QEMU; where the distribution's own is too old (tests/kernels/guest.py), that of its backports. The lists of packages for that go
# to the folder $1: those of the system stay as they are.
set -eu
export DEBIAN_FRONTEND=noninteractive
lists=$1
is_new() { [ "$(qemu-system-x86_64 --version | sed -n 's/.* version \([0-9]*\).*/\1/p')" -ge 10 ]; }

if ! command -v qemu-system-x86_64 >/dev/null; then
	apt-get update -qq
	apt-get install -y -qq --no-install-recommends qemu-system-x86 >/dev/null
fi
if is_new; then
	exit 0
fi
. /etc/os-release
from=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $VERSION_CODENAME" 'Component: main' | head -1)
echo "install      qemu-system-x86 of $VERSION_CODENAME-backports"
mkdir -p "$lists/partial"
printf 'deb %s %s main\n' "$from" "$VERSION_CODENAME" "$from" "$VERSION_CODENAME-backports" >"$lists/sources.list"
set -- -qq -o "Dir::Etc::sourcelist=$lists/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$lists"
apt-get "$@" update
apt-get "$@" install -y --no-install-recommends -t "$VERSION_CODENAME-backports" qemu-system-x86 >/dev/null

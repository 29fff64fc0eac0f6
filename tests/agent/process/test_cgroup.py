# SPDX-License-Identifier: Apache-2.0
"""Tests of the names that cgroup paths hold; paths as the tools named in each case make them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.process.cgroup import CgroupNames, cpu_cgroup, parse_cgroup

ID = b"3f" * 32
SHORT = b"3f3f3f3f3f3f"
POD = b"kubepods-burstable-pod6a1f0ab2_0c67_4a7e_a1a5_7f1e5a1d3c11.slice"


@pytest.mark.parametrize(
    ("raw", "container", "unit"),
    [
        (b"0::/system.slice/docker-" + ID + b".scope\n", SHORT, b""),  # docker, v2, systemd driver
        (b"12:memory:/docker/" + ID + b"\n1:name=systemd:/docker/" + ID + b"\n0::/\n", SHORT, b""),  # docker, v1
        (b"0::/system.slice/docker.service/docker/" + ID + b"\n", SHORT, b"docker"),
        (b"0::/kubepods.slice/" + POD + b"/cri-containerd-" + ID + b".scope\n", SHORT, b""),  # containerd
        (b"0::/kubepods.slice/" + POD + b"/crio-" + ID + b".scope/container\n", SHORT, b""),  # CRI-O
        (b"5:cpu:/kubepods/besteffort/pod6a1f0ab2-0c67-4a7e-a1a5-7f1e5a1d3c11/" + ID + b"\n", SHORT, b""),  # cgroupfs driver
        (b"0::/machine.slice/libpod-" + ID + b".scope\n", SHORT, b""),  # podman, root
        (b"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + ID + b".scope/container\n", SHORT, b""),  # rootless
        (b"0::/machine.slice/libpod-conmon-" + ID + b".scope\n", b"", b""),  # the monitor beside it
        (b"0::/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" + ID + b"\n", SHORT, b"containerd"),
        (b"0::/../../docker-" + ID + b".scope\n", SHORT, b""),  # seen from another cgroup namespace
        (b"0::/lxc.payload.web1/system.slice/nginx.service\n", b"web1", b"nginx"),
        (b"4:cpu:/lxc/web1/x\n", b"web1", b""),
        (b"0::/machine.slice/machine-my\\x2dvm.scope/payload\n", b"my-vm", b""),
        (b"0::/system.slice/ssh.service\n", b"", b"ssh"),
        (b"0::/system.slice/system-getty.slice/getty@tty1.service\n", b"", b"getty"),
        (b"0::/system.slice/my\\x2dapp.service\n", b"", b"my-app"),
        (b"0::/user.slice/user-1000.slice/user@1000.service/app.slice/sync.service\n", b"", b"sync"),
        (b"0::/user.slice/user-1000.slice/session-3.scope\n", b"", b""),
        (b"0::/init.scope\n", b"", b""),
        (b"1:name=systemd:/system.slice/cron.service\n4:memory:/\n", b"", b"cron"),
        (b"8:memory:/process_api/7610cbd6e48e951164d8ec95dbf13a67\n", b"", b""),  # 32 hex digits are no container id
        (b"", b"", b""),
    ],
)
def test_names_by_path(raw: bytes, container: bytes, unit: bytes) -> None:
    assert parse_cgroup(raw) == CgroupNames(container, unit)


@given(st.binary(max_size=300))
def test_no_bytes_raise(raw: bytes) -> None:
    parse_cgroup(raw)
    parse_cgroup(b"0::/" + raw)


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b"0::/system.slice/ssh.service\n", (False, b"/system.slice/ssh.service")),
        (b"4:cpuset:/a\n3:cpu,cpuacct:/docker/b\n0::/c\n", (True, b"/docker/b")),
        (b"1:cpu:/d:e\n0::/\n", (True, b"/d:e")),
        (b"4:cpuset:/a\n", (False, b"/")),
        (b"", (False, b"/")),
    ],
)
def test_the_cgroup_that_limits_cpu_is_that_of_its_hierarchy(raw: bytes, found: tuple[bool, bytes]) -> None:
    assert cpu_cgroup(raw) == found

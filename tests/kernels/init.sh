#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# First program of a guest. Its root is the host's, read only, under a layer of memory; what it leaves in /run/out the host reads.
# What it has to say begins with "guest:". Whatever happens it switches off.
bb=/bin/busybox

say() { echo "guest: $*"; }
off() {
	say "end $1"
	$bb sync
	$bb poweroff -f
}
give_up() {
	say "cannot $*"
	off 125
}

$bb mount -t proc proc /proc
$bb mount -t sysfs sys /sys
$bb mount -t devtmpfs dev /dev
for module in /modules/*.ko; do
	[ -e "$module" ] && { $bb insmod "$module" || give_up "load $module"; }
done

shared=trans=virtio,version=9p2000.L,msize=512000
$bb mount -t 9p -o "$shared,ro,cache=loose" root /lower || give_up "mount the host's root"
$bb mount -t tmpfs upper /upper
$bb mkdir /upper/files /upper/work
$bb mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work root /root || give_up "mount the layer"

for place in proc sys dev; do
	$bb mkdir -p "/root/$place"
	$bb mount --move "/$place" "/root/$place"
done
$bb mkdir -p /root/run /root/dev/shm /root/dev/pts
$bb mount -t tmpfs run /root/run
$bb mount -t tmpfs shm /root/dev/shm
$bb mount -t devpts pts /root/dev/pts
$bb mount -t tracefs tracefs /root/sys/kernel/tracing
$bb mount -t bpf bpf /root/sys/fs/bpf
$bb mount -t cgroup2 cgroup2 /root/sys/fs/cgroup
$bb cp -r /modules /root/run/modules
$bb mkdir /root/run/out
$bb mount -t 9p -o "$shared,cache=none" out /root/run/out || give_up "mount the way out"
$bb ifconfig lo 127.0.0.1 up

read -r up_s _ </root/proc/uptime
say "ready after $up_s s"
$bb env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
	$bb chroot /root /bin/sh /run/out/run.sh
off $?

# SPDX-License-Identifier: Apache-2.0
"""Names of system calls by their numbers, and of the errors they return. The numbers are part of the kernel's interface and never change.

Source: arch/x86/entry/syscalls/syscall_64.tbl and syscall_32.tbl. Calls newer than the tables are shown by number.
"""

import errno
from functools import lru_cache

# Each line: the number of the first name; the others follow it one by one.
_X86_64 = """
0 read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn ioctl pread64
18 pwrite64 readv writev access pipe select sched_yield mremap msync mincore madvise shmget shmat shmctl dup dup2 pause nanosleep
36 getitimer alarm setitimer getpid sendfile socket connect accept sendto recvfrom sendmsg recvmsg shutdown bind listen getsockname
52 getpeername socketpair setsockopt getsockopt clone fork vfork execve exit wait4 kill uname semget semop semctl shmdt msgget
69 msgsnd msgrcv msgctl fcntl flock fsync fdatasync truncate ftruncate getdents getcwd chdir fchdir rename mkdir rmdir creat link
87 unlink symlink readlink chmod fchmod chown fchown lchown umask gettimeofday getrlimit getrusage sysinfo times ptrace getuid
103 syslog getgid setuid setgid geteuid getegid setpgid getppid getpgrp setsid setreuid setregid getgroups setgroups setresuid
118 getresuid setresgid getresgid getpgid setfsuid setfsgid getsid capget capset rt_sigpending rt_sigtimedwait rt_sigqueueinfo
130 rt_sigsuspend sigaltstack utime mknod uselib personality ustat statfs fstatfs sysfs getpriority setpriority sched_setparam
143 sched_getparam sched_setscheduler sched_getscheduler sched_get_priority_max sched_get_priority_min sched_rr_get_interval mlock
150 munlock mlockall munlockall vhangup modify_ldt pivot_root _sysctl prctl arch_prctl adjtimex setrlimit chroot sync acct
164 settimeofday mount umount2 swapon swapoff reboot sethostname setdomainname iopl ioperm create_module init_module delete_module
177 get_kernel_syms query_module quotactl nfsservctl getpmsg putpmsg afs_syscall tuxcall security gettid readahead setxattr
189 lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr tkill
201 time futex sched_setaffinity sched_getaffinity set_thread_area io_setup io_destroy io_getevents io_submit io_cancel
211 get_thread_area lookup_dcookie epoll_create epoll_ctl_old epoll_wait_old remap_file_pages getdents64 set_tid_address
219 restart_syscall semtimedop fadvise64 timer_create timer_settime timer_gettime timer_getoverrun timer_delete clock_settime
228 clock_gettime clock_getres clock_nanosleep exit_group epoll_wait epoll_ctl tgkill utimes vserver mbind set_mempolicy
239 get_mempolicy mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr kexec_load waitid add_key request_key
250 keyctl ioprio_set ioprio_get inotify_init inotify_add_watch inotify_rm_watch migrate_pages openat mkdirat mknodat fchownat
261 futimesat newfstatat unlinkat renameat linkat symlinkat readlinkat fchmodat faccessat pselect6 ppoll unshare set_robust_list
274 get_robust_list splice tee sync_file_range vmsplice move_pages utimensat epoll_pwait signalfd timerfd_create eventfd fallocate
286 timerfd_settime timerfd_gettime accept4 signalfd4 eventfd2 epoll_create1 dup3 pipe2 inotify_init1 preadv pwritev
297 rt_tgsigqueueinfo perf_event_open recvmmsg fanotify_init fanotify_mark prlimit64 name_to_handle_at open_by_handle_at
305 clock_adjtime syncfs sendmmsg setns getcpu process_vm_readv process_vm_writev kcmp finit_module sched_setattr sched_getattr
316 renameat2 seccomp getrandom memfd_create kexec_file_load bpf execveat userfaultfd membarrier mlock2 copy_file_range preadv2
328 pwritev2 pkey_mprotect pkey_alloc pkey_free statx io_pgetevents rseq uretprobe
424 pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree move_mount fsopen fsconfig fsmount fspick pidfd_open
435 clone3 close_range openat2 pidfd_getfd faccessat2 process_madvise epoll_pwait2 mount_setattr quotactl_fd landlock_create_ruleset
445 landlock_add_rule landlock_restrict_self memfd_secret process_mrelease futex_waitv set_mempolicy_home_node cachestat fchmodat2
453 map_shadow_stack futex_wake futex_wait futex_requeue statmount listmount lsm_get_self_attr lsm_set_self_attr lsm_list_modules
462 mseal setxattrat getxattrat listxattrat removexattrat open_tree_attr file_getattr file_setattr
"""
_I386 = """
0 restart_syscall exit fork read write open close waitpid creat link unlink execve chdir time mknod chmod lchown break oldstat lseek
20 getpid mount umount setuid getuid stime ptrace alarm oldfstat pause utime stty gtty access nice ftime sync kill rename mkdir
40 rmdir dup pipe times prof brk setgid getgid signal geteuid getegid acct umount2 lock ioctl fcntl mpx setpgid ulimit oldolduname
60 umask chroot ustat dup2 getppid getpgrp setsid sigaction sgetmask ssetmask setreuid setregid sigsuspend sigpending sethostname
75 setrlimit getrlimit getrusage gettimeofday settimeofday getgroups setgroups select symlink oldlstat readlink uselib swapon reboot
89 readdir mmap munmap truncate ftruncate fchmod fchown getpriority setpriority profil statfs fstatfs ioperm socketcall syslog
104 setitimer getitimer stat lstat fstat olduname iopl vhangup idle vm86old wait4 swapoff sysinfo ipc fsync sigreturn clone
121 setdomainname uname modify_ldt adjtimex mprotect sigprocmask create_module init_module delete_module get_kernel_syms quotactl
132 getpgid fchdir bdflush sysfs personality afs_syscall setfsuid setfsgid _llseek getdents _newselect flock msync readv writev
147 getsid fdatasync _sysctl mlock munlock mlockall munlockall sched_setparam sched_getparam sched_setscheduler sched_getscheduler
158 sched_yield sched_get_priority_max sched_get_priority_min sched_rr_get_interval nanosleep mremap setresuid getresuid vm86
167 query_module poll nfsservctl setresgid getresgid prctl rt_sigreturn rt_sigaction rt_sigprocmask rt_sigpending rt_sigtimedwait
178 rt_sigqueueinfo rt_sigsuspend pread64 pwrite64 chown getcwd capget capset sigaltstack sendfile getpmsg putpmsg vfork ugetrlimit
192 mmap2 truncate64 ftruncate64 stat64 lstat64 fstat64 lchown32 getuid32 getgid32 geteuid32 getegid32 setreuid32 setregid32
205 getgroups32 setgroups32 fchown32 setresuid32 getresuid32 setresgid32 getresgid32 chown32 setuid32 setgid32 setfsuid32 setfsgid32
217 pivot_root mincore madvise getdents64 fcntl64
224 gettid readahead setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr
236 lremovexattr fremovexattr tkill sendfile64 futex sched_setaffinity sched_getaffinity set_thread_area get_thread_area io_setup
246 io_destroy io_getevents io_submit io_cancel fadvise64
252 exit_group lookup_dcookie epoll_create epoll_ctl epoll_wait remap_file_pages set_tid_address timer_create timer_settime
261 timer_gettime timer_getoverrun timer_delete clock_settime clock_gettime clock_getres clock_nanosleep statfs64 fstatfs64 tgkill
271 utimes fadvise64_64 vserver mbind get_mempolicy set_mempolicy mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify
282 mq_getsetattr kexec_load waitid
286 add_key request_key keyctl ioprio_set ioprio_get inotify_init inotify_add_watch inotify_rm_watch migrate_pages openat mkdirat
297 mknodat fchownat futimesat fstatat64 unlinkat renameat linkat symlinkat readlinkat fchmodat faccessat pselect6 ppoll unshare
311 set_robust_list get_robust_list splice sync_file_range tee vmsplice move_pages getcpu epoll_pwait utimensat signalfd
322 timerfd_create eventfd fallocate timerfd_settime timerfd_gettime signalfd4 eventfd2 epoll_create1 dup3 pipe2 inotify_init1
333 preadv pwritev rt_tgsigqueueinfo perf_event_open recvmmsg fanotify_init fanotify_mark prlimit64 name_to_handle_at
342 open_by_handle_at clock_adjtime syncfs sendmmsg setns process_vm_readv process_vm_writev kcmp finit_module sched_setattr
352 sched_getattr renameat2 seccomp getrandom memfd_create bpf execveat socket socketpair bind connect listen accept4 getsockopt
366 setsockopt getsockname getpeername sendto sendmsg recvfrom recvmsg shutdown userfaultfd membarrier mlock2 copy_file_range
378 preadv2 pwritev2 pkey_mprotect pkey_alloc pkey_free statx arch_prctl io_pgetevents rseq
393 semget semctl shmget shmctl shmat shmdt msgget msgsnd msgrcv msgctl clock_gettime64 clock_settime64 clock_adjtime64
406 clock_getres_time64 clock_nanosleep_time64 timer_gettime64 timer_settime64 timerfd_gettime64 timerfd_settime64 utimensat_time64
413 pselect6_time64 ppoll_time64
416 io_pgetevents_time64 recvmmsg_time64 mq_timedsend_time64 mq_timedreceive_time64 semtimedop_time64 rt_sigtimedwait_time64
422 futex_time64 sched_rr_get_interval_time64 pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree move_mount
430 fsopen fsconfig fsmount fspick pidfd_open clone3 close_range openat2 pidfd_getfd faccessat2 process_madvise epoll_pwait2
442 mount_setattr quotactl_fd landlock_create_ruleset landlock_add_rule landlock_restrict_self memfd_secret process_mrelease
449 futex_waitv set_mempolicy_home_node cachestat fchmodat2 map_shadow_stack futex_wake futex_wait futex_requeue statmount listmount
459 lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal setxattrat getxattrat listxattrat removexattrat open_tree_attr
468 file_getattr file_setattr
"""

NUMBER_MASK = 0x7FFF
COMPAT = 0x8000
ERROR_SHIFT = 16
"""struct call_key in bpf/syscall.bpf.c: error << 16 | COMPAT | number."""
UNKNOWN_NUMBER = NUMBER_MASK
"""-1 cut to its bits: the registers name no call any more, as after a return from a signal whose start was not seen."""

_INTERNAL_ERRORS = {
    512: "ERESTARTSYS",
    513: "ERESTARTNOINTR",
    514: "ERESTARTNOHAND",
    515: "ENOIOCTLCMD",
    516: "ERESTART_RESTARTBLOCK",
    517: "EPROBE_DEFER",
    529: "EIOCBQUEUED",
}
"""A call that a signal interrupts returns one of these; the kernel then starts it again or makes it EINTR. include/linux/errno.h."""

WAITING_CALLS = frozenset(
    b"accept accept4 clock_nanosleep clock_nanosleep_time64 epoll_pwait epoll_pwait2 epoll_wait futex futex_time64 futex_wait futex_waitv "
    b"io_getevents io_pgetevents io_uring_enter nanosleep pause poll ppoll ppoll_time64 pselect6 pselect6_time64 restart_syscall "
    b"rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 select _newselect sigsuspend wait4 waitid waitpid".split()
)
"""Calls that wait for something to happen: their time says nothing of the kernel's work."""


def _parsed(table: str) -> dict[int, bytes]:
    names: dict[int, bytes] = {}
    for line in table.split("\n"):
        first, *rest = line.split() or ["0"]
        names.update((int(first) + place, name.encode()) for place, name in enumerate(rest))
    return names


@lru_cache(maxsize=1)
def _tables() -> tuple[dict[int, bytes], dict[int, bytes]]:
    return _parsed(_X86_64), _parsed(_I386)


def call_name(call: int) -> bytes:
    """The name of a call, after the table of its caller's kind; `syscall_N` for one that is not in it."""
    number = call & NUMBER_MASK
    if number == UNKNOWN_NUMBER:
        return b"unknown"
    return _tables()[1 if call & COMPAT else 0].get(number) or b"syscall_%d" % number


def object_name(call: int) -> bytes:
    """`name`, or `name:ERROR` for a call that failed."""
    error = call >> ERROR_SHIFT
    if not error:
        return call_name(call)
    text = errno.errorcode.get(error) or _INTERNAL_ERRORS.get(error) or str(error)
    return call_name(call) + b":" + text.encode()


def waiting_calls() -> list[int]:
    """The calls of WAITING_CALLS, of both kinds, as numbers with COMPAT."""
    wide, compat = _tables()
    found = [number for number, name in wide.items() if name in WAITING_CALLS]
    return found + [number | COMPAT for number, name in compat.items() if name in WAITING_CALLS]

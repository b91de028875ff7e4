"""The seccomp filter: it refuses system calls that no program under test needs.

It refuses sockets other than connected pairs (network namespaces do not cover vsock and netlink), new namespaces and
mounts, tracing and reading other processes, changing the limits of others and any priority, memory and messages that
outlive a process or escape its limits, memory of the kernel without a bound (queues of inotify, file locks, sockets
that wait to be accepted, ...), and rarely used parts of the kernel (bpf, io_uring, perf, userfaultfd, keys, ...).
The Debian package `libseccomp2` compiles it for the machine's architecture, whichever that is.
"""

from __future__ import annotations

import ctypes
import errno
import socket
import tempfile

from envs.coding.sandbox.types import SandboxError

ALLOW = 0x7FFF0000
NOT_EQUAL, MASKED_EQUAL = 1, 7
"""scmp_compare: SCMP_CMP_NE, SCMP_CMP_MASKED_EQ."""

REFUSED = {
    "other processes": "ptrace process_vm_readv process_vm_writev process_madvise kcmp pidfd_getfd ioprio_set",
    # Time in which a program waits for a CPU does not count, so no program may choose to wait.
    "priorities": "nice setpriority sched_setscheduler sched_setparam sched_setattr",
    "mounts": "mount umount umount2 pivot_root chroot move_mount open_tree fsopen fsconfig fsmount fspick "
    "mount_setattr",
    "namespaces": "unshare setns",
    "what outlives a process": "memfd_create memfd_secret shmget semget msgget mq_open add_key request_key keyctl "
    "setxattr lsetxattr fsetxattr setxattrat file_setattr",
    "memory that nobody counts": "inotify_init inotify_init1 vmsplice io_setup socket bind listen seccomp "
    "landlock_create_ruleset landlock_add_rule",
    "rare doors": "bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register fanotify_init "
    "modify_ldt name_to_handle_at open_by_handle_at move_pages migrate_pages mbind set_mempolicy personality",
    "root's": "kexec_load kexec_file_load init_module finit_module delete_module reboot swapon swapoff acct quotactl "
    "quotactl_fd syslog sethostname setdomainname settimeofday clock_settime adjtimex clock_adjtime iopl ioperm "
    "vhangup",
    "old": "lookup_dcookie nfsservctl _sysctl uselib ustat sysfs",
}
OTHERS_ONLY = ("prlimit64", "sched_setaffinity")
"""Allowed on the caller itself: the first argument must be 0."""
NAMESPACES = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x00000080)
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET, NEWTIME."""
REFUSED_WITH = {
    "fcntl": (1, (6, 7, 37, 38, 1024, 1026, 1031, 1036, 1038)),
    "setsockopt": (2, (7, 8, 32, 33)),
    "prctl": (0, (22, 62, 78)),
    "ioctl": (1, (0x5412, 0x541C, 0x40086602, 0x40046602, 0x401C5820)),
}
"""Refused with these values at this place. fcntl: F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW, F_SETLEASE, F_NOTIFY,
F_SETPIPE_SZ, and F_SET_RW_HINT and F_SET_FILE_RW_HINT, which stay on a folder. setsockopt: SO_SNDBUF, SO_RCVBUF, and
both by force. prctl: PR_SET_SECCOMP, PR_SCHED_CORE, PR_FUTEX_HASH, whose table may be gigabytes. ioctl: TIOCSTI and
TIOCLINUX, input to a terminal; FS_IOC_SETFLAGS, FS_IOC32_SETFLAGS and FS_IOC_FSSETXATTR, flags that stay on a
folder."""
INT = 0xFFFFFFFF
"""The bits of an argument that is an int."""
SHARED_ANONYMOUS = 0x21
"""MAP_SHARED and MAP_ANONYMOUS: memory that stays when no process has it in its page tables."""
SOCKET_TYPE = 0xF


class Comparison(ctypes.Structure):
    """struct scmp_arg_cmp."""

    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("datum_a", ctypes.c_uint64),
        ("datum_b", ctypes.c_uint64),
    )


class _Builder:
    """A filter under construction in libseccomp."""

    def __init__(self) -> None:
        self.lib = _library()
        self.context = ctypes.c_void_p(self.lib.seccomp_init(ctypes.c_uint32(ALLOW)))

    def refuse(self, name: str, *comparisons: Comparison, error: int = errno.EPERM) -> None:
        """Answer a system call with an error where all comparisons hold; with 0, as if it were done.

        Unknown names are skipped.
        """
        number = self.lib.seccomp_syscall_resolve_name(name.encode())
        if number < 0:
            return
        action = ctypes.c_uint32(0x00050000 | error)
        held = (Comparison * len(comparisons))(*comparisons)
        if self.lib.seccomp_rule_add_array(self.context, action, number, len(comparisons), held):
            raise SandboxError(f"libseccomp refuses the rule for {name}")

    def export(self) -> bytes:
        """The program, as struct sock_filter[]."""
        with tempfile.TemporaryFile() as file:
            if self.lib.seccomp_export_bpf(self.context, file.fileno()):
                raise SandboxError("libseccomp cannot export the filter")
            self.lib.seccomp_release(self.context)
            file.seek(0)
            return file.read()


def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError as error:
        raise SandboxError("libseccomp.so.2 is missing (Debian: apt install libseccomp2)") from error
    library.seccomp_init.restype = ctypes.c_void_p
    return library


def compile_filter() -> bytes:
    """The filter for this machine. Raises `SandboxError` where libseccomp is missing."""
    builder = _Builder()
    for name in " ".join(REFUSED.values()).split():
        builder.refuse(name)
    for name in OTHERS_ONLY:
        builder.refuse(name, Comparison(0, NOT_EQUAL, 0))
    # Who gives up its turn again and again hardly runs beside others, and that wait would not count either.
    builder.refuse("sched_yield", error=0)
    builder.refuse("socketpair", Comparison(0, NOT_EQUAL, socket.AF_UNIX))
    # The queue of a datagram socket outlives its many senders.
    for kind in {*range(SOCKET_TYPE + 1)} - {socket.SOCK_STREAM}:
        builder.refuse("socketpair", Comparison(1, MASKED_EQUAL, SOCKET_TYPE, kind))
    builder.refuse("mmap", Comparison(3, MASKED_EQUAL, SHARED_ANONYMOUS, SHARED_ANONYMOUS))
    for name, (place, values) in REFUSED_WITH.items():
        for value in values:
            builder.refuse(name, Comparison(place, MASKED_EQUAL, INT, value))
    for flag in NAMESPACES:
        builder.refuse("clone", Comparison(0, MASKED_EQUAL, flag, flag))
    # A filter cannot read its flags, which are in memory; the C library falls back to clone.
    builder.refuse("clone3", error=errno.ENOSYS)
    return builder.export()

package box

import "golang.org/x/sys/unix"

const nativeArch = unix.AUDIT_ARCH_X86_64

// foreign is where the numbers of the x32 ABI begin.
var foreign = []uint32{0x40000000}

// The calls that newer architectures lack.
var (
	legacyOpen = []argument{{unix.SYS_OPEN, 1}}
	legacyMode = []argument{{unix.SYS_CHMOD, 1}, {unix.SYS_CREAT, 1}, {unix.SYS_MKNOD, 1}}

	legacyAttributes = []uint32{
		unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT,
	}
)

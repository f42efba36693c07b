package box

import "golang.org/x/sys/unix"

const nativeArch = unix.AUDIT_ARCH_X86_64

// foreign is where the numbers of the x32 ABI begin.
var foreign = []uint32{0x40000000}

// The calls that newer architectures lack.
var (
	legacyOpen = []uint32{unix.SYS_OPEN}
	legacyMode = []uint32{unix.SYS_CHMOD, unix.SYS_CREAT, unix.SYS_MKNOD}

	legacyAttributes = []uint32{
		unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT,
	}
)

package sandbox

import "golang.org/x/sys/unix"

const nativeArch = unix.AUDIT_ARCH_X86_64

// foreign is where the numbers of the x32 ABI begin.
var foreign = []uint32{0x40000000}

// legacyOpen are the calls that newer architectures lack.
var legacyOpen = []uint32{unix.SYS_OPEN}

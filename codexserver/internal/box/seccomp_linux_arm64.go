package box

import "golang.org/x/sys/unix"

const nativeArch = unix.AUDIT_ARCH_AARCH64

var (
	foreign                                  []uint32
	legacyOpen, legacyMode, legacyAttributes []uint32
)

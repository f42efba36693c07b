#include "textflag.h"

// func vfork() (pid, errno uintptr)
//
// The child returns first, on the stack of the parent, which waits in the call. The address to which the parent returns is in
// a register.
TEXT ·vfork(SB),NOSPLIT|NOFRAME,$0-16
	MOVD	$0x4111, R0 // CLONE_VM|CLONE_VFORK|SIGCHLD
	MOVD	ZR, R1
	MOVD	ZR, R2
	MOVD	ZR, R3
	MOVD	ZR, R4
	MOVD	$220, R8 // clone
	SVC
	CMN	$4095, R0
	BCS	failed
	MOVD	R0, pid+0(FP)
	MOVD	ZR, errno+8(FP)
	RET
failed:
	NEG	R0, R0
	MOVD	ZR, pid+0(FP)
	MOVD	R0, errno+8(FP)
	RET

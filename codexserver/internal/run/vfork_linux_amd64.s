#include "textflag.h"

// func vfork() (pid, errno uintptr)
//
// The child returns first, on the stack of the parent, which waits in the call. So the address to which the parent returns
// must not be on it.
TEXT ·vfork(SB),NOSPLIT|NOFRAME,$0-16
	MOVQ	$0x4111, DI // CLONE_VM|CLONE_VFORK|SIGCHLD
	XORL	SI, SI
	XORL	DX, DX
	XORL	R10, R10
	XORL	R8, R8
	MOVQ	$56, AX // clone
	POPQ	R12
	SYSCALL
	PUSHQ	R12
	CMPQ	AX, $-4095
	JCC	failed
	MOVQ	AX, pid+0(FP)
	MOVQ	$0, errno+8(FP)
	RET
failed:
	NEGQ	AX
	MOVQ	$0, pid+0(FP)
	MOVQ	AX, errno+8(FP)
	RET

package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// pin moves all threads of a process to a core, or lets them run on any. Those that they start
// later inherit it.
func pin(pid, core int) {
	var mask [16]uint64
	for i := range mask {
		switch {
		case core == anyCore:
			mask[i] = ^uint64(0)
		case core/64 == i:
			mask[i] = 1 << (core % 64)
		}
	}
	for _, f := range must(os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))) {
		tid := must(strconv.Atoi(f.Name()))
		// A thread that has ended meanwhile needs none.
		_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, uintptr(tid), unsafe.Sizeof(mask),
			uintptr(unsafe.Pointer(&mask)))
	}
}

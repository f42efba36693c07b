//go:build amd64 || arm64

package run

// vfork makes a child that has the memory of this process, which waits until the child executes a program or ends. The child
// must not return from the function that calls vfork. In the child the id is 0. A fork would copy the tables of all memory,
// which costs more than the rest of a command's start.
//
//go:noescape
func vfork() (pid, errno uintptr)

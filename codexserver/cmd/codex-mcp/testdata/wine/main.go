//go:build windows

// Command child prints its words as Go writes them. As child live FILE it makes the file, and lives for ten minutes; as
// child leave FILE it starts such a copy, outside of its job if it may, and without its console.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

func main() {
	switch os.Args[1] {
	case "live":
		_ = os.WriteFile(os.Args[2], nil, 0o600)
		time.Sleep(10 * time.Minute)
	case "leave":
		const detached, breakaway = 0x8 | syscall.CREATE_NEW_PROCESS_GROUP, 0x1000000
		for _, flags := range []uint32{detached | breakaway, detached} {
			c := exec.Command(os.Args[0], "live", os.Args[2])
			c.SysProcAttr = &syscall.SysProcAttr{CreationFlags: flags}
			for started := c.Start() == nil; started; {
				_, err := os.Stat(os.Args[2])
				started = err != nil
			}
		}
	default:
		fmt.Printf("%q\n", os.Args[1:])
	}
}

package run

import (
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/windows"
)

// sessionAttr prevents the console's Ctrl-C from reaching the process.
func sessionAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

func terminateGroup(int) {} // nothing asks

// killGroup ends the process tree below leader.
func killGroup(leader int) {
	kill := exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(leader))
	kill.SysProcAttr = &syscall.SysProcAttr{HideWindow: true}
	_ = kill.Run() // fails when it has ended
}

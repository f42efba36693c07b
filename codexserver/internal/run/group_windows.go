package run

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/windows"
)

// groupAttr prevents the console's Ctrl-C from reaching the process.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

func terminateGroup(int) {} // nothing asks

// killGroup ends the process tree below leader.
func killGroup(leader int) {
	system, err := windows.GetSystemDirectory() // by its name another one may be found
	if err != nil {
		return
	}
	kill := exec.Command(filepath.Join(system, "taskkill.exe"), "/T", "/F", "/PID", strconv.Itoa(leader))
	kill.SysProcAttr = &syscall.SysProcAttr{HideWindow: true}
	_ = kill.Run() // fails when it has ended
}

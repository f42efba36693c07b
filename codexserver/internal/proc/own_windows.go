package proc

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/windows"
)

// sessionAttr prevents the console's Ctrl-C from reaching the command.
func sessionAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

func exitCode(state *os.ProcessState) int {
	if state == nil {
		return -1
	}
	return state.ExitCode()
}

func codeOf(status syscall.WaitStatus) int { return status.ExitStatus() }

func awaitExit(cmd *exec.Cmd) { _ = cmd.Wait() }

func killLost(int, *pipes) {} // there are no keepers

// killAll ends the process tree below leader.
func killAll(leader int, _ *leash) {
	kill := exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(leader))
	kill.SysProcAttr = &syscall.SysProcAttr{HideWindow: true}
	_ = kill.Run() // fails when it has ended
}

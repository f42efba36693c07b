package group

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Group is a command with all processes that it started. None can leave it. Windows ends them when the
// process that has called [Start] ends, however that is.
type Group struct {
	job windows.Handle
}

// Start starts a command in a job object of its own. It runs nothing before it has joined the job. With
// session it gets no window. The console's Ctrl-C does not reach it.
func Start(cmd *exec.Cmd, session bool) (*Group, error) {
	job, err := newJob()
	if err != nil {
		return nil, os.NewSyscallError("CreateJobObject", err)
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.HideWindow = cmd.SysProcAttr.HideWindow || session
	cmd.SysProcAttr.CreationFlags |= windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_SUSPENDED
	if err := cmd.Start(); err != nil {
		closeJob(job)
		return nil, err
	}
	if err := join(job, cmd.Process); err != nil {
		closeJob(job)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, err
	}
	g := &Group{job}
	runtime.AddCleanup(g, closeJob, job)
	return g, nil
}

// newJob returns a job object whose processes end when its handle is closed.
func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		closeJob(job)
		return 0, err
	}
	return job, nil
}

func closeJob(job windows.Handle) { _ = windows.CloseHandle(job) }

// join adds a suspended process to a job and resumes it. Package os does not give the handle of its only
// thread, which ResumeThread would want.
func join(job windows.Handle, p *os.Process) error {
	resume := windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess")
	if err := resume.Find(); err != nil {
		return err
	}
	var failed error
	err := p.WithHandle(func(handle uintptr) {
		failed = os.NewSyscallError("AssignProcessToJobObject",
			windows.AssignProcessToJobObject(job, windows.Handle(handle)))
		if failed != nil {
			return
		}
		if status, _, _ := resume.Call(handle); status != 0 {
			failed = os.NewSyscallError("NtResumeProcess", windows.NTStatus(status))
		}
	})
	return errors.Join(err, failed)
}

// Terminate is Kill: Windows has no way to ask.
func (g *Group) Terminate() { g.Kill() }

// Kill begins to end the processes.
func (g *Group) Kill() {
	defer runtime.KeepAlive(g)
	_ = windows.TerminateJobObject(g.job, 1) // fails if the handle is bad, which it is not
}

// Empty reports whether all processes have ended.
func (g *Group) Empty() bool {
	defer runtime.KeepAlive(g)
	var counts struct { // JOBOBJECT_BASIC_ACCOUNTING_INFORMATION
		_      [4]int64 // times
		_      [2]uint32
		active uint32
		_      uint32
	}
	err := windows.QueryInformationJobObject(g.job, windows.JobObjectBasicAccountingInformation,
		uintptr(unsafe.Pointer(&counts)), uint32(unsafe.Sizeof(counts)), nil)
	return err == nil && counts.active == 0
}

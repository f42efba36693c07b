package enclosure

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Life bounds how long an enclosure lasts: to a deadline, and to the end of the process that has made the Life. The
// first process of the enclosure waits for both, and nobody in the enclosure reaches it. So a deadline also counts
// while the process that could extend it is stopped.
type Life struct {
	timer       *os.File // both processes have it
	lasts, ends *os.File // a pipe: nobody but the maker has its second end
}

// NewLife returns a life with a deadline, as the time since the machine was started. Unlike Go's monotonic clock that
// goes on while the machine is suspended. The caller must close the life.
func NewLife(deadline time.Duration) (*Life, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	l := &Life{timer: os.NewFile(uintptr(fd), "deadline")}
	if l.lasts, l.ends, err = os.Pipe(); err == nil {
		err = l.Extend(deadline)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Extend changes the deadline. One that has passed ends the enclosure at once.
func (l *Life) Extend(deadline time.Duration) error {
	at := unix.NsecToTimespec(int64(max(deadline, 1))) // 0 would be no deadline
	raw, err := l.timer.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) {
		err = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, &unix.ItimerSpec{Value: at}, nil)
	})
	return errors.Join(failed, err)
}

// Close ends the enclosure, unless it has ended.
func (l *Life) Close() error {
	err := l.timer.Close()
	for _, end := range []*os.File{l.lasts, l.ends} {
		if end != nil {
			err = errors.Join(err, end.Close())
		}
	}
	return err
}

// endWith ends this process, the first one of an enclosure, when the timer fires or the other end of the pipe is
// closed.
func endWith(timer, pipe int) {
	for {
		ends := []unix.PollFd{{Fd: int32(timer), Events: unix.POLLIN}, {Fd: int32(pipe), Events: unix.POLLIN}}
		_, err := unix.Poll(ends, -1)
		if !errors.Is(err, unix.EINTR) {
			unix.Exit(128 + int(unix.SIGKILL))
		}
	}
}

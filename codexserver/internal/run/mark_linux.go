package run

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// mark identifies what a keeper has started, for the case that the keeper is killed. Its
// processes then have another parent. The mark is the hard limit of file locks, which every
// process inherits, whatever it does to its session, its environment and its descriptors.
// The kernel has ignored this limit since Linux 2.6. Only a process that changes it loses
// the mark.
type mark uint64

// leastMark is more than anyone sets this limit to.
const leastMark = 1 << 40

// newMark returns a mark below the limit of this process, because a process may not raise it. It returns 0 if
// there is none.
func newMark() mark {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_LOCKS, &own); err != nil || own.Max <= leastMark {
		return 0
	}
	return mark(leastMark + rand.Uint64N(min(own.Max, 1<<62)-leastMark))
}

func (m mark) String() string { return strconv.FormatUint(uint64(m), 10) }

// set marks this process and all that it starts.
func (m mark) set() {
	if m != 0 {
		_ = unix.Setrlimit(unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: uint64(m), Max: uint64(m)}) // without it nothing is found
	}
}

// processes returns the live processes with the mark.
func (m mark) processes() (found []entry) {
	if m == 0 {
		return nil
	}
	for _, p := range processes() {
		if !p.Dead && limitOfLocks(p.PID) == m.String() {
			found = append(found, p)
		}
	}
	return found
}

// limitOfLocks returns the hard limit of file locks of a process.
func limitOfLocks(pid int) string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte("Max file locks")); ok {
			if fields := bytes.Fields(rest); len(fields) > 1 {
				return string(fields[1])
			}
		}
	}
	return ""
}

// sweep kills what the keeper left behind if it was killed.
func (k *keeper) sweep() {
	if k.killed() {
		endAll(k.mark.processes, lastGrace)
	}
}

// endAll kills processes until none is left, for at most a time. It stops them first each time: what a few
// free, when they are killed, those that still run fill again.
func endAll(find func() []entry, within time.Duration) {
	for deadline := time.Now().Add(within); ; {
		left := find()
		if len(left) == 0 || time.Now().After(deadline) {
			return
		}
		stopAll(find)
		signalAll(left, unix.SIGKILL)
		pause := time.NewTimer(time.Millisecond)
		<-pause.C
	}
}

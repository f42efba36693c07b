package proc

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

// marks is how many marks a pool has: those that follow its first one.
const marks = 1 << 20

// newMark returns the first mark of a pool. All are below the limit of this process, because a
// process may not raise it. It returns 0 if there is none.
func newMark() mark {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_LOCKS, &own); err != nil || own.Max <= leastMark+marks {
		return 0
	}
	return mark(leastMark + rand.Uint64N(min(own.Max, 1<<62)-leastMark-marks))
}

func (m mark) String() string { return strconv.FormatUint(uint64(m), 10) }

// set marks this process and all that it starts.
func (m mark) set() {
	if m != 0 {
		_ = unix.Setrlimit(unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: uint64(m), Max: uint64(m)}) // without it nothing is found
	}
}

// processes returns the live processes with the mark.
func (m mark) processes() []entry { return m.among(1) }

// among returns the live processes with one of n marks that begin with m.
func (m mark) among(n uint64) (found []entry) {
	if m == 0 {
		return nil
	}
	for _, p := range processes() {
		limit, err := strconv.ParseUint(limitOfLocks(p.PID), 10, 64)
		if err == nil && !p.Dead && limit >= uint64(m) && limit-uint64(m) < n {
			found = append(found, p)
		}
	}
	return found
}

// Mark identifies the processes of this pool for [EndMarked] in a later process, or is "" if
// nothing does.
func (p *Pool) Mark() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if first := p.first(); first != 0 {
		return first.String()
	}
	return ""
}

// first returns the first mark of the pool. The caller holds the lock.
func (p *Pool) first() mark {
	if !p.marked {
		p.base, p.marked = newMark(), true
	}
	return p.base
}

// nextMark returns the mark of a new keeper. The caller holds the lock.
func (p *Pool) nextMark() mark {
	first := p.first()
	if first == 0 {
		return 0
	}
	p.keepers++
	return first + mark(p.keepers%marks)
}

// EndMarked ends what the pool with a mark has left, for at most [Grace], and reports whether
// nothing is left. That pool's process has ended, so its keepers do the same.
func EndMarked(text string) bool {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < leastMark {
		return true
	}
	m := mark(n)
	return endAll(func() []entry { return m.among(marks) }, Grace)
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

// endAll kills processes for at most a time, and reports whether none is left. It stops them
// first each time: what a few free, when they are killed, those that still run fill again.
func endAll(find func() []entry, within time.Duration) bool {
	for deadline := time.Now().Add(within); ; {
		left := find()
		if len(left) == 0 {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		stopAll(find)
		signalAll(left, unix.SIGKILL)
		pause := time.NewTimer(time.Millisecond)
		<-pause.C
	}
}

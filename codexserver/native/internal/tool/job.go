package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// jobDefinition is the tool for commands that go on in the background.
var jobDefinition = model.Tool{
	Name:        "job",
	Description: "Shows what a command in the background has printed since the last look, and whether it still runs.",
	Parameters: []byte(`{"type":"object","properties":{
"id":{"type":"string","description":"As shell returned it, such as job1"},
"wait_ms":{"type":"number","description":"How long to wait for its end, 5000 by default, at most 60000"},
"end":{"type":"boolean","description":"True to end it"}
},"required":["id"],"additionalProperties":false}`),
}

const (
	// maxJobs is how many commands of a turn may go on in the background.
	maxJobs = 8
	// firstLook is how long a call waits before it leaves its command in the background. A
	// command that ends earlier, such as a server whose port is taken, is like any other.
	firstLook = 2 * time.Second
	// usualWait and longestWait bound how long a look waits for the end.
	usualWait, longestWait = 5 * time.Second, time.Minute
	// maxUnread is how much output is kept until the next look, in bytes.
	maxUnread = 64 << 10
	// passedBytes and passedPieces are how much output [proc.Pool.Run] passes on while a
	// command runs.
	passedBytes, passedPieces = 1 << 20, 10_000
)

var errEnded = errors.New("the model ended the command")

// jobs are the commands of a turn that go on in the background.
type jobs struct {
	running sync.WaitGroup

	mu  sync.Mutex // also of the output of each
	all []*job
}

// job is such a command.
type job struct {
	id     string
	of     *jobs
	words  []string
	begin  time.Time
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the fields of its end are set

	unread []byte
	lost   int // bytes before unread that no look has shown
	bytes  int // in all
	pieces int

	// Its end.
	result *proc.Result // nil if it did not start, or was ended
	output string
	err    error
	took   time.Duration
	denied string // what to do after the sandbox has stopped it; "" if it has not
}

// alive returns how many commands go on in the background.
func (s *jobs) alive() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.all {
		if !j.over() {
			n++
		}
	}
	return n
}

func (j *job) over() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// run starts a command. If it ends soon, run returns its result as if it had not been in the
// background.
func (s *jobs) run(ctx context.Context, r run, c Confinement, spec proc.Spec) (*proc.Result, string, error) {
	life, cancel := context.WithCancelCause(ctx)
	j := &job{of: s, words: r.Command, begin: time.Now(), cancel: cancel, done: make(chan struct{})}
	s.running.Go(func() {
		defer cancel(nil)
		defer close(j.done)
		j.result, j.output, j.err = r.process(life, spec, j)
		j.took = time.Since(j.begin)
		if c != nil && j.result != nil && c.Denied(*j.result) {
			j.denied = "the sandbox stopped it"
			if r.turn.ApprovalPolicy == protocol.ApprovalOnRequest {
				j.denied += "; with_escalated_permissions asks the user to run it outside"
			}
		}
	})
	first := time.NewTimer(cmp.Or(r.turn.box.firstLook, firstLook))
	defer first.Stop()
	select {
	case <-j.done:
		return j.result, j.output, j.err
	case <-ctx.Done():
		return nil, "", context.Cause(ctx)
	case <-first.C:
	}
	s.mu.Lock()
	s.all = append(s.all, j)
	j.id = fmt.Sprintf("job%d", len(s.all))
	s.mu.Unlock()
	return nil, j.report(), nil
}

// end ends all commands and waits until they are gone.
func (s *jobs) end() {
	s.mu.Lock()
	for _, j := range s.all {
		j.cancel(errEnded)
	}
	s.mu.Unlock()
	s.running.Wait()
}

// add keeps a piece of output for the next look. A nil job keeps nothing.
func (j *job) add(chunk []byte) {
	if j == nil {
		return
	}
	j.of.mu.Lock()
	defer j.of.mu.Unlock()
	j.bytes += len(chunk)
	j.pieces++
	j.unread = append(j.unread, chunk...)
	if extra := len(j.unread) - maxUnread; extra > 0 {
		j.unread = append(j.unread[:0], j.unread[extra:]...)
		j.lost += extra
	}
}

// report returns the state of the command, and its output since the last report.
func (j *job) report() string {
	over := j.over() // before the output is taken: afterwards there is no more
	j.of.mu.Lock()
	output, lost := strings.ToValidUTF8(string(j.unread), "\uFFFD"), j.lost
	j.unread, j.lost = nil, 0
	much := j.bytes >= passedBytes || j.pieces >= passedPieces
	j.of.mu.Unlock()
	var b strings.Builder
	switch {
	case !over:
		fmt.Fprintf(&b, "%s still runs after %v", j.id, time.Since(j.begin).Round(time.Second))
	case errors.Is(j.err, errEnded):
		fmt.Fprintf(&b, "%s was ended after %v", j.id, j.took.Round(time.Second))
	case j.err != nil:
		fmt.Fprintf(&b, "%s has ended: %v", j.id, j.err)
	case j.result == nil:
		fmt.Fprintf(&b, "%s: %s", j.id, j.output)
	default:
		fmt.Fprintf(&b, "%s has ended with exit code %d after %v", j.id, j.result.ExitCode, j.took.Round(time.Second))
		if j.result.TimedOut {
			b.WriteString(", by its timeout_ms")
		}
	}
	if over && j.denied != "" {
		fmt.Fprintf(&b, " (%s)", j.denied)
	}
	switch {
	case much && !over:
		b.WriteString("; it prints so much that the rest is shown at its end; output:\n")
	case much && j.result != nil:
		output = j.result.Aggregated
		b.WriteString("; its whole output:\n")
	case output == "":
		b.WriteString("; no new output\n")
	case lost > 0:
		fmt.Fprintf(&b, "; new output, without its first %d bytes:\n", lost)
	default:
		b.WriteString("; new output:\n")
	}
	b.WriteString(proc.FormatOutput(output))
	return b.String()
}

type jobArguments struct {
	ID     string   `json:"id"`
	WaitMS *float64 `json:"wait_ms"`
	End    bool     `json:"end"`
}

// job looks at a command in the background, or ends it.
func (t *Turn) job(ctx context.Context, call Call) (Result, error) {
	var a jobArguments
	if err := decodeArguments(call.Arguments, &a); err != nil {
		return Result{Output: err.Error()}, nil
	}
	j, known := t.jobs.find(a.ID)
	if j == nil {
		return Result{Output: known}, nil
	}
	if a.End {
		j.cancel(errEnded)
		<-j.done // its processes are killed
		return Result{Output: j.report()}, nil
	}
	wait := usualWait
	if a.WaitMS != nil {
		wait = time.Duration(min(max(*a.WaitMS, 0), float64(longestWait.Milliseconds()))) * time.Millisecond
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-j.done:
	case <-timer.C:
	case <-ctx.Done():
		return Result{}, context.Cause(ctx)
	}
	return Result{Output: j.report()}, nil
}

// find returns the job with an id, or a text that lists those there are.
func (s *jobs) find(id string) (*job, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var known []string
	for _, j := range s.all {
		if j.id == id {
			return j, ""
		}
		known = append(known, fmt.Sprintf("%s: %s", j.id, strings.Join(j.words, " ")))
	}
	text := fmt.Sprintf("there is no %q", id)
	if known == nil {
		return nil, text + ": no command of this turn goes on in the background, and those of earlier turns have ended; start one with shell and background"
	}
	return nil, text + "; there are\n" + proc.FormatOutput(strings.Join(known, "\n"))
}

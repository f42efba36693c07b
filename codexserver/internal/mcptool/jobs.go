package mcptool

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// maxRunning is how many turns may run in the background at a time.
const maxRunning = 1024

// maxEnded is how many jobs in the background are kept after their end.
const maxEnded = 256

// Jobs has the turns that tools run for one client. It is safe for concurrent use.
type Jobs struct {
	ctx     context.Context // of the turns in the background
	running sync.WaitGroup

	mu   sync.Mutex
	list []*Job // in order of creation
}

// NewJobs returns an empty list. Turns in the background end with ctx.
func NewJobs(ctx context.Context) *Jobs { return &Jobs{ctx: ctx} }

// Wait waits for the turns in the background, whose context must have ended.
func (js *Jobs) Wait() { js.running.Wait() }

// Busy reports whether a turn is running or queued.
func (js *Jobs) Busy() bool {
	js.mu.Lock()
	defer js.mu.Unlock()
	return slices.ContainsFunc(js.list, func(j *Job) bool { return !j.over() })
}

// run runs a turn for a call, and waits for its end unless background is true.
func (c *call) run(ctx context.Context, j *Job, t *thread.Thread, in protocol.TurnInput, background bool) *mcptypes.CallToolResult {
	j.thread, j.background = t, background
	ticket, err := queued(t, in)
	if err != nil {
		return failure(t.ID(), "codex-reply: "+err.Error())
	}
	if !c.Jobs.add(j) {
		ticket.Leave()
		return failure(t.ID(), fmt.Sprintf("%d turns run in the background, and no more may: wait for one with codex-wait, or stop one with codex-interrupt", maxRunning))
	}
	if c.table.Continues() && j.review == nil && j.key == "" && (c.Durable || background || c.Late != nil) {
		j.key = rand.Text()
	}
	in.Key = j.key
	j.leave, c.leave = c.leave, nil
	if background && c.Kept != nil {
		c.Kept(j)
	}
	if c.Begun != nil {
		c.Begun(j)
	}
	switch {
	case background:
	case c.Late != nil:
		return c.patient(ctx, j, ticket, in)
	default:
		defer c.Jobs.ended(j)
		return j.run(ctx, ticket, in)
	}
	c.Jobs.running.Go(func() {
		j.run(c.Jobs.ctx, ticket, in)
		c.Jobs.ended(j)
	})
	return j.interim(Running, "The turn runs in the background. Call codex-wait with this threadId for its result.")
}

// queued returns the ticket of a turn. One that changes the history has to be the next turn,
// so that it never changes what the caller has not seen.
func queued(t *thread.Thread, in protocol.TurnInput) (*thread.Ticket, error) {
	if in.Shortens() {
		return t.QueueAlone()
	}
	return t.Queue(), nil
}

// add adds a job. It returns false if too many run in the background.
func (js *Jobs) add(j *Job) bool {
	js.mu.Lock()
	defer js.mu.Unlock()
	if j.background && js.full() {
		return false
	}
	js.list = append(js.list, j)
	return true
}

// full reports whether no more jobs may run in the background. js.mu is held.
func (js *Jobs) full() bool {
	n := 0
	for _, other := range js.list {
		if !other.over() && other.InBackground() {
			n++
		}
	}
	return n >= maxRunning
}

// detach moves a job to the background. It returns false if the job has ended, or if too
// many run in the background.
func (js *Jobs) detach(j *Job) bool {
	js.mu.Lock()
	defer js.mu.Unlock()
	return !js.full() && j.Detach()
}

// over reports whether the turn has ended.
func (j *Job) over() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// of returns the first job of a thread whose result no caller has. If there is none, it
// returns the last job of the thread, or nil.
func (js *Jobs) of(id string) *Job {
	js.mu.Lock()
	defer js.mu.Unlock()
	var last *Job
	for _, j := range js.list {
		if thread.CanonicalID(j.ThreadID()) != id {
			continue
		}
		if !j.read() {
			return j
		}
		last = j
	}
	return last
}

// unread returns the jobs that no call waits for and whose result no caller has, one for each
// thread.
func (js *Jobs) unread() []*Job {
	js.mu.Lock()
	defer js.mu.Unlock()
	var all []*Job
	seen := map[string]bool{}
	for _, j := range js.list {
		if id := j.ThreadID(); !seen[id] && !j.read() && j.unwaited() {
			seen[id] = true
			all = append(all, j)
		}
	}
	return all
}

func (j *Job) read() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.end.returned
}

// unwaited reports whether no call waits for the job.
func (j *Job) unwaited() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.background || j.end.lost
}

// InBackground reports whether the job runs in the background, or has.
func (j *Job) InBackground() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.background
}

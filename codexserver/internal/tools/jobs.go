package tools

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json/jsontext"
)

// maxRunning is how many turns may run in the background at a time.
const maxRunning = 1024

// maxEnded is how many jobs in the background are kept after their end.
const maxEnded = 256

// Jobs has the turns that tools run for one client, and finds those of the clients that it shares
// them with. It is safe for concurrent use.
type Jobs struct {
	*roll
	ctx context.Context // of the turns in the background
	own sync.WaitGroup  // of this client
}

// roll has the turns of the clients that share them.
type roll struct {
	keeper  atomic.Pointer[thread.Share] // holds the threads of turns in the background; nil leaves that to their clients
	running sync.WaitGroup

	mu   sync.Mutex // also guards who gets the results of the jobs
	list []*Job     // in order of creation
}

// NewJobs returns the jobs of a client. Its turns in the background end with ctx.
func NewJobs(ctx context.Context) *Jobs { return &Jobs{roll: &roll{}, ctx: ctx} }

// NewSharedJobs is NewJobs for the first of several clients, see [Jobs.Share]. Turns in the
// background outlive their client; keeper holds their threads.
func NewSharedJobs(ctx context.Context, keeper *thread.Share) *Jobs {
	js := NewJobs(ctx)
	js.keeper.Store(keeper)
	return js
}

// Rekeep lets another share hold the threads of turns in the background from now on, and returns
// the one that did.
func (js *Jobs) Rekeep(keeper *thread.Share) (before *thread.Share) { return js.keeper.Swap(keeper) }

// Share returns the jobs of another client, whose turns in the background end with ctx. Each of
// the two finds the turns of the other by the ids of their threads.
func (js *Jobs) Share(ctx context.Context) *Jobs { return &Jobs{roll: js.roll, ctx: ctx} }

// Wait waits for the turns of the client in the background. They end by themselves, or with their
// context.
func (js *Jobs) Wait() { js.own.Wait() }

// WaitForAll is Wait for all clients that share their turns.
func (js *Jobs) WaitForAll() { js.running.Wait() }

// begin runs f in the background.
func (js *Jobs) begin(f func()) {
	js.own.Add(1)
	js.running.Go(func() {
		defer js.own.Done()
		f()
	})
}

// Busy reports whether a turn of the client is running or queued.
func (js *Jobs) Busy() bool {
	js.mu.Lock()
	defer js.mu.Unlock()
	return slices.ContainsFunc(js.list, func(j *Job) bool { return j.delivery.owner == js && !j.over() })
}

// Works reports whether a turn of any of the clients is running or queued.
func (js *Jobs) Works() bool {
	js.mu.Lock()
	defer js.mu.Unlock()
	return slices.ContainsFunc(js.list, func(j *Job) bool { return !j.over() })
}

// keep keeps the thread of a job in the background open, also without its client.
func (js *Jobs) keep(j *Job) {
	if keeper := js.keeper.Load(); keeper != nil {
		keeper.Hold(j.ThreadID())
	}
}

// Stays reports whether turns in the background outlive their client.
func (js *Jobs) Stays() bool { return js.keeper.Load() != nil }

// run queues a turn of a thread, which runs in a goroutine of the server, and waits for it, unless background is
// true.
func (c *call) run(ctx context.Context, j *Job, t *thread.Thread, in protocol.TurnInput, background bool) *mcptypes.CallToolResult {
	j.thread, j.delivery.background = t, background
	ticket := t.Queue()
	if !c.Jobs.add(j) {
		ticket.Leave()
		return failure(t.ID(), fmt.Sprintf("%d turns run in the background, and no more may: wait for one with codex-wait, or stop one with codex-interrupt", maxRunning))
	}
	if c.table.Continues() && j.review == nil && j.kept.Key == "" && (c.Survival.Durable || background || c.Late != nil) {
		j.kept.Key = rand.Text()
	}
	in.Key = j.kept.Key
	j.leave, c.leave = c.leave, nil
	if background && c.Survival.Kept != nil {
		c.Survival.Kept(j)
	}
	if c.Begun != nil {
		c.Begun(j)
	}
	if background {
		c.Jobs.keep(j)
		c.Jobs.begin(func() { j.run(c.Jobs.ctx, ticket, in) })
		return j.interim(protocol.StatusRunning, "The turn runs in the background. Call codex-wait with this threadId for its result.")
	}
	parent := ctx // the turn ends with its call, before the next message of the client is read
	if c.Late != nil {
		parent = context.WithoutCancel(ctx) // it may outlive the call
	}
	turn, stop := context.WithCancelCause(parent)
	follow := func(ctx context.Context) (leave func() bool) {
		return context.AfterFunc(ctx, func() { stop(context.Cause(ctx)) })
	}
	unfollow := follow(ctx)
	c.Jobs.begin(func() {
		defer stop(nil)
		j.run(turn, ticket, in)
	})
	if c.wait(ctx, nil, false, j) == reasonLimit && c.Jobs.detach(j) && unfollow() {
		follow(c.Jobs.ctx)
		if c.Survival.Kept != nil {
			c.Survival.Kept(j)
		}
		if r := j.still(c); r != nil {
			return r
		}
		c.read = append(c.read, j)
	}
	<-j.done // a call that was cancelled interrupts its turn, and says how that ended
	return j.end.result
}

// add adds a job. It returns false if too many run in the background.
func (js *Jobs) add(j *Job) bool {
	js.mu.Lock()
	defer js.mu.Unlock()
	if j.delivery.background && js.full() {
		return false
	}
	js.list = append(js.list, j)
	return true
}

// full reports whether no more jobs may run in the background. js.mu is held.
func (js *Jobs) full() bool {
	n := 0
	for _, other := range js.list {
		if other.delivery.owner == js && !other.over() && other.delivery.background {
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
	if js.full() || !j.detach() {
		return false
	}
	js.keep(j)
	return true
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
		if !j.delivery.returned {
			return j
		}
		last = j
	}
	return last
}

// Late records that an answer to a question came after its limit. The result of its turn says so, or, if
// that is known already, codex-wait does. Unsure is true if it may be another question of the turn.
func (js *Jobs) Late(r *approval.Request, unsure bool) {
	about := turnlog.Subject(r)
	if unsure {
		about = "a request"
	}
	if j := js.of(thread.CanonicalID(r.Thread.ID)); j != nil {
		j.log.Remark("An answer about " + about + " came after its limit, and changed nothing.")
	}
}

// Afterwards returns what the caller of a turn should know and its result does not say.
func (j *Job) Afterwards() []string {
	if !j.over() {
		return nil
	}
	return j.log.Remarks()[j.end.remarks:]
}

// WithAfterwards returns the structured content of the result with the words of [Job.Afterwards], at most
// most bytes. Some hosts pass on nothing else.
func (j *Job) WithAfterwards(most int) jsontext.Value {
	did := j.end.did
	did.Content = joined(append([]string{did.Content}, j.Afterwards()...))
	return did.JSON(most)
}

// unread returns the jobs of the client that no call waits for and whose result no caller has, one for each
// thread.
func (js *Jobs) unread() []*Job {
	js.mu.Lock()
	defer js.mu.Unlock()
	var all []*Job
	seen := map[string]bool{}
	for _, j := range js.list {
		if id := j.ThreadID(); j.delivery.owner == js && !seen[id] && !j.delivery.returned && j.delivery.unwaited() {
			seen[id] = true
			all = append(all, j)
		}
	}
	return all
}

// delivery is who gets the result of a turn. Owner and durable do not change.
type delivery struct {
	owner      *Jobs // of the client that began the turn
	durable    bool  // that client may get the result of a task
	background bool  // codex-wait has the result
	lost       bool  // the caller gave up before the end
	returned   bool  // the result was returned to a caller
}

// unwaited reports whether no call waits for the result.
func (d delivery) unwaited() bool { return d.background || d.lost }

// to returns who gets the result.
func (j *Job) to() delivery {
	js := j.delivery.owner
	js.mu.Lock()
	defer js.mu.Unlock()
	return j.delivery
}

// take records that a caller has the result.
func (j *Job) take() {
	js := j.delivery.owner
	js.mu.Lock()
	defer js.mu.Unlock()
	j.delivery.returned = true
}

// InBackground reports whether the job runs in the background, or has.
func (j *Job) InBackground() bool { return j.to().background }

package tools

import (
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
)

// maxAnswered is how many turns are kept whose calls were answered. A host that gave up a call
// without cancelling it did not take the answer.
const maxAnswered = 16

// passed returns the turns of a thread whose calls were given up. A caller that goes on with the thread asks
// for the turn that follows.
func (js *Jobs) passed(id string) (all []*Job) {
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, j := range js.list {
		if thread.CanonicalID(j.ThreadID()) == id && !j.delivery.returned && !j.delivery.background {
			all = append(all, j)
		}
	}
	return all
}

// last returns the end of a turn that has ended as a line for a person.
func (j *Job) last() string {
	words := turnlog.Brief(j.end.did.Content)
	if changed := turnlog.ShowChanges(j.end.did.Changes); changed != "" {
		words += "; changed: " + changed
	}
	return words
}

// ended keeps a job that has ended. It removes the oldest ones if there are too many, and those of
// the same thread that were answered. js.mu is held.
func (js *Jobs) ended(j *Job) {
	id := thread.CanonicalID(j.ThreadID())
	j.delivery.returned = j.delivery.returned || !j.delivery.unwaited()
	all, answered := 0, 0
	slices.Reverse(js.list)
	js.list = slices.DeleteFunc(js.list, func(other *Job) bool {
		if other.delivery.owner != j.delivery.owner {
			return false
		}
		if !other.over() {
			return false
		}
		all++
		if other.delivery.background || !other.delivery.returned {
			return all > maxEnded
		}
		answered++
		return all > maxEnded || answered > maxAnswered || other != j && thread.CanonicalID(other.ThreadID()) == id
	})
	slices.Reverse(js.list)
}

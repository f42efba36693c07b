package mcptool

import (
	"context"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
)

// maxAnswered is how many turns are kept whose calls were answered. A host that gave up a call
// without cancelling it did not take the answer.
const maxAnswered = 16

// maxLost is how many turns the result of a later one names.
const maxLost = 5

// lost returns the last turns of a thread whose results nobody may have because their calls were
// given up. Those that run may get an answer yet.
func (js *Jobs) lost(id string) []*Job {
	js.mu.Lock()
	defer js.mu.Unlock()
	var all []*Job
	for _, j := range js.list {
		if thread.CanonicalID(j.ThreadID()) == id && !j.delivery.returned && !j.delivery.background {
			all = append(all, j)
		}
	}
	return all[max(0, len(all)-maxLost):]
}

// became waits for the ends of turns, and returns a sentence about each whose call was given up.
// Their thread has begun another turn, so they end soon.
func became(ctx context.Context, jobs []*Job) (words []string) {
	for _, j := range jobs {
		select {
		case <-j.done:
		case <-ctx.Done():
			return words
		}
		if j.to().lost {
			one := "A turn before this one, whose call was given up, ended as " + string(j.end.status)
			if changed := j.end.did.Changes.Paths(); changed != "" {
				one += "; it changed: " + changed
			}
			words = append(words, one+".")
		}
	}
	return words
}

// last returns the end of a turn that has ended as a line for a person.
func (j *Job) last() string {
	words := turnlog.Brief(j.end.did.Content)
	if changed := j.end.did.Changes.Paths(); changed != "" {
		words += "; changed: " + changed
	}
	return words
}

// ended keeps a job that has ended. It removes the oldest ones if there are too many, and those of
// the same thread that were answered.
func (js *Jobs) ended(j *Job) {
	id := thread.CanonicalID(j.ThreadID())
	js.mu.Lock()
	defer js.mu.Unlock()
	j.delivery.returned = j.delivery.returned || !j.delivery.unwaited()
	all, answered := 0, 0
	slices.Reverse(js.list)
	js.list = slices.DeleteFunc(js.list, func(other *Job) bool {
		if other.delivery.owner != j.delivery.owner {
			return false
		}
		if !other.over() {
			return other == j // its tool panicked
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

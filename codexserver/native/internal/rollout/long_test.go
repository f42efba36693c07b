//go:build !race

package rollout_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func lineOf(kind, payload string) string {
	return `{"timestamp":"2025-09-30T10:11:12.000Z","type":"` + kind + `","payload":` + payload + "}\n"
}

// longRollout yields the lines of a rollout, and measures the memory in use on the way.
type longRollout struct {
	line func(n int) string // "" at the end
	n    int
	left string
	read int
	most uint64
}

func (l *longRollout) Read(p []byte) (int, error) {
	if l.left == "" {
		if l.left = l.line(l.n); l.left == "" {
			return 0, io.EOF
		}
		l.n++
	}
	n := copy(p, l.left)
	l.left = l.left[n:]
	if l.read += n; l.read > 8<<20 {
		l.read = 0
		l.most = max(l.most, inUse())
	}
	return n, nil
}

// inUse returns the bytes in use, without garbage.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestReadLong checks that a long rollout takes little memory, and what is read of it.
func TestReadLong(t *testing.T) {
	head := lineOf("session_meta", `{"id":"`+id+`"}`)
	user := func(n int) string {
		return lineOf("response_item", fmt.Sprintf(`{"type":"message","role":"user","content":[{"type":"input_text","text":"question %d"}]}`, n))
	}
	output := func(size int) string {
		return lineOf("response_item", `{"type":"function_call_output","call_id":"c","output":"`+strings.Repeat("x", size)+`"}`)
	}
	answer := lineOf("event_msg", `{"type":"agent_message","message":"`+strings.Repeat("y", 100<<10)+`"}`)
	small, middle, huge := output(100<<10), output(15<<20), output(30<<20)
	for _, tt := range []struct {
		name  string
		lines int // after the first
		line  func(n int) string
		items int // in the history
		has   func(r *rollout.Rollout) bool
	}{
		{"without compactions", 600, func(n int) string { return []string{user(n), small}[n%2] }, 600,
			func(r *rollout.Rollout) bool { return len(r.Items) > 250 && len(r.Before) > 100 && r.Summary == "" }},
		{"with summaries", 600, func(n int) string {
			if n%100 == 99 {
				return lineOf("compacted", fmt.Sprintf(`{"message":"summary %d"}`, n))
			}
			return []string{user(n), small}[n%2]
		}, 0, func(r *rollout.Rollout) bool {
			return r.Left == 0 && r.Summary == "summary 599" && len(r.Before) == 300
		}},
		{"with new histories", 601, func(n int) string {
			if n%100 == 99 {
				return lineOf("compacted", `{"message":"s","replacement_history":[{"type":"message","role":"user","content":[]}]}`)
			}
			return []string{user(n), small}[n%2]
		}, 2, func(r *rollout.Rollout) bool { return r.Left == 0 && len(r.Before) == 0 }},
		{"lines of 15 MiB", 8, func(n int) string { return []string{user(n), middle}[n%2] }, 8,
			func(r *rollout.Rollout) bool { return len(r.Items) == 2 && len(r.Before) == 3 }},
		{"lines of 30 MiB", 4, func(n int) string { return []string{user(n), huge}[n%2] }, 4,
			func(r *rollout.Rollout) bool { return len(r.Items) == 2 && r.Left == 2 }},
		{"events", 600, func(int) string { return answer }, 0,
			func(r *rollout.Rollout) bool { return len(r.Events) > 60 && r.EventsLeft == 600-len(r.Events) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := inUse()
			in := &longRollout{line: func(n int) string {
				switch {
				case n == 0:
					return head
				case n > tt.lines:
					return ""
				}
				return tt.line(n - 1)
			}}
			r := must.Get(rollout.Read(in))(t)
			most := max(in.most, inUse())
			if most > before+48<<20 {
				t.Errorf("%d MiB in use", (most-before)>>20)
			}
			if r.Skipped != 0 || len(r.Items)+r.Left != tt.items || !tt.has(r) {
				t.Errorf("%d items, %d left out, %d messages of the user before, summary %q, %d events, %d left out, %d skipped",
					len(r.Items), r.Left, len(r.Before), r.Summary, len(r.Events), r.EventsLeft, r.Skipped)
			}
			for _, item := range r.Before {
				if m, ok := item.(protocol.MessageItem); !ok || m.Role != "user" {
					t.Errorf("before: %T", item)
				}
			}
		})
	}
}

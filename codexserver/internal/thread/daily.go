package thread

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/store"
	"github.com/go-json-experiment/json"
)

// daily limits the tokens that all turns of a home use on a day of UTC. What a turn uses is written when the
// engine reports it, before the engine goes on, so that a crash does not lose it. Turns that run at the same
// time share what is left: the first report that finds nothing left ends its turn. It is safe for concurrent
// use, and by several processes at a time.
type daily struct {
	limit int64
	file  record.Record // without a path if there is no home

	writing chan struct{} // has an element while this process changes the record
	owed    int64         // used by turns that ended while it could not be written; of who writes
}

// dayRecord is the content of the record's file.
type dayRecord struct {
	Day    string `json:"day"`
	Tokens int64  `json:"tokens"` // used on the day
	// Running has the tokens of threads, of all their turns, up to which those of the running turn are counted.
	Running map[string]int64 `json:"running,omitempty"`
}

const (
	maxDayRecord = 1 << 20
	// maxRunning bounds the turns in the record, some of which a crash has ended.
	maxRunning = 1000
)

// DayError means that limits.tokens_per_day does not let a turn begin, or go on.
type DayError struct {
	// Err is why.
	Err error
}

// Error implements error.
func (e *DayError) Error() string { return "limits.tokens_per_day: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *DayError) Unwrap() error { return e.Err }

// LimitDay limits the tokens that turns use on a day. The record is in home and in its mirror. LimitDay must
// be called before the first thread begins; turns then need [Attendance].Turn.
func (t *Table) LimitDay(tokens int64, home string, m *store.Mirror) {
	t.daily = newDaily(tokens, home, m)
}

func newDaily(limit int64, home string, m *store.Mirror) *daily {
	d := &daily{limit: limit, file: record.Record{Lock: "day.lock", Limit: maxDayRecord, Mirror: m}, writing: make(chan struct{}, 1)}
	if home != "" {
		d.file.Path = filepath.Join(home, "codex-mcp", "day.json")
	}
	return d
}

// enter waits until no other turn of this process changes the record.
func (d *daily) enter() (leave func()) {
	d.writing <- struct{}{}
	return func() { <-d.writing }
}

// Affords returns a [*DayError] if no turn may begin now, as far as that is known before one does.
func (s *Share) Affords() error {
	d := s.table.daily
	if d == nil {
		return nil
	}
	r, err := d.read()
	if err == nil {
		err = d.spent(&r)
	}
	return refusal(err)
}

// refusal returns an error as a [*DayError].
func refusal(err error) error {
	if _, is := errors.AsType[*DayError](err); is || err == nil {
		return err
	}
	return &DayError{fmt.Errorf("the tokens of the day cannot be counted, so nothing runs: %w", err)}
}

// spent returns an error if nothing is left of the day.
func (d *daily) spent(r *dayRecord) error {
	if r.Tokens < d.limit {
		return nil
	}
	day, err := time.Parse(time.DateOnly, r.Day)
	if err != nil {
		return err
	}
	return &DayError{fmt.Errorf("%d of %d tokens are used, and the day ends at %s", r.Tokens, d.limit, day.AddDate(0, 0, 1).Format(time.RFC3339))}
}

var errNoHome = errors.New("this server has no folder to keep them in")

// read returns the record of today, or of a later day if the clock has gone back.
func (d *daily) read() (r dayRecord, err error) {
	if d.file.Path == "" {
		return r, errNoHome
	}
	data, err := d.file.Read()
	if err != nil {
		return r, err
	}
	return d.today(data)
}

// today returns the record in the content of its file.
func (d *daily) today(data []byte) (r dayRecord, err error) {
	now := time.Now().UTC()
	today := now.Format(time.DateOnly)
	if data == nil {
		return dayRecord{Day: today}, nil
	}
	if err = json.Unmarshal(data, &r, json.RejectUnknownMembers(true)); err == nil {
		err = r.check(now)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", d.file.Path, err)
	}
	if r.Day < today {
		r.Day, r.Tokens = today, 0
	}
	return r, nil
}

func (r *dayRecord) check(now time.Time) error {
	switch day, err := time.Parse(time.DateOnly, r.Day); {
	case err != nil:
		return fmt.Errorf("member day: %w", err)
	case day.After(now.AddDate(0, 0, 1)): // a clock that is set right goes back by less
		return fmt.Errorf("member day: %s has not come", r.Day)
	case r.Tokens < 0:
		return errors.New("member tokens is negative")
	}
	return nil
}

// add counts tokens.
func (r *dayRecord) add(tokens int64) { r.Tokens += min(tokens, math.MaxInt64-r.Tokens) }

// change changes the record while no other process does. When it returns nil, the change survives a crash.
// The caller has called enter.
func (d *daily) change(edit func(*dayRecord) error) (r dayRecord, err error) {
	if d.file.Path == "" {
		return r, errNoHome
	}
	err = d.file.Change(func(before []byte) (after []byte, err error) {
		if r, err = d.today(before); err != nil {
			return nil, err
		}
		r.add(d.owed)
		if r.Running == nil {
			r.Running = map[string]int64{}
		}
		if err := edit(&r); err != nil {
			return nil, err
		}
		return json.Marshal(r, json.Deterministic(true))
	})
	if err == nil {
		d.owed = 0
	}
	return r, err
}

// spending is what a running turn uses. The methods of nil do nothing.
type spending struct {
	daily  *daily
	thread string
	turn   *turnlog.Turn
	left   int64 // when the turn began
	stop   context.CancelCauseFunc

	counted int64 // the thread's tokens up to which they are counted, or -1 before the first count
}

// begin counts a turn that begins, or continues one of a process that has ended. The record is written in any
// case, so that nothing runs that could not be counted.
func (d *daily) begin(s *spending, continues bool) error {
	defer d.enter()()
	s.daily, s.counted = d, -1
	r, err := d.change(func(r *dayRecord) error {
		if at, known := r.Running[s.thread]; known && continues {
			s.counted = at
			return d.spent(r)
		}
		delete(r.Running, s.thread)
		for other := range r.Running {
			if len(r.Running) < maxRunning {
				break
			}
			delete(r.Running, other)
		}
		return d.spent(r)
	})
	s.left = d.limit - r.Tokens
	return refusal(err)
}

// uncounted returns what the turn has used and is not counted, and the tokens of its thread.
func (s *spending) uncounted() (used, thread int64) {
	turn, thread := s.turn.Used()
	if s.counted < 0 {
		return turn, thread
	}
	return max(thread-s.counted, 0), thread
}

// count counts what the turn has used, and stops it if nothing is left.
func (s *spending) count() {
	if s == nil {
		return
	}
	defer s.daily.enter()()
	used, thread := s.uncounted()
	if used == 0 {
		if thread > 0 { // perhaps less than before: an engine that counts anew
			s.counted = thread
		}
		return
	}
	r, err := s.daily.change(func(r *dayRecord) error {
		r.add(used)
		r.Running[s.thread] = thread
		return nil
	})
	if err == nil {
		s.counted = thread
		err = s.daily.spent(&r)
	}
	if err != nil {
		s.stop(refusal(err))
	}
}

// end counts what could not be counted before.
func (s *spending) end() {
	defer s.daily.enter()()
	used, _ := s.uncounted()
	_, err := s.daily.change(func(r *dayRecord) error {
		r.add(used)
		delete(r.Running, s.thread)
		return nil
	})
	if err != nil { // the next turn writes it, or does not begin
		s.daily.owed += min(used, math.MaxInt64-s.daily.owed)
	}
}

// most returns the least of the tokens that a turn may use, 0 for no limit of its own, and of what was left of
// the day.
func (s *spending) most(own int64) int64 {
	if s == nil || own > 0 && own <= s.left {
		return own
	}
	return s.left
}

// within returns f, a turn that a attends, within the limit of the day.
func (t *Thread) within(a Attendance, continues bool, f func(context.Context) error) func(context.Context) error {
	d := t.host.daily
	if d == nil {
		return f
	}
	return func(ctx context.Context) error {
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		s := &spending{thread: CanonicalID(t.ID()), turn: a.Turn, stop: stop}
		if err := d.begin(s, continues); err != nil {
			t.host.Emit(protocol.Error{Message: err.Error()})
			return &engine.TurnError{Message: err.Error()}
		}
		t.host.spends(s)
		defer s.end()
		err := f(ctx)
		if day, is := errors.AsType[*DayError](context.Cause(ctx)); is && err != nil {
			return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: day}
		}
		return err
	}
}

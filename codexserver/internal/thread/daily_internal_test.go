package thread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/store"
	"github.com/google/go-cmp/cmp"
)

// meter is a turn of the thread "t" whose engine reports tokens.
type meter struct {
	spending
	log  *turnlog.Log
	stop error
}

func newMeter(t *testing.T, d *daily, continues bool, used *protocol.TokenUsage) *meter {
	m := &meter{log: turnlog.NewStore(turnlog.MaxInMemory).New()}
	m.spending = spending{thread: "t", turn: turnlog.NewTurn(), stop: func(why error) { m.stop = why }}
	if err := d.begin(&m.spending, continues); err != nil {
		t.Fatal(err)
	}
	m.turn.Begin(protocol.SessionConfigured{}, used)
	return m
}

// report reports what the thread has used in all its turns.
func (m *meter) report(tokens int64) {
	m.log.Add(m.turn, "", protocol.TokenCount{Info: &protocol.TokenUsageInfo{TotalTokenUsage: protocol.TokenUsage{TotalTokens: tokens}}})
	m.count()
}

func (d *daily) record(t *testing.T) (r dayRecord) {
	text, err := os.ReadFile(d.file.Path)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.Day = ""
	return r
}

// TestDayAfterACrash has turns without an end. Each server has a counter of its own for the same home.
func TestDayAfterACrash(t *testing.T) {
	home := t.TempDir()
	server := func() *daily {
		return newDaily(1000, home, nil)
	}
	check := func(when string, want dayRecord) {
		t.Helper()
		if diff := cmp.Diff(want, server().record(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	running := func(n int64) map[string]int64 { return map[string]int64{"t": n} }

	before := &protocol.TokenUsage{TotalTokens: 500}
	m := newMeter(t, server(), false, before)
	m.log.Add(m.turn, "", protocol.TokenCount{}) // of a limit of the account
	m.count()
	m.report(500) // of the turns before
	m.report(530)
	m.report(530)
	check("the first server", dayRecord{Tokens: 30, Running: running(530)})
	m = newMeter(t, server(), true, before) // the engine also knows what was not counted
	m.report(560)
	check("the second server", dayRecord{Tokens: 60, Running: running(560)})
	m = newMeter(t, server(), true, nil) // which does not know what the thread had used
	m.report(570)
	m.report(20) // the engine counts anew
	m.report(40)
	check("the third server", dayRecord{Tokens: 90, Running: running(40)})
	m = newMeter(t, server(), false, &protocol.TokenUsage{TotalTokens: 600}) // the turn was not continued
	check("another turn", dayRecord{Tokens: 90})
	m.report(605)
	m.end()
	check("its end", dayRecord{Tokens: 95})
	if m.stop != nil {
		t.Error(m.stop)
	}
	beside := newMeter(t, server(), false, nil)
	beside.report(1000)
	m.report(math.MaxInt64)
	check("a count that is too high", dayRecord{Tokens: math.MaxInt64, Running: running(math.MaxInt64)})
	if day, is := errors.AsType[*DayError](m.stop); !is || day.Err == nil {
		t.Errorf("the turn is stopped by %v", m.stop)
	}
}

// TestDayMost compares the limit of a turn with what is left of the day.
func TestDayMost(t *testing.T) {
	s := &spending{left: 10}
	for own, want := range map[int64]int64{0: 10, 9: 9, 10: 10, 11: 10} {
		if got := s.most(own); got != want {
			t.Errorf("%d: %d, want %d", own, got, want)
		}
		if got := (*spending)(nil).most(own); got != own {
			t.Errorf("%d without a day: %d", own, got)
		}
	}
}

// TestDayNotWritten loses the folder of the record during a turn, which stops it. The server counts the tokens when
// the folder is back.
func TestDayNotWritten(t *testing.T) {
	home := t.TempDir()
	d := newDaily(1000, home, nil)
	dir, away := filepath.Dir(d.file.Path), filepath.Join(home, "away")
	m := newMeter(t, d, false, nil)
	m.report(10)
	if err := errors.Join(os.Rename(dir, away), os.WriteFile(dir, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	m.report(30)
	if _, is := errors.AsType[*DayError](m.stop); !is {
		t.Errorf("the turn is stopped by %v", m.stop)
	}
	m.end()
	if err := d.begin(&spending{}, false); err == nil {
		t.Error("another turn begins")
	}
	if err := errors.Join(os.Remove(dir), os.Rename(away, dir)); err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		if err := d.begin(&spending{thread: fmt.Sprint(n), stop: context.CancelCauseFunc(nil)}, false); err != nil {
			t.Error(err)
		}
		if got := d.record(t); got.Tokens != 30 {
			t.Errorf("%d tokens are counted, want 30", got.Tokens)
		}
	}
}

// TestDayOfManyTurns has more turns without an end than the record has.
func TestDayOfManyTurns(t *testing.T) {
	d := newDaily(10, t.TempDir(), nil)
	if _, err := d.change(func(r *dayRecord) error {
		for n := range 2 * maxRunning {
			r.Running[fmt.Sprint(n)] = math.MaxInt64
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	m := newMeter(t, d, false, nil)
	m.report(1)
	if got := d.record(t); len(got.Running) != maxRunning || got.Tokens != 1 {
		t.Errorf("%d turns, %d tokens", len(got.Running), got.Tokens)
	}
}

// TestDayElsewhere goes on with the record on another machine, and has turns while the store is gone.
func TestDayElsewhere(t *testing.T) {
	shared, err := store.OpenDir(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for n := range int64(3) {
		home := t.TempDir()
		m, err := store.Open(t.Context(), home, shared, nil)
		if err != nil {
			t.Fatal(err)
		}
		d := newDaily(1000, home, m)
		turn := newMeter(t, d, false, nil)
		turn.report(10)
		turn.end()
		if got := d.record(t).Tokens; got != 10*(n+1) {
			t.Errorf("machine %d: %d tokens", n, got)
		}
		turn = newMeter(t, d, false, nil)
		m.Close()
		turn.report(10)
		if turn.stop == nil {
			t.Error("the turn goes on without the store")
		}
		if err := d.begin(&spending{}, false); err == nil {
			t.Error("a turn begins without the store")
		}
	}
	if err := shared.Close(); err != nil {
		t.Error(err)
	}
}

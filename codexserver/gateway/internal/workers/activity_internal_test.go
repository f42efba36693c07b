package workers

import (
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/internal/workerlink"
)

// TestWork checks when a worker only waits, by what it has reported so far.
func TestWork(t *testing.T) {
	type o = workerlink.Observation
	step := func(turn uint64, what workerlink.What, call string) o {
		return o{Kind: workerlink.KindStep, Turn: turn, Step: workerlink.Step{What: what, Call: call}}
	}
	task := []o{{Kind: workerlink.KindBegin, Call: 1}, {Kind: workerlink.KindTurnBegin, Call: 1, Turn: 2}, {Kind: workerlink.KindEnd, Call: 1}} // its call ends before the turn
	asked := append(task[:3:3], o{Kind: workerlink.KindAsked, Turn: 2, Question: 3})
	for name, tt := range map[string]struct {
		reports     []o
		turns, busy int64
	}{
		"nothing":                         {nil, 0, 0},
		"a call without a turn":           {task[:1], 0, 0},
		"a turn that runs":                {task, 1, 1},
		"a question":                      {asked, 1, 0},
		"a decision":                      {append(asked[:4:4], o{Kind: workerlink.KindDecided, Turn: 2, Question: 3}), 1, 1},
		"one of two decisions":            {append(asked[:4:4], o{Kind: workerlink.KindAsked, Turn: 2, Question: 4}, o{Kind: workerlink.KindDecided, Turn: 2, Question: 3}), 1, 0},
		"a command beside a question":     {append(asked[:4:4], step(2, workerlink.Runs, "c")), 1, 1},
		"a command that has ended":        {append(asked[:4:4], step(2, workerlink.Runs, "c"), step(2, workerlink.Ran, "c")), 1, 0},
		"a tool, and another command":     {append(asked[:4:4], step(2, workerlink.Calls, "d"), step(2, workerlink.Ran, "c")), 1, 1},
		"the end of a turn":               {append(asked[:4:4], o{Kind: workerlink.KindTurnEnd, Turn: 2}), 0, 0},
		"the end of a turn that runs":     {append(task[:3:3], o{Kind: workerlink.KindTurnEnd, Turn: 2}), 0, 0},
		"a call that waits for its turn":  {append(task[:2:2], o{Kind: workerlink.KindAsked, Turn: 2, Question: 3}), 1, 1},
		"a question and a turn that runs": {append(asked[:4:4], o{Kind: workerlink.KindTurnBegin, Call: 1, Turn: 5}), 2, 1},
		"ends that nothing has":           {[]o{{Kind: workerlink.KindTurnEnd, Turn: 2}, {Kind: workerlink.KindEnd, Call: 1}, {Kind: workerlink.KindDecided, Turn: 2, Question: 3}}, 0, 0},
		"a turn that begins twice":        {append(asked[:4:4], task[1]), 1, 1},
	} {
		w := newWork()
		for i := range tt.reports {
			w.observe(&tt.reports[i])
		}
		if turns, busy := w.turns.Load(), w.busy.Load(); turns != tt.turns || busy != tt.busy {
			t.Errorf("%s: %d turns, %d busy; want %d, %d", name, turns, busy, tt.turns, tt.busy)
		}
	}
}

// TestWorkBounds checks that what a worker reports without end is not remembered, and counts as busy.
func TestWorkBounds(t *testing.T) {
	w := newWork()
	w.observe(&workerlink.Observation{Kind: workerlink.KindTurnBegin, Turn: 1})
	for i := range uint64(3 * maxReplayed) {
		w.observe(&workerlink.Observation{Kind: workerlink.KindBegin, Call: i})
		w.observe(&workerlink.Observation{Kind: workerlink.KindTurnBegin, Call: i, Turn: 2 + i})
		w.observe(&workerlink.Observation{Kind: workerlink.KindAsked, Turn: 1, Question: i})
	}
	if len(w.calls) != maxReplayed || len(w.open) != maxReplayed || len(w.open[1].questions) != maxInTurn {
		t.Errorf("it remembers %d calls, %d turns, %d questions", len(w.calls), len(w.open), len(w.open[1].questions))
	}
	for i := range uint64(3 * maxReplayed) {
		w.observe(&workerlink.Observation{Kind: workerlink.KindTurnEnd, Turn: 1 + i})
	}
	if w.busy.Load() <= 0 {
		t.Error("it looks as if nothing ran")
	}
}

// TestKillTellsNothing checks that a worker that is killed does not learn that it ends: it would record that its turns
// have ended, and the next one would not continue them.
func TestKillTellsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made []*fakeWorker
		p := idlePool(0, &made)
		messages, control := io.Pipe()
		w := newWorker(p.log, challenger{})
		dies := sync.OnceFunc(func() { time.AfterFunc(time.Second, func() { close(w.exited) }) }) // the machine is busy
		w.control, w.kill = control, func() error { dies(); return nil }
		learned := make(chan bool, 1)
		go func() {
			_, _ = io.Copy(io.Discard, messages)
			learned <- w.alive()
		}()
		p.slots["ann"].worker = w
		p.Kill("ann")
		if w.alive() || <-learned {
			t.Error("the worker learns of its end before it is dead")
		}
	})
}

// TestActivity checks what a worker does, by its reports and its load.
func TestActivity(t *testing.T) {
	synctest.Test(t, testActivity) // a worker that is silent takes time
}

func testActivity(t *testing.T) {
	var made []*fakeWorker
	p := idlePool(0, &made)
	if got := p.Activity(t.Context(), "ann"); got != Idle {
		t.Errorf("without a worker: %v", got)
	}
	w, leave := connect(t, p)
	leave()
	for _, tt := range []struct {
		busy, parked, silent bool // its load
		next                 workerlink.Observation
		want                 Activity
	}{
		{false, false, false, workerlink.Observation{}, Idle},
		{true, false, false, workerlink.Observation{}, Busy},
		{true, false, false, workerlink.Observation{Kind: workerlink.KindTurnBegin, Turn: 1}, Busy},
		{true, false, false, workerlink.Observation{Kind: workerlink.KindAsked, Turn: 1, Question: 2}, Waiting},
		{true, true, false, workerlink.Observation{}, Busy}, // only this worker can take the answer
		{true, false, true, workerlink.Observation{}, Busy},
		{true, false, false, workerlink.Observation{}, Waiting},
		{true, false, false, workerlink.Observation{Kind: workerlink.KindDecided, Turn: 1, Question: 2}, Busy},
		{false, false, false, workerlink.Observation{Kind: workerlink.KindTurnEnd, Turn: 1}, Idle},
	} {
		made[0].set(tt.busy, tt.silent)
		made[0].park(tt.parked)
		w.work.observe(&tt.next)
		if got := p.Activity(t.Context(), "ann"); got != tt.want {
			t.Errorf("after %+v: %v, want %v", tt.next, got, tt.want)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

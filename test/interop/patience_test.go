package interop

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

var (
	turnLength = flag.Duration("turn-length", 30*time.Second, "how long the turns take that TestClients delegates to the background")
	callLimit  = flag.Duration("call-limit", 10*time.Second, "how long each call of codex-wait may take there")
)

// background hands over turns that take several times as long as a call may, with
// two approvals each, by the argument background and codex-wait. They wait side by side,
// as one test.
func background(t *testing.T, server []string, engines []engine) {
	ctx, cancel := context.WithTimeout(t.Context(), *turnLength+3*limit)
	defer cancel()
	var running sync.WaitGroup
	defer running.Wait()
	for _, e := range engines {
		for version, c := range map[string]gosdk{modern: {}, legacy: {legacy}} {
			m := &meeting{witness: &witness{answer: "accept"}, engine: e, version: version, model: providertest.New(), cwd: t.TempDir()}
			s := e.open(t, server, newHome(t, m.model, e.wire), m.cwd)
			s.Asks = true
			running.Go(func() {
				defer m.model.Close()
				summary, err := m.patient(ctx, c, s)
				if err != nil {
					t.Errorf("%s, %s: %v", e.name, version, err)
				}
				for i := range 2 {
					m.made(t, true, fmt.Sprint("made", i))
				}
				if asked, _ := m.seen(); len(asked) != 2 {
					t.Errorf("%s, %s: asked %q", e.name, version, asked)
				}
				t.Logf("%s, %s: %s", e.name, version, summary)
			})
		}
	}
}

// patient hands over the turn, waits for its end with calls of limited length, and
// reports them.
func (m *meeting) patient(ctx context.Context, c client, s setup) (summary string, err error) {
	if m.session, err = c.connect(ctx, s, m.witness); err != nil {
		return "", err
	}
	defer m.close()
	turns := []providertest.Turn{
		providertest.Call(m.engine.run("call_0", "touch", "made0")), providertest.Call(m.engine.run("call_1", "touch", "made1")), providertest.Say("done"),
	}
	for i, turn := range turns {
		ready := make(chan struct{})
		defer time.AfterFunc(*turnLength*time.Duration(i+1)/3, func() { close(ready) }).Stop()
		turn.Wait = ready
		m.model.Add(turn)
	}
	begun, calls, longest := time.Now(), 0, time.Duration(0)
	within := func(limit time.Duration, c call) (result, error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		start := time.Now()
		r, err := m.call(ctx, c)
		calls, longest = calls+1, max(longest, time.Since(start))
		if err != nil {
			err = fmt.Errorf("call %d, begun at %v, ended at %v: %w", calls, start.Sub(begun), time.Since(begun), err)
		}
		return r, err
	}
	// The first call starts a Codex, which takes as long here as with a client that waits a minute.
	first, err := within(time.Minute, m.task(map[string]any{"background": true}))
	if err != nil {
		return "", err
	}
	// A question that opens when the wait ends is asked, and then the call waits once more.
	wait := map[string]any{"seconds": callLimit.Seconds() / 5}
	if m.modern() && m.engine.over != overStdio {
		wait["threadIds"] = []string{first.Structured.ThreadID} // several clients share what runs there
	}
	for {
		r, err := within(*callLimit, call{Tool: "codex-wait", Arguments: wait})
		if err != nil {
			return "", err
		}
		rows := r.Structured.Threads
		if len(rows) != 1 || rows[0].ThreadID != first.Structured.ThreadID {
			return "", fmt.Errorf("codex-wait: %+v, want the thread %s", rows, first.Structured.ThreadID)
		}
		switch row := rows[0]; {
		case row.Status == "running" || row.Status == "waiting":
		case row.Status == "completed" && row.Content == "done" && time.Since(begun) >= *turnLength:
			return fmt.Sprintf("a turn of %v in %d calls, the longest took %v",
				time.Since(begun).Round(time.Second/10), calls, longest.Round(time.Second/10)), nil
		default:
			return "", fmt.Errorf("codex-wait: %+v after %v", row, time.Since(begun))
		}
	}
}

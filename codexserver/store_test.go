package codexserver_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker/workertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// fencedOff returns a mirror of a home whose store another server has taken over, and the folder
// of that store. Before that it calls use.
func fencedOff(t *testing.T, home string, use func(*worker.Mirror)) string {
	t.Helper()
	disk := t.TempDir()
	m, _ := workertest.Mirror(t, home, disk, 1)
	use(m)
	must.Get(workertest.OpenDir(disk, 2))(t)
	use(m)
	return disk
}

// An approval counts if the store has it. Otherwise it is denied, and the record of the server does not have it either.
func TestStoreOfDecisions(t *testing.T) {
	var answers []string
	var record strings.Builder
	home := t.TempDir()
	disk := fencedOff(t, home, func(m *worker.Mirror) {
		s := codexserver.New(engine.TurnFunc(pusher), &codexserver.Options{Home: home, Store: m, Record: &record})
		answer, err := s.Run(t.Context(), codexserver.Turn{Prompt: "p", Approve: func(context.Context, *approval.Request) elicit.Outcome {
			return elicit.Outcome{Decision: elicit.Approved}
		}})
		must.Check(t, err)
		answers = append(answers, answer.Text)
	})
	if len(answers) != 2 || answers[0] != `p: approved ""` || !strings.HasPrefix(answers[1], "p: denied") || !strings.Contains(answers[1], worker.ErrFenced.Error()) {
		t.Errorf("%q", answers)
	}
	paths, err := filepath.Glob(filepath.Join(disk, "codex-mcp", "decisions", "*"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("%v, %v", paths, err)
	}
	text, err := os.ReadFile(paths[0])
	if err != nil || string(text) != record.String() || strings.Count(record.String(), "\n") != 1 {
		t.Errorf("%v; the store has\n%s\nthe record has\n%s", err, text, record.String())
	}
}

// A call that begins a turn is refused, and nothing begins, if the store takes no writes.
func TestStoreBeforeTurns(t *testing.T) {
	began := 0
	turn := func(_ context.Context, host engine.Host, _ []protocol.InputItem) error {
		began++
		host.Emit(protocol.AgentMessage{Message: "hello"})
		return nil
	}
	home := t.TempDir()
	var answers []string
	fencedOff(t, home, func(m *worker.Mirror) {
		s := codexserver.New(engine.TurnFunc(turn), &codexserver.Options{Home: home, Store: m})
		c := must.Get(client.Start(t.Context(), &client.Options{Server: s}))(t)
		r, err := c.Run(t.Context(), client.Task{Prompt: "p"})
		if err != nil {
			answers = append(answers, err.Error())
		} else {
			answers = append(answers, r.Answer)
		}
		must.Check(t, c.Close())
	})
	if began != 1 || len(answers) != 2 || answers[0] != "hello" || !strings.Contains(answers[1], worker.ErrFenced.Error()) {
		t.Errorf("%d turns: %q", began, answers)
	}
}

package mcptool_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// forker is an engine whose conversations can be copied.
type forker struct {
	*servertest.Engine
	from []string
}

func (f *forker) Resume(context.Context, string, protocol.Config, engine.Host) (engine.Conversation, error) {
	return nil, &engine.RefusedError{Err: fmt.Errorf("another program has it open")}
}

func (f *forker) FindRollout(_ context.Context, id string) (string, error) { return "/" + id, nil }

func (f *forker) Fork(ctx context.Context, path string, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	f.from = append(f.from, path)
	return f.Start(ctx, cfg, host)
}

// TestForkCall continues a copy of a conversation that another program has open.
func TestForkCall(t *testing.T) {
	const held = "0199a2b3-0000-7000-8000-000000000001"
	e := &forker{Engine: newListener()}
	c := servertest.Dial(t, codexserver.New(e, nil), nil)
	call := func(more string) string {
		return c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"threadId":%q,"prompt":"the end"%s}}`, held, more))
	}
	if got := call(""); !strings.Contains(got, "another program has it open") || !strings.Contains(got, `"isError":true`) {
		t.Errorf("without fork: %s", got)
	}
	got := call(`,"fork":true`)
	if !strings.Contains(got, `"content":"the end`) || !strings.Contains(got, "a copy of the conversation "+held) || servertest.ThreadOf(t, got) == held {
		t.Errorf("with fork: %s", got)
	}
	if len(e.from) != 1 || e.from[0] != "/"+held {
		t.Errorf("copied %q", e.from)
	}
	if got := call(`,"fork":true,"while-running":"steer"`); !strings.Contains(got, "argument /while-running") {
		t.Errorf("with steer: %s", got)
	}
	// An engine that cannot.
	c = servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.Echo), nil), nil)
	if got := call(`,"fork":true`); !strings.Contains(got, "cannot copy conversations") {
		t.Errorf("another engine: %s", got)
	}
}

package mcptool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// joint is an engine in whose conversations another program runs a turn.
type joint struct {
	*servertest.Engine
	ended chan struct{}
	host  engine.Host
	said  []string
}

func (e *joint) Start(ctx context.Context, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	c, err := e.Engine.Start(ctx, cfg, host)
	e.host = host
	return &jointConversation{c, e}, err
}

type jointConversation struct {
	engine.Conversation
	engine *joint
}

func (c *jointConversation) Elsewhere() <-chan struct{} {
	select {
	case <-c.engine.ended:
		return nil
	default:
		return c.engine.ended
	}
}

func (c *jointConversation) Steer(_ context.Context, items []protocol.InputItem) error {
	c.engine.said = append(c.engine.said, protocol.TextOf(items))
	return nil
}

// TestElsewhere waits for a turn that another program runs in the conversation, steers it and
// shows it.
func TestElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &joint{Engine: newListener(), ended: make(chan struct{})}
		c := servertest.Dial(t, codexserver.New(e, nil), nil)
		id := servertest.ThreadOf(t, c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"the end","background":true}}`))
		call := func(tool, arguments string) string {
			return c.Ask(t, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":{%s}}`, tool, arguments))
		}
		call("codex-wait", fmt.Sprintf(`"threadIds":[%q]`, id)) // the own turn has ended
		engine.Overhear(e.host, "t", protocol.TaskStarted{})
		engine.Overhear(e.host, "t", protocol.AgentMessage{Message: "said in the terminal"})
		if got := call("codex-reply", fmt.Sprintf(`"threadId":%q,"prompt":"use tabs","while-running":"steer"`, id)); !strings.Contains(got, `"status":"running"`) || len(e.said) != 1 {
			t.Errorf("steered: %s, %q", got, e.said)
		}
		if got := call("codex-show", fmt.Sprintf(`"threadId":%q,"what":"transcript"`, id)); !strings.Contains(got, "a turn of another program") || !strings.Contains(got, "said in the terminal") {
			t.Errorf("shown: %s", got)
		}
		begun := time.Now()
		time.AfterFunc(10*time.Second, func() { close(e.ended) })
		if got := call("codex-wait", fmt.Sprintf(`"threadIds":[%q],"seconds":3`, id)); !strings.Contains(got, "Another program runs a turn") || time.Since(begun) != 3*time.Second {
			t.Errorf("after %s: %s", time.Since(begun), got)
		}
		if got := call("codex-wait", fmt.Sprintf(`"threadIds":[%q],"seconds":60`, id)); strings.Contains(got, "Another program") || time.Since(begun) != 10*time.Second {
			t.Errorf("after %s: %s", time.Since(begun), got)
		}
	})
}

// possessed is an engine of whose conversations another program has one.
type possessed struct{ *servertest.Engine }

func (possessed) Traits() engine.Traits {
	return engine.Traits{Holder: func(_ context.Context, id string) error {
		if id == "theirs" {
			return errors.New("another server (process 7 on host) has been running a turn")
		}
		return nil
	}}
}

// TestWaitNamesTheHolder waits for a conversation that was never open here. The result names the
// process that runs a turn of it, as codex-reply does.
func TestWaitNamesTheHolder(t *testing.T) {
	c := servertest.Dial(t, codexserver.New(possessed{newListener()}, nil), nil)
	got := c.Ask(t, "tools/call", `{"name":"codex-wait","arguments":{"threadIds":["theirs","nobodys"],"seconds":0}}`)
	for _, want := range []string{"theirs (running): another server (process 7 on host)", "nobodys (unknown)"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %s", want, got)
		}
	}
}

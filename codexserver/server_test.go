package codexserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// TestNoChecker refuses the check of a call, and that of the settings, where the engine runs none.
func TestNoChecker(t *testing.T) {
	e := engine.TurnFunc(func(context.Context, engine.Host, []protocol.InputItem) error { panic("the turn ran") })
	for check, member := range map[string]string{"": `,"check":"true"`, "true": ""} {
		c := servertest.Connect(t, codexserver.New(e, &codexserver.Options{Calls: codexserver.CallOptions{Check: check}}), nil)
		if got := c.CallTool(t, "codex", `{"prompt":"p"`+member+`}`); !strings.Contains(got, "this engine runs no checks") || !strings.Contains(got, `"isError":true`) {
			t.Errorf("%q%s: %s", check, member, got)
		}
	}
}

// TestHome asks a question and says much. Without a home nothing is written anywhere; with one, the log of the
// conversation is kept in its folder for temporary files.
func TestHome(t *testing.T) {
	for _, home := range []string{"", "home"} {
		t.Chdir(t.TempDir())
		o := &codexserver.Options{Changes: codexserver.ChangeOptions{Read: new(false)}, Calls: codexserver.CallOptions{Tools: []string{}}}
		if home != "" {
			o.Home = filepath.Join(t.TempDir(), home)
		}
		c := servertest.Dial(t, codexserver.New(engine.TurnFunc(func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
			host.Emit(protocol.AgentMessage{Message: strings.Repeat("x", 1<<20)})
			return servertest.AskExec(ctx, host, in)
		}), o), nil)
		got := c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p"},"_meta":`+servertest.Capable(`"elicitation":{}`)+`}`)
		if !strings.Contains(got, `"inputRequests"`) {
			t.Error(got)
		}
		if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
			t.Errorf("left %v, %v", left, err)
		}
		open, err := filepath.Glob("/proc/self/fd/*") // the log has no name any more
		if runtime.GOOS != "linux" {
			continue
		}
		kept := slices.ContainsFunc(open, func(fd string) bool {
			file, _ := os.Readlink(fd)
			return strings.HasPrefix(file, filepath.Join(o.Home, "tmp", "log-"))
		})
		if kept != (home != "") || err != nil {
			t.Errorf("home %q: the log is in a file of it: %t, %v", home, kept, err)
		}
	}
}

func TestEveryRequestIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.AskExec), nil), nil)
		for _, tt := range []struct {
			method, params string
			want           jsonrpc.Code
		}{
			{"server/discover", `{}`, jsonrpc.CodeMethodNotFound}, // says no version
			{"prompts/list", `{}`, jsonrpc.CodeMethodNotFound},
			{"resources/read", `{}`, jsonrpc.CodeMethodNotFound},
			{"initialize", `{"protocolVersion":5}`, jsonrpc.CodeInvalidParams},
			{"tools/call", `{"arguments":{}}`, jsonrpc.CodeInvalidParams},
			{"tools/call", `{"name":7}`, jsonrpc.CodeInvalidParams},
			{"logging/setLevel", `{"level":"loud"}`, jsonrpc.CodeInvalidParams},
		} {
			err := c.Call(t.Context(), tt.method, json.RawMessage(tt.params), nil)
			if !errors.Is(err, tt.want) {
				t.Errorf("%s %s: %v, want %v", tt.method, tt.params, err, tt.want)
			}
		}
		if err := c.Call(t.Context(), "ping", nil, nil); err != nil {
			t.Errorf("ping: %v", err)
		}
	})
}

package interop

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/appserver"
	coreengine "github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/contrib/gosdkmcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// delegate hands over a task in a folder to a server in the same process, answers its question, and
// returns the result.
func delegate(ctx context.Context, server *codexserver.Server, cwd, answer string, asked func(string)) (string, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "interop-inprocess", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, q *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked(q.Params.Message)
			return &mcp.ElicitResult{Action: answer}, nil
		},
	})
	session, err := client.Connect(ctx, &gosdkmcp.Transport{Server: server}, nil)
	if err != nil {
		return "", err
	}
	var said result
	r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "codex", Arguments: map[string]any{
		"prompt": "the task", "cwd": cwd, "approval-policy": "untrusted", "sandbox": "danger-full-access",
	}})
	if err == nil {
		said, err = asResult(r)
	}
	if err == nil && len(said.Content) == 0 {
		err = errors.New("a result without text")
	}
	if err = errors.Join(err, session.Close()); err != nil {
		return "", err
	}
	return said.Content[0].Text, nil
}

// inProcess returns the engine that a program embeds.
func inProcess(e engine, home, codex string) (interface {
	coreengine.Engine
	io.Closer
}, error) {
	if e.name == "native" {
		return native.New(&native.Options{CodexHome: home})
	}
	return appserver.New(&appserver.Options{Path: codex, CodexHome: home})
}

// A program that embeds the server runs a turn with an approval, on both engines.
func TestInProcess(t *testing.T) {
	t.Setenv("HOME", t.TempDir()) // Codex runs commands in login shells, which read what is there
	for _, e := range engines(t) {
		if e.over != overStdio {
			continue
		}
		for _, answer := range []string{"accept", "decline", "cancel"} {
			t.Run(e.name+"/"+answer, func(t *testing.T) {
				t.Parallel()
				embed(t, e, answer)
			})
		}
	}
}

// embed plays one cell.
func embed(t *testing.T, e engine, answer string) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	provider := providertest.New(providertest.Call(e.run("call_1", "touch", "made")), providertest.Say("done"))
	defer provider.Close()
	cwd := t.TempDir()
	core, err := inProcess(e, newHome(t, provider, e.wire), newest(t))
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	var mu sync.Mutex
	var asked []string
	said, err := delegate(ctx, codexserver.New(core, nil), cwd, answer, func(message string) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, message)
	})
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 1 || !strings.Contains(asked[0], "touch made") {
		t.Errorf("asked %q", asked)
	}
	if _, err := os.Stat(filepath.Join(cwd, "made")); (err == nil) != (answer == "accept") {
		t.Errorf("the command ran: %v", err == nil)
	}
	if done := strings.Contains(said, "done"); done != (answer != "cancel") {
		t.Errorf("the result: %q", said)
	}
}

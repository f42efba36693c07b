package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/memdir"
)

func TestMain(m *testing.M) {
	native.Main() // does not return in a launcher
	os.Exit(memdir.Run(m))
}

// asking is an engine of which a turn asks about two actions, one after the other, unless the first
// answer aborts it.
type asking struct {
	engine engine.Engine
	folder string // of the work
	// ready, unless nil, is called with the conversation's id, before the first question.
	ready func(conversation string)

	mu   sync.Mutex
	done []string // the actions that were carried out: one, two
}

// did records an action.
func (a *asking) did(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done = append(a.done, what)
}

// ran returns the actions that were carried out.
func (a *asking) ran() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.done, " ")
}

// askingEngines are the engines by name.
var askingEngines = map[string]func(t *testing.T) *asking{
	"native":   askingModel,
	"codex":    func(*testing.T) *asking { return askingAsCodex(false) },
	"a person": func(*testing.T) *asking { return askingAsCodex(true) },
}

// askingModel returns the native engine with a model that adds two files.
func askingModel(t *testing.T) *asking {
	home, work := t.TempDir(), t.TempDir()
	config := "model = \"m\"\nmodel_provider = \"p\"\napproval_policy = \"untrusted\"\nsandbox_mode = \"danger-full-access\"\n" +
		"[model_providers.p]\nbase_url = \"http://provider.test\"\nwire_api = \"chat\"\n"
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	a, requests := &asking{folder: work}, 0
	provider := roundTrip(func(r *http.Request) (*http.Response, error) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
		names := []string{"one", "two"}
		if requests == 0 && a.ready != nil {
			rollouts, err := filepath.Glob(filepath.Join(home, "sessions", "*", "*", "*", "*.jsonl"))
			if err != nil || len(rollouts) != 1 {
				return nil, fmt.Errorf("rollouts %v: %w", rollouts, err)
			}
			name := strings.TrimSuffix(filepath.Base(rollouts[0]), ".jsonl")
			a.ready(name[len(name)-36:])
		}
		if requests > 0 && requests <= len(names) {
			if _, err := os.Stat(filepath.Join(work, names[requests-1])); err == nil {
				a.did(names[requests-1])
			}
		}
		delta, end := `"content":"done"`, "stop"
		if requests < len(names) {
			patch, err := json.Marshal(map[string][]string{"command": {"apply_patch", "*** Begin Patch\n*** Add File: " + names[requests] + "\n+x\n*** End Patch\n"}})
			if err != nil {
				return nil, err
			}
			delta, end = fmt.Sprintf(`"tool_calls":[{"index":0,"id":"c%d","type":"function","function":{"name":"shell","arguments":%q}}]`, requests, patch), "tool_calls"
		}
		requests++
		stream := fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"delta\":{%s}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", delta, end)
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(stream)), Request: r}, nil
	})
	e, err := native.New(&native.Options{CodexHome: home, Environ: []string{"HOME=" + home}, HTTPClient: &http.Client{Transport: provider}})
	if err != nil {
		t.Fatal(err)
	}
	a.engine = e
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// roundTrip is the transport of a provider without a network.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// askingAsCodex returns an engine that asks about two commands as the bridge does, of a person only if
// human, and runs those that are approved.
func askingAsCodex(human bool) *asking {
	a := &asking{folder: "/work"}
	e := &servertest.Engine{}
	e.Turn = func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
		if a.ready != nil {
			a.ready(e.Started()[0].ID)
		}
		for _, name := range []string{"one", "two"} {
			out := host.ApproveExec(ctx, protocol.ExecApprovalRequest{
				CallID: name, Command: []string{"/bin/bash", "-lc", "touch " + name},
				Cwd: a.folder, LeavesSandbox: true, Once: true, Human: human,
			})
			switch {
			case out.Decision == elicit.Abort:
				return &engine.AbortError{Cause: errors.New("the client chose to abort the turn")}
			case out.Decision.Approves():
				a.did(name)
			}
		}
		return nil
	}
	a.engine = e
	return a
}

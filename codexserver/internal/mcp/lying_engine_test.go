package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

func TestMain(m *testing.M) {
	native.Main() // does not return in a keeper process
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
	"bridge":   func(t *testing.T) *asking { return askingCodex(t, "command") },
	"a person": func(t *testing.T) *asking { return askingCodex(t, "humanCommand") },
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

// askingCodex returns the bridge to an app-server that asks about two commands of a kind, and runs
// those that are accepted.
func askingCodex(t *testing.T, kind string) *asking {
	const thread = "0199a2b3-0000-7000-8000-000000000001"
	const ids = `"threadId":"` + thread + `","turnId":"u"`
	a := &asking{folder: "/work"}
	var running sync.WaitGroup
	dial := func(context.Context) (jsonrpc.Transport, error) {
		ours, theirs := jsonrpc.Pipe()
		ctx, stop := context.WithCancel(context.Background())
		var peer *jsonrpc.Peer
		notify := func(method, params string) { _ = peer.Notify(ctx, method, json.RawMessage(params)) }
		finish := func(status string) {
			notify("turn/completed", `{"threadId":"`+thread+`","turn":{"id":"u","status":"`+status+`","items":[],"error":null}}`)
		}
		play := func() {
			if a.ready != nil {
				a.ready(thread)
			}
			for _, name := range []string{"one", "two"} {
				command := `"command":"/bin/bash -lc 'touch ` + name + `'","cwd":"/work"`
				if kind == "command" {
					notify("item/started", `{`+ids+`,"item":{"type":"commandExecution","id":"`+name+`",`+command+`,"status":"inProgress","commandActions":[]}}`)
				}
				var said struct {
					Decision string `json:"decision"`
				}
				err := peer.Call(ctx, "item/commandExecution/requestApproval", json.RawMessage(`{"kind":"`+kind+`",`+ids+`,"itemId":"`+name+`",`+command+`}`), &said)
				switch {
				case err != nil || said.Decision == "cancel":
					finish("interrupted")
					return
				case said.Decision == "accept":
					a.did(name)
				}
			}
			finish("completed")
		}
		peer = jsonrpc.NewPeer(theirs, jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (any, error) {
			switch r.Method {
			case "initialize":
				return json.RawMessage(`{"userAgent":"codex_mcp/0.169.0 (Test; x86_64) unknown (codex_mcp; dev)","codexHome":"/nowhere"}`), nil
			case "config/read":
				return json.RawMessage(`{"config":{"model":"m"}}`), nil
			case "thread/start":
				return json.RawMessage(`{"thread":{"id":"` + thread + `","path":"/rollout.jsonl","turns":[],"status":{"type":"idle"}},"model":"m","modelProvider":"p","cwd":"/work","approvalPolicy":"on-request","approvalsReviewer":"user","sandbox":{"type":"readOnly"},"reasoningEffort":null}`), nil
			case "turn/start":
				notify("turn/started", `{"threadId":"`+thread+`","turn":{"id":"u","status":"inProgress","items":[]}}`)
				running.Go(play)
				return json.RawMessage(`{"turn":{"id":"u","status":"inProgress","items":[]}}`), nil
			case "account/read":
				return json.RawMessage(`{"account":null,"requiresOpenaiAuth":false}`), nil
			case "turn/steer":
				return json.RawMessage(`{"turnId":"u"}`), nil
			}
			return struct{}{}, nil
		}), &jsonrpc.Options{OmitVersion: true})
		running.Go(func() { defer stop(); _ = peer.Run(ctx) })
		return ours, nil
	}
	e, err := appserver.New(&appserver.Options{Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	a.engine = e
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		running.Wait()
	})
	return a
}

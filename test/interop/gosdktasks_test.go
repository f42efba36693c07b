package interop

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/internal/mcpcall"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/internal/moduleproxy"
	"github.com/google/go-cmp/cmp"
)

// serveTasks starts the server of the official Go SDK with the tasks of contrib/gosdk, which is built in a module of its
// own, as somebody else would build it: the modules come from a proxy of files.
func serveTasks(t *testing.T) remote {
	t.Helper()
	dir, root := t.TempDir(), filepath.Join("..", "..")
	source := filepath.Join(root, "contrib", "gosdk", "taskserver")
	if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	env, bin := moduleproxy.Environment(t, root, "contrib"), filepath.Join(dir, "taskserver")
	for _, args := range [][]string{{"mod", "init", "example.test/taskserver"}, {"get", "."}, {"build", "-o", bin, "."}} {
		moduleproxy.Command(t, dir, env, args...)
	}
	url := start(t, []string{bin}, nil, func(cmd *exec.Cmd) (io.ReadCloser, error) { return cmd.StdoutPipe() }, "http://")
	return remote{URL: "http://" + url}
}

// TestConformanceOfSDKTasks has the newest suite test the tasks of a server of the official SDK.
func TestConformanceOfSDKTasks(t *testing.T) {
	t.Parallel()
	var scenarios []string
	for _, name := range (selection{alpha, ""}).scenarios(t)["server"] {
		if strings.HasPrefix(name, "tasks-") {
			scenarios = append(scenarios, name)
		}
	}
	if len(scenarios) < 10 {
		t.Fatalf("the suite has only %q", scenarios)
	}
	server := serveTasks(t)
	for _, scenario := range scenarios {
		t.Run(scenario, func(t *testing.T) {
			results := t.TempDir()
			out, _ := alpha.run(t, "server", "--url", server.URL, "--scenario", scenario, "--output-dir", results)
			o, ok := read(t, results, "server-", []string{scenario}, nil)[scenario]
			if !ok {
				t.Fatalf("no results:\n%s", out)
			}
			_, g := gapOf(featured, scenario)
			if got, fault := o.judge(g); fault != "" {
				t.Errorf("%s: %s\n%s", got, fault, strings.Join(o.why, "\n"))
			}
		})
	}
}

// TestTasksOfSDK has the official client for tasks, and ours, call tools of the official SDK whose
// tasks ask.
func TestTasksOfSDK(t *testing.T) {
	t.Parallel()
	server := serveTasks(t)
	for name, connect := range map[string]func(context.Context, *testing.T, *witness) (session, error){
		"TypeScript": func(ctx context.Context, _ *testing.T, w *witness) (session, error) {
			return typescript{taskClient, modern}.connect(ctx, setup{remote: server, Asks: true}, w)
		},
		"ours": func(ctx context.Context, _ *testing.T, w *witness) (session, error) {
			return dialTasks(ctx, server, w)
		},
	} {
		for _, tt := range []struct {
			tool, answer, want string
			asked              []string
		}{
			{"confirm_delete", "accept", "deleted", []string{"Delete it?"}},
			{"confirm_delete", "decline", "not deleted: decline", []string{"Delete it?"}},
			{"multi_input", "decline", "both are answered", []string{"What is your favorite color?", "What is your name?"}},
			{"slow_compute", "", "computed ", nil},
			{"greet", "", "Hello, !", nil},
		} {
			t.Run(name+"/"+tt.tool+"/"+tt.answer, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				w := &witness{answer: tt.answer}
				s, err := connect(ctx, t, w)
				if err != nil {
					t.Fatal(err)
				}
				r, err := s.call(ctx, call{Tool: tt.tool, Arguments: map[string]any{}})
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Content) != 1 || r.Content[0].Text != tt.want || r.IsError {
					t.Errorf("%+v, want %q", r, tt.want)
				}
				slices.Sort(w.asked)
				if diff := cmp.Diff(tt.asked, w.asked); diff != "" {
					t.Errorf("the questions (-want +got):\n%s", diff)
				}
				if err := s.close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// ownTasks is a session of the client of package mcpcall.
type ownTasks struct{ s *mcpcall.Session }

func dialTasks(ctx context.Context, server remote, w *witness) (session, error) {
	transport, err := mcphttp.NewClient(&mcphttp.ClientOptions{URL: server.URL})
	if err != nil {
		return nil, err
	}
	s, err := mcpcall.Connect(ctx, transport, &mcpcall.Options{Name: "interop", Version: "1", Silence: time.Minute, Ask: func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		var q question
		if err := json.Unmarshal(params, &q); err != nil {
			return nil, err
		}
		action, err := w.elicit(ctx, q.Message)
		if err != nil {
			return nil, err
		}
		answer := map[string]any{"action": action}
		if action == "accept" {
			answer["content"] = map[string]any{}
		}
		return json.Marshal(answer)
	}})
	if err != nil {
		return nil, err
	}
	return ownTasks{s}, nil
}

func (o ownTasks) list(ctx context.Context) ([]string, error) {
	var list toolList
	err := o.s.Request(ctx, "tools/list", map[string]any{}, &list)
	return list.names(), err
}

func (o ownTasks) call(ctx context.Context, c call) (r result, err error) {
	arguments, err := json.Marshal(c.Arguments)
	if err != nil {
		return r, err
	}
	raw, err := o.s.Call(ctx, &mcpcall.Call{Tool: c.Tool, Arguments: arguments, Tasks: true})
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(raw, &r)
}

func (o ownTasks) close() error { return o.s.Close() }

package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// begin begins a task for a user, as tools/call does.
func begin(t *testing.T, tasks *Tasks, user string, do Work) (id string, err error) {
	t.Helper()
	req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "work"}, Extra: extra(user)}
	req.Params.Meta = meta()
	r, err := tasks.middleware(func(ctx context.Context, _ string, _ mcp.Request) (mcp.Result, error) {
		r, err := tasks.Start(ctx, req, do)
		if err != nil {
			return nil, err
		}
		return r, nil
	})(t.Context(), methodCall, req)
	if err != nil {
		return "", err
	}
	return r.(*createResult).ID, nil
}

func extra(user string) *mcp.RequestExtra {
	return &mcp.RequestExtra{TokenInfo: &auth.TokenInfo{UserID: user}}
}

func meta() mcp.Meta {
	return mcp.Meta{mcp.MetaKeyClientCapabilities: map[string]any{"elicitation": map[string]any{}, "extensions": map[string]any{Extension: map[string]any{}}}}
}

// ask sends a request of a user about a task, and returns its status or the error.
func ask(t *testing.T, tasks *Tasks, method, user, id string, answers map[string]json.RawMessage) string {
	t.Helper()
	p := &taskParams{TaskID: id, InputResponses: answers}
	p.Meta = meta()
	r, err := tasks.middleware(func(ctx context.Context, method string, _ mcp.Request) (mcp.Result, error) {
		switch method {
		case methodGet:
			return tasks.get(ctx, nil, p)
		case methodUpdate:
			return tasks.update(ctx, nil, p)
		}
		return tasks.cancel(ctx, nil, p)
	})(t.Context(), method, &mcp.ServerRequest[*taskParams]{Params: p, Extra: extra(user)})
	if err != nil {
		return err.Error()
	}
	got, ok := r.(*getResult)
	switch {
	case !ok:
		return "ok"
	case got.Error != nil:
		return string(got.Status) + ": " + got.Error.Message
	}
	return string(got.Status) + string(got.Result)
}

func say(context.Context, *Task) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("x", maxRead)}}}, nil
}

func asks(ctx context.Context, t *Task) (*mcp.CallToolResult, error) {
	_, err := t.Elicit(ctx, &mcp.ElicitParams{Message: "?"})
	return nil, err
}

const unknown = "params/taskId: there is no such task"

// TestUser asks about the task of another user.
func TestUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := New(nil)
		defer tasks.Close()
		id, err := begin(t, tasks, "ann", asks)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, method := range []string{methodGet, methodUpdate, methodCancel} {
			for _, user := range []string{"bob", ""} {
				if got := ask(t, tasks, method, user, id, map[string]json.RawMessage{"q1": json.RawMessage(`{"action":"accept"}`)}); got != unknown {
					t.Errorf("%s by %q: %s", method, user, got)
				}
			}
		}
		synctest.Wait()
		if got := ask(t, tasks, methodGet, "ann", id, nil); got != "input_required" {
			t.Error(got)
		}
		answer := map[string]json.RawMessage{"q1": json.RawMessage(`{"action":"decline"}`), "q9": json.RawMessage(`5`)}
		for range 2 { // the second one is ignored
			if got := ask(t, tasks, methodUpdate, "ann", id, answer); got != "ok" {
				t.Error(got)
			}
			if got := ask(t, tasks, methodGet, "ann", id, nil); got == "input_required" {
				t.Error("the question is still open")
			}
		}
		synctest.Wait()
		if got := ask(t, tasks, methodGet, "ann", id, nil); !strings.HasPrefix(got, "completed") {
			t.Error(got)
		}
	})
}

// TestUndeclared asks about a task without the extension.
func TestUndeclared(t *testing.T) {
	tasks := New(nil)
	defer tasks.Close()
	if _, err := tasks.get(t.Context(), nil, &taskParams{TaskID: "x"}); err == nil || !strings.Contains(err.Error(), Extension) {
		t.Error(err)
	}
}

// memory is a store in memory, which fails with its error.
type memory struct {
	data map[string][]byte
	err  error
}

func (m *memory) Put(_ context.Context, name string, data []byte) error {
	if m.err == nil {
		m.data[name] = data
	}
	return m.err
}

func (m *memory) Read(_ context.Context, name string, at int64, most int) ([]byte, error) {
	data, ok := m.data[name]
	if !ok {
		return nil, errors.Join(ErrNotFound, m.err)
	}
	data = data[min(at, int64(len(data))):]
	return data[:min(len(data), most)], m.err
}

func (m *memory) Delete(_ context.Context, name string) error {
	delete(m.data, name)
	return m.err
}

// TestStore begins tasks, and asks about them in the next process.
func TestStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &memory{data: map[string][]byte{}}
		o := &Options{Store: kept, Keep: time.Minute}
		before := New(o)
		done, err := begin(t, before, "ann", say)
		if err != nil {
			t.Fatal(err)
		}
		open, err := begin(t, before, "ann", asks)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		long := `completed{"resultType":"complete","content":[{"type":"text","text":"xxx`
		after := New(o) // the first process was killed
		defer after.Close()
		for what, tasks := range map[string]*Tasks{"before": before, "after": after} {
			if got := ask(t, tasks, methodGet, "ann", done, nil); !strings.HasPrefix(got, long) || len(got) < maxRead {
				t.Errorf("%s: %.100s", what, got)
			}
		}
		for _, tt := range []struct{ method, user, id, want string }{
			{methodGet, "ann", open, "failed: " + errClosed.Error()},
			{methodUpdate, "ann", open, "ok"},
			{methodCancel, "ann", done, "ok"},
			{methodGet, "bob", done, unknown},
			{methodGet, "ann", "../" + done, unknown},
			{methodGet, "ann", "", unknown},
		} {
			if got := ask(t, after, tt.method, tt.user, tt.id, nil); got != tt.want {
				t.Errorf("%s %q by %s: %.100s, want %s", tt.method, tt.id, tt.user, got, tt.want)
			}
		}
		before.Close() // its timers must not remove the record
		time.Sleep(59 * time.Second)
		if got := ask(t, after, methodGet, "ann", done, nil); !strings.HasPrefix(got, long) {
			t.Errorf("in time: %.100s", got)
		}
		time.Sleep(2 * time.Second)
		if _, there := kept.data["tasks/"+done]; !there {
			t.Error("a closed process has removed it")
		}
		if got := ask(t, after, methodGet, "ann", done, nil); got != unknown {
			t.Errorf("too late: %.100s", got)
		}
		if _, there := kept.data["tasks/"+done]; there {
			t.Error("it is still stored")
		}
	})
}

// TestStoreFails has a store that fails: nothing starts that could be lost, and a task that has
// started is kept in memory.
func TestStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("the disk is full, at /secret")
		kept := &memory{data: map[string][]byte{}, err: full}
		tasks := New(&Options{Store: kept, MaxOpen: 1})
		defer tasks.Close()
		for range 2 { // the second shows that the first is not counted
			if _, err := begin(t, tasks, "ann", say); err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "stored") {
				t.Errorf("%v", err)
			}
		}
		kept.err = nil
		id, err := begin(t, tasks, "ann", func(ctx context.Context, k *Task) (*mcp.CallToolResult, error) {
			kept.err = full
			return say(ctx, k)
		})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := ask(t, tasks, methodGet, "ann", id, nil); !strings.HasPrefix(got, "completed") {
			t.Errorf("%.100s", got)
		}
	})
}

// TestKept ends more tasks than are kept, and lets their time pass.
func TestKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := New(&Options{MaxKept: 2, Keep: time.Minute})
		defer tasks.Close()
		var ids []string
		for range 3 {
			id, err := begin(t, tasks, "", say)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
			synctest.Wait()
		}
		for i, want := range []string{unknown, "completed", "completed"} {
			if got := ask(t, tasks, methodGet, "", ids[i], nil); !strings.HasPrefix(got, want) {
				t.Errorf("%d: %.100s", i, got)
			}
		}
		time.Sleep(time.Minute + time.Second)
		if got := ask(t, tasks, methodGet, "", ids[2], nil); got != unknown {
			t.Errorf("%.100s", got)
		}
	})
}

// TestKeepInMessage rewrites the answers that are tasks, and nothing else.
func TestKeepInMessage(t *testing.T) {
	for message, task := range map[string]bool{
		`{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"t1","status":"working"}}`: true,
		`{"jsonrpc":"2.0","id":1,"result":{"resultType":"task"}}`:                                  false,
		`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","taskId":"task"}}`:              false,
		`{"jsonrpc":"2.0","id":1,"result":"task"}`:                                                 false,
		`{"jsonrpc":"2.0","id":1,"error":{"message":"\"task\""}}`:                                  false,
		`not JSON, "task"`: false,
		``:                 false,
	} {
		var m struct{ Result mcp.CallToolResult }
		got := string(keepInMessage([]byte(message)))
		if json.Unmarshal([]byte(got), &m) == nil && task {
			if id, err := taskOf(&m.Result); id != "t1" || err != nil {
				t.Errorf("%s: %s, %v", message, got, err)
			}
		} else if task || !task && strings.Contains(got, metaTask) {
			t.Errorf("%s becomes %s", message, got)
		}
	}
}

// TestHostile polls a server whose answers about a task are wrong: the call fails.
func TestHostile(t *testing.T) {
	for want, answer := range map[string]getResult{
		"another task":           {about: about{ID: "other", Status: modern.TaskStatusCompleted}, end: end{Result: json.RawMessage(`{"content":[]}`)}},
		"without an error":       {about: about{Status: modern.TaskStatusFailed}},
		"its result":             {about: about{Status: modern.TaskStatusCompleted}},
		"the task was cancelled": {about: about{Status: modern.TaskStatusCancelled}},
	} {
		synctest.Test(t, func(t *testing.T) {
			tasks := New(nil)
			defer tasks.Close()
			s := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "1"}, nil)
			if err := tasks.Install(s); err != nil {
				t.Fatal(err)
			}
			err := mcp.AddReceivingCustomMethod(s, methodGet, func(_ context.Context, _ *mcp.ServerSession, p *taskParams) (*getResult, error) {
				r := answer
				if r.ResultType = complete; r.ID == "" {
					r.ID = p.TaskID
				}
				return &r, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			mcp.AddTool(s, &mcp.Tool{Name: "work"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
				r, err := tasks.Start(ctx, req, say)
				return r, nil, err
			})
			client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil)
			if err := new(Caller).Install(client); err != nil {
				t.Fatal(err)
			}
			ours, theirs := mcp.NewInMemoryTransports()
			if _, err := s.Connect(t.Context(), theirs, nil); err != nil {
				t.Fatal(err)
			}
			session, err := client.Connect(t.Context(), Transport{ours}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "work"}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

// TestInterval bounds how often a client polls.
func TestInterval(t *testing.T) {
	for ms, want := range map[float64]time.Duration{-1: fastest, 0: fastest, 100: 100 * time.Millisecond, 1e300: slowest} {
		if got := interval(&ms); got != want {
			t.Errorf("%v ms: %v, want %v", ms, got, want)
		}
	}
	if got := interval(nil); got != usual || modern.ExtensionTasks != Extension {
		t.Error(got)
	}
}

// TestMemory lets tasks end of which there is room for one.
func TestMemory(t *testing.T) {
	tasks := New(&Options{MaxKept: 1})
	defer tasks.Close()
	var all []weak.Pointer[Task]
	for range 3 {
		made := make(chan weak.Pointer[Task], 1)
		_, err := begin(t, tasks, "ann", func(_ context.Context, k *Task) (*mcp.CallToolResult, error) {
			made <- weak.Make(k)
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, <-made)
	}
	tasks.Close()
	runtime.GC()
	kept := 0
	for _, k := range all {
		if k.Value() != nil {
			kept++
		}
	}
	if kept != 1 {
		t.Errorf("%d ended tasks are in memory, want 1", kept)
	}
}

package mcpcall_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/internal/mcpcall"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/google/go-cmp/cmp"
)

// server answers requests of a method in order, and repeats the last answer. It does not answer with "".
type server struct {
	*jsonrpc.Mux
	mu     sync.Mutex
	params []string
}

func (s *server) answer(method string, answers ...string) {
	n := 0
	s.HandleRaw(method, func(ctx context.Context, params json.RawMessage) (any, error) {
		s.mu.Lock()
		s.params = append(s.params, string(params))
		answer := answers[min(n, len(answers)-1)]
		n++
		s.mu.Unlock()
		if answer == "" {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		return json.RawMessage(answer), nil
	})
}

func newServer() *server {
	s := &server{Mux: &jsonrpc.Mux{}}
	s.answer(modern.ServerDiscover.Name(), `{"supportedVersions":["2026-07-28"],"capabilities":{}}`)
	return s
}

// connect connects to the server in the bubble of a test, which ends both.
func (s *server) connect(t *testing.T, o *mcpcall.Options) *mcpcall.Session {
	t.Helper()
	ours, theirs := jsonrpc.Pipe()
	peer := jsonrpc.NewPeer(theirs, s, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
	ended := make(chan error, 1)
	go func() { ended <- peer.Run(context.Background()) }()
	session, err := mcpcall.Connect(t.Context(), ours, o)
	must.OK(t, err)
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	s.params = nil
	return session
}

func questions(n int, key, method string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"%s%d":{"method":%q,"params":{}}`, key, i, method)
	}
	return `{"resultType":"input_required","inputRequests":{` + strings.Join(all, ",") + `}}`
}

// TestAnswers has the answers to a call, also those that MCP does not allow.
func TestAnswers(t *testing.T) {
	const done, ask = `{"resultType":"complete","content":[]}`, "elicitation/create"
	state := func(size int) string {
		return `{"resultType":"input_required","requestState":"` + strings.Repeat("x", size-2) + `"}`
	}
	for _, tt := range []struct {
		name     string
		answers  []string
		tasks    bool
		err      string // a part of that of an unreadable answer
		requests int
		last     string // a part of the last request
	}{
		{"complete", []string{done}, true, "", 1, ""},
		{"without a type", []string{`{"content":[]}`}, true, "", 1, ""},
		{"another type", []string{`{"resultType":"x"}`}, true, `the result type "x"`, 1, ""},
		{"no object", []string{`7`}, true, "deploy", 1, ""},
		{"a task that was not declared", []string{`{"resultType":"task","taskId":"t","status":"working"}`}, false, "an unexpected task", 1, ""},
		{"a task without an id", []string{`{"resultType":"task","status":"working"}`}, true, "an unexpected task", 1, ""},
		{"a task with a long id", []string{`{"resultType":"task","taskId":"` + strings.Repeat("t", 1025) + `","status":"working"}`}, true, "an id of 1025 bytes", 1, ""},
		{"a question", []string{questions(1, "k", ask), done}, false, "", 2, `"inputResponses":{"k0":{"action":"decline"}}`},
		{"roots", []string{questions(1, "k", "roots/list"), done}, false, "", 2, `"inputResponses":{"k0":{"roots":[]}}`},
		{"a request that nobody serves", []string{questions(1, "k", "sampling/createMessage"), done}, false, `it requests "sampling/createMessage"`, 2, `"inputResponses":{"k0":{"action":"cancel"}}`},
		{"many questions", []string{questions(256, "k", ask), done}, false, "", 2, `"k255"`},
		{"too many questions", []string{questions(257, "k", ask), done}, false, "257 questions at a time", 1, ""},
		{"a long key", []string{questions(1, strings.Repeat("k", 1023), ask), done}, false, "", 2, ""},
		{"a key that is too long", []string{questions(1, strings.Repeat("k", 1024), ask), done}, false, "a key of 1025 bytes", 1, ""},
		{"a state", []string{state(1 << 20), done}, false, "", 2, `"requestState":"xx`},
		{"a state that is too long", []string{state(1<<20 + 1), done}, false, "a requestState of 1048577 bytes", 1, ""},
		{"a state that is no text", []string{`{"resultType":"input_required","requestState":7}`, done}, false, "a requestState that is no text", 1, ""},
		{"no state any more", []string{state(10), `{"resultType":"input_required","requestState":null}`, done}, false, "", 3, ""},
		{"a question that is asked again and again", []string{questions(1, "k", ask)}, false, "it asked 64 times", 64, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := newServer()
			server.answer("tools/call", tt.answers...)
			s := server.connect(t, nil)
			raw, err := s.Call(t.Context(), &mcpcall.Call{Tool: "deploy", Tasks: tt.tasks})
			if tt.err == "" && (err != nil || string(raw) != tt.answers[len(tt.answers)-1]) || tt.err != "" && (!errors.Is(err, mcpcall.ErrAnswer) || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("%s: %s, %v", tt.name, raw, err)
			}
			if n := len(server.params); n != tt.requests || !strings.Contains(server.params[n-1], tt.last) || tt.name == "no state any more" && strings.Contains(server.params[n-1], "requestState") {
				t.Errorf("%s: %d requests, the last %.300s", tt.name, n, server.params[n-1])
			}
		})
	}
}

// TestStates has the states of a task, also those that MCP does not allow.
func TestStates(t *testing.T) {
	for _, tt := range []struct {
		name, state string
		want        string // the result, or a part of the error after "! "
		is          error
		took        time.Duration
	}{
		{"completed", `"status":"completed","result":{"content":[]}`, `{"content":[]}`, nil, 0},
		{"without a result", `"status":"completed"`, "! no result", mcpcall.ErrAnswer, 0},
		{"with another result", `"status":"completed","result":7`, "! no result", mcpcall.ErrAnswer, 0},
		{"failed", `"status":"failed","error":{"code":-32000,"message":"boom"}`, "! boom", nil, 0},
		{"without an error", `"status":"failed"`, "! no error", mcpcall.ErrAnswer, 0},
		{"cancelled", `"status":"cancelled"`, "! cancelled", mcpcall.ErrCancelled, 0},
		{"another one", `"status":"x"`, `! the status "x"`, mcpcall.ErrAnswer, 0},
		{"no answer", "", "! polling task t", context.DeadlineExceeded, 2 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := newServer()
			answer := ""
			if tt.state != "" {
				answer = `{"resultType":"complete","taskId":"t",` + tt.state + `}`
			}
			server.answer(modern.TasksGet.Name(), answer)
			begin := time.Now()
			raw, err := server.connect(t, nil).Task(t.Context(), "t", &mcpcall.Call{Tool: "deploy"})
			part, fails := strings.CutPrefix(tt.want, "! ")
			if !fails && (err != nil || string(raw) != tt.want) || fails && (err == nil || !strings.Contains(err.Error(), part) || tt.is != nil && !errors.Is(err, tt.is)) {
				t.Errorf("%s: %s, %v", tt.name, raw, err)
			}
			if took := time.Since(begin).Round(time.Second); took != tt.took {
				t.Errorf("%s: after %v", tt.name, took)
			}
		})
	}
}

// TestSilentServer has servers that do not answer one kind of message.
func TestSilentServer(t *testing.T) {
	for method, want := range map[string]time.Duration{
		modern.ServerDiscover.Name(): 3 * time.Second, // then the handshake follows
		"tools/call":                 5 * time.Second, // the refusal of a question does not wait longer
	} {
		synctest.Test(t, func(t *testing.T) {
			server := newServer()
			if method == "tools/call" {
				server.answer(method, questions(1, "k", "sampling/createMessage"), "")
			} else {
				server.Mux = &jsonrpc.Mux{}
				server.answer(method, "")
				server.answer("tools/call", `{"content":[]}`)
				mcptypes.Initialize.Handle(server.Mux, func(_ context.Context, p *mcptypes.InitializeRequestParams) (*mcptypes.InitializeResult, error) {
					return &mcptypes.InitializeResult{ProtocolVersion: p.ProtocolVersion}, nil
				})
			}
			begin := time.Now()
			s := server.connect(t, nil)
			_, err := s.Call(t.Context(), &mcpcall.Call{Tool: "deploy"})
			if took := time.Since(begin); took != want || s.Modern() == (err == nil) {
				t.Errorf("%s: after %v, %v", method, took, err)
			}
		})
	}
}

// TestCallsAtOnce makes calls at the same time: each gets its own answer and notification.
func TestCallsAtOnce(t *testing.T) {
	server := newServer()
	server.Handle("tools/call", jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		var p struct {
			Name string
		}
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		if err := r.Peer().Notify(ctx, "told", map[string]any{"_meta": map[string]any{"requestId": r.ID}, "name": p.Name}); err != nil {
			return nil, err
		}
		return json.RawMessage(fmt.Sprintf(`{"name":%q}`, p.Name)), nil
	}))
	s := server.connect(t, nil)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			name, told := fmt.Sprint(i), ""
			raw, err := s.Call(t.Context(), &mcpcall.Call{Tool: name, Notify: func(method string, params json.RawMessage) {
				var p struct{ Name string }
				must.Check(t, json.Unmarshal(params, &p))
				told += method + " " + p.Name
			}})
			if err != nil || string(raw) != fmt.Sprintf(`{"name":%q}`, name) || told != "told "+name {
				t.Errorf("call %s: %s, told %q, %v", name, raw, told, err)
			}
		})
	}
	all.Wait()
}

// TestRefusedVersion checks that a server that refuses the version of server/discover, and
// names it as one that it supports, is asked once more.
func TestRefusedVersion(t *testing.T) {
	for _, tt := range []struct {
		name, supported string
		refusals        int
		requests        int // of server/discover
		modern          bool
	}{
		{"once", `["2026-07-28"]`, 1, 2, true},
		{"always", `["2026-07-28"]`, 9, 2, false},
		{"for an older one", `["2025-11-25"]`, 1, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			requests := 0
			m := &jsonrpc.Mux{}
			modern.ServerDiscover.Handle(m, func(context.Context, *modern.RequestParams) (*modern.DiscoverResult, error) {
				if requests++; requests <= tt.refusals {
					return nil, &jsonrpc.Error{
						Code: modern.CodeUnsupportedProtocolVersion, Message: "not served",
						Data: fmt.Appendf(nil, `{"requested":"2026-07-28","supported":%s}`, tt.supported),
					}
				}
				return &modern.DiscoverResult{SupportedVersions: []string{modern.ProtocolVersion}, CacheScope: modern.CacheScopePrivate}, nil
			})
			mcptypes.Initialize.Handle(m, func(_ context.Context, p *mcptypes.InitializeRequestParams) (*mcptypes.InitializeResult, error) {
				return &mcptypes.InitializeResult{ProtocolVersion: p.ProtocolVersion}, nil
			})
			s := (&server{Mux: m}).connect(t, nil)
			if s.Modern() != tt.modern || requests != tt.requests {
				t.Errorf("modern: %v, after %d requests; want %v, %d", s.Modern(), requests, tt.modern, tt.requests)
			}
		})
	}
}

// TestAnotherQuestionWithTheKey has a task replace its question by another one with the same key.
// The first is withdrawn, and the second is asked: an answer is never that to another question.
func TestAnotherQuestionWithTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var asked, told []string
		polls := 0
		m := deployer()
		m.Handle(modern.TasksGet.Name(), jsonrpc.HandlerFunc(func(context.Context, *jsonrpc.Request) (any, error) {
			const working = `{"resultType":"complete","taskId":"t","status":"input_required","pollIntervalMs":100,"inputRequests":{"sure":{"method":"elicitation/create","params":{"message":%q}}}}`
			mu.Lock()
			defer mu.Unlock()
			switch polls++; {
			case polls <= 2:
				return json.RawMessage(fmt.Sprintf(working, "Deploy?")), nil
			case polls <= 5 && told == nil:
				return json.RawMessage(fmt.Sprintf(working, "Delete?")), nil
			}
			return json.RawMessage(`{"resultType":"complete","taskId":"t","status":"completed","result":{"content":[]}}`), nil
		}))
		m.Handle(modern.TasksUpdate.Name(), jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (any, error) {
			var p struct{ InputResponses json.RawMessage }
			err := json.Unmarshal(r.Params, &p)
			mu.Lock()
			defer mu.Unlock()
			told = append(told, string(p.InputResponses))
			return json.RawMessage(`{"resultType":"complete"}`), err
		}))
		s := (&server{Mux: m}).connect(t, &mcpcall.Options{Ask: func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
			mu.Lock()
			asked = append(asked, string(params))
			first := len(asked) == 1
			mu.Unlock()
			if first {
				<-ctx.Done() // nobody answers before it is withdrawn
				return nil, ctx.Err()
			}
			return json.RawMessage(`{"action":"decline"}`), nil
		}})
		if _, err := s.Task(t.Context(), "t", &mcpcall.Call{Tool: "deploy"}); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{`{"message":"Deploy?"}`, `{"message":"Delete?"}`}, asked) + cmp.Diff([]string{`{"sure":{"action":"decline"}}`}, told); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

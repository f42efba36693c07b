package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// TestWork checks when a worker only waits, by what its server does.
func TestWork(t *testing.T) {
	ask, second := &approval.Request{}, &approval.Request{}
	for _, tt := range []struct {
		name string
		// steps are letters: q and Q ask, a and A decide, c and C begin and end a command, t and T a tool,
		// p and P a patch, e ends the call, E the turn, and n begins another turn.
		steps       string
		turns, busy int
		want        Activity
	}{
		{"a turn that runs", "e", 1, 1, Busy}, {"a question", "eq", 1, 0, Waiting}, {"a decision", "eqa", 1, 1, Busy},
		{"one of two decisions", "eqQa", 1, 0, Waiting}, {"a command beside a question", "eqc", 1, 1, Busy},
		{"a command that has ended", "eqcC", 1, 0, Waiting},
		{"a tool, and the end of another command", "eqtC", 1, 1, Busy},
		{"a patch", "eqp", 1, 1, Busy},
		{"a patch and a tool that have ended", "eqptTP", 1, 0, Waiting},
		{"the end of a turn", "eqE", 0, 0, Idle}, {"the end of a turn that runs", "eE", 0, 0, Idle}, {"two ends", "eEE", 0, 0, Idle},
		{"a call that waits for its turn", "q", 1, 1, Busy},
		{"a question and a turn that runs", "eqn", 2, 1, Busy},
	} {
		w := &Work{}
		end := w.Request(&jsonrpc.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"codex"}`)})
		turn := w.Turn("thread")
		act := map[rune]func(){
			'q': func() { turn.Asked(ask) }, 'Q': func() { turn.Asked(second) }, 'a': func() { turn.Decided(ask, approval.Decision{}) },
			'c': func() { turn.Event(protocol.ExecCommandBegin{CallID: "c"}) }, 'C': func() { turn.Event(protocol.ExecCommandEnd{CallID: "c"}) },
			't': func() { turn.Event(protocol.MCPToolCallBegin{CallID: "t"}) }, 'T': func() { turn.Event(protocol.MCPToolCallEnd{CallID: "t"}) },
			'p': func() { turn.Event(protocol.PatchApplyBegin{CallID: "p"}) }, 'P': func() { turn.Event(protocol.PatchApplyEnd{CallID: "p"}) },
			'e': end, 'E': func() { turn.End(errors.New("ended")) }, 'n': func() { w.Turn("thread") },
		}
		for _, step := range tt.steps {
			act[step]()
		}
		turns, busy, _ := w.turns()
		if got := w.Load(func() mcphttp.Load { return mcphttp.Load{} }).Activity; turns != tt.turns || busy != tt.busy || got != tt.want {
			t.Errorf("%s: %d turns, %d busy, %s; want %d, %d, %s", tt.name, turns, busy, got, tt.turns, tt.busy, tt.want)
		}
	}
}

// TestMakesBusy checks by which headers a gateway knows that a worker is about to be busy.
func TestMakesBusy(t *testing.T) {
	for headers, want := range map[[2]string]bool{
		{"tools/call", "codex"}: true, {"tools/call", "codex-reply"}: true, {"tools/call", "codex-wait"}: false, {"tools/call", "other"}: false,
		{"tasks/update", "t"}: true, {"tasks/get", "t"}: false, {"", "codex"}: false, {"subscriptions/listen", ""}: false,
	} {
		must.Equal(t, fmt.Sprint(headers), want, MakesBusy(http.Header{"Mcp-Method": {headers[0]}, "Mcp-Name": {headers[1]}}))
	}
}

// TestLoad checks what a worker without turns does, and that only calls of tools are observed.
func TestLoad(t *testing.T) {
	w := &Work{}
	for _, method := range []string{"tools/list", "tasks/get"} {
		if _, _, begun := w.turns(); w.Request(&jsonrpc.Request{Method: method}) != nil || begun != 0 {
			t.Errorf("%s is observed", method)
		}
	}
	// A call is busy before its turn has begun: who waits for another answer meanwhile must stay.
	for name, want := range map[string]Activity{"codex": Busy, "codex-reply": Busy, "codex-wait": Idle} {
		end := w.Request(&jsonrpc.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"` + name + `"}`)})
		none := func() mcphttp.Load { return mcphttp.Load{} }
		must.Equal(t, "a call of "+name, want, w.Load(none).Activity)
		if end != nil {
			end()
		}
		must.Equal(t, "after a call of "+name, Idle, w.Load(none).Activity)
	}
	// The next call takes the state of one that is parked, and may have ended before anybody looks again.
	answers := func() mcphttp.Load {
		w.Request(&jsonrpc.Request{Method: "tools/call"})
		return mcphttp.Load{}
	}
	must.Equal(t, "a call that begins meanwhile", Busy, w.Load(answers).Activity)
	// An answer needs a moment to reach its turn.
	synctest.Test(t, func(t *testing.T) {
		none := func() mcphttp.Load { return mcphttp.Load{} }
		w := &Work{}
		end := w.Request(&jsonrpc.Request{Method: "tasks/update"})
		got := []Activity{w.Load(none).Activity}
		end()
		got = append(got, w.Load(none).Activity)
		time.Sleep(settling)
		if got = append(got, w.Load(none).Activity); !slices.Equal(got, []Activity{Busy, Busy, Idle}) {
			t.Errorf("an answer comes: %q", got)
		}
	})
	for want, of := range map[Load]mcphttp.Load{
		{Activity: Idle}: {}, {Activity: Connected, Sessions: 2}: {Sessions: 2}, {Activity: Connected, Requests: 1}: {Requests: 1},
		{Activity: Busy, Requests: 1, Sessions: 1}: {Requests: 1, Sessions: 1, Busy: true},
		{Activity: Busy, Requests: 0, Sessions: 0}: {Parked: true},
	} {
		must.Equal(t, fmt.Sprintf("%+v", of), want, w.Load(func() mcphttp.Load { return of }))
	}
}

// TestAuthenticate takes the principal from the gateway if it is the user.
func TestAuthenticate(t *testing.T) {
	for _, tt := range []struct {
		names []string // of the header
		want  string   // "" for a refusal
	}{
		{[]string{"ann"}, "ann"}, {[]string{"bob"}, ""}, {nil, ""}, {[]string{""}, ""}, {[]string{"ann", "ann"}, ""}, {[]string{"ann", "bob"}, ""},
	} {
		r := httptest.NewRequest("POST", "/mcp", nil)
		for _, name := range tt.names {
			r.Header.Add(PrincipalHeader, name)
		}
		r.Header.Set(ScopesHeader, "codex:read")
		l := &Link{Settings: Settings{Principal: "ann"}}
		who, err := l.Authenticate(r)
		want := mcphttp.Principal{}
		if tt.want != "" {
			want = mcphttp.Principal{Name: tt.want, Scopes: []mcphttp.Scope{mcphttp.ScopeRead}}
		}
		if diff := cmp.Diff(want, who); diff != "" || (err == nil) != (tt.want != "") {
			t.Errorf("%q: %v (-want +got)\n%s", tt.names, err, diff)
		}
	}
}

// ConnectOver returns the link of a worker over a connection.
var ConnectOver = connect

package appclient_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

const (
	started   = `{"threadId":"t","turn":{"id":"r","status":"inProgress","items":[]}}`
	said      = `{"threadId":"t","turnId":"r","item":{"type":"agentMessage","id":"i","text":"hello"}}`
	completed = `{"threadId":"t","turn":{"id":"r","status":"completed","items":[]}}`
)

// play answers the handshake, and turn/start with lines in their order. The line end closes the connection.
func play(t *testing.T, server jsonrpc.Transport, lines []string) {
	write := func(line string) {
		if err := server.Write(t.Context(), [][]byte{[]byte(line + "\n")}); err != nil && !errors.Is(err, io.ErrClosedPipe) { // the client has what it wanted
			t.Error(err)
		}
	}
	for {
		line, err := server.Read(t.Context())
		if err != nil {
			return
		}
		var m struct {
			Method     string
			ID, Params json.RawMessage
		}
		if err := json.Unmarshal(line, &m); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		switch m.Method {
		case "initialize":
			write(`{"id":` + string(m.ID) + `,"result":{"userAgent":"test/0.169.0 (Test)","codexHome":"/home"}}`)
		case "turn/start":
			must.Equal(t, "sent", `{"input":[{"text":"go","type":"text"}],"threadId":"t"}`, string(m.Params))
			for _, line := range lines {
				if line == "end" {
					_ = server.Close()
					return
				}
				write(strings.Replace(line, "ID", string(m.ID), 1))
			}
		}
	}
}

// TestTurn runs a turn whose messages come in each order that versions have, or that ends otherwise.
func TestTurn(t *testing.T) {
	const (
		answer    = `{"id":ID,"result":{"turn":{"id":"r","status":"inProgress","items":[]}}}`
		nameless  = `{"id":ID,"result":{"turn":{"id":"","status":"inProgress","items":[]}}}`
		refused   = `{"id":ID,"error":{"code":-32600,"message":"no such thread"}}`
		begins    = `{"method":"turn/started","params":` + started + `}`
		says      = `{"method":"item/completed","params":` + said + `}`
		ends      = `{"method":"turn/completed","params":` + completed + `}`
		fails     = `{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"r","status":"failed","items":[],"error":{"message":"no tokens"}}}}`
		strange   = `{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"r","status":7}}}`
		earlier   = `{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"before","status":"failed","items":[]}}}`
		elsewhere = `{"method":"turn/completed","params":{"threadId":"other","turn":{"id":"r","status":"failed","items":[]}}}`
		everybody = `{"method":"warning","params":{"message":"of no thread"}}`
		foreign   = `{"method":"turn/started","params":{"threadId":"t","turn":{"id":"f","status":"inProgress","items":[]}}}`
		over      = `{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"f","status":"completed","items":[]}}}`
		whole     = "turn/started item/completed turn/completed"
		apart     = "f turn/started f turn/completed "
		either    = "what came before the end, or nothing"
	)
	for name, tt := range map[string]struct {
		lines []string
		want  string // what the observer got
		err   string
	}{
		"in order":                  {[]string{answer, begins, says, ends}, whole, ""},
		"the answer comes second":   {[]string{begins, answer, says, ends}, whole, ""},
		"the answer comes last":     {[]string{begins, says, ends, answer}, whole, ""},
		"the answer has no id":      {[]string{begins, says, ends, nameless}, "r turn/started r turn/completed", "without the id of a turn"},
		"others":                    {[]string{answer, elsewhere, earlier, begins, everybody, ends, says}, "r turn/completed before turn/completed turn/started turn/completed", ""},
		"foreign, answer, own":      {[]string{foreign, over, answer, begins, says, ends}, apart + whole, ""},
		"foreign, own, answer":      {[]string{foreign, over, begins, says, ends, answer}, apart + whole, ""},
		"answer, foreign, own":      {[]string{answer, foreign, over, begins, says, ends}, apart + whole, ""},
		"own, foreign, answer":      {[]string{begins, foreign, over, says, answer, ends}, "turn/started " + apart + "item/completed turn/completed", ""},
		"own, answer, foreign":      {[]string{begins, answer, foreign, over, says, ends}, "turn/started " + apart + "item/completed turn/completed", ""},
		"foreign and refused":       {[]string{foreign, over, refused}, strings.TrimSpace(apart), "no such thread"},
		"the foreign one answered":  {[]string{foreign, strings.Replace(answer, `"r"`, `"f"`, 1), over}, "turn/started turn/completed", ""},
		"failed":                    {[]string{answer, begins, fails}, "turn/started turn/completed", "the turn ended with the status failed: no tokens"},
		"an unknown end":            {[]string{answer, begins, strange}, "turn/started turn/completed", "status failed: codex reported the end of the turn in an unknown form"},
		"refused":                   {[]string{refused}, "", "no such thread"},
		"the end of the app-server": {[]string{answer, begins, "end"}, "turn/started", "codex app-server has ended: jsonrpc: connection closed"},
		"the end before the answer": {[]string{begins, "end"}, either, "connection closed"},
		"the end after the turn's":  {[]string{answer, begins, says, ends, "end"}, whole, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := jsonrpc.Pipe()
				played := make(chan struct{})
				go func() { defer close(played); play(t, theirs, tt.lines) }()
				var mu sync.Mutex
				var got []string
				c := appclient.New(ours, &appclient.Options{Foreign: func(method string, n *apptypes.Note) {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, n.Turn.ID, method)
				}})
				defer func() { _ = c.Close(); <-played }()
				must.OK(t, c.Initialize(t.Context()))
				turn, err := c.Begin(&apptypes.TurnParams{ThreadID: "t", Input: appclient.Text("go")}, func(method string, n *apptypes.Note) {
					if method == "item/completed" {
						if n.Item == nil || n.Item.Text != "hello" {
							t.Errorf("item %+v", n.Item)
						}
					}
					mu.Lock()
					defer mu.Unlock()
					got = append(got, method)
				})
				must.OK(t, err)
				end, err := turn.Wait(t.Context())
				if tt.err == "" && (err != nil || end.Status != "completed") || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
					t.Errorf("end %v, error %v, want %q", end, err, tt.err)
				}
				synctest.Wait() // what is not of the turn may be observed after its end
				mu.Lock()
				defer mu.Unlock()
				if got := strings.Join(got, " "); got != tt.want && tt.want != either {
					t.Errorf("observed %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// TestUnanswered ends the wait for a turn whose start is never answered, although the app-server reports things of
// the thread. No other turn begins meanwhile. Later notifications must still arrive.
func TestUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{on: map[string]func(*fake, *jsonrpc.Request) (any, error){
			"turn/start": func(f *fake, _ *jsonrpc.Request) (any, error) {
				f.notify("turn/started", started)
				<-t.Context().Done()
				return nil, errors.New("late")
			},
		}}
		got := make(chan string, 2)
		c := f.start(t, &appclient.Options{Note: func(method string, _ *apptypes.Note) { got <- method }})
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		p := &apptypes.TurnParams{ThreadID: "t", Input: appclient.Text("go")}
		turn := must.Get(c.Begin(p, nil))(t)
		if end, err := turn.Wait(ctx); end != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("end %v, error %v", end, err)
		}
		if _, err := c.Begin(p, nil); err == nil || err.Error() != "appclient: a turn of this thread runs" {
			t.Errorf("a second turn: %v", err)
		}
		f.notify("warning", `{"message":"m"}`)
		synctest.Wait()
		must.Equal(t, "notifications arrived", 2, len(got))
	})
}

// asks are questions, with the answers that decline them.
var asks = map[string]struct{ params, declined string }{
	"item/commandExecution/requestApproval": {`{"threadId":"t","turnId":"r","itemId":"i","startedAtMs":1,"command":"ls","cwd":"/"}`, `{"decision":"decline"}`},
	"item/fileChange/requestApproval":       {`{"threadId":"t","turnId":"r","itemId":"i","startedAtMs":1}`, `{"decision":"decline"}`},
	"item/permissions/requestApproval":      {`{"threadId":"t","turnId":"r","itemId":"i","startedAtMs":1,"cwd":"/","permissions":{"network":{"enabled":true}}}`, `{"permissions":{},"scope":"turn"}`},
	"item/tool/requestUserInput":            {`{"threadId":"t","turnId":"r","itemId":"i","questions":[]}`, `{"answers":{}}`},
	"mcpServer/elicitation/request":         {`{"threadId":"t","serverName":"s","mode":"form","message":"m","requestedSchema":{"type":"object"}}`, `{"action":"decline","content":null}`},
}

// TestDeclines asks clients that have no answer, return an error with one, or answer too late.
func TestDeclines(t *testing.T) {
	asked := make(chan struct{})
	withdrawn := func(ctx context.Context) error { asked <- struct{}{}; <-ctx.Done(); return nil }
	fails := func(context.Context) error { return errors.New("no one is here") }
	for name, wait := range map[string]func(context.Context) error{"no function": nil, "an error": fails, "withdrawn": withdrawn} {
		o := &appclient.Options{}
		if wait != nil {
			o.Answers = appclient.Answers{
				Command: func(ctx context.Context, _ *apptypes.CommandApproval) (apptypes.Decision, error) {
					return apptypes.Decision{Decision: "accept"}, wait(ctx)
				},
				Patch: func(ctx context.Context, _ *apptypes.FileApproval) (apptypes.Decision, error) {
					return apptypes.Decision{Decision: "accept"}, wait(ctx)
				},
				Permissions: func(ctx context.Context, p *apptypes.Permissions) (apptypes.PermissionsReply, error) {
					return apptypes.PermissionsReply{Permissions: p.Permissions, Scope: "session"}, wait(ctx)
				},
				Input: func(ctx context.Context, _ *apptypes.UserInput) (apptypes.UserInputReply, error) {
					return apptypes.UserInputReply{Answers: map[string]apptypes.Answers{"q": {Answers: []string{"yes"}}}}, wait(ctx)
				},
				Elicit: func(ctx context.Context, _ *apptypes.Elicitation) (apptypes.ElicitationReply, error) {
					return apptypes.ElicitationReply{Action: "accept"}, wait(ctx)
				},
			}
		}
		for method, tt := range asks {
			t.Run(name+"/"+method, func(t *testing.T) {
				f := &fake{}
				f.start(t, o)
				if name == "withdrawn" {
					go func() {
						<-asked
						f.notify("serverRequest/resolved", `{"threadId":"t","requestId":0}`) // the fake's first request
					}()
				}
				must.Equal(t, "answered", tt.declined, f.ask(t.Context(), method, tt.params))
			})
		}
	}
}

// TestNotes passes on all notifications that are understood, in order. One that is not read is logged once.
func TestNotes(t *testing.T) {
	got := make(chan string, 10)
	var logged bytes.Buffer
	f := &fake{}
	f.start(t, &appclient.Options{
		Note:   func(method string, n *apptypes.Note) { got <- method + " " + n.ThreadID },
		Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	for _, n := range []struct{ method, params string }{
		{"turn/started", started}, {"new/notification", `{}`}, {"turn/started", `{"threadId":7}`}, {"new/notification", `{}`},
		{"serverRequest/resolved", `{"threadId":"t","requestId":7}`}, {"serverRequest/resolved", `{"threadId":"t","requestId":[]}`},
		{"turn/completed", `{"threadId":7}`}, {"warning", `{"message":"m"}`},
	} {
		f.notify(n.method, n.params)
	}
	for _, want := range []string{"turn/started t", "warning "} {
		must.Equal(t, "got", want, <-got)
	}
	if n := strings.Count(logged.String(), "new/notification"); n != 1 {
		t.Errorf("logged %d times: %s", n, logged.String())
	}
}

// TestInitialize says who the client is, and refuses versions that it cannot drive.
func TestInitialize(t *testing.T) {
	var params string
	keep := func(_ *fake, r *jsonrpc.Request) (any, error) {
		params = string(r.Params)
		return json.RawMessage(`{"userAgent":"test/0.169.0 (Test)","codexHome":"/home"}`), nil
	}
	on := map[string]func(*fake, *jsonrpc.Request) (any, error){"initialize": keep}
	for want, o := range map[string]*appclient.Options{
		`{"clientInfo":{"name":"codexmcp_appclient","version":"dev"}}`: nil,
		`{"capabilities":{"experimentalApi":true},"clientInfo":{"name":"n","version":"1"}}`: {
			Info: apptypes.ClientInfo{Name: "n", Version: "1"}, Capabilities: apptypes.Capabilities{ExperimentalAPI: true},
		},
	} {
		c := (&fake{on: on}).start(t, o)
		must.Equal(t, "sent", want, params)
		must.Equal(t, "result", appclient.Server{Version: appclient.Version{0, 169, 0}, Home: "/home"}, c.Server())
	}
	for version, want := range map[string]string{
		"0.154.0": "", "0.153.4": "codex 0.153.4 is too old: 0.154.0 or newer is needed; update it with `npm i -g @openai/codex@latest`", "dev": `"dev" is not a version`,
	} {
		err := (&fake{version: version}).connect(t, nil).Initialize(t.Context())
		if fmt.Sprint(err) != want && (err != nil || want != "") {
			t.Errorf("%s: %v", version, err)
		}
		if _, is := errors.AsType[*appclient.TooOldError](err); is != (version == "0.153.4") {
			t.Errorf("%s: %T", version, err)
		}
	}
	(&fake{}).connect(t, nil) // Close without Initialize
}

func TestStart(t *testing.T) {
	self := must.Get(os.Executable())(t)
	for want, cmd := range map[string]*exec.Cmd{
		"appclient: ":                exec.Command("./no/codex/here"),
		"jsonrpc: connection closed": exec.Command(self, "-test.run=^$"),
		"exit status 2":              exec.Command(self, "-no-such-flag"),
	} {
		c, err := appclient.Start(t.Context(), cmd, nil)
		if c != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", cmd, err, want)
		}
	}
}

// TestOnlyCommand has questions about more than a command.
func TestOnlyCommand(t *testing.T) {
	for members, want := range map[string]bool{
		`"command":"ls"`: true,
		`"command":"ls","kind":"command","asRoot":null`:                                   true,
		`"command":"ls","additionalPermissions":null`:                                     true,
		`"command":"ls","environmentId":"local"`:                                          true,
		`"command":""`:                                                                    false,
		`"command":"ls","kind":"writeStdin"`:                                              false,
		`"command":"ls","asRoot":true`:                                                    false,
		`"command":"ls","asRoot":null,"why":1`:                                            false,
		`"command":"ls","environmentId":"other"`:                                          false,
		`"command":"ls","additionalPermissions":{"network":{}}`:                           false,
		`"command":"ls","networkApprovalContext":{"host":"a.example","protocol":"https"}`: false,
	} {
		var q apptypes.CommandApproval
		must.OK(t, (&jsonrpc.Request{Params: json.RawMessage(`{"threadId":"t","turnId":"r","itemId":"i","startedAtMs":1,` + members + `}`)}).Bind(&q))
		must.Equal(t, members, want, appclient.OnlyCommand(&q))
	}
}

package appserver_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// missing returns, sorted, the MCP servers that events since the last task_started name, each with what clients read of it.
func (h *recorder) missing() (list []string) {
	for _, e := range h.all() {
		switch m := e.(type) {
		case protocol.TaskStarted:
			list = nil
		case protocol.BackgroundEvent:
			if m.Missing == nil {
				continue
			}
			line := m.Missing.Server + ": " + m.Missing.Why
			if m.Message != "" {
				line += " (" + m.Message + ")"
			}
			list = append(list, line)
		}
	}
	slices.Sort(list)
	return list
}

// TestMissingServers has MCP servers start well and not, before the thread is known, in a turn, between turns and never.
func TestMissingServers(t *testing.T) {
	const said = `the MCP server "db" did not start, its tools are missing: `
	type note struct{ thread, name, status, more string }
	ready := func(name string) note { return note{threadID, name, "ready", ""} }
	starting := func(name string) note { return note{threadID, name, "starting", ""} }
	failed := func(name, why string) note {
		return note{threadID, name, "failed", fmt.Sprintf(`,"error":%q`, why)}
	}
	for _, tt := range []struct {
		name           string
		before, during []note
		between        []note
		first, then    []string // the servers of the two turns
	}{
		{name: "all start", before: []note{starting("db"), ready("db")}},
		{name: "before the thread is known", before: []note{starting("db"), failed("db", "exit 1")}, first: []string{"db: exit 1 (" + said + "exit 1)"}, then: []string{"db: exit 1"}},
		{name: "in the turn", before: []note{starting("db")}, during: []note{failed("db", "exit 1")}, first: []string{"db: exit 1 (" + said + "exit 1)"}, then: []string{"db: exit 1"}},
		{name: "in the turn, and then it starts", before: []note{failed("db", "exit 1")}, between: []note{ready("db")}, first: []string{"db: exit 1 (" + said + "exit 1)"}},
		{name: "for another reason", before: []note{failed("db", "exit 1")}, between: []note{failed("db", "exit 2")}, first: []string{"db: exit 1 (" + said + "exit 1)"}, then: []string{"db: exit 2 (" + said + "exit 2)"}},
		{name: "still starting", before: []note{starting("db")}, between: []note{ready("db")}, first: []string{"db: it had not started when the turn ended (" + said + "it had not started when the turn ended)"}},
		{name: "cancelled", before: []note{{threadID, "db", "cancelled", ""}}, first: []string{"db: its start was cancelled (" + said + "its start was cancelled)"}, then: []string{"db: its start was cancelled"}},
		{name: "without a reason", before: []note{{threadID, "db", "failed", `,"error":null`}}, first: []string{"db: it ended with the state failed (" + said + "it ended with the state failed)"}, then: []string{"db: it ended with the state failed"}},
		{name: "a sign-in", before: []note{{threadID, "db", "failed", `,"error":"401","failureReason":"reauthenticationRequired"`}}, first: []string{"db: 401; sign in again with `codex mcp login db` (" + said + "401; sign in again with `codex mcp login db`)"}, then: []string{"db: 401; sign in again with `codex mcp login db`"}},
		{name: "two, one of them on two lines", before: []note{failed("z", "a\nb"), failed("db", "x")}, first: []string{"db: x (" + said + "x)", "z: a b (" + strings.Replace(said, "db", "z", 1) + "a b)"}, then: []string{"db: x", "z: a b"}},
		{
			name: "in Codex's words", before: []note{failed("db", "MCP client for `db` failed to start: MCP startup failed: handshaking with MCP server failed: Send message error Transport [a::B<c::D<e>>] error: HTTP 401: no, when send initialize request: Send message error Transport [a::B] error: HTTP 401")},
			first: []string{"db: handshaking with MCP server failed: HTTP 401: no (" + said + "handshaking with MCP server failed: HTTP 401: no)"}, then: []string{"db: handshaking with MCP server failed: HTTP 401: no"},
		},
		{name: "of another thread", before: []note{{agentID, "db", "failed", `,"error":"x"`}}},
		{name: "of no thread", before: []note{{"", "db", "failed", `,"error":"x"`}}},
	} {
		inBubble(t, tt.name, func(t *testing.T, f *fake) {
			tell := func(r *run, list []note) {
				for _, n := range list {
					thread := "null"
					if n.thread != "" {
						thread = strconv.Quote(n.thread)
					}
					r.notify("mcpServer/startupStatus/updated", `{"threadId":%s,"name":%q,"status":%q%s}`, thread, n.name, n.status, n.more)
				}
			}
			f.on["thread/start"] = func(r *run, _ *jsonrpc.Request) (any, error) { tell(r, tt.before); return nil, nil }
			f.turn = func(r *run) { tell(r, tt.during); answered(r) }
			h := &recorder{}
			conv := start(t, f.engine(appserver.Options{}), h)
			must.OK(t, conv.Turn(t.Context(), text("go")))
			must.Equal(t, "first", tt.first, h.missing())
			f.mu.Lock()
			f.turn = answered
			f.mu.Unlock()
			tell(f.runs[0], tt.between)
			synctest.Wait()
			must.OK(t, conv.Turn(t.Context(), text("on")))
			must.Equal(t, "then", tt.then, h.missing())
		})
	}
}

// TestSurroundings has Codex report what happens beside the work: each is one event of the turn.
func TestSurroundings(t *testing.T) {
	const remark = true
	saved := must.Get(filepath.Abs("x.png"))(t)
	for name, tt := range map[string]struct {
		method, params string // after those of the turn
		want           protocol.EventMsg
	}{
		"another model": {
			"model/rerouted", `"fromModel":"a","toModel":"b","reason":"highRiskCyberActivity"`,
			protocol.ModelReroute{FromModel: "a", ToModel: "b", Reason: "Codex's provider takes this for activity that may endanger the security of computers"},
		},
		"another model, for a new reason": {
			"model/rerouted", `"fromModel":"a","toModel":"b","reason":"other"`, protocol.ModelReroute{FromModel: "a", ToModel: "b", Reason: "other"},
		},
		"an image": {
			"item/completed", `"item":{"type":"imageGeneration","id":"i","status":"completed","result":"AAAA","savedPath":` + strconv.Quote(saved) + `}`,
			protocol.BackgroundEvent{Message: "Codex generated the image " + saved, Made: saved},
		},
		"an image that is not saved":  {"item/completed", `"item":{"type":"imageGeneration","id":"i","status":"failed","result":"","savedPath":null}`, nil},
		"an image at a relative path": {"item/completed", `"item":{"type":"imageGeneration","id":"i","status":"completed","result":"","savedPath":"x.png"}`, nil},
		"a compaction": {
			"item/completed", `"item":{"type":"contextCompaction","id":"i"}`, protocol.BackgroundEvent{Message: "Codex summarised the conversation to make room", Remark: remark},
		},
		"a strict review": {
			"autoApprovalReview/strictReviewRequired", `"startedAtMs":1`,
			protocol.BackgroundEvent{Message: "Codex requires a strict review: from now on its reviewer, a model, decides about more of this turn", Remark: remark},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := &recorder{}
			must.OK(t, turn(t, h, func(r *run) {
				r.notify(tt.method, `{"threadId":%q,"turnId":%q,`+strings.ReplaceAll(tt.params, "%", "%%")+`}`, threadID, r.current())
			}))
			var got []protocol.EventMsg
			for _, e := range h.all() {
				switch e.(type) {
				case protocol.BackgroundEvent, protocol.ModelReroute:
					got = append(got, e)
				}
			}
			var want []protocol.EventMsg
			if tt.want != nil {
				want = append(want, tt.want)
			}
			must.Equal(t, "events", want, got)
		})
	}
}

// TestKindsOfErrors has a turn fail with each kind of Codex's list: a sentence says what that means, but for the one that means
// nothing.
func TestKindsOfErrors(t *testing.T) {
	seen := map[string]string{}
	for _, kind := range errorKinds(t) {
		for _, info := range []string{strconv.Quote(kind), fmt.Sprintf(`{%q:{"httpStatusCode":null}}`, kind)} {
			var err error
			bubble(t, func(t *testing.T, f *fake) {
				f.turn = func(r *run) {
					r.notify("turn/completed", `{"threadId":%q,"turn":{"id":%q,"status":"failed","items":[],"error":{"message":"no","codexErrorInfo":%s}}}`, threadID, r.current(), info)
				}
				err = start(t, f.engine(appserver.Options{}), &recorder{}).Turn(t.Context(), text("go"))
			})
			must.Fail(t, kind, "no", err)
			first, sentence, _ := strings.Cut(err.Error(), "\n")
			want := "no (" + kind + ")"
			if kind == "other" {
				want = "no"
			}
			must.Equal(t, "the first line of "+info, want, first)
			if other := seen[sentence]; (sentence == "") != (kind == "other") || other != "" && other != kind && !strings.Contains(kind, "onnectionFailed") {
				t.Errorf("%s: %q, as of %q", info, sentence, other)
			}
			seen[sentence] = kind
		}
	}
	if len(seen) < 18 {
		t.Errorf("%d sentences", len(seen))
	}
}

// errorKinds returns the kinds that package apptypes knows. A test of it with Codex's schema says that these are all.
func errorKinds(t *testing.T) (kinds []string) {
	file := must.Get(parser.ParseFile(token.NewFileSet(), "apptypes/values.go", nil, 0))(t)
	for _, d := range file.Decls {
		group, is := d.(*ast.GenDecl)
		if !is || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			c := spec.(*ast.ValueSpec)
			if strings.HasPrefix(c.Names[0].Name, "CodexErrorInfo") {
				kinds = append(kinds, must.Get(strconv.Unquote(c.Values[0].(*ast.BasicLit).Value))(t))
			}
		}
	}
	return kinds
}

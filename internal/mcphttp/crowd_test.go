package mcphttp_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/internal/nightly"
)

var whole = flag.Bool("whole", nightly.Tests(), "serve 200 principals at once")

// TestPrincipalsDoNotMix runs five turns for each of 40 principals, or 200: a call of a session, one
// in its background, a call of 2026-07-28, one in the background, and a task. All turns ask
// a question at the same time. While the questions are open, each principal tries to use
// what belongs to another one. Then each principal answers its questions in its own way.
func TestPrincipalsDoNotMix(t *testing.T) {
	t.Parallel()
	members := 40
	if *whole {
		members = 200
	}
	e := engine.TurnFunc(func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
		word := in[0].Text
		for range 3 {
			host.Emit(protocol.AgentMessageDelta{Delta: word})
		}
		out := host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: word, Command: []string{"echo", word}, Cwd: "/"})
		host.Emit(protocol.AgentMessage{Message: fmt.Sprint(word, " ", out.Decision)})
		return nil
	})
	so := &codexserver.Options{Home: t.TempDir(), Tasks: codexserver.TaskOptions{Grace: -1, Limit: members}}
	s := open(t, e, so, func(o *mcphttp.Options) {
		o.Principals = members
		o.Authenticate = func(r *http.Request) (mcphttp.Principal, error) {
			name, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			if !ok || !anyMember.MatchString(name) {
				return mcphttp.Principal{}, errors.New("unknown token")
			}
			return mcphttp.Principal{Name: name}, nil
		}
	})
	transport := &http.Transport{MaxIdleConnsPerHost: members}
	defer transport.CloseIdleConnections()
	all := make([]*member, members)
	for i := range all {
		name := fmt.Sprintf("member-%03d", i)
		own := *s
		own.t, own.who, own.client, own.limit = crew{t, name}, name, &http.Client{Transport: transport}, 5*limit // 1,000 turns
		own.heard = func(text string) {
			for _, other := range anyMember.FindAllString(text, -1) {
				if other != name {
					own.t.Fatalf("it received data of %s: %s", other, text)
				}
			}
		}
		all[i] = &member{site: &own}
	}
	for _, step := range []struct {
		name string
		do   func(m *member, i int)
	}{
		{"begin", func(m *member, _ int) { m.begin() }},
		{"trespass", func(m *member, i int) { m.trespass(all[(i+1)%members]) }},
		{"finish", func(m *member, i int) { m.finish(i%2 == 0) }},
	} {
		began := time.Now()
		var running sync.WaitGroup
		for i, m := range all {
			running.Go(func() { step.do(m, i) })
		}
		running.Wait()
		if t.Logf("%s: %v", step.name, time.Since(began)); t.Failed() {
			return
		}
	}
}

// crew is a test as a goroutine of a member sees it: a fatal failure ends only the goroutine.
type crew struct {
	testing.TB
	name string
}

func (c crew) Fatal(args ...any) {
	c.Helper()
	c.Fatalf("%s", fmt.Sprint(args...))
}

func (c crew) Fatalf(format string, args ...any) {
	c.Helper()
	c.Errorf(format, args...)
	runtime.Goexit()
}

func (c crew) Errorf(format string, args ...any) {
	c.Helper()
	c.TB.Errorf("%s: %s", c.name, fmt.Sprintf(format, args...))
}

// member is one of many principals of a handler, with its open work. Nothing that it receives
// may contain a name but its own.
type member struct {
	*site
	session        headers
	call, standing *sse
	back           string // the response to the session's call in the background
	round          string // a requestState
	task           string
	threads        []string // threads in the background: of the session, and of 2026-07-28
}

const (
	asks  = `{"elicitation":{}}`
	tasks = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`

	inBackground = `,"background":true`
)

var (
	anyMember = regexp.MustCompile(`member-\d+`)
	// questionID finds the id of a question of the server.
	questionID = regexp.MustCompile(`"id":(\d+),"method":"elicitation/create"`)
)

// today sends a request of 2026-07-28 and returns its answer.
func (m *member) today(id, method, name, capabilities, params string) string {
	m.t.Helper()
	body, h := modern(id, method, capabilities, params)
	h["Mcp-Name"] = name
	return m.post(body, h).body
}

// arguments returns the arguments of a codex call whose prompt contains the member's name.
func (m *member) arguments(turn string, more string) string {
	return fmt.Sprintf(`"name":"codex","arguments":{"prompt":"%s-%s"%s}`, m.who, turn, more)
}

func old(id, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":%q,"params":{%s}}`, id, method, params)
}

// begin starts five turns. The one of 2026-07-28 in the background and the one of the task
// cannot ask their questions yet.
func (m *member) begin() {
	m.session = m.initialize(nil)
	m.standing = m.stream(http.MethodGet, "", m.session)
	m.back = m.post(old("back", "tools/call", m.arguments("back", inBackground)), m.session).body
	m.call = m.stream(http.MethodPost, old("call", "tools/call", m.arguments("call", "")), m.session)
	m.round = found(m.t, m.today("1", "tools/call", "codex", asks, m.arguments("round", "")), "requestState")
	m.task = found(m.t, m.today("2", "tools/call", "codex", tasks, m.arguments("task", "")), "taskId")
	later := m.today("3", "tools/call", "codex", asks, m.arguments("later", inBackground))
	m.threads = []string{found(m.t, m.back, "threadId"), found(m.t, later, "threadId")}
}

// trespass tries to use what belongs to another member, in every way. The server must answer
// that it does not exist.
func (m *member) trespass(other *member) {
	for name, got := range map[string]reply{
		"a session's POST":   m.post(old("x", "tools/list", ""), other.session),
		"a session's GET":    m.do(http.MethodGet, "", other.session),
		"a session's DELETE": m.do(http.MethodDelete, "", other.session),
		"a session's answer": m.post(`{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}`, other.session),
	} {
		if got.status != http.StatusNotFound || !strings.Contains(got.body, `"error"`) {
			m.t.Fatalf("%s of %s: %+v", name, other.who, got)
		}
	}
	task := fmt.Sprintf(`"taskId":%q`, other.task)
	for name, text := range map[string]string{
		"tasks/get":    m.today("4", "tasks/get", other.task, tasks, task),
		"tasks/update": m.today("5", "tasks/update", other.task, tasks, task+`,"inputResponses":{"q1":{"action":"accept"}}`),
		"tasks/cancel": m.today("6", "tasks/cancel", other.task, tasks, task),
		"requestState": m.today("7", "tools/call", "codex", asks, answered(other.round, "accept")+other.arguments("round", "")),
	} {
		if !strings.Contains(text, `"error"`) {
			m.t.Fatalf("%s of %s: %s", name, other.who, text)
		}
	}
	for _, thread := range other.threads {
		for _, tool := range []struct{ name, arguments, unknown string }{
			{"codex-wait", `"threadIds":[%q],"seconds":0`, `"status":"unknown"`},
			{"codex-reply", `"threadId":%q,"prompt":"x"`, "no conversation"},
			{"codex-interrupt", `"threadId":%q`, "no conversation"},
			{"codex-show", `"threadId":%q,"what":"transcript"`, "no conversation"},
		} {
			params := fmt.Sprintf(`"name":%q,"arguments":{%s}`, tool.name, fmt.Sprintf(tool.arguments, thread))
			text := m.today("8", "tools/call", tool.name, asks, params) + m.post(old("8", "tools/call", params), m.session).body
			if strings.Count(text, tool.unknown) < 2 {
				m.t.Fatalf("%s of %s: %s", tool.name, other.who, text)
			}
		}
	}
	// The id of another member's event is read as one of the member's own session.
	h := maps.Clone(m.session)
	h["Last-Event-ID"] = "3-0"
	again := m.stream(http.MethodGet, "", h)
	m.call.close()
	m.call = again
}

// answered returns the params that answer the question of a round.
func answered(state, action string) string {
	return fmt.Sprintf(`"requestState":%q,"inputResponses":{"q1":{"action":%q}},`, state, action)
}

// finish answers all questions in the same way, and checks that each result says so.
func (m *member) finish(accept bool) {
	action, decided := "decline", "denied"
	if accept {
		action, decided = "accept", "approved"
	}
	wants := func(turn, text string) {
		m.t.Helper()
		if !strings.Contains(text, m.who+"-"+turn+" "+decided) {
			m.t.Errorf("%s: the decision is missing, last event: %s", turn, text)
		}
	}
	m.finishSession(action, wants)
	wants("round", m.today("10", "tools/call", "codex", asks, answered(m.round, action)+m.arguments("round", "")))

	wait := fmt.Sprintf(`"name":"codex-wait","arguments":{"threadIds":[%q],"seconds":60}`, m.threads[1])
	state := found(m.t, m.today("11", "tools/call", "codex-wait", asks, wait), "requestState")
	wants("later", m.today("12", "tools/call", "codex-wait", asks, answered(state, action)+wait))

	task, text := fmt.Sprintf(`"taskId":%q`, m.task), ""
	m.soon("the end of the task", func() bool {
		if text = m.today("13", "tasks/get", m.task, tasks, task); strings.Contains(text, "input_required") {
			m.today("14", "tasks/update", m.task, tasks, task+fmt.Sprintf(`,"inputResponses":{"q1":{"action":%q}}`, action))
		}
		return strings.Contains(text, `"status":"completed"`)
	})
	wants("task", text)
}

// finishSession answers the questions of the session. The question of the call is on the
// call's stream, which was resumed. That of the background is on the stream of the GET.
func (m *member) finishSession(action string, wants func(turn, text string)) {
	for _, v := range []*sse{m.call, m.standing} {
		question := m.back // set if the question was sent before the answer to the call
		if v == m.call || !questionID.MatchString(question) {
			question = v.until(`"elicitation/create"`)
		}
		id := questionID.FindStringSubmatch(question)[1]
		if got := m.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":%q}}`, id, action), m.session); got.status != http.StatusAccepted {
			m.t.Fatalf("the answer: %+v", got)
		}
	}
	wants("call", m.call.until(`"result"`))
	wait := fmt.Sprintf(`"name":"codex-wait","arguments":{"threadIds":[%q],"seconds":60}`, m.threads[0])
	wants("back", m.post(old("wait", "tools/call", wait), m.session).body)
	m.call.close()
	m.standing.close()
	if got := m.do(http.MethodDelete, "", m.session); got.status != http.StatusNoContent {
		m.t.Fatalf("DELETE: %+v", got)
	}
}

package mcphttp_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

var whole = flag.Bool("whole", false, "serve 200 principals at once")

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
	ctx, cancel := context.WithTimeout(t.Context(), 5*limit) // 1,000 turns
	defer cancel()
	transport := &http.Transport{MaxIdleConnsPerHost: members}
	defer transport.CloseIdleConnections()
	all := make([]*member, members)
	for i := range all {
		all[i] = &member{name: fmt.Sprintf("member-%03d", i), url: s.url, client: &http.Client{Transport: transport}}
	}
	for _, step := range []struct {
		name string
		do   func(m *member, i int) error
	}{
		{"begin", func(m *member, _ int) error { return m.begin(ctx) }},
		{"trespass", func(m *member, i int) error { return m.trespass(ctx, all[(i+1)%members]) }},
		{"finish", func(m *member, i int) error { return m.finish(ctx, i%2 == 0) }},
	} {
		began := time.Now()
		var running sync.WaitGroup
		for i, m := range all {
			running.Go(func() {
				if err := step.do(m, i); err != nil {
					t.Errorf("%s, %s: %v", step.name, m.name, err)
				}
			})
		}
		running.Wait()
		if t.Logf("%s: %v", step.name, time.Since(began)); t.Failed() {
			return
		}
	}
}

// arguments returns the arguments of a codex call whose prompt contains the member's name.
func (m *member) arguments(turn string, more string) string {
	return fmt.Sprintf(`"name":"codex","arguments":{"prompt":"%s-%s"%s}`, m.name, turn, more)
}

// questionID finds the id of a question of the server.
var questionID = regexp.MustCompile(`"id":(\d+),"method":"elicitation/create"`)

const inBackground = `,"background":true`

func old(id, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":%q,"params":{%s}}`, id, method, params)
}

// begin starts five turns. The one of 2026-07-28 in the background and the one of the task
// cannot ask their questions yet.
func (m *member) begin(ctx context.Context) (err error) {
	if m.session, err = m.initialize(ctx); err != nil {
		return err
	}
	if m.made.standing, err = m.stream(ctx, http.MethodGet, "", nil); err != nil {
		return err
	}
	_, text, err := m.do(ctx, http.MethodPost, old("back", "tools/call", m.arguments("back", inBackground)), m.session)
	if err != nil {
		return err
	}
	m.made.back = text
	thread, err := find(text, "threadId")
	if err != nil {
		return err
	}
	m.made.threads = append(m.made.threads, thread)
	if m.made.call, err = m.stream(ctx, http.MethodPost, old("call", "tools/call", m.arguments("call", "")), nil); err != nil {
		return err
	}
	if text, err = m.today(ctx, "1", "tools/call", "codex", asks, m.arguments("round", "")); err != nil {
		return err
	}
	if m.made.round, err = find(text, "requestState"); err != nil {
		return err
	}
	if text, err = m.today(ctx, "2", "tools/call", "codex", tasks, m.arguments("task", "")); err != nil {
		return err
	}
	if m.made.task, err = find(text, "taskId"); err != nil {
		return err
	}
	if text, err = m.today(ctx, "3", "tools/call", "codex", asks, m.arguments("later", inBackground)); err != nil {
		return err
	}
	thread, err = find(text, "threadId")
	m.made.threads = append(m.made.threads, thread)
	return err
}

// initialize begins a session and returns its headers.
func (m *member) initialize(ctx context.Context) (headers, error) {
	answer, err := m.open(ctx, http.MethodPost, old("init", "initialize", `"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"`+m.name+`","version":"1"}`), nil)
	if err != nil {
		return nil, err
	}
	answer.Body.Close()
	id := answer.Header.Get("Mcp-Session-Id")
	if id == "" {
		return nil, fmt.Errorf("initialize: %s", answer.Status)
	}
	return headers{"Mcp-Session-Id": id, "MCP-Protocol-Version": "2025-11-25"}, nil
}

// trespass tries to use what belongs to another member, in every way. The server must answer
// that it does not exist.
func (m *member) trespass(ctx context.Context, other *member) error {
	made := &other.made
	for name, try := range map[string]func() (string, error){
		"a session's POST": func() (string, error) {
			return m.tryMethod(ctx, http.MethodPost, old("x", "tools/list", ""), other.session)
		},
		"a session's GET":    func() (string, error) { return m.tryMethod(ctx, http.MethodGet, "", other.session) },
		"a session's DELETE": func() (string, error) { return m.tryMethod(ctx, http.MethodDelete, "", other.session) },
		"a session's answer": func() (string, error) {
			return m.tryMethod(ctx, http.MethodPost, `{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}`, other.session)
		},
		"tasks/get": func() (string, error) {
			return m.today(ctx, "4", "tasks/get", made.task, tasks, fmt.Sprintf(`"taskId":%q`, made.task))
		},
		"tasks/update": func() (string, error) {
			return m.today(ctx, "5", "tasks/update", made.task, tasks, fmt.Sprintf(`"taskId":%q,"inputResponses":{"q1":{"action":"accept"}}`, made.task))
		},
		"tasks/cancel": func() (string, error) {
			return m.today(ctx, "6", "tasks/cancel", made.task, tasks, fmt.Sprintf(`"taskId":%q`, made.task))
		},
		"requestState": func() (string, error) {
			return m.today(ctx, "7", "tools/call", "codex", asks, m.answered(made.round, true)+other.arguments("round", ""))
		},
	} {
		if text, err := try(); err != nil || !strings.Contains(text, `"error"`) {
			return fmt.Errorf("%s of %s: %s, %w", name, other.name, text, err)
		}
	}
	for _, thread := range made.threads {
		for _, tool := range []struct{ name, arguments, unknown string }{
			{"codex-wait", `"threadIds":[%q],"seconds":0`, `"status":"unknown"`},
			{"codex-reply", `"threadId":%q,"prompt":"x"`, "no conversation"},
			{"codex-interrupt", `"threadId":%q`, "no conversation"},
			{"codex-show", `"threadId":%q,"what":"transcript"`, "no conversation"},
		} {
			params := fmt.Sprintf(`"name":%q,"arguments":{%s}`, tool.name, fmt.Sprintf(tool.arguments, thread))
			text, err := m.today(ctx, "8", "tools/call", tool.name, asks, params)
			if err == nil {
				var more string
				_, more, err = m.do(ctx, http.MethodPost, old("8", "tools/call", params), m.session)
				text += more
			}
			if err != nil || strings.Count(text, tool.unknown) < 2 {
				return fmt.Errorf("%s of %s: %s, %w", tool.name, other.name, text, err)
			}
		}
	}
	// The id of another member's event is read as one of the member's own session.
	again, err := m.stream(ctx, http.MethodGet, "", headers{"Last-Event-ID": "3-0"})
	if err != nil {
		return err
	}
	m.made.call.body.Close()
	m.made.call = again
	return nil
}

// tryMethod sends a request with a session id, and checks that the session does not exist.
func (m *member) tryMethod(ctx context.Context, method, body string, session headers) (string, error) {
	status, text, err := m.do(ctx, method, body, session)
	if err == nil && status != http.StatusNotFound {
		err = fmt.Errorf("status %d", status)
	}
	return text, err
}

// answered returns the params that answer the question of a round.
func (m *member) answered(state string, accept bool) string {
	return fmt.Sprintf(`"requestState":%q,"inputResponses":{"q1":{"action":%q}},`, state, action(accept))
}

func action(accept bool) string {
	if accept {
		return "accept"
	}
	return "decline"
}

// finish answers all questions in the same way, and checks that each result says so.
func (m *member) finish(ctx context.Context, accept bool) error {
	decided := map[bool]string{true: "approved", false: "denied"}[accept]
	wants := func(text, turn string, err error) error {
		if err == nil && !strings.Contains(text, m.name+"-"+turn+" "+decided) {
			err = errors.New("the decision is missing")
		}
		if err != nil {
			return fmt.Errorf("%s: %w, last event: %s", turn, err, text)
		}
		return nil
	}
	errs := []error{m.finishSession(ctx, accept, wants)}
	text, err := m.today(ctx, "10", "tools/call", "codex", asks, m.answered(m.made.round, accept)+m.arguments("round", ""))
	errs = append(errs, wants(text, "round", err))

	wait := fmt.Sprintf(`"name":"codex-wait","arguments":{"threadIds":[%q],"seconds":60}`, m.made.threads[1])
	if text, err = m.today(ctx, "11", "tools/call", "codex-wait", asks, wait); err == nil {
		var state string
		if state, err = find(text, "requestState"); err == nil {
			text, err = m.today(ctx, "12", "tools/call", "codex-wait", asks, m.answered(state, accept)+wait)
		}
	}
	errs = append(errs, wants(text, "later", err))

	task := fmt.Sprintf(`"taskId":%q`, m.made.task)
	for text, err = "", nil; err == nil && !strings.Contains(text, `"status":"completed"`); {
		if text, err = m.today(ctx, "13", "tasks/get", m.made.task, tasks, task); err == nil && strings.Contains(text, "input_required") {
			_, err = m.today(ctx, "14", "tasks/update", m.made.task, tasks, task+fmt.Sprintf(`,"inputResponses":{"q1":{"action":%q}}`, action(accept)))
		}
	}
	return errors.Join(slices.Concat(errs, []error{wants(text, "task", err)})...)
}

// finishSession answers the questions of the session. The question of the call is on the
// call's stream, which was resumed. That of the background is on the stream of the GET.
func (m *member) finishSession(ctx context.Context, accept bool, wants func(text, turn string, err error) error) error {
	for _, v := range []*events{m.made.call, m.made.standing} {
		question := m.made.back // set if the question was sent before the answer to the call
		if v == m.made.call || !questionID.MatchString(question) {
			var err error
			if question, err = v.until(`"elicitation/create"`); err != nil {
				return err
			}
		}
		id := questionID.FindStringSubmatch(question)[1]
		if status, _, err := m.do(ctx, http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":%q}}`, id, action(accept)), m.session); err != nil || status != http.StatusAccepted {
			return fmt.Errorf("the answer: %d, %w", status, err)
		}
	}
	result, err := m.made.call.until(`"result"`)
	if err = wants(result, "call", err); err != nil {
		return err
	}
	_, text, err := m.do(ctx, http.MethodPost, old("wait", "tools/call", fmt.Sprintf(`"name":"codex-wait","arguments":{"threadIds":[%q],"seconds":60}`, m.made.threads[0])), m.session)
	if err = wants(text, "back", err); err != nil {
		return err
	}
	m.made.call.body.Close()
	m.made.standing.body.Close()
	if status, _, err := m.do(ctx, http.MethodDelete, "", m.session); err != nil || status != http.StatusNoContent {
		return fmt.Errorf("DELETE: %d, %w", status, err)
	}
	return nil
}

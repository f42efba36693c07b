package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/google/go-cmp/cmp"
)

// lie is how a host answers one question.
type lie struct {
	after  time.Duration
	result string // "" drops the question
	fails  bool   // with an error, which only clients with a handshake can send
}

// lying is a host that declares that it shows questions, and answers by itself. The last lie is that of
// all further questions.
type lying struct {
	name         string
	capabilities string
	lies         []lie
	asking       setting.Asking
	alone        string // the decisions without another place
	counts       bool   // its answers count although there is a page
	given        string // the decisions that count as given before it is recognised
}

// lyingHosts are the hosts of [TestLyingHosts].
var lyingHosts = []lying{
	{name: "declines", lies: []lie{{2 * time.Millisecond, servertest.Decline, false}}, alone: "denied denied"},
	{name: "cancels", lies: []lie{{2 * time.Millisecond, servertest.Cancel, false}}, alone: "abort"},
	{name: "drops", lies: []lie{{}}, alone: "denied denied"},
	{name: "hangs", lies: []lie{{180 * time.Second, servertest.Decline, false}}, alone: "denied denied"},
	{name: "fails", lies: []lie{{2 * time.Millisecond, "", true}}, alone: "denied denied"},
	{name: "fails late", lies: []lie{{time.Second, "", true}}, alone: "denied denied"},
	{name: "says what nobody understands, twice", lies: []lie{{2 * time.Millisecond, `{"action":"yes"}`, false}}, alone: "denied denied", given: "denied "},
	{name: "a hook that accepts", lies: []lie{{5 * time.Millisecond, servertest.Accept, false}}, asking: setting.Asking{Where: setting.WhereBoth}, alone: "denied denied"},
	{name: "a hook that accepts for the session", lies: []lie{{5 * time.Millisecond, servertest.ForSession, false}}, asking: setting.Asking{Where: setting.WhereBoth}, alone: "denied denied"},
	{name: "a policy that accepts", lies: []lie{{5 * time.Millisecond, servertest.Accept, false}}, alone: "approved approved", counts: true},
	{name: "shows only links", capabilities: `"elicitation":{"url":{}}`, lies: []lie{{2 * time.Millisecond, servertest.Accept, false}}, alone: "denied denied"},
	{name: "shows only forms", capabilities: `"elicitation":{"form":{}}`, lies: []lie{{2 * time.Millisecond, servertest.Decline, false}}, alone: "denied denied"},
	{name: "changes its mind", lies: []lie{{2 * time.Millisecond, servertest.Decline, false}, {2 * time.Millisecond, servertest.Accept, false}}, alone: "denied approved"},
	{name: "declines and then drops", lies: []lie{{2 * time.Millisecond, servertest.Decline, false}, {}}, alone: "denied denied"},
	{name: "a person who goes away", lies: []lie{{806 * time.Millisecond, servertest.Accept, false}, {}}, alone: "approved denied", given: "approved "},
	{name: "a person, and then a program that declines", lies: []lie{{806 * time.Millisecond, servertest.Accept, false}, {2 * time.Millisecond, servertest.Decline, false}}, alone: "approved denied", given: "approved "},
	{name: "is never asked", lies: []lie{{806 * time.Millisecond, servertest.Accept, false}}, asking: setting.Asking{Where: setting.WherePage}, alone: "denied denied"},
	{name: "is never asked, by its name", lies: []lie{{806 * time.Millisecond, servertest.Accept, false}}, asking: setting.Asking{Where: setting.WhereClient, Clients: map[string]setting.Where{"test": setting.WherePage}}, alone: "denied denied"},
	{name: "shows the question", lies: []lie{{806 * time.Millisecond, servertest.Accept, false}}, asking: setting.Asking{Where: setting.WhereBoth}, alone: "approved approved", counts: true},
}

// TestLyingHosts has hosts answer by themselves, in both eras and in tasks. With a page or the terminal of
// another client what is asked is done if and only if the person there approves, no call hangs, and the
// result says who decided. Without another place their answers count as they are given, but for what only
// a person may approve.
func TestLyingHosts(t *testing.T) {
	t.Parallel()
	n := 0
	for _, tt := range lyingHosts {
		for _, era := range []servertest.Era{servertest.Handshake, servertest.Rounds, servertest.Polls} {
			for _, human := range []bool{false, true} {
				for _, place := range []string{"", "page approves", "page declines", "terminal approves", "terminal declines"} {
					first := tt.lies[0]
					last := tt.lies[len(tt.lies)-1]
					drops := last.result == "" && !last.fails
					if first.fails && era != servertest.Handshake || drops && era == servertest.Rounds && place == "" {
						continue // it could only say nothing, or never comes back
					}
					if n++; testing.Short() && n%14 != 7 {
						continue
					}
					t.Run(fmt.Sprintf("%s/%s/human %t/%s", tt.name, era, human, place), func(t *testing.T) {
						tt := tt
						if human {
							tt = tt.forPerson()
						}
						synctest.Test(t, func(t *testing.T) { tt.play(t, era, human, place) })
					})
				}
			}
		}
	}
}

// forPerson returns the host as it is asked what only a person may approve: what it accepts by itself
// does not count.
func (l lying) forPerson() lying {
	if l.lies[0].after < approve.Instant && l.counts {
		l.alone, l.counts = "denied denied", false
	}
	if last := l.lies[len(l.lies)-1]; len(l.lies) > 1 && last.result == servertest.Accept && last.after < approve.Instant {
		l.alone = "denied denied"
	}
	return l
}

// play has the host answer the questions of an engine in an era, next to another place.
func (l lying) play(t *testing.T, era servertest.Era, human bool, place string) {
	o := &codexserver.Options{Asking: l.asking}
	where, says, _ := strings.Cut(place, " ")
	answer := map[string]string{"approves": servertest.Accept, "declines": servertest.Decline}[says]
	if where == "page" {
		o.Desk = &servertest.Desk{Called: approval.ByPage, Answer: servertest.After(5*time.Second, answer), Invitation: "come here"}
	}
	if era == servertest.Polls {
		o.Home = t.TempDir()
	}
	o.Changes.Off = true
	var record servertest.Journal
	o.Record = &record
	e := newAsking(human)
	began := time.Now()
	result, asked := askTwice(t, o, e, era, l, where, answer)
	took := time.Since(began)

	decisions, ran := decided(t, record.String())
	never := strings.HasPrefix(l.name, "is never asked")
	heard := place != "" && (where == "page" || l.asking.Where != setting.WherePage) // the other place is asked
	want := l.alone
	if heard && !l.counts {
		said := map[string]string{"approves": "approved", "declines": "denied"}[says]
		if want = l.given + said; l.given == "" {
			want = said + " " + said
		}
	}
	if diff := cmp.Diff(want, decisions); diff != "" {
		t.Errorf("decisions (-want +got):\n%s\n%s", diff, result)
	}
	if diff := cmp.Diff(ran, e.ran()); diff != "" {
		t.Errorf("what was approved, and what was done (-want +got):\n%s\n%s", diff, result)
	}
	first := l.lies[0]
	limit := 30 * time.Second
	if era != servertest.Handshake {
		limit += first.after // it comes back so late
	}
	if heard && took > limit {
		t.Errorf("it took %v", took)
	}
	void := !never && !strings.Contains(l.capabilities, "url") && slices.ContainsFunc(l.lies, func(one lie) bool { return one.fails || one.result != "" && one.after < approve.Instant })
	if never && asked > 0 {
		t.Errorf("asked %d times", asked)
	}
	by := map[string]string{"page": "the approvals page", "terminal": "another client"}[where]
	if says := strings.Contains(result, "after the question. That did not count; the decision came from "+by+"."); says != (void && heard && !l.counts) {
		t.Errorf("the result says who decided: %t\n%s", says, result)
	}
}

// decided returns the decisions of a record, and what they approve.
func decided(t *testing.T, record string) (decisions, approved string) {
	var all, yes []string
	names := []string{"one", "two"}
	for line := range strings.Lines(record) {
		var r struct {
			Event    string          `json:"event"`
			Decision elicit.Decision `json:"decision"`
		}
		err := json.Unmarshal([]byte(line), &r)
		if err == nil && r.Event != "decided" {
			continue
		}
		if err != nil || len(all) == len(names) {
			t.Fatalf("%v: %s", err, record)
		}
		if r.Decision.Approves() {
			yes = append(yes, names[len(all)])
		}
		all = append(all, string(r.Decision))
	}
	return strings.Join(all, " "), strings.Join(yes, " ")
}

// askTwice runs a turn of an engine that asks twice, with a host in an era and perhaps a second client, whose
// person answers. It returns the result as JSON, and how often the host was asked.
func askTwice(t *testing.T, o *codexserver.Options, e *asking, era servertest.Era, l lying, where, answer string) (result string, asked int) {
	server := codexserver.New(e, o)
	s := servertest.Server(server)
	if where == "terminal" { // both are clients of a shared server
		g := &guests{Server: server}
		defer g.serving.Wait()
		s = g
	}
	host := servertest.Join(t, s, servertest.Host{Era: era, Capabilities: l.capabilities, Answer: func(ctx context.Context) (string, error) {
		one := l.lies[min(asked, len(l.lies)-1)]
		asked++
		return one.tell(ctx, era)
	}})
	clients := []*servertest.Client{host}
	if where == "terminal" {
		second := servertest.Join(t, s, servertest.Host{Era: servertest.Handshake, Name: "terminal", Answer: servertest.After(5*time.Second, answer)})
		clients = append(clients, second)
		var waits sync.WaitGroup
		defer waits.Wait()
		e.ready = func(conversation string) {
			waits.Go(func() { second.Use(t.Context(), "codex-wait", fmt.Sprintf(`{"threadIds":[%q]}`, conversation)) })
			time.Sleep(time.Second)
		}
	}
	result = host.Use(t.Context(), "codex", `{"prompt":"p"}`)
	for _, c := range clients {
		c.Close()
	}
	return result, asked
}

// tell gives the answer of a lie in its time. A question that is dropped stays open; a host with results is asked
// nothing more, and comes back.
func (one lie) tell(ctx context.Context, era servertest.Era) (string, error) {
	if one.result == "" && !one.fails {
		if era == servertest.Handshake {
			<-ctx.Done()
		}
		return "", ctx.Err()
	}
	_ = servertest.Wait(ctx, one.after)
	if one.fails {
		return "", servertest.ErrBroken
	}
	return one.result, ctx.Err()
}

func TestMain(m *testing.M) { os.Exit(memdir.Run(m)) }

// asking is an engine of which a turn asks about two commands, one after the other, unless the first
// answer aborts it. It asks as the bridge does, and runs those that are approved.
type asking struct {
	servertest.Engine
	// ready, unless nil, is called with the conversation's id, before the first question.
	ready func(conversation string)
	done  []string // the commands that were run: one, two
}

// ran returns the commands that were run.
func (a *asking) ran() string { return strings.Join(a.done, " ") }

// newAsking returns an engine that asks any place, or a person only.
func newAsking(human bool) *asking {
	a := &asking{}
	a.Turn = func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
		if a.ready != nil {
			a.ready(a.Started()[0].ID)
		}
		for _, name := range []string{"one", "two"} {
			out := host.ApproveExec(ctx, protocol.ExecApprovalRequest{
				CallID: name, Command: []string{"/bin/bash", "-lc", "touch " + name},
				Cwd: "/work", LeavesSandbox: true, Once: true, Human: human,
			})
			switch {
			case out.Decision == elicit.Abort:
				return &engine.AbortError{Cause: errors.New("the client chose to abort the turn")}
			case out.Decision.Approves():
				a.done = append(a.done, name)
			}
		}
		return nil
	}
	return a
}

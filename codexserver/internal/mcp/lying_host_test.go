package mcp_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
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
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
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
	{name: "shows only links", capabilities: `{"elicitation":{"url":{}}}`, lies: []lie{{2 * time.Millisecond, servertest.Accept, false}}, alone: "denied denied"},
	{name: "shows only forms", capabilities: `{"elicitation":{"form":{}}}`, lies: []lie{{2 * time.Millisecond, servertest.Decline, false}}, alone: "denied denied"},
	{name: "changes its mind", lies: []lie{{2 * time.Millisecond, servertest.Decline, false}, {2 * time.Millisecond, servertest.Accept, false}}, alone: "denied approved"},
	{name: "declines and then drops", lies: []lie{{2 * time.Millisecond, servertest.Decline, false}, {}}, alone: "denied denied"},
	{name: "a person who goes away", lies: []lie{{806 * time.Millisecond, servertest.Accept, false}, {}}, alone: "approved denied", given: "approved "},
	{name: "a person, and then a program that declines", lies: []lie{{806 * time.Millisecond, servertest.Accept, false}, {2 * time.Millisecond, servertest.Decline, false}}, alone: "approved denied", given: "approved "},
	{name: "is never asked", lies: []lie{{806 * time.Millisecond, servertest.Accept, false}}, asking: setting.Asking{Where: setting.WherePage}, alone: "denied denied"},
	{name: "is never asked, by its name", lies: []lie{{806 * time.Millisecond, servertest.Accept, false}}, asking: setting.Asking{Where: setting.WhereClient, Clients: map[string]setting.Where{"test": setting.WherePage}}, alone: "denied denied"},
	{name: "shows the question", lies: []lie{{806 * time.Millisecond, servertest.Accept, false}}, asking: setting.Asking{Where: setting.WhereBoth}, alone: "approved approved", counts: true},
}

var whole = flag.Bool("whole", false, "play every lying host in every era, on every engine and next to every place")

// TestLyingHosts has hosts answer by themselves, in both eras and in tasks, on both engines. With a page
// or the terminal of another client what is asked is done if and only if the person there approves, no
// call hangs, and the result says who decided. Without another place their answers count as they are
// given, but for what only a person may approve.
func TestLyingHosts(t *testing.T) {
	t.Parallel()
	n := 0
	for _, tt := range lyingHosts {
		for _, era := range []string{"handshake", "rounds", "task"} {
			for _, on := range slices.Sorted(maps.Keys(askingEngines)) {
				for _, place := range []string{"", "page approves", "page declines", "terminal approves", "terminal declines"} {
					first := tt.lies[0]
					last := tt.lies[len(tt.lies)-1]
					drops := last.result == "" && !last.fails
					if first.fails && era != "handshake" || drops && era == "rounds" && place == "" {
						continue // it could only say nothing, or never comes back
					}
					if n++; !servertest.Plays(n, *whole) || testing.Short() && n%14 != 7 {
						continue
					}
					t.Run(strings.Join([]string{tt.name, era, on, place}, "/"), func(t *testing.T) {
						tt := tt
						if on == "a person" {
							tt = tt.forPerson()
						}
						synctest.Test(t, func(t *testing.T) { tt.play(t, era, on, place) })
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
func (l lying) play(t *testing.T, era, on, place string) {
	o := &codexserver.Options{Asking: l.asking}
	where, says, _ := strings.Cut(place, " ")
	answer := map[string]string{"approves": servertest.Accept, "declines": servertest.Decline}[says]
	if where == "page" {
		o.Desk = &servertest.Desk{Called: approval.ByPage, Answer: servertest.After(5*time.Second, answer), Invitation: "come here"}
	}
	if era == "task" {
		o.Home = t.TempDir()
	}
	o.Changes.Off = true
	var record servertest.Journal
	o.Record = &record
	e := askingEngines[on](t)
	o.Folder = e.folder
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
	if era != "handshake" {
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
func askTwice(t *testing.T, o *codexserver.Options, e *asking, era string, l lying, where, answer string) (result string, asked int) {
	s := codexserver.New(e.engine, o)
	var work, waits sync.WaitGroup
	connect := func(h jsonrpc.Handler) *jsonrpc.Peer {
		ours, theirs := jsonrpc.Pipe()
		peer := jsonrpc.NewPeer(ours, h, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
		work.Go(func() {
			if err := peer.Run(context.Background()); err != nil {
				t.Error(err)
			}
		})
		work.Go(func() {
			serve := s.Serve
			if where == "terminal" { // both are clients of a shared server
				serve = func(ctx context.Context, t jsonrpc.Transport) error {
					return s.ServeFrom(ctx, t, engine.Origin{Folder: e.folder}, func() {})
				}
			}
			if err := serve(context.Background(), theirs); err != nil {
				t.Error(err)
			}
		})
		return peer
	}
	h := &lyingHost{t: t, lies: l.lies, era: era, capabilities: l.capabilities, name: "test"}
	h.peer = connect(h)
	peers := []*jsonrpc.Peer{h.peer}
	if where == "terminal" {
		second := &lyingHost{t: t, lies: []lie{{5 * time.Second, answer, false}}, era: "handshake", name: "terminal"}
		second.peer = connect(second)
		e.ready = func(conversation string) {
			waits.Go(func() {
				second.send("initialize", "")
				second.send("tools/call", fmt.Sprintf(`"name":"codex-wait","arguments":{"threadIds":[%q]}`, conversation))
			})
			time.Sleep(time.Second)
		}
		peers = append(peers, second.peer)
	}
	result = h.call()
	waits.Wait()
	for _, p := range peers {
		p.Close()
	}
	work.Wait()
	return result, h.asked
}

// lyingHost is a client that answers by itself.
type lyingHost struct {
	t                 *testing.T
	peer              *jsonrpc.Peer
	lies              []lie
	asked             int
	era, capabilities string
	name              string
	seen              func(question json.RawMessage) // in a result
}

// lie returns the answer to the next question, when it is given.
func (h *lyingHost) lie(ctx context.Context) lie {
	one := h.lies[min(h.asked, len(h.lies)-1)]
	h.asked++
	if one.result != "" || one.fails {
		_ = servertest.Wait(ctx, one.after)
	}
	return one
}

// ServeRPC implements [jsonrpc.Handler].
func (h *lyingHost) ServeRPC(ctx context.Context, r *jsonrpc.Request) (any, error) {
	if r.IsNotification() {
		return nil, nil
	}
	one := h.lie(ctx)
	switch {
	case one.fails:
		return nil, servertest.ErrBroken
	case one.result == "":
		<-ctx.Done()
	}
	return json.RawMessage(one.result), ctx.Err()
}

// send sends a request, with the _meta of the host since 2026-07-28.
func (h *lyingHost) send(method, members string) (r lyingReply) {
	capabilities := h.capabilities
	if capabilities == "" {
		capabilities = `{"elicitation":{}}`
	}
	if h.era == "task" {
		capabilities = strings.TrimSuffix(capabilities, "}") + `,"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	}
	switch h.era {
	case "handshake":
		if method == "initialize" {
			members = `"protocolVersion":"2025-11-25","clientInfo":{"name":"` + h.name + `","version":"1"},"capabilities":` + capabilities
		}
	default:
		members += `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + capabilities +
			`,"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}}`
	}
	var raw json.RawMessage
	if err := h.peer.Call(h.t.Context(), method, json.RawMessage(`{`+members+`}`), &raw); err != nil {
		h.t.Fatalf("%s: %v", method, err)
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		h.t.Fatal(err)
	}
	r.raw = string(raw)
	return r
}

// lyingReply is what a host reads of a result.
type lyingReply struct {
	raw           string
	TaskID        string `json:"taskId"`
	Status        string
	InputRequests map[string]json.RawMessage
	RequestState  *string
}

// call calls the tool codex until it has the result. A question that the host drops does not keep
// it from coming back for the result.
func (h *lyingHost) call() string {
	const call = `"name":"codex","arguments":{"prompt":"p"}`
	if h.era == "handshake" {
		h.send("initialize", "")
		return h.send("tools/call", call).raw
	}
	r := h.send("tools/call", call)
	id, known := r.TaskID, map[string]bool{}
	for {
		var answers []string
		for key, question := range r.InputRequests {
			if known[key] {
				continue
			}
			known[key] = true
			if h.seen != nil {
				h.seen(question)
			}
			if one := h.lie(h.t.Context()); one.result != "" {
				answers = append(answers, fmt.Sprintf("%q:%s", key, one.result))
			}
		}
		responses := `"inputResponses":{` + strings.Join(answers, ",") + `}`
		switch {
		case id != "" && r.Status != "completed" && r.Status != "failed" && r.Status != "cancelled":
			if len(answers) > 0 {
				h.send("tasks/update", fmt.Sprintf(`"taskId":%q,%s`, id, responses))
			}
			time.Sleep(500 * time.Millisecond)
			r = h.send("tasks/get", fmt.Sprintf(`"taskId":%q`, id))
		case id == "" && r.RequestState != nil:
			if len(answers) == 0 {
				time.Sleep(11 * time.Second)
			}
			r = h.send("tools/call", fmt.Sprintf(`%s,"requestState":%q,%s`, call, *r.RequestState, responses))
		default:
			return r.raw
		}
	}
}

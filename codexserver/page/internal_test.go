package page

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d door
		first := d.invite()
		if s := d.links[0].expires.String(); strings.Contains(s, "m=") {
			t.Errorf("a link expires at %s: the monotonic clock stops while the machine sleeps", s)
		}
		token, ok := d.admit(first)
		if !ok || d.session(token) == nil {
			t.Fatal("a link does not open the door")
		}
		fresh := d.invite()
		for name, wrong := range map[string]string{
			"used": first, "guessed": strings.Repeat("A", 43), "cut": fresh[:42], "longer": fresh + "A", "in other cases": strings.ToLower(fresh),
			"of another page": new(door).invite(), "a token": token, "none": "",
		} {
			if _, ok := d.admit(wrong); ok {
				t.Errorf("a link that is %s opens the door", name)
			}
		}
		for _, wrong := range []string{"", first, token[:42], token + "x", strings.ToLower(token)} {
			if d.session(wrong) != nil {
				t.Errorf("%q is taken for a token", wrong)
			}
		}

		old := d.invite()
		var newer []string
		for range maxLinks {
			newer = append(newer, d.invite())
		}
		works := func(secret string) bool {
			d.tidy()
			return slices.ContainsFunc(d.links, func(l invite) bool { return l.secret == secret })
		}
		if works(old) || !works(newer[0]) {
			t.Error("it is not the oldest of too many links that stops working")
		}
		<-time.After(time.Hour)
		if !works(newer[0]) {
			t.Error("a link stops working before its time")
		}
		<-time.After(1)
		if _, ok := d.admit(newer[0]); ok {
			t.Error("a link works after its time")
		}

		used := d.session(token)
		for range maxSessions {
			oldest, full := d.sessions[0], len(d.sessions) == maxSessions
			if _, ok := d.admit(d.invite()); !ok {
				t.Fatal("a link does not open the door")
			}
			ended := false
			select {
			case <-oldest.ended:
				ended = true
			default:
			}
			if ended != full {
				t.Errorf("the oldest session has ended: %t, and the door is full: %t", ended, full)
			}
			if len(d.sessions) == maxSessions-1 {
				d.session(token) // now it is not the least recently used
			}
		}
		if d.session(token) == nil || len(d.sessions) != maxSessions {
			t.Errorf("%d sessions, and the one in use is not kept", len(d.sessions))
		}
		<-time.After(sessionLifetime)
		if d.session(token) == nil {
			t.Error("a token stops working before its time")
		}
		<-time.After(sessionLifetime + 1)
		if d.session(token) != nil {
			t.Error("a token works after its time")
		}
		<-used.ended
	})
}

// pipes is a listener in memory.
type pipes chan net.Conn

func (l pipes) Accept() (net.Conn, error) {
	c, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (l pipes) Close() error   { close(l); return nil }
func (l pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// connect opens the stream of events on a connection of its own.
func connect(t *testing.T, p *Page, l pipes) net.Conn {
	t.Helper()
	token, _ := p.door.admit(p.door.invite())
	ours, theirs := net.Pipe()
	l <- theirs
	must.Get(fmt.Fprintf(ours, "GET /events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", p.host, token))(t)
	return ours
}

// TestSlowReader checks that a browser that does not read delays no other, is disconnected
// in time, and gets everything when it connects again.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := make(pipes)
		p := newPage("127.0.0.1:1", &Options{})
		p.listen(l)
		const most = 64 << 10
		began := time.Now()
		slowConn := connect(t, p, l)
		synctest.Wait()
		if !p.Watched() {
			t.Fatal("no stream is open")
		}
		me := approval.Thread{ID: "1", Log: func() string { return strings.Repeat("x", most) }}
		for range 10_000 {
			p.Event(me, protocol.BackgroundEvent{Message: "x"})
		}
		if time.Since(began) != 0 {
			t.Error("Event has waited for a reader")
		}
		<-time.After(slow + time.Second)
		synctest.Wait()
		if p.Watched() {
			t.Error("a reader that reads nothing is kept")
		}
		slowConn.Close()

		again := connect(t, p, l)
		res := must.Get(http.ReadResponse(bufio.NewReader(again), nil))(t)
		text, err := bufio.NewReader(res.Body).ReadString('\n')
		if err != nil || !strings.Contains(text, strings.Repeat("x", most)) || len(text) > most+1000 {
			t.Errorf("%d bytes came, %v", len(text), err)
		}
		must.Check(t, p.Close())
		again.Close()
	})
}

// TestHeartbeat checks that a silent stream sends heartbeats and outlasts the server's time-outs.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := make(pipes)
		p := newPage("127.0.0.1:1", &Options{})
		p.listen(l)
		conn := connect(t, p, l)
		res := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
		began := time.Now()
		lines := bufio.NewReader(res.Body)
		for i := range 100 {
			text, err := lines.ReadString('\n')
			if err != nil || (i > 0) != (text == "\n") {
				t.Fatalf("line %d is %q, %v", i, text, err)
			}
		}
		if got := time.Since(began); got != 99*heartbeat {
			t.Errorf("99 heartbeats in %s", got)
		}
		must.Check(t, p.Close())
		conn.Close()
	})
}

// TestBounds bounds the conversations and the questions, and forgets no open question.
func TestBounds(t *testing.T) {
	p := newPage("127.0.0.1:1", &Options{})
	b := &p.board
	asks := func(n int, r func() *approval.Request, want error) (all []*approval.Request) {
		t.Helper()
		for range n {
			one := r()
			if _, err := b.ask(t.Context(), one); err != nil {
				t.Fatalf("question %d: %v", len(all), err)
			}
			all = append(all, one)
		}
		if _, err := b.ask(t.Context(), r()); !errors.Is(err, want) {
			t.Errorf("after %d questions: %v, want %v", n, err, want)
		}
		return all
	}
	decide := func(all []*approval.Request) {
		for _, r := range all {
			b.decided(r, end{State: stateDecided, Decision: elicit.Denied})
		}
	}
	first := asks(1, func() *approval.Request { return request("long", "true") }, nil)
	for i := range 2 * maxConversations {
		p.Event(approval.Thread{ID: fmt.Sprint(i)}, protocol.UserMessage{Message: "go"})
	}
	asking := b.byRequest[first[0]].conversation
	if u, _, _ := b.since(0, false); len(u.Order) != maxConversations || u.Order[len(u.Order)-1] != asking.ID || u.Order[0] != b.conversations[maxConversations-1].ID {
		t.Errorf("conversations %d", u.Order)
	}
	asks(0, func() *approval.Request { return long(maxQuestion) }, errTooLong) // with the rest of its JSON
	if !strings.Contains(asking.Note, "too long") {
		t.Error("the page does not say that a question is too long")
	}
	for files, want := range map[int]error{maxFiles: nil, maxFiles + 1: errTooLong} {
		changes := map[string]protocol.FileChange{}
		for i := range files {
			changes[fmt.Sprint(i)] = protocol.FileChange{Add: &protocol.FileContent{}}
		}
		r := request("long", "")
		r.Subject = approval.Patch{Changes: changes}
		asks(0, func() *approval.Request { return r }, want)
		decide([]*approval.Request{r})
	}
	decide(asks(maxOpenBytes/(maxQuestion/2)-1, func() *approval.Request { return long(maxQuestion / 2) }, errTooLong))
	for r := range b.byRequest {
		b.decided(r, end{State: stateDecided})
	}
	if b.openBytes != 0 || len(b.byRequest) != 0 {
		t.Errorf("%d bytes of %d questions are open after the last", b.openBytes, len(b.byRequest))
	}
	for range 3 {
		decide(asks(maxOpen, func() *approval.Request { return request("long", "true") }, errTooMany))
	}
	if len(b.questions) != maxDecided {
		t.Errorf("%d questions are kept", len(b.questions))
	}
}

// TestAnswerBeatsWithdrawal checks that an accepted answer is returned even if the question
// is withdrawn at the same time, because it may be the stricter one.
func TestAnswerBeatsWithdrawal(t *testing.T) {
	b := newBoard()
	q := must.Get(b.ask(t.Context(), request("1", "true")))(t)
	if end, found := b.answer(q.ID, []byte(`{"action":"decline"}`)); end != nil || !found {
		t.Fatalf("the answer was not taken: %v, %v", end, found)
	}
	must.Equal(t, "the answer", `{"action":"decline"}`, string(must.Get(b.withdraw(q, context.Canceled))(t)))
}

func request(thread, command string) *approval.Request {
	argv := []string{command}
	return &approval.Request{Thread: approval.Thread{ID: thread}, Subject: approval.Command{Command: argv}, Question: &elicit.Question{}}
}

// long returns a question of that many bytes.
func long(size int) *approval.Request {
	q := &elicit.Question{Message: strings.Repeat("x", size)}
	return &approval.Request{Thread: approval.Thread{ID: "long"}, Subject: approval.Other{Ask: q}, Question: q}
}

// TestAnnouncedLink announces the same link until half of its lifetime has passed, so that a person who
// reads it late has time left. The one before still works then.
func TestAnnouncedLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d door
		first := d.announce()
		for _, tt := range []struct {
			after time.Duration
			same  bool
		}{{0, true}, {30 * time.Minute, true}, {time.Second, false}} {
			time.Sleep(tt.after)
			if got := d.announce(); (got == first) != tt.same {
				t.Errorf("after %v more: the same link: %t, want %t", tt.after, got == first, tt.same)
			}
		}
		if _, ok := d.admit(first); !ok {
			t.Error("the first link does not work any more")
		}
	})
}

// TestServersOfOneThread shows a thread that two servers run as two conversations. Stop and
// the end of one do not affect the other.
func TestServersOfOneThread(t *testing.T) {
	p := newPage("127.0.0.1:1", &Options{})
	stopped := ""
	in := func(session string) approval.Thread {
		return approval.Thread{ID: "t", Server: session, Stop: func() { stopped += session }}
	}
	p.Event(in("a"), protocol.UserMessage{Message: "from a"})
	p.Event(in("b"), protocol.UserMessage{Message: "from b"})
	p.Event(in("a"), protocol.ShutdownComplete{})
	u, _, _ := p.board.since(0, false)
	var got []string
	for _, c := range u.Conversations {
		got = append(got, c.Task+" "+c.State)
	}
	if want := []string{"from b running", "from a closed"}; !slices.Equal(got, want) {
		t.Fatalf("shown %q, want %q", got, want)
	}
	if !p.board.stop(2) || !p.board.stop(1) || p.board.stop(3) {
		t.Error("the page shows other conversations")
	}
	if stopped != "ba" {
		t.Errorf("stopped %q", stopped)
	}
}

// TestState follows a conversation, whose log has what happened.
func TestState(t *testing.T) {
	p := newPage("127.0.0.1:1", &Options{})
	log := "=== turn 1\nuser:\n  a\u202eb\n"
	me := approval.Thread{ID: "1", Log: func() string { return log }}
	for _, tt := range []struct {
		event       protocol.EventMsg
		state, task string
		seen        bool // by a browser
	}{
		{protocol.SessionConfigured{SessionID: "1"}, "", "", true},
		{protocol.UserMessage{Message: "make\nit"}, "running", "make it", true},
		{protocol.UserMessage{Message: "x", Kind: "environment_context"}, "running", "make it", true},
		{protocol.AgentMessageDelta{Delta: "x"}, "running", "make it", false},
		{protocol.SessionConfigured{SessionID: "1"}, "running", "make it", true}, // it was resumed
		{protocol.TaskComplete{}, "", "make it", true},
		{protocol.TaskStarted{}, "running", "make it", true},
		{protocol.TurnAborted{}, "", "make it", true},
		{protocol.ShutdownComplete{}, "closed", "make it", true},
		{protocol.SessionConfigured{SessionID: "1"}, "", "make it", true},
	} {
		_, before, _ := p.board.since(0, false)
		p.Event(me, tt.event)
		u, now, _ := p.board.since(0, false)
		c := u.Conversations[0]
		if c.State != tt.state || c.Task != tt.task || now > before != tt.seen || c.Log != "=== turn 1\nuser:\n  a\\u{202e}b\n" {
			t.Errorf("%T: %+v, news %t", tt.event, c, now > before)
		}
	}
}

// TestNow tells once a second what a running turn does, and what its command has printed.
func TestNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := make(pipes)
		p := newPage("127.0.0.1:1", &Options{})
		p.listen(l)
		began, log := time.Now(), "line 0"
		me := approval.Thread{ID: "1", Log: func() string { return log }, Now: func() string {
			return fmt.Sprintf("running x\u202e for %ds", int(time.Since(began).Seconds()))
		}}
		p.Event(me, protocol.UserMessage{Message: "go"})
		conn := connect(t, p, l)
		defer conn.Close()
		lines := bufio.NewReader(must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t).Body)
		for second := range 4 {
			said := must.Get(lines.ReadString('\n'))(t)
			if !strings.Contains(said, fmt.Sprintf(`"log":"line %d","now":"running x\\u{202e} for %[1]ds"`, second)) || time.Since(began) != time.Duration(second)*time.Second {
				t.Errorf("after %s: %s", time.Since(began), said)
			}
			for range 1000 {
				log = fmt.Sprint("line ", second+1)
				p.Event(me, protocol.ExecCommandOutputDelta{CallID: "1"})
			}
		}
		p.Event(me, protocol.TaskComplete{})
		if said := must.Get(lines.ReadString('\n'))(t); strings.Contains(said, "for ") {
			t.Errorf("at the end %s", said)
		}
		must.Check(t, p.Close())
	})
}

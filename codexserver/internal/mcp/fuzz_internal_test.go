package mcp

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/internal/era"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// parkOne returns a session with one call that waits for answers, and the state of the call.
func parkOne(t testing.TB) (*ModernSession, *call, string) {
	s := &ModernSession{client: &Client{threads: &thread.Share{}, server: &Server{Seal: &Seal{Logger: slog.New(slog.DiscardHandler)}}}}
	c := &call{session: s, tool: "codex", digest: digest{1, 2, 3}}
	state, err := s.park(c, []string{"q1"})
	if err != nil {
		t.Fatal(err)
	}
	return s, c, state
}

// ticket returns the sealed content of a state.
func (s *ModernSession) ticket(t testing.TB, state string) (k ticket) {
	plain, err := s.client.server.Seal.open(state)
	if err == nil {
		err = json.Unmarshal(plain, &k)
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// FuzzResume resumes with a state that the server did not send, and with one that an attacker
// sealed with the key. Neither may resume a call.
func FuzzResume(f *testing.F) {
	_, _, state := parkOne(f)
	f.Add(state, []byte(`{}`))
	f.Add("", []byte(`{"i":"","p":1,"n":"","t":"thread","k":["q1"],"at":"2026-07-28T00:00:00Z","d":""}`))
	f.Add(state[:40], []byte(`{"n":null,"k":null,"at":null}`))
	f.Add(state+"\n", []byte(`{"at":"0001-01-01T00:00:00Z"}`))
	f.Fuzz(func(t *testing.T, sealed string, plain []byte) {
		s, c, state := parkOne(t)
		forged, err := s.client.server.Seal.seal(plain)
		if err != nil {
			t.Fatal(err)
		}
		forgeries := []string{sealed, forged}
		// If the bytes are a ticket, everything in it is valid except the one-time number.
		k, right := ticket{}, s.ticket(t, state)
		if json.Unmarshal(plain, &k) == nil && k.Number != right.Number {
			k.Instance, k.Digest, k.Issued = right.Instance, right.Digest, right.Issued
			if plain, err := json.Marshal(k, jsontext.AllowInvalidUTF8(true)); err == nil {
				forged, _ := s.client.server.Seal.seal(plain)
				forgeries = append(forgeries, forged)
			}
		}
		for _, forged := range forgeries {
			st, result, err := s.resume(forged, c.digest)
			if st != nil || (result == nil) == (err == nil) {
				t.Fatalf("%q: %v, %v, %v", forged, st, result, err)
			}
			if result != nil {
				if _, err := modern.Encode(result); err != nil {
					t.Errorf("%q: %v", plain, err)
				}
			}
		}
		if _, _, err := s.resume(state, digest{}); err == nil {
			t.Error("with another digest")
		}
		if st, _, err := s.resume(state, c.digest); err != nil || st == nil || st.call != c {
			t.Fatalf("the state itself: %v", err)
		}
		if st, _, _ := s.resume(state, c.digest); st != nil {
			t.Error("twice")
		}
	})
}

// FuzzRequest decodes params. If they decode, they must be recognized as a request of this
// era. If they do not, the error must have a code of the specification.
func FuzzRequest(f *testing.F) {
	for _, params := range []string{
		``, `null`, `[]`, `{}`, `{"_meta":null}`, `{"_meta":{}}`,
		`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`,
		`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}},"progressToken":1,"io.modelcontextprotocol/logLevel":"info"}}`,
		`{"_meta":{"io.modelcontextprotocol/clientInfo":7}}`,
		`{"a":1,"a":2,"_meta":{"io.modelcontextprotocol/protocolVersion":"x"}}`,
		`{"_meta":{},"_meta":{"io.modelcontextprotocol/clientCapabilities":[]}}`,
		"{\"a\":\"\xff\",\"\\u005fmeta\":{\"io.modelcontextprotocol/protocolVersion\":1}}",
	} {
		f.Add([]byte(params))
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		meta := era.Meta(params)
		speaks := meta != nil
		var p struct {
			Meta map[string]jsontext.Value `json:"_meta"`
		}
		if json.Unmarshal(params, &p) == nil && bytes.HasPrefix(bytes.TrimLeft(params, " \t\r\n"), []byte("{")) {
			want := p.Meta[modern.MetaProtocolVersion] != nil || p.Meta[modern.MetaClientInfo] != nil || p.Meta[modern.MetaClientCapabilities] != nil
			if speaks != want {
				t.Errorf("%q: of this era %t, want %t", params, speaks, want)
			}
		}
		if !speaks {
			return
		}
		q, err := newMetadata(meta)
		if err == nil {
			if *q.meta.ProtocolVersion != modern.ProtocolVersion {
				t.Errorf("%q: read with version %q", params, *q.meta.ProtocolVersion)
			}
			return
		}
		var e *jsonrpc.Error
		if !errors.As(err, &e) || e.Code != modern.CodeInvalidParams && e.Code != modern.CodeUnsupportedProtocolVersion || !stdjson.Valid(e.Data) {
			t.Errorf("%q: %v", params, err)
		}
	})
}

// TestForgedTicket seals states like a command that has read the key. The command knows
// everything in a state except the one-time number. No such state may resume a call.
func TestForgedTicket(t *testing.T) {
	s, c, state := parkOne(t)
	right := s.ticket(t, state)
	for name, change := range map[string]func(*ticket){
		"another number":         func(k *ticket) { k.Number = "AAAAAAAAAAAAAAAAAAAAAAAAAA" },
		"no number":              func(k *ticket) { k.Number = "" },
		"another instance":       func(k *ticket) { k.Instance = "AAAA" },
		"no instance":            func(k *ticket) { k.Instance = "" },
		"an expired one":         func(k *ticket) { k.Issued = time.Now().Add(-stateLife - time.Second) },
		"another call":           func(k *ticket) { k.Digest = "00" },
		"the thread of a victim": func(k *ticket) { k.Number, k.Thread, k.Keys = "", "victim", []string{"q1", "q2"} },
	} {
		forged := right
		change(&forged)
		plain, err := json.Marshal(forged)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := s.client.server.Seal.seal(plain)
		if err != nil {
			t.Fatal(err)
		}
		if st, _, _ := s.resume(sealed, c.digest); st != nil {
			t.Errorf("%s: resumes a call", name)
		}
	}
	if st, _, err := s.resume(state, c.digest); err != nil || st.call != c {
		t.Errorf("the state itself: %v", err)
	}
}

// TestEndedCallsAreForgotten parks calls that end before a client resumes them.
func TestEndedCallsAreForgotten(t *testing.T) {
	s, open, state := parkOne(t)
	var last string
	for range 3 * maxEnded {
		done := make(chan struct{})
		close(done)
		c := &call{session: s, tool: "codex", done: done}
		var err error
		if last, err = s.park(c, []string{"q1"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.states.parked); n > 2*maxEnded+1 {
		t.Errorf("%d states are kept", n)
	}
	if st, _, err := s.resume(last, digest{}); err != nil || st == nil {
		t.Errorf("the last one: %v", err)
	}
	if st, _, err := s.resume(state, open.digest); err != nil || st.call != open {
		t.Errorf("one that has not ended: %v", err)
	}
}

// TestUnfinishedCallsAreLimited checks the limit for calls that have not ended.
func TestUnfinishedCallsAreLimited(t *testing.T) {
	s := &ModernSession{client: &Client{threads: &thread.Share{}, server: &Server{}}}
	var leave func()
	for i := range maxCalls {
		var err error
		if leave, err = (&call{session: s, tool: "codex"}).enter(false); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	for tool, refused := range map[string]bool{"codex": true, "codex-wait": true, "codex-list": false, "codex-interrupt": false} {
		if _, err := (&call{session: s, tool: tool}).enter(false); (err != nil) != refused {
			t.Errorf("one more of %s: %v", tool, err)
		}
	}
	leave()
	if _, err := (&call{session: s, tool: "codex"}).enter(false); err != nil {
		t.Errorf("with a free place: %v", err)
	}
}

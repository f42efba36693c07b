package appserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

var update = flag.Bool("update", false, "write the golden files anew")

type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

// step is a line of a recording: a message of the bridge or of the app-server.
type step struct {
	C2S *message        `json:"c2s"`
	S2C json.RawMessage `json:"s2c"`
}

// replay plays the app-server of a recording. It sends each recorded message after the bridge has sent those before it.
type replay struct {
	t     *testing.T
	wire  jsonrpc.Transport
	home  string                     // of the app-server
	ids   map[string]json.RawMessage // the bridge's request ids by the recorded ones
	ahead []message                  // of the bridge, not yet called for
}

func (r *replay) run(steps []step) {
	defer r.wire.Close()
	for _, s := range steps {
		if s.C2S != nil {
			if !r.await(s.C2S) {
				return
			}
			continue
		}
		line := s.S2C
		var m message
		r.must(json.Unmarshal(line, &m))
		if m.Method == "" {
			line = bytes.Replace(line, []byte(`"codexHome":"$CODEX_HOME"`), fmt.Appendf(nil, `"codexHome":%q`, r.home), 1)
			line = bytes.Replace(line, fmt.Appendf(nil, `"id":%s`, m.ID), fmt.Appendf(nil, `"id":%s`, r.ids[string(m.ID)]), 1)
		}
		r.must(r.wire.Write(context.Background(), [][]byte{line}))
	}
	for { // until the bridge leaves
		if _, ok := r.read(); !ok {
			return
		}
	}
}

func (r *replay) must(err error) {
	if err != nil {
		r.t.Error(err)
	}
}

// await waits until the bridge has sent the recorded message.
func (r *replay) await(want *message) bool {
	for i := 0; ; i++ {
		if i == len(r.ahead) {
			m, ok := r.read()
			if !ok {
				r.t.Errorf("the bridge left without %s%s", want.Method, want.Result)
				return false
			}
			r.ahead = append(r.ahead, m)
		}
		m := r.ahead[i]
		if want.Method != "" && m.Method == want.Method || want.Method == "" && m.Method == "" && string(m.ID) == string(want.ID) {
			r.ids[string(want.ID)] = m.ID
			r.ahead = append(r.ahead[:i], r.ahead[i+1:]...)
			return true
		}
	}
}

// read returns the next message of the bridge that can be in a recording.
func (r *replay) read() (message, bool) {
	for {
		line, err := r.wire.Read(context.Background())
		if err != nil {
			return message{}, false
		}
		var m message
		r.must(json.Unmarshal(line, &m))
		if bytes.Contains(line, []byte(`"jsonrpc"`)) {
			r.t.Errorf("the dialect has no jsonrpc member: %s", line)
		}
		switch m.Method {
		case "config/read":
			r.must(r.wire.Write(context.Background(), [][]byte{fmt.Appendf(nil, `{"id":%s,"result":{"config":{}}}`, m.ID)}))
		case "account/read":
			r.must(r.wire.Write(context.Background(), [][]byte{fmt.Appendf(nil, `{"id":%s,"result":{"account":null,"requiresOpenaiAuth":false}}`, m.ID)}))
		case "command/exec": // the trial of the sandbox
			r.must(r.wire.Write(context.Background(), [][]byte{fmt.Appendf(nil, `{"id":%s,"result":{"exitCode":0,"stdout":"","stderr":""}}`, m.ID)}))
		case "thread/goal/get":
			r.must(r.wire.Write(context.Background(), [][]byte{fmt.Appendf(nil, `{"id":%s,"result":{"goal":null}}`, m.ID)}))
		default:
			return m, true
		}
	}
}

func readRecording(t *testing.T, path string) []step {
	t.Helper()
	b := must.Get(os.ReadFile(path))(t)
	var steps []step
	for line := range bytes.Lines(b) {
		var s step
		must.OK(t, json.Unmarshal(line, &s))
		steps = append(steps, s)
	}
	return steps
}

// recorded is a person's decision in a recording.
func recorded(steps []step) elicit.Decision {
	for _, s := range steps {
		if s.C2S == nil || s.C2S.Result == nil {
			continue
		}
		var r struct{ Decision, Action string }
		_ = json.Unmarshal(s.C2S.Result, &r)
		return map[string]elicit.Decision{
			"accept": elicit.Approved, "acceptForSession": elicit.ApprovedForSession,
			"decline": elicit.Denied, "cancel": elicit.Abort,
		}[r.Decision+r.Action]
	}
	return ""
}

// TestRecordings plays recordings of the real app-server, and compares the events, in order, with golden files.
func TestRecordings(t *testing.T) {
	files, err := filepath.Glob("testdata/traffic/*.ndjson")
	if err != nil || len(files) < 15 {
		t.Fatalf("recordings: %v, %v", files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".ndjson")
		t.Run(name, func(t *testing.T) {
			steps := readRecording(t, file)
			var got []byte
			synctest.Test(t, func(t *testing.T) {
				h := decide(recorded(steps))
				err := play(t, steps, h)
				got = fmt.Appendf(h.lines(t), "%q\n", fmt.Sprint(err))
			})
			golden := filepath.Join("testdata/events", name+".ndjson")
			if *update {
				must.OK(t, os.WriteFile(golden, got, 0o644))
			}
			want := must.Get(os.ReadFile(golden))(t)
			must.Equal(t, "events", string(want), string(got))
		})
	}
}

// play runs one turn against a recording, and returns its error.
func play(t *testing.T, steps []step, h *recorder) error {
	ours, theirs := jsonrpc.Pipe()
	r := &replay{t: t, wire: theirs, home: t.TempDir(), ids: map[string]json.RawMessage{}}
	done := make(chan struct{})
	go func() { defer close(done); r.run(steps) }()
	e, err := appserver.New(nil)
	must.OK(t, err)
	e.Dial(func(context.Context) (jsonrpc.Transport, error) { return ours, nil })
	err = start(t, e, h).Turn(t.Context(), text("go"))
	e.Close()
	<-done
	return err
}

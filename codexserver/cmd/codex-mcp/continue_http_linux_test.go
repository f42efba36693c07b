package main

import (
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestEndToEndContinuedQuestion kills a server over HTTP while a turn asks whose client shows no questions. At the
// next server the question waits for another client too, as it did before.
func TestEndToEndContinuedQuestion(t *testing.T) {
	f := newFolders(t)
	model := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		if len(r.ToolOutputs()) > 0 {
			return providertest.Say("the question was decided")
		}
		return providertest.Call(providertest.Shell("c", "touch", "file"))
	}})
	t.Cleanup(model.Close)
	s := startHTTP(t, f, model, "-c", "approval_policy=untrusted")
	call := func(tool, arguments string) string {
		status, body, err := s.tool(tool, arguments)
		if err != nil || status != 200 {
			t.Fatalf("%s: %d %s %v", tool, status, body, err)
		}
		return body
	}
	waits := func(asked int) { // how often the model was asked when the question waits
		t.Helper()
		for end := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
			got := call("codex-list", `{}`)
			if strings.Contains(got, `"status":"waiting"`) {
				return
			}
			if len(model.Requests()) > asked || time.Now().After(end) {
				t.Fatalf("the question does not wait: %s", got)
			}
		}
	}
	call("codex", `{"prompt":"work","background":true}`)
	waits(1)
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.exited
	s = serveIn(t, f, "--engine", "native", "-c", "approval_policy=untrusted")
	waits(2) // the turn that continues asks the model again
}

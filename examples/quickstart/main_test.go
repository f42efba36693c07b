package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/tools/txtar"
)

func TestMain(m *testing.M) {
	native.Main() // does not return if the engine started this process to run commands
	testenv.Forget()
	os.Exit(m.Run())
}

// TestInterrupted ends the wait for a person.
func TestInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	p := &person{keys: make(chan rune), raw: noTerminal, out: io.Discard}
	if out := p.decide(ctx, &approval.Request{Question: &elicit.Question{}}); out.Decision != elicit.Abort {
		t.Errorf("decision %q", out.Decision)
	}
}

func noTerminal() func() { return func() {} }

// TestRun compares the output when the answer is typed and when it is a flag.
func TestRun(t *testing.T) {
	testenv.NeedsUnix(t, testenv.Paths)
	screen := map[string]string{}
	for _, f := range must.Get(txtar.ParseFile("testdata/screens.txtar"))(t).Files {
		screen[f.Name] = string(f.Data)
	}
	const asks = "y approve   n deny   s stop: "
	accepted, declined, cancelled := screen["accepted"], screen["declined"], screen["cancelled"]
	for _, tt := range []struct{ answer, typed, want string }{
		{"accept", "", accepted},
		{"", "y", asks + accepted},
		{"", "what?\nYx\nn", asks + declined}, // other keys do nothing
		{"", "\x03y", asks + cancelled},
		{"", "", asks + declined}, // the input ends
		{"cancel", "", cancelled},
	} {
		t.Run(fmt.Sprintf("%q,%q", tt.answer, tt.typed), func(t *testing.T) {
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			var out bytes.Buffer
			p := &person{answer: tt.answer, keys: readKeys(strings.NewReader(tt.typed)), raw: noTerminal, out: &out}
			must.OK(t, run(t.Context(), p, "", "scripted", "a task"))
			if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
			got := regexp.MustCompile("/[^`\n]*/quickstart\\d+/").ReplaceAllString(out.String(), "DIR/")
			must.Equal(t, "result", screen["begin"]+tt.want, got)
		})
	}
}

package main

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// announced opens a page, and returns a function that asks a question, which is withdrawn, and one that closes the page.
func announced(t *testing.T, stderr *deaf, when announcing) (ask, end func()) {
	t.Helper()
	c := &configuration{
		home: t.TempDir(), log: slog.New(slog.DiscardHandler),
		settings: &config.Settings{Approvals: config.ApprovalSettings{Asking: setting.Asking{Where: setting.WhereBoth}}},
	}
	var o codexserver.Options
	closePage := must.Get(c.openPage(&o, stderr, when))(t)
	withdrawn, withdraw := context.WithCancel(t.Context())
	withdraw()
	ask = func() {
		_, _ = o.Desk.Ask(withdrawn, &approval.Request{Subject: approval.Other{}, Question: &elicit.Question{}})
	}
	return ask, func() { must.Check(t, closePage()) }
}

// TestPageWithBlockedStderr checks that a client which does not read stderr does not delay a question.
func TestPageWithBlockedStderr(t *testing.T) {
	stderr := &deaf{released: make(chan struct{})}
	ask, end := announced(t, stderr, linkAgain)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for range 10 {
			ask()
		}
	}()
	select {
	case <-asked:
	case <-time.After(30 * time.Second):
		t.Error("a question waits for stderr")
	}
	close(stderr.released)
	end()
	<-asked
}

// TestLinksArePrintedAgain checks that the link is printed again for a question, unless a terminal shows the question.
func TestLinksArePrintedAgain(t *testing.T) {
	for when, want := range map[announcing]int{linkOnce: 1, linkAgain: 2, linkNever: 2} {
		stderr := &deaf{released: make(chan struct{}), wrote: make(chan struct{}, 8)}
		close(stderr.released)
		ask, end := announced(t, stderr, when)
		ask()
		for range want {
			<-stderr.wrote
		}
		end()
		if stderr.lines != want || stderr.links != (when != linkNever) {
			t.Errorf("%d: %d lines printed, want %d; with links: %t", when, stderr.lines, want, stderr.links)
		}
	}
}

// deaf is a writer that accepts one line, and blocks at the next until it is released.
type deaf struct {
	lines    int
	links    bool // a line has a link
	released chan struct{}
	wrote    chan struct{} // nil if nothing waits
}

func (d *deaf) Write(b []byte) (int, error) {
	if d.lines++; d.lines > 1 {
		<-d.released
	}
	d.links = d.links || bytes.Contains(b, []byte("/#"))
	if d.wrote != nil {
		d.wrote <- struct{}{}
	}
	return len(b), nil
}

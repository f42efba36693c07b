package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/jetstore"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestForgetUser forgets users of whom something is left, and none that is configured or that a node has.
func TestForgetUser(t *testing.T) {
	s := operated(t) // ann and bob have leases
	c := &configuration{home: t.TempDir(), http: settings.HTTP{Principals: map[string]settings.Principal{"ann": {}}}}
	must.Get(jetstore.Open(t.Context(), s.broker.Stream, jetstore.Options{User: "dan", Epoch: 1}))(t)
	for _, user := range []string{"ann", "bob", "dan", "eve"} {
		must.OK(t, os.MkdirAll(filepath.Join(c.homeOf(user), "sessions"), 0o700))
	}
	for _, tt := range []struct{ user, says, err string }{
		{"ann", "", "http.principals.ann: first remove the table"},
		{"bob", "", "the node b has the user"},
		{"../bob", "", "want a name"},
		{"dan", "removed state in NATS\nremoved home " + c.homeOf("dan") + "\n", ""},
		{"dan", "there was no state in NATS\nthere was no home " + c.homeOf("dan") + "\n", ""},
		{"eve", "there was no state in NATS\nremoved home " + c.homeOf("eve") + "\n", ""},
	} {
		var out bytes.Buffer
		err := s.forgetUser(t.Context(), c, tt.user, slog.New(slog.DiscardHandler), &out)
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) || out.String() != tt.says {
			t.Errorf("forget %s: %q, %v", tt.user, &out, err)
		}
		if _, err := os.Stat(c.homeOf(filepath.Base(tt.user))); (err == nil) != (tt.err != "") {
			t.Errorf("the home of %s: %v", tt.user, err)
		}
	}
}

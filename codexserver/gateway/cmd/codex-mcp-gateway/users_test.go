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
	"github.com/google/go-cmp/cmp"
)

// TestUsers lists the users that are configured, that a node has, and of whom something is left, and
// forgets the last.
func TestUsers(t *testing.T) {
	s := operated(t) // ann and bob have leases
	log := slog.New(slog.DiscardHandler)
	c := &configuration{home: t.TempDir(), http: settings.HTTP{Principals: map[string]settings.Principal{"ann": {Tokens: []string{"x", "y"}}}}}
	for _, user := range []string{"ann", "dan"} {
		if _, err := jetstore.Open(t.Context(), s.broker.Stream, jetstore.Options{User: user, Epoch: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for _, user := range []string{"ann", "dan", "eve"} {
		if err := os.MkdirAll(filepath.Join(c.homeOf(user), "sessions"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	table := func() (lines []string) {
		var out bytes.Buffer
		if err := s.printUsers(t.Context(), c, false, &out); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		return lines[1:]
	}
	if diff := cmp.Diff([]string{"ann yes b yes yes", "bob no b no no", "dan no - yes yes", "eve no - no yes"}, table()); diff != "" {
		t.Errorf("the users (-want +got):\n%s", diff)
	}
	for _, tt := range []struct{ user, says, err string }{
		{"ann", "", "http.principals.ann: first remove the table"},
		{"bob", "", "the node b has the user"},
		{"../bob", "", "want a name"},
		{"dan", "removed state in NATS\nremoved home " + c.homeOf("dan") + "\n", ""},
		{"eve", "there was no state in NATS\nremoved home " + c.homeOf("eve") + "\n", ""},
		{"fay", "there was no state in NATS\nthere was no home " + c.homeOf("fay") + "\n", ""},
	} {
		var out bytes.Buffer
		err := s.forgetUser(t.Context(), c, tt.user, log, &out)
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) || out.String() != tt.says {
			t.Errorf("forget %s: %q, %v", tt.user, &out, err)
		}
	}
	if diff := cmp.Diff([]string{"ann yes b yes yes", "bob no b no no"}, table()); diff != "" {
		t.Errorf("the users afterwards (-want +got):\n%s", diff)
	}
	var object bytes.Buffer
	if err := s.printUsers(t.Context(), c, true, &object); err != nil || !strings.Contains(object.String(), `"configured": true`) || !strings.Contains(object.String(), `"state": true`) {
		t.Errorf("%v, %s", err, &object)
	}
}
